"""PMI-Faith at the size of its paper, random weights: memory and time against the authors' way in PyTorch.

    python -m bench.language_model

Writes a checkpoint of BLOOM-560m (24 layers of 1,024, 250,880 tokens), exports it at fp32 and int8 into a work
directory that later runs reuse, and measures with the same number of threads on both sides:

- memory: fresh processes that load and score one response (``fresh_pmi.py``);
- score: one response through the engine, nothing cached, in turns with the peer: two passes in float32 with logits over
  the whole vocabulary at every position;
- rank: sixteen responses to the same document and history at once, against one.

The texts have the lengths of the paper's data in words, and a word is a token here. Random weights leave the time of a
pass as it is; int8 errors are reported, not checked.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import torch
import typer

from groundwire.engine import Engine, LoadOptions
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.calls import ScoreText, TextScored
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.resources import usable_cores

from .support import common, models
from .support.common import PerformanceTarget, Timing, check, interleaved
from .support.fresh_pmi import Peer, Sample, Texts, Words, texts

EXACT = 1e-3
"""Nats: largest difference of a float32 log-probability from PyTorch's."""


class Score(msgspec.Struct, frozen=True):
    """One response."""

    engine: Timing
    peer: Timing
    ratio: float
    """Median of the peer over ours."""
    fp32_error: float
    """Nats: of a token's log-probability, from PyTorch's. Checked."""
    int8_error: float
    """The same for int8. Reported only."""


class Rank(msgspec.Struct, frozen=True):
    """Many responses after the same prefixes."""

    candidates: int
    single: Timing
    all: Timing
    ratio: float
    """Median of all over a single one's."""


class Results(msgspec.Struct, frozen=True):
    """Everything measured."""

    engine: Sample
    peer: Sample
    memory_ratio: float
    """Peak of the peer's process over ours."""
    scoring_memory_ratio: float
    """The same while scoring, the models loaded before."""
    score: Score
    rank: Rank
    bundle_mb: float


def main(
    work: Annotated[Path, typer.Option(help="Where checkpoint and bundles are kept (5 GB).")] = common.WORK,
    repeats: Annotated[int, typer.Option(help="Samples of each timing.", min=1)] = 7,
    candidates: Annotated[int, typer.Option(help="Responses to rank.", min=2, max=64)] = 16,
    threads: Annotated[int | None, typer.Option(help="Threads of both sides; default: all usable.", min=1)] = None,
    tiny: Annotated[bool, typer.Option(help="A tiny model, to try the benchmark itself; checks no targets.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; default bench/results, or none with --tiny.")] = None,
) -> None:
    """Measure PMI-Faith on BLOOM-560m at true size."""
    size, words = (models.TINY, Words(20, 12, 6)) if tiny else (models.PAPER, Words())
    if tiny:
        repeats = 2
    threads = threads or usable_cores()
    torch.set_num_threads(threads)
    vocabulary = size.bloom["vocab_size"]
    folder = models.language_model(work, size)
    bundles = {precision: models.bundle(work, {"lm": folder}, precision) for precision in ("fp32", "int8")}
    gc.collect()
    samples = {
        side: fresh(side, source, threads, words, vocabulary)
        for side, source in (("engine", bundles["int8"].directory), ("peer", folder))
    }
    sample = texts(words, candidates, vocabulary)
    peer = Peer(str(folder))
    errors = {}
    for precision, bundle in bundles.items():
        errors[precision] = error(LocalRuntime.load(bundle.directory, "cpu", threads=threads), peer, sample)
        gc.collect()
    check(errors["fp32"] <= EXACT, f"a float32 log-probability is {errors['fp32']:.2g} nats from PyTorch's")
    quantized = bundles["int8"].directory
    results = Results(
        samples["engine"],
        samples["peer"],
        samples["peer"].peak_mb / samples["engine"].peak_mb,
        samples["peer"].scoring_peak_mb / samples["engine"].scoring_peak_mb,
        score(quantized, peer, sample, threads, repeats, errors),
        rank(quantized, sample, threads, repeats),
        weight_bytes(bundles["int8"]) / 1e6,
    )
    show(results)
    settings: dict[str, int | float | str | None] = {
        "size": size.name,
        "threads": threads,
        "repeats": repeats,
        "candidates": candidates,
        **words._asdict(),
    }
    target = out or (None if tiny else common.RESULTS / "language_model.json")
    common.finish("language_model", settings, results, () if tiny else tuple(targets(results)), target)


def weight_bytes(bundle: Bundle) -> int:
    """Bytes of the graphs and weights of a bundle of one role."""
    return sum(entry.bytes for name, entry in bundle.manifest.files.items() if name.endswith((".onnx", ".bin")))


def fresh(side: str, source: Path, threads: int, words: Words, vocabulary: int) -> Sample:
    """Return the measurement of one fresh process."""
    command = [sys.executable, "-m", "bench.support.fresh_pmi", side, source, threads, *words, vocabulary]
    done = subprocess.run([*map(str, command)], cwd=common.ROOT, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"the fresh process of the {side} failed: {done.stderr.strip()[-400:]}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Sample)


def calls(sample: Texts, responses: Sequence[str]) -> list[ScoreText]:
    """Return the calls of the metric for each response: with the document and without."""
    document, history = f"Document: {sample.document}\n\n", f"{sample.history}.\n"
    prefixes = ((document, history), (history,))
    return [ScoreText(prefix, f"Agent: {response}.") for response in responses for prefix in prefixes]


def error(runtime: LocalRuntime, peer: Peer, sample: Texts) -> float:
    """Return the largest difference from PyTorch of a log-probability, over the tokens of one response twice."""
    worst = 0.0
    for call in calls(sample, sample.responses[:1]):
        (scored,) = runtime.run("lm", [call], 1)
        assert isinstance(scored, TextScored), scored
        prefix = [index for part in call.prefix for index in peer.ids(part)]
        ids = torch.tensor([prefix + peer.ids(call.text)])
        with torch.inference_mode():
            logits = peer.model(input_ids=ids).logits[0, len(prefix) - 1 : -1].log_softmax(-1)
        expected = logits.gather(1, ids[0, len(prefix) :, None])[:, 0].numpy()
        worst = max(worst, float(np.abs(expected - np.array(scored.log_probs)).max()))
    return worst


def score(bundle: Path, peer: Peer, sample: Texts, threads: int, repeats: int, errors: dict[str, float]) -> Score:
    """Time one response on both sides."""
    with Engine(LocalRuntime.load(bundle, "cpu", threads=threads), LoadOptions(cache_bytes=0)) as engine:

        def ours() -> float:
            result = engine.score(sample.responses[0], sample.document, history=[sample.history], metrics=["pmi"])
            check(result.value is not None, result.message)
            return result.value or 0.0

        def theirs() -> float:
            return peer.pmi(sample.document, sample.history, sample.responses[0])

        check(abs(ours() - theirs()) <= 2 * errors["int8"] + EXACT, "the engine's value is not the peer's")
        timings = interleaved({"engine": ours, "peer": theirs}, repeats)
    ratio = timings["peer"].p50_ms / timings["engine"].p50_ms
    return Score(timings["engine"], timings["peer"], ratio, errors["fp32"], errors["int8"])


def rank(bundle: Path, sample: Texts, threads: int, repeats: int) -> Rank:
    """Time one response and all of them at once."""
    runtime = LocalRuntime.load(bundle, "cpu", threads=threads)
    single, every = calls(sample, sample.responses[:1]), calls(sample, sample.responses)
    alone, together = runtime.run("lm", single, 1), runtime.run("lm", every, 1)
    check(list(together[:2]) == list(alone), "a response gets another score among others than alone")
    timings = interleaved(
        {"single": lambda: runtime.run("lm", single, 1), "all": lambda: runtime.run("lm", every, 1)}, repeats
    )
    ratio = timings["all"].p50_ms / timings["single"].p50_ms
    return Rank(len(sample.responses), timings["single"], timings["all"], ratio)


def targets(results: Results) -> Iterator[PerformanceTarget]:
    """Yield the targets for this model on a CPU."""
    yield PerformanceTarget.at_least("peak memory of PyTorch's process over ours", results.memory_ratio, 5.0, "×")
    yield PerformanceTarget.at_least("one response over PyTorch", results.score.ratio, 3.0, "×")
    yield PerformanceTarget.at_most(f"ranking {results.rank.candidates} over scoring one", results.rank.ratio, 4.0, "×")


def show(results: Results) -> None:
    """Print what was measured."""
    screen = common.console()
    rows = [
        (name, f"{sample.imported_mb:.0f}", f"{sample.loaded_mb:.0f}", f"{sample.scoring_peak_mb:.0f}",
         f"{sample.peak_mb:.0f}", f"{sample.load_ms:.0f}", f"{sample.score_ms:.0f}")
        for name, sample in (("engine int8", results.engine), ("PyTorch float32", results.peer))
    ]  # fmt: skip
    columns = ("fresh process", "MB imported", "loaded", "peak scoring", "peak", "load ms", "first score ms")
    screen.print(common.table("memory", columns, rows))
    score, rank = results.score, results.rank
    screen.print(
        f"memory {results.memory_ratio:.2f} × below PyTorch ({results.scoring_memory_ratio:.2f} × while scoring), "
        f"graph {results.bundle_mb:.0f} MB"
    )
    screen.print(
        f"one response: engine {score.engine.p50_ms:.0f} ms p50 ({score.engine.p95_ms:.0f} p95), PyTorch "
        f"{score.peer.p50_ms:.0f} ({score.peer.p95_ms:.0f}), {score.ratio:.2f} ×; log-probabilities within "
        f"{score.fp32_error:.1e} (fp32), {score.int8_error:.1e} (int8) nats"
    )
    screen.print(
        f"{rank.candidates} responses at once: {rank.all.p50_ms:.0f} ms p50 ({rank.all.p95_ms:.0f} p95), a single one "
        f"{rank.single.p50_ms:.0f} ({rank.single.p95_ms:.0f}): {rank.ratio:.2f} × for {rank.candidates} × the responses"
    )


if __name__ == "__main__":
    typer.run(main)
