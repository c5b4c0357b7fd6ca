"""The papers' encoders and question generator beside other CPU runtimes: the same checkpoints, ids and threads.

    pip install ctranslate2 openvino
    python -m bench.peers

Ours are int8 and float32 graphs; the peers are PyTorch in float32, and in bfloat16 where the processor has it; ONNX
Runtime as optimum exports and quantizes for it; OpenVINO with the precision that it chooses; and CTranslate2 in int8,
for the models that it reads. Random weights at true size, as in ``paper_size``: a forward pass takes as long as with
trained ones. Every float32 side must give PyTorch's numbers; the errors of the others are reported.

Encoders are timed with one row and with 64 rows too, in the runtimes of ``BATCH_SIDES``: how much less a row takes in a
batch.
"""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import torch
import typer

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ClassifierRole, ExtractiveQARole, QuestionGeneratorRole
from groundwire.runtime.models.question_generator import QuestionGenerator
from groundwire.runtime.ort.session import Array, DeviceProfile, Session
from groundwire.runtime.resources import usable_cores
from groundwire.runtime.texts.tokenization import Window

from .support import common, models
from .support.common import PerformanceTarget, Timing, check
from .support.peer import Torch
from .support.pieces import EXACT, QUESTION, make_ids

TASKS = {"qa": "question-answering", "nli": "text-classification", "detector.consistency": "text-classification"}
"""Encoders, with what optimum calls their task."""
ROLES = (*TASKS, "qg")
TARGETS = {"qa": 1.0, "nli": 1.0, "detector.consistency": 1.0, "qg": 2.0}
"""How many times faster than the fastest peer int8 should be."""
OVER_PYTORCH = 4.0
ALONE, TOGETHER = 1, 64
"""Rows of the two batches that tell what a row gains."""
BATCH_SIDES = ("int8", "PyTorch float32", "optimum int8")
BATCH_GAIN = 1.5
"""How many times less a row should take among ``TOGETHER``."""
WITHOUT_HEAD = "CTranslate2 int8, without head"
EXACT_SIDES = frozenset({"float32", "optimum float32"})


Feeds: TypeAlias = dict[str, Array]
"""The inputs of an encoder by name."""
Run: TypeAlias = Callable[[Feeds], list[Array]]
"""All outputs of an encoder."""


class Side(NamedTuple):
    """One runtime with a model."""

    run: Callable[[], object]
    logits: Callable[[], Array] | None
    """Its numbers, to compare; None where it gives none (generation)."""


class Measured(msgspec.Struct, frozen=True):
    """One side's time for one model."""

    role: str
    model: str
    input: str
    side: str
    """``int8`` and ``float32`` are ours."""
    wall: Timing
    error: float | None
    """Largest difference from PyTorch in float32, in standard deviations of its numbers."""


def main(
    work: Annotated[Path, typer.Option(help="Where checkpoints and bundles are kept (8 GB).")] = common.WORK,
    roles: Annotated[str, typer.Option(help=f"What to measure, of {','.join(ROLES)}.")] = ",".join(ROLES),
    repeats: Annotated[int, typer.Option(help="Samples of each side.", min=1)] = 7,
    threads: Annotated[int | None, typer.Option(help="Threads of every side; default: all usable.", min=1)] = None,
    tiny: Annotated[bool, typer.Option(help="Tiny models, to try the benchmark itself; checks no targets.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="JSON file; default bench/results, or none with --tiny or fewer roles.")
    ] = None,
) -> None:
    """Measure the papers' models in several runtimes."""
    wanted = roles.split(",")
    if set(wanted) - set(ROLES):
        raise typer.BadParameter(f"{roles}: give some of {','.join(ROLES)}", param_hint="--roles")
    threads = threads or usable_cores()
    torch.set_num_threads(threads)
    size = models.TINY if tiny else models.PAPER
    rows: list[Measured] = []
    for role in wanted:
        rows += measure(role, work, size, threads, 2 if tiny else repeats, tiny=tiny)
        gc.collect()
    common.console().print(
        common.table(
            "milliseconds, and how many times slower than int8",
            ("role", "input", "side", "p50", "p95", "× int8", "error"),
            [
                (
                    row.role,
                    row.input,
                    row.side,
                    f"{row.wall.p50_ms:.1f}",
                    f"{row.wall.p95_ms:.1f}",
                    f"{row.wall.p50_ms / find(rows, row.role, 'int8', row.input):.2f}",
                    "" if row.error is None else f"{row.error:.1e}",
                )
                for row in rows
            ],
        )
    )
    settings: dict[str, int | float | str | None] = {"threads": threads, "repeats": repeats, "roles": roles}
    for name in ("ctranslate2", "openvino", "optimum", "onnxruntime"):
        settings[name] = find_version(name)
    whole = not tiny and set(wanted) == set(ROLES)
    targets = list(list_targets(rows, wanted)) if not tiny else []
    common.finish("peers", settings, rows, targets, out or (common.RESULTS / "peers.json" if whole else None))


def list_targets(rows: list[Measured], wanted: list[str]) -> Iterator[PerformanceTarget]:
    """What int8 should be ahead by."""
    for role in wanted:
        of_role = [row for row in rows if row.role == role]
        first = of_role[0].input
        peers = {
            row.side: row.wall.p50_ms for row in of_role if row.input == first and row.side not in ("int8", "float32")
        }
        ours = find(rows, role, "int8", first)
        fastest = min(peers, key=lambda side: peers[side])
        yield PerformanceTarget.at_least(
            f"{role}: over the fastest peer ({fastest})", peers[fastest] / ours, TARGETS[role], "×"
        )
        yield PerformanceTarget.at_least(
            f"{role}: over PyTorch float32", peers["PyTorch float32"] / ours, OVER_PYTORCH, "×"
        )
        if role in TASKS:
            alone, together = (row.wall.p50_ms for row in of_role if row.input != first and row.side == "int8")
            gain = alone / ALONE / (together / TOGETHER)
            yield PerformanceTarget.at_least(f"{role}: a row among {TOGETHER} over a row alone", gain, BATCH_GAIN, "×")


def find(rows: list[Measured], role: str, side: str, about: str) -> float:
    """The median of a side with an input, in milliseconds."""
    return next(row.wall.p50_ms for row in rows if (row.role, row.side, row.input) == (role, side, about))


def find_version(name: str) -> str | None:
    """The installed version of a package; None where it is missing."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def measure(role: str, work: Path, size: models.Size, threads: int, repeats: int, *, tiny: bool) -> list[Measured]:
    """Time every side of a role in turns."""
    folder = models.checkpoint(work, size, role)
    bundles = {
        "int8": models.bundle(work, {role: folder}, "int8"),
        "float32": models.bundle(work, {role: folder}, "fp32"),
    }
    if role == "qg":
        shape = (2, 12) if tiny else (5, 32)
        about = f"{shape[0]} sources of {shape[1]} tokens, beam 5, 20 tokens"
        sides = open_generators(folder, bundles, shape, threads)
    else:
        shape = (2, 16) if tiny else (8, 48)
        about = describe_shape(shape)
        runs = open_encoders(role, folder, bundles, threads)
        feeds = make_feeds(role, folder, shape)
        sides = {
            name: Side(partial(run, feeds), None if name == WITHOUT_HEAD else partial(stack_outputs, run, feeds))
            for name, run in runs.items()
        }
    errors: dict[str, float | None] = dict.fromkeys(sides)
    exact = sides["PyTorch float32"].logits
    if exact is not None:
        expected = exact()
        for name, side in sides.items():
            if side.logits is not None:
                errors[name] = float(np.abs(side.logits() - expected).max() / expected.std())
        for name in EXACT_SIDES & set(sides):
            error = errors[name]
            check(error is not None and error <= EXACT, f"{role}, {name}: {error} standard deviations from PyTorch")
    timings = common.interleaved({name: side.run for name, side in sides.items()}, repeats)
    rows = [Measured(role, models.NAMES[role], about, name, timing, errors[name]) for name, timing in timings.items()]
    if role != "qg":
        rows += measure_batches(role, folder, runs, shape[1], repeats)
    return rows


def measure_batches(role: str, folder: Path, runs: dict[str, Run], width: int, repeats: int) -> list[Measured]:
    """Time one row, and many rows, in the runtimes of ``BATCH_SIDES``, all in turns."""
    shapes = [(count, width) for count in (ALONE, TOGETHER)]
    subjects = {
        (shape, name): partial(runs[name], make_feeds(role, folder, shape)) for shape in shapes for name in BATCH_SIDES
    }
    names = {f"{describe_shape(shape)} {name}": (shape, name) for shape, name in subjects}
    timings = common.interleaved({text: subjects[key] for text, key in names.items()}, repeats)
    return [
        Measured(role, models.NAMES[role], describe_shape(shape), name, timings[text], None)
        for text, (shape, name) in names.items()
    ]


def describe_shape(shape: tuple[int, int]) -> str:
    """Rows and tokens of a batch in words."""
    return f"{shape[0]} × {shape[1]} tokens"


def make_feeds(role: str, folder: Path, shape: tuple[int, int]) -> Feeds:
    """A batch of random ids without padding."""
    vocabulary = json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    feeds = make_ids(shape, vocabulary, ("input_ids", "attention_mask", "token_type_ids"))
    if role == "nli":
        del feeds["token_type_ids"]  # RoBERTa has one type
    return feeds


def stack_outputs(run: Run, feeds: Feeds) -> Array:
    """All outputs one above another, to compare them."""
    return np.stack(run(feeds))


def open_encoders(role: str, folder: Path, bundles: dict[str, Bundle], threads: int) -> dict[str, Run]:
    """Every runtime with an extractive QA model or a classifier."""
    runs: dict[str, Run] = {}
    profile = DeviceProfile.of("cpu", threads)
    for name, bundle in bundles.items():
        record = bundle.manifest.roles[role]
        assert isinstance(record, ExtractiveQARole | ClassifierRole)
        runs[name] = partial(run_session, Session.load(bundle.file(record.graph), profile))
    runs["PyTorch float32"] = partial(run_torch, Torch(role, folder))
    if has_bfloat16():
        half = Torch(role, folder)
        half.model = half.model.to(torch.bfloat16)
        runs["PyTorch bfloat16"] = partial(run_torch, half)
    exported = export_by_optimum(role, folder)
    for name, file in exported.items():
        runs[f"optimum {name}"] = open_onnx(file, threads)
    if importlib.util.find_spec("openvino") is not None:
        runs["OpenVINO"] = open_openvino(exported["float32"], threads)
    if role != "qa" and importlib.util.find_spec("ctranslate2") is not None:
        runs[WITHOUT_HEAD] = open_ctranslate2_encoder(folder, threads)
    return runs


def run_session(session: Session, feeds: Feeds) -> list[Array]:
    """All outputs of our graph."""
    return session.run({name: feeds[name] for name in session.inputs})


def run_torch(peer: Torch, feeds: Feeds) -> list[Array]:
    """All outputs of PyTorch's model."""
    tensors = {name: torch.from_numpy(array) for name, array in feeds.items()}
    return [logits.float().numpy() for logits in peer.logits(tensors)]


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16."""
    return any(name in Path("/proc/cpuinfo").read_text(encoding="utf-8") for name in ("avx512_bf16", "amx_bf16"))


def export_by_optimum(role: str, folder: Path) -> dict[str, Path]:
    """The graphs that optimum exports in float32 and quantizes dynamically, kept beside the checkpoint."""
    from optimum.exporters.onnx import main_export
    from optimum.onnxruntime import ORTQuantizer
    from optimum.onnxruntime.configuration import AutoQuantizationConfig

    plain, quantized = (folder.with_name(f"{folder.name}-optimum-{kind}") for kind in ("float32", "int8"))
    if not (plain / "model.onnx").exists():
        main_export(str(folder), plain, task=TASKS[role], do_validation=False, no_post_process=True)
    if not (quantized / "model_quantized.onnx").exists():
        shutil.rmtree(quantized, ignore_errors=True)
        quantizer = ORTQuantizer.from_pretrained(plain, file_name="model.onnx")
        config = AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=True)
        quantizer.quantize(save_dir=quantized, quantization_config=config)
    return {"float32": plain / "model.onnx", "int8": quantized / "model_quantized.onnx"}


def open_onnx(file: Path, threads: int) -> Run:
    """ONNX Runtime with all its optimizations, as a user of optimum runs it."""
    ort = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    return lambda feeds: session.run(None, {name: feeds[name] for name in names})


def open_openvino(file: Path, threads: int) -> Run:
    """OpenVINO on the float32 graph; it computes in bfloat16 where the processor has it."""
    import openvino

    hints: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    model = openvino.Core().compile_model(str(file), "CPU", hints)
    names = [port.get_any_name() for port in model.inputs]
    request = model.create_infer_request()

    def run(feeds: Feeds) -> list[Array]:
        outputs = request.infer({name: feeds[name] for name in names})
        return [np.array(outputs[port]) for port in model.outputs]

    return run


def convert_to_ctranslate2(folder: Path) -> Path:
    """The checkpoint in CTranslate2's form, kept beside it."""
    from ctranslate2.converters import TransformersConverter

    converted = folder.with_name(f"{folder.name}-ctranslate2-int8")
    if not (converted / "model.bin").exists():
        TransformersConverter(str(folder)).convert(str(converted), quantization="int8", force=True)
    return converted


def open_ctranslate2_encoder(folder: Path, threads: int) -> Run:
    """CTranslate2's encoder, which leaves the classifier's head out, so it does a little less."""
    import ctranslate2

    encoder = ctranslate2.Encoder(
        str(convert_to_ctranslate2(folder)), "cpu", compute_type="int8", inter_threads=1, intra_threads=threads
    )
    return lambda feeds: [np.array(encoder.forward_batch(feeds["input_ids"].tolist()).last_hidden_state)]


def open_generators(folder: Path, bundles: dict[str, Bundle], shape: tuple[int, int], threads: int) -> dict[str, Side]:
    """Every runtime with the question generator: the same sources, five beams, twenty tokens."""
    sides: dict[str, Side] = {}
    peer = Torch("qg", folder)
    profile = DeviceProfile.of("cpu", threads)
    ids = make_ids(shape, peer.model.config.vocab_size, ("input_ids",))["input_ids"]
    windows = [Window(row, [0] * len(row), [0] * len(row), [(0, 0)] * len(row)) for row in ids.tolist()]
    for name, bundle in bundles.items():
        record = bundle.manifest.roles["qg"]
        assert isinstance(record, QuestionGeneratorRole)
        generator = QuestionGenerator.load(bundle, record, profile)
        sides[name] = Side(partial(generator.generate, windows, QUESTION), None)
    tensor = torch.from_numpy(ids)
    sides["PyTorch float32"] = Side(lambda: peer.search(tensor, QUESTION), None)
    if importlib.util.find_spec("ctranslate2") is not None:
        sides["CTranslate2 int8"] = open_ctranslate2_generator(folder, peer, ids, threads)
    return sides


def open_ctranslate2_generator(folder: Path, peer: Torch, ids: Array, threads: int) -> Side:
    """CTranslate2's beam search of the same length."""
    import ctranslate2

    translator = ctranslate2.Translator(
        str(convert_to_ctranslate2(folder)), "cpu", compute_type="int8", inter_threads=1, intra_threads=threads
    )
    sources = [peer.tokenizer.convert_ids_to_tokens(row) for row in ids.tolist()]

    def run() -> list[Any]:
        results: list[Any] = translator.translate_batch(
            sources,
            beam_size=QUESTION.num_beams,
            num_hypotheses=QUESTION.num_return_sequences,
            min_decoding_length=QUESTION.max_new_tokens,
            max_decoding_length=QUESTION.max_new_tokens,
            no_repeat_ngram_size=QUESTION.no_repeat_ngram_size,
            return_scores=True,
        )
        return results

    lengths = {len(tokens) for result in run() for tokens in result.hypotheses}
    check(lengths == {QUESTION.max_new_tokens}, f"CTranslate2 writes {lengths} tokens")
    return Side(run, None)


if __name__ == "__main__":
    typer.run(main)
