"""Packs what a host needs to train the reader without a network, a tokenizer or a training set, in small parts.

Recipe for a host with one GPU to which few MiB travel at a time:

1. Here: ``pack`` writes weights, code, rows to measure on and rows to train on (a million are about 73 MB) to one
   directory. Every file is at most ``PART_BYTES`` long; ``manifest.json`` has the weights' digests.
2. Copy the files to one directory of the host, in as many calls as it takes. It needs torch, numpy, transformers and
   safetensors. Files of rows may follow while it trains: copy each under another name, and rename it.
3. There: ``python -m zipfile -e code.zip code``, then ``python code/train_packed.py PACK OUT --seconds 300
   --student-seconds 60`` trains for so long, the small model after the reader, and writes the weights of both to OUT
   in parts.
4. Here: ``unpack --folder OUT --packed PACK --out RUN`` makes a run of the reader of them, and one of the small
   model in ``RUN/student``.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load, save

from ..compact.multitask_model import MultitaskNLI
from .model import Reader

PART_BYTES = 54 * 2**20
READER, STUDENT = "reader.safetensors.xz", "student.safetensors.xz"
TRAINED_READER, TRAINED_STUDENT = "reader.safetensors", "student.safetensors"
AVERAGED_READER = "average.safetensors"
"""The reader's weights averaged over the end of the training."""
CONFIGS = {READER: "reader.json", STUDENT: "student.json"}
"""The files of the backbones' configurations."""
LOGS = {READER: "log.jsonl", STUDENT: "student_log.jsonl"}
"""The files of losses."""
SCALE = ".scale"
"""After the name of a matrix: the scale of each of its rows."""
MANIFEST = "manifest.json"
CODE = (
    *("common/loop.py", "compact/multitask_model.py"),
    *(f"reader/{name}.py" for name in ("model", "loss", "fused", "timed", "packed_rows", "pack", "host")),
)
"""The modules that training from packed rows runs."""
CONSTANTS = {
    "common/backbone.py": ("INPUTS",),
    "compact/nli.py": ("LABELS",),
    **{f"synthesis/{name}.py": ("LABELS",) for name in ("pairs", "structured_edits", "weak_labels")},
}
"""What those modules take from modules that need more; the code has a file of constants in their place."""


def split_bytes(data: bytes, out: Path, name: str, part_bytes: int = PART_BYTES) -> None:
    """Write ``data`` as ``name.000``, ``name.001``, … of ``part_bytes`` at most, and its digest to the manifest."""
    out.mkdir(parents=True, exist_ok=True)
    parts = [data[start : start + part_bytes] for start in range(0, len(data), part_bytes)]
    for number, part in enumerate(parts):
        (out / f"{name}.{number:03}").write_bytes(part)
    path = out / MANIFEST
    manifest = json.loads(path.read_text()) if path.exists() else {}
    manifest[name] = {"parts": len(parts), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def join_bytes(folder: Path, name: str) -> bytes:
    """Join the parts of ``name``; ValueError when one is missing or damaged."""
    entry = json.loads((folder / MANIFEST).read_text())[name]
    paths = [folder / f"{name}.{number:03}" for number in range(entry["parts"])]
    if missing := [path.name for path in paths if not path.is_file()]:
        raise ValueError(f"{folder} lacks {', '.join(missing)} of {name}; copy them too.")
    data = b"".join(path.read_bytes() for path in paths)
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise ValueError(f"The parts of {name} in {folder} have another digest than the manifest; copy them again.")
    return data


def pack_weights(weights: Mapping[str, torch.Tensor], out: Path, name: str, part_bytes: int = PART_BYTES) -> None:
    """Write weights as ``name``: matrices in int8 with one scale a row, the others in float32.

    Args:
        weights: By name.
        out: Directory to write to.
        name: Of the parts.
        part_bytes: Bytes of a part at most.
    """
    packed: dict[str, torch.Tensor] = {}
    for key, value in weights.items():
        full = value.detach().float().cpu()
        if full.dim() < 2:
            packed[key] = full
            continue
        scale = full.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 127
        packed[key], packed[f"{key}{SCALE}"] = (full / scale).round().to(torch.int8), scale
    split_bytes(lzma.compress(save(packed)), out, name, part_bytes)


def pack_models(reader: Reader, student: MultitaskNLI | None, out: Path, part_bytes: int = PART_BYTES) -> None:
    """Write the weights to start from and the backbones' configurations, for the small model too if there is one."""
    out.mkdir(parents=True, exist_ok=True)
    pack_weights(reader.state_dict(), out, READER, part_bytes)
    reader.backbone.config.to_json_file(out / CONFIGS[READER])
    if student is not None:
        pack_weights(student.state_dict(), out, STUDENT, part_bytes)
        student.bert.config.to_json_file(out / CONFIGS[STUDENT])


def unpack_models(folder: Path, packed: Path, out: Path) -> None:
    """Join trained weights in ``folder``, with the frozen weights of the pack ``packed``, to runs.

    Args:
        folder: Directory with the parts that the host wrote.
        packed: Directory of the pack, with its weights.
        out: Directory of the reader's run; ``out/average`` becomes a run with the averaged weights, and
            ``out/student`` the small model's, if it was trained.
    """
    for start, trained, run in (
        (READER, TRAINED_READER, out),
        (READER, AVERAGED_READER, out / "average"),
        (STUDENT, TRAINED_STUDENT, out / "student"),
    ):
        if trained not in json.loads((folder / MANIFEST).read_text()):
            continue
        run.mkdir(parents=True, exist_ok=True)
        weights = unpack_weights(packed, start) | unpack_weights(folder, trained)
        last = (folder / LOGS[start]).read_text().splitlines()[-1]
        torch.save({"model": weights, "step": json.loads(last)["step"]}, run / "checkpoint.pt")
        (run / "config.json").write_text((packed / CONFIGS[start]).read_text())


def write_halves(weights: Mapping[str, torch.Tensor], out: Path, name: str, part_bytes: int = PART_BYTES) -> None:
    """Write weights as ``name`` in fp16."""
    halves = {key: value.detach().half().cpu().contiguous() for key, value in weights.items()}
    split_bytes(save(halves), out, name, part_bytes)


def unpack_weights(folder: Path, name: str) -> dict[str, torch.Tensor]:
    """Join packed weights of either kind, in float32."""
    data = join_bytes(folder, name)
    packed = load(lzma.decompress(data) if name.endswith(".xz") else data)
    scales = {key: packed.pop(f"{key}{SCALE}") for key in list(packed) if f"{key}{SCALE}" in packed}
    return {key: value.float() * scales.get(key, 1.0) for key, value in packed.items()}


def pack_code(out: Path) -> Path:
    """Write ``out/code.zip``: the modules of ``CODE`` as they are, and constants in place of what else they import."""
    root = Path(__file__).parents[1]
    package = __package__.rpartition(".")[0].replace(".", "/")
    with zipfile.ZipFile(out / "code.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in CODE:
            archive.writestr(f"{package}/{name}", (root / name).read_text())
        for name, constants in CONSTANTS.items():
            archive.writestr(f"{package}/{name}", "".join(_write_constants(name, constants)))
        folders = {str(Path(name).parent) for name in (*CODE, *CONSTANTS)}
        packages = [package.rpartition("/")[0], package, *(f"{package}/{folder}" for folder in sorted(folders))]
        for folder in packages:
            archive.writestr(f"{folder}/__init__.py", "")
        runner = f"from {__package__}.host import main\n\nif __name__ == '__main__':\n    main()\n"
        archive.writestr("train_packed.py", runner)
    return out / "code.zip"


def _write_constants(name: str, constants: Sequence[str]) -> Iterator[str]:
    import importlib

    module = importlib.import_module(f"..{name.removesuffix('.py').replace('/', '.')}", __package__)
    for constant in constants:
        yield f"{constant} = {getattr(module, constant)!r}\n"
