"""The embedded bundle: load time, memory, latency, throughput, and memory growth over ten thousand requests.

    python -m bench.compact
    python -m bench.compact --metrics all

Every response is scored by full Q² (beam 5, the first valid question of each span), or by the given metrics. The cache
is off in the latency and throughput parts; the memory part runs with the default cache, as a service does.

- start: fresh processes that import, load and score all examples, one process per sample;
- latency: the examples, one request at a time;
- throughput: distinct responses, one at a time, through ``score_many``, and from 8 threads at once; all three must give
  the same values to 1e-6, and the peer is the first;
- pytorch, with ``--checkpoints``: the examples one at a time against Q² in PyTorch float32 (``pytorch_comparison.py``);
- growth: distinct responses through ``score_many`` in a process of their own (``growth.py``): the slopes of the
  resident size and of the memory in use, over the second half.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer

from groundwire.engine import Engine, LoadOptions, Options, Score
from groundwire.engine.schema.options import Q2Options
from groundwire.generation import BeamSearch
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.resources import usable_cores

from . import growth
from .support import common, pytorch_comparison
from .support.common import PerformanceTarget, Timing, check
from .support.dialogues import Dialogue, distinct, examples
from .support.fresh import Start
from .support.observed import Observed, Stage
from .support.pytorch_comparison import PyTorchComparison

CALLERS = 8
"""Threads that score at the same time."""


class Work(NamedTuple):
    """How every response is scored."""

    metrics: tuple[str, ...]
    options: Options

    def score(self, engine: Engine, dialogue: Dialogue) -> Score:
        """Score one response alone."""
        return engine.score(*dialogue, metrics=self.metrics, options=self.options)


class Latency(msgspec.Struct, frozen=True):
    """One request at a time."""

    total: Timing
    stages: dict[str, Stage]
    """Per role, over all requests."""
    statuses: dict[str, int]


class Throughput(msgspec.Struct, frozen=True):
    """One way of scoring the same responses."""

    way: str
    timing: Timing
    """All responses."""
    per_second: float
    ratio: float
    """To scoring one at a time."""
    stages: dict[str, Stage]
    """Work of one pass by role; calls divided by batches show how well requests share batches."""


class Results(msgspec.Struct, frozen=True):
    """Every part."""

    signature: str
    bundle_mb: float
    start: tuple[Start, ...]
    latency: Latency
    throughput: tuple[Throughput, ...]
    pytorch: PyTorchComparison | None
    growth: growth.Growth


def main(
    bundle: Annotated[str, typer.Option(help="An embedded bundle's name, or a bundle directory.")] = "compact",
    metrics: Annotated[str, typer.Option(help="Comma-separated metrics, or a group: all, paper, fast.")] = "q2",
    starts: Annotated[int, typer.Option(help="Fresh processes.", min=1)] = 5,
    rounds: Annotated[int, typer.Option(help="Times each example is scored for the latency.", min=1)] = 12,
    batch: Annotated[int, typer.Option(help="Distinct responses of a throughput sample.", min=2)] = 64,
    repeats: Annotated[int, typer.Option(help="Throughput samples of each way.", min=1)] = 5,
    requests: Annotated[int, typer.Option(help="Requests of the memory part.", min=100)] = 10_000,
    threads: Annotated[int | None, typer.Option(help="CPU threads of the models; default: all usable.", min=1)] = None,
    checkpoints: Annotated[
        Path | None,
        typer.Option(help="Directory with the checkpoints qg, qa and nli of the bundle, to compare with PyTorch."),
    ] = None,
    work: Annotated[Path, typer.Option(help="Where the random bundle of --tiny is kept.")] = common.WORK,
    tiny: Annotated[bool, typer.Option(help="A random tiny bundle and few requests, to try the benchmark.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results, or none with --tiny.")] = None,
) -> None:
    """Measure a bundle as a service would use it."""
    if tiny:
        bundle = str(_tiny_bundle(work))
        starts, rounds, batch, repeats, requests = 1, 1, 6, 1, 40
    threads = threads or usable_cores()
    # Random weights never end a question.
    decoding = BeamSearch(max_new_tokens=9) if tiny else BeamSearch()
    how = Work(tuple(metrics.split(",")), Options(Q2Options(decoding)))
    started = tuple(fresh(bundle, threads, decoding.max_new_tokens) for _ in range(starts))
    runtime = LocalRuntime.load(bundle, "cpu", None, threads)
    observed = Observed(runtime)
    with Engine(observed, LoadOptions(cache_bytes=0)) as engine:
        engine.warmup()
        signature = how.score(engine, examples()[0]).signature
        one_by_one = latency(engine, observed, how, rounds)
        compared = None
        if checkpoints is not None and how.metrics == ("q2",):
            texts = examples()[: 3 if tiny else None]
            compared = pytorch_comparison.measure(engine, runtime.bundle, checkpoints, how.options, texts, threads)
        ways = throughput(engine, observed, how, list(distinct(batch)), repeats)
    memory = growth.measure(bundle, threads, requests, decoding.max_new_tokens, metrics)
    size = runtime.bundle.manifest.size / 1e6
    results = Results(signature, size, started, one_by_one, ways, compared, memory)
    show(results)
    settings: dict[str, int | float | str | None] = {
        "bundle": Path(bundle).name,
        "metrics": metrics,
        "threads": threads,
        "starts": starts,
        "rounds": rounds,
        "batch": batch,
        "repeats": repeats,
        "requests": requests,
    }
    name = "compact" if metrics == "q2" else f"compact_{metrics.replace(',', '_')}"
    target = out or (None if tiny else common.RESULTS / f"{name}.json")
    common.finish(name, settings, results, () if tiny else tuple(targets(results, metrics)), target)


def fresh(bundle: str, threads: int, max_new_tokens: int) -> Start:
    """Load and score in a new process."""
    command = [sys.executable, "-m", "bench.support.fresh", bundle, str(threads), str(max_new_tokens)]
    process = subprocess.run(command, cwd=common.ROOT, check=True, capture_output=True)
    return msgspec.json.decode(process.stdout, type=Start)


def latency(engine: Engine, observed: Observed, how: Work, rounds: int) -> Latency:
    """Score the examples ``rounds`` times, one at a time; a repeated example must get the same value."""
    observed.take_stages()
    spent: list[float] = []
    scores: dict[Dialogue, Score] = {}
    for _ in range(rounds):
        for dialogue in examples():
            took, score = common.timed(partial(how.score, engine, dialogue))
            spent.append(took)
            _same([scores.setdefault(dialogue, score)], [score], "scoring it again")
    statuses = [score.status for score in scores.values()]
    return Latency(
        Timing.of(spent), observed.take_stages(), {status: statuses.count(status) for status in set(statuses)}
    )


def throughput(
    engine: Engine, observed: Observed, how: Work, dialogues: Sequence[Dialogue], repeats: int
) -> tuple[Throughput, ...]:
    """Score the same distinct responses in three ways: first compare the values, then time them in turns."""

    def callers() -> list[Score]:
        with ThreadPoolExecutor(CALLERS) as pool:
            return list(pool.map(partial(how.score, engine), dialogues))

    ways: dict[str, Callable[[], list[Score]]] = {
        "one at a time": lambda: [how.score(engine, dialogue) for dialogue in dialogues],
        "score_many": lambda: list(engine.score_many(dialogues, metrics=how.metrics, options=how.options)),
        f"{CALLERS} threads": callers,
    }
    stages: dict[str, dict[str, Stage]] = {}
    expected: list[Score] = []
    for way, run in ways.items():
        observed.take_stages()
        scores = run()
        stages[way] = observed.take_stages()
        expected = expected or scores
        _same(expected, scores, way)
    timings = common.interleaved(ways, repeats, warmup=0)
    slowest = timings["one at a time"].p50_ms
    return tuple(
        Throughput(way, timing, len(dialogues) / timing.p50_ms * 1000, slowest / timing.p50_ms, stages[way])
        for way, timing in timings.items()
    )


FULL_CACHE = 5_000
"""Requests after which the cache of calls has long been full, so that growth over their second half is the engine's."""


def targets(results: Results, metrics: str) -> Iterator[PerformanceTarget]:
    """Yield the targets for the embedded bundle on two CPU cores, for Q² and for all metrics."""
    loads = Timing.of(start.load_ms for start in results.start)
    yield PerformanceTarget.at_most("load", loads.p50_ms / 1000, 2.0, "s")
    yield PerformanceTarget.at_most(
        "peak memory of a fresh process", max(start.peak_mb for start in results.start), 700, "MB"
    )
    bound = {"q2": 150, "all": 250}.get(metrics)
    if bound is not None:
        yield PerformanceTarget.at_most("latency p50", results.latency.total.p50_ms, bound, "ms")
    if metrics == "all":
        many = next(way for way in results.throughput if way.way == "score_many")
        yield PerformanceTarget.at_least("score_many over one at a time", many.ratio, 3.0, "x")
    if results.pytorch is not None:
        yield PerformanceTarget.at_least("responses with PyTorch's value", results.pytorch.same_values, 0.9, "")
    if results.growth.requests >= FULL_CACHE:
        yield PerformanceTarget.at_most("memory growth per 1,000 requests", results.growth.in_use_slope_mb, 0.1, "MB")


def show(results: Results) -> None:
    """Print what was measured."""
    screen = common.console()
    screen.print(f"{results.signature}, {results.bundle_mb:.1f} MB", highlight=False)
    names = ("import_ms", "load_ms", "first_score_ms", "resident_imported_mb", "resident_loaded_mb", "peak_mb")
    samples = {name: sorted(getattr(start, name) for start in results.start) for name in names}
    sizes = [(name, f"{values[len(values) // 2]:.0f}", f"{values[-1]:.0f}") for name, values in samples.items()]
    screen.print(common.table("fresh process", ("", "median", "largest"), sizes))
    total, count = results.latency.total, results.latency.total.repeats
    screen.print(f"one request at a time: {total.p50_ms:.0f} ms p50, {total.p95_ms:.0f} p95, {total.p99_ms:.0f} p99")
    columns = ("role", "calls per request", "batches per request", "ms per request")
    rows = [
        (role, f"{stage.calls / count:.1f}", f"{stage.batches / count:.1f}", f"{stage.run_ms / count:.1f}")
        for role, stage in results.latency.stages.items()
    ]
    screen.print(common.table("time by role", columns, rows))
    ways = [
        (
            way.way,
            f"{way.per_second:.1f}",
            f"{way.ratio:.2f} ×",
            ", ".join(f"{role} {stage.calls / stage.batches:.1f}" for role, stage in way.stages.items()),
        )
        for way in results.throughput
    ]
    screen.print(common.table("throughput", ("way", "responses/s", "ratio", "calls per batch"), ways))
    if results.pytorch is not None:
        both = results.pytorch
        screen.print(
            f"against PyTorch, one at a time: engine {both.engine.p50_ms:.0f} ms p50, PyTorch {both.peer.p50_ms:.0f}, "
            f"{both.ratio:.2f} ×; {both.same_values:.0%} of values equal, mean difference {both.mean_difference:.3f}"
        )
    memory = results.growth
    first, last = memory.points[0], memory.points[-1]
    screen.print(
        f"memory over {memory.requests} requests: {first.resident_mb:.0f} MB resident, {first.in_use_mb:.1f} in use "
        f"after {first.requests}; {last.resident_mb:.0f} and {last.in_use_mb:.1f} at the end; over the second half "
        f"{memory.resident_slope_mb:+.2f} and {memory.in_use_slope_mb:+.3f} MB per 1,000; "
        f"{memory.per_second:.1f} responses/s, {memory.cached_calls} calls cached"
    )


def _same(expected: Sequence[Score], actual: Sequence[Score], way: str) -> None:
    for wanted, other in zip(expected, actual, strict=True):
        check(
            wanted.status == "scored" and wanted.value is not None,
            f"a response ended with {wanted.status}: {wanted.message}",
        )
        close = wanted.metrics.keys() == other.metrics.keys() and all(
            _close(result.value, other.metrics[name].value) for name, result in wanted.metrics.items()
        )
        message = (
            f"{way}: value {other.value} and spans {other.unsupported} instead of {wanted.value} and "
            f"{wanted.unsupported}"
        )
        check(close and wanted.unsupported == other.unsupported, message)


def _close(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return abs(left - right) <= 1e-6


def _tiny_bundle(work: Path) -> Path:
    from .support import models

    return models.bundle(work, models.checkpoints(work, models.TINY), "int8").directory


if __name__ == "__main__":
    typer.run(main)
