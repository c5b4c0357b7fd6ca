"""Packs what a host needs to train the reader without a network, a tokenizer or a training set, in small parts.

Recipe for a host with one GPU to which few MiB travel at a time:

1. Here: ``pack-weights`` and ``pack-rows`` (200,000 rows are about 40 MB), both into one directory; the
   code goes with the weights. Every file is at most ``PART_BYTES`` long; ``manifest.json`` has the weights' digest.
2. Copy the files to one directory of the host, in as many calls as it takes. It needs torch, numpy, transformers and
   safetensors.
3. There: ``unzip code.zip -d code && python code/train_packed.py train PACK RUN --steps 4000 --batch 64``. A later
   call with the same RUN continues from the last checkpoint.
4. There: ``python code/train_packed.py export RUN OUT`` writes the trained weights (no frozen ones) in parts.
5. Here: ``unpack-weights OUT checkpoint.pt`` joins them; give it to ``train`` as ``--start``, which takes the frozen
   ones from the published files.
"""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save

from ..common.loop import Row
from .packed_rows import GROUP, pack_rows

PART_BYTES = 54 * 2**20
WEIGHTS = "weights.safetensors"
MANIFEST = "manifest.json"
CODE = (
    *("common/loop.py", "compact/multitask_model.py"),
    *(f"reader/{name}.py" for name in ("model", "loss", "feed", "packed_rows", "recipe", "pack", "host")),
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
    parts = [data[at : at + part_bytes] for at in range(0, len(data), part_bytes)]
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


def pack_weights(checkpoint: Path, out: Path, config: Path, part_bytes: int = PART_BYTES, skip: str = "") -> None:
    """Write the weights of a checkpoint in fp16, and the backbone's configuration.

    Args:
        checkpoint: ``checkpoint.pt`` of a run, or the start of one.
        out: Directory to write to.
        config: The backbone's ``config.json``.
        part_bytes: Bytes of a part at most.
        skip: Prefixes of names to leave out, separated by commas.
    """
    state: dict[str, Any] = torch.load(checkpoint, map_location="cpu", weights_only=True)
    weights = state.get("model", state.get("m", state))
    prefixes = tuple(prefix for prefix in skip.split(",") if prefix)
    chosen = {key: value for key, value in weights.items() if not (prefixes and key.startswith(prefixes))}
    halves = {key: value.half().contiguous() if value.is_floating_point() else value for key, value in chosen.items()}
    split_bytes(save(halves), out, WEIGHTS, part_bytes)
    (out / "config.json").write_text(config.read_text())


def unpack_weights(folder: Path, checkpoint: Path) -> None:
    """Join packed weights to a checkpoint in float32 that a run can start from."""
    weights = load(join_bytes(folder, WEIGHTS))
    floats = {key: value.float() if value.is_floating_point() else value for key, value in weights.items()}
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"model": floats}, checkpoint)


def write_rows(
    make_group: Callable[[int, random.Random], Sequence[Row]],
    out: Path,
    groups: int,
    first: int = 0,
    seed: int = 13,
    part_bytes: int = PART_BYTES,
) -> Path:
    """Draw ``groups`` groups and write them to ``out/rows-{first}.npz``; other ``first`` are other groups.

    Raises:
        ValueError: If the file is longer than ``part_bytes``.
    """
    out.mkdir(parents=True, exist_ok=True)

    def draw() -> Iterator[Row]:
        for index in range(first, first + groups):
            group = make_group(index, random.Random(seed * 15_485_863 + index))
            assert len(group) == GROUP
            yield from group

    path = out / f"rows-{first:09}.npz"
    arrays: dict[str, Any] = pack_rows(draw())
    np.savez_compressed(path, **arrays)
    if (size := path.stat().st_size) > part_bytes:
        raise ValueError(f"{path} has {size} bytes, more than {part_bytes}; write fewer groups a file.")
    return path


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
