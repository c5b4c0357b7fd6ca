"""The paper's three models at true size with random weights: int8 graphs and the engine against PyTorch.

    python -m bench.paper_size

Writes checkpoints of ALBERT-xlarge (extractive QA), RoBERTa-large (3-way classifier) and T5-base (question generator),
exports them at fp32 and int8 into a work directory that later runs reuse, and measures, always with the same number of
threads on both sides:

- each graph alone against PyTorch float32 on the same ids (``pieces.py``), after comparing their numbers;
- the float32 runtime against PyTorch from text to text on every call of one response;
- whole Q² with equal work on both sides (``every_call.py`` says which).

Random weights leave the time of a forward pass as it is. They do not show accuracy: int8 errors are reported, not
checked.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import torch
import typer

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.resources import usable_cores

from .support import common, every_call, models, pieces
from .support.common import PerformanceTarget
from .support.dialogues import Dialogue, examples
from .support.every_call import EveryCall, Exactness, Request
from .support.peer import Torch
from .support.pieces import Piece

ROLES = ("qa", "nli", "qg")
PARTS = (*ROLES, "q2")


class Results(msgspec.Struct, frozen=True):
    """Every part that ran."""

    pieces: tuple[Piece, ...]
    exactness: Exactness | None
    q2: EveryCall | None


def main(
    work: Annotated[Path, typer.Option(help="Where checkpoints and bundles are kept (6 GB).")] = common.WORK,
    parts: Annotated[str, typer.Option(help=f"What to measure, of {','.join(PARTS)}.")] = ",".join(PARTS),
    repeats: Annotated[int, typer.Option(help="Samples of each graph.", min=1)] = 7,
    q2_repeats: Annotated[int, typer.Option(help="Rounds over the responses of whole Q².", min=1)] = 1,
    responses: Annotated[int, typer.Option(help="Responses of whole Q².", min=1, max=12)] = 6,
    spans: Annotated[int, typer.Option(help="Spans of each response for which questions are generated.", min=1)] = 3,
    threads: Annotated[int | None, typer.Option(help="Threads of both sides; default: all usable.", min=1)] = None,
    tiny: Annotated[bool, typer.Option(help="Tiny models, to try the benchmark itself; checks no targets.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="JSON file; default bench/results, or none with --tiny or fewer parts.")
    ] = None,
) -> None:
    """Measure the paper's models at true size."""
    wanted = parts.split(",")
    if set(wanted) - set(PARTS):
        raise typer.BadParameter(f"{parts}: give some of {','.join(PARTS)}", param_hint="--parts")
    if tiny:
        repeats, responses, spans = 2, 2, 2
    threads = threads or usable_cores()
    torch.set_num_threads(threads)
    profile = DeviceProfile.of("cpu", threads)
    requests = [build_request(dialogue, spans) for dialogue in examples()[:responses]]
    folders = models.checkpoints(work, models.TINY if tiny else models.PAPER)
    sources = {role: folders[role] for role in ROLES if role in wanted or "q2" in wanted}
    bundles = {"fp32": models.bundle(work, sources, "fp32"), "int8": models.bundle(work, sources, "int8")}

    measured: list[Piece] = []
    pairs, texts = ((2, 16), (2, 12)) if tiny else ((8, 48), (5, 32))
    for role in ("qa", "nli"):
        if role in wanted:
            measured.append(pieces.encoder(role, folders[role], bundles, pairs, profile, repeats))
            gc.collect()
    if "qg" in wanted:
        measured.append(pieces.generator(folders["qg"], bundles, texts, profile, repeats))
        gc.collect()
    exact = whole = None
    if "q2" in wanted:
        peers = {role: Torch(role, folder) for role, folder in sources.items()}
        exact = every_call.exactness(_open(bundles["fp32"], threads), peers, requests[0])
        gc.collect()
        whole = every_call.measure(_open(bundles["int8"], threads), peers, requests, q2_repeats)
    results = Results(tuple(measured), exact, whole)
    show(results)
    settings: dict[str, int | float | str | None] = {
        "size": models.TINY.name if tiny else models.PAPER.name,
        "threads": threads,
        "repeats": repeats,
        "q2_repeats": q2_repeats,
        "responses": responses,
        "spans": spans,
    }
    complete = not tiny and set(wanted) == set(PARTS)
    target = out or (common.RESULTS / "paper_size.json" if complete else None)
    common.finish("paper_size", settings, results, () if tiny else tuple(targets(results)), target)


def build_request(dialogue: Dialogue, spans: int) -> Request:
    """Return an example with its longest words as spans."""
    words = dict.fromkeys(word.strip(".,!?") for word in dialogue.response.split())
    longest = tuple(sorted(words, key=len, reverse=True)[:spans])
    return Request(dialogue.response, longest, " ".join(dialogue.knowledge))


def targets(results: Results) -> Iterator[PerformanceTarget]:
    """Yield the targets for these models on a CPU."""
    least = {"qa": 4.0, "nli": 3.0, "qg": 2.5}
    for piece in results.pieces:
        if piece.role == "qa":
            yield PerformanceTarget.at_most(f"{piece.model} int8 size", piece.int8_mb, 70, "MB")
        yield PerformanceTarget.at_least(f"{piece.model} int8 over PyTorch", piece.ratio, least[piece.role], "×")
    if results.q2 is not None:
        yield PerformanceTarget.at_least("whole Q² over PyTorch", results.q2.ratio, 15.0, "×")


def show(results: Results) -> None:
    """Print what was measured."""
    screen = common.console()
    rows = [
        (
            piece.model,
            piece.input,
            f"{piece.int8_mb:.1f} / {piece.fp32_mb:.1f}",
            f"{piece.int8.p50_ms:.0f} ({piece.int8.p95_ms:.0f})",
            f"{piece.fp32.p50_ms:.0f} ({piece.fp32.p95_ms:.0f})",
            f"{piece.peer.p50_ms:.0f} ({piece.peer.p95_ms:.0f})",
            f"{piece.ratio:.2f} ×",
            f"{piece.fp32_error:.1e} / {piece.int8_error:.1e}",
        )
        for piece in results.pieces
    ]
    columns = ("model", "input", "MB int8 / fp32", "int8 ms p50 (p95)", "fp32 ms", "PyTorch ms", "ratio")
    if rows:
        screen.print(common.table("graphs", (*columns, "error fp32 / int8, std"), rows))
    if results.exactness is not None:
        exact = results.exactness
        screen.print(
            f"float32 runtime against PyTorch on {exact.calls} calls: {exact.same_questions:.0%} of questions and "
            f"{exact.same_answers:.0%} of answers equal, probabilities within {exact.probability_error:.1e}"
        )
    if results.q2 is not None:
        q2 = results.q2
        screen.print(
            f"whole Q², {q2.responses} responses, {q2.spans} spans, {q2.questions} questions: engine "
            f"{q2.engine.p50_ms:.0f} ms p50 ({q2.engine.p95_ms:.0f} p95), PyTorch {q2.peer.p50_ms:.0f} "
            f"({q2.peer.p95_ms:.0f}), {q2.ratio:.2f} ×; all in flight together {q2.together_ms:.0f} ms per response, "
            f"{q2.together_ratio:.2f} ×"
        )


def _open(bundle: Bundle, threads: int) -> LocalRuntime:
    return LocalRuntime.load(bundle.directory, "cpu", None, threads)


if __name__ == "__main__":
    typer.run(main)
