"""Requests with deadlines that are finished in time, under more load than the engine can serve.

    python -m bench.goodput

- burst: four times as many requests at once as one at a time finish within the deadline;
- overload: requests arrive at random times, two and a half times as many as one at a time finish.

The peer is one request at a time: of an engine that is asked for too much, the machine should do no less work in time.
Every score that is finished must equal the one without load.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
import typer

from groundwire.engine import Engine, LoadOptions, Options, Pending, Score
from groundwire.engine.extend import make_request

from .support import common
from .support.common import PerformanceTarget, check
from .support.dialogues import Dialogue, distinct

BURST = 4
OVERLOAD = 2.5


class Load(msgspec.Struct, frozen=True):
    """A number of requests, and how many were finished in time."""

    sent: int
    in_time: int
    dropped_ms: float
    """Median time until a request that was not finished in time ended."""
    capacity: float
    """How many one at a time finish in the same time."""
    ratio: float
    """``in_time`` over ``capacity``."""


class Goodput(msgspec.Struct, frozen=True):
    """The results."""

    alone_ms: float
    """Median time of one request at a time."""
    deadline_ms: float
    bursts: list[Load]
    overload: Load


def start(engine: Engine, dialogue: Dialogue, metrics: str, options: Options) -> Pending[Score]:
    """Submit a request without waiting for it."""
    plan = engine.plan(metrics, options)
    return engine.submit(make_request(dialogue.response, dialogue.knowledge, (), plan.options), plan)


def measure_alone(engine: Engine, dialogues: Sequence[Dialogue], metrics: str) -> tuple[list[float], list[Score]]:
    """Milliseconds and scores of one request at a time."""
    timed = [common.timed(lambda dialogue=dialogue: engine.score(*dialogue, metrics=metrics)) for dialogue in dialogues]  # type: ignore[misc]
    return [spent for spent, _ in timed], [score for _, score in timed]


def send(
    engine: Engine, dialogues: Sequence[Dialogue], metrics: str, deadline_ms: float, gaps: Sequence[float]
) -> list[Score]:
    """Send requests with ``gaps`` seconds before each, and wait for all."""
    pending = []
    for dialogue, gap in zip(dialogues, gaps, strict=True):
        if gap:
            time.sleep(gap)
        pending.append(start(engine, dialogue, metrics, Options(deadline_ms=deadline_ms)))
    return [request.result() for request in pending]


def is_late(score: Score) -> bool:
    """Whether any metric was not finished in time."""
    return any(result.status == "deadline" for result in score.metrics.values())


def make_load(scores: Sequence[Score], expected: Sequence[Score], capacity: float) -> Load:
    """Count what was finished in time, and check it."""
    pairs = list(zip(scores, expected, strict=True))
    finished = [(score, other) for score, other in pairs if not is_late(score)]
    check(all(score.metrics == other.metrics for score, other in finished), "a score depends on the load")
    late = sorted(score.timings.total_ms for score in scores if is_late(score))
    return Load(len(scores), len(finished), late[len(late) // 2] if late else 0.0, capacity, len(finished) / capacity)


def main(
    bundle: Annotated[str, typer.Option(help="A bundle's name or directory.")] = "compact",
    metrics: Annotated[str, typer.Option(help="A group of metrics.")] = "all",
    threads: Annotated[int | None, typer.Option(help="CPU threads; default: all usable.", min=1)] = None,
    repeats: Annotated[int, typer.Option(help="Bursts.", min=1)] = 5,
    within: Annotated[int, typer.Option(help="Requests that one at a time finishes in a deadline.", min=2)] = 8,
    out: Annotated[Path | None, typer.Option(help="The JSON file.")] = common.RESULTS / "goodput.json",
) -> None:
    """Measure how much is finished in time under load, against one request at a time."""
    size = BURST * within
    with Engine.load(bundle, "cpu", threads=threads, options=LoadOptions(cache_bytes=0)) as engine:
        engine.warmup()
        dialogues = list(distinct(size * (repeats + 2)))
        spent, _ = measure_alone(engine, dialogues[: 2 * within], metrics)
        bursts = []
        for turn in range(repeats + 1):
            part = dialogues[turn * size : (turn + 1) * size]
            times, expected = measure_alone(engine, part, metrics)
            spent += times
            mean = sum(times) / len(times)
            deadline_ms = within * mean
            scores = send(engine, part, metrics, deadline_ms, [0.0] * size)
            bursts.append(make_load(scores, expected, within))
        random = Random(1)
        gaps = [random.expovariate(OVERLOAD * 1000 / mean) for _ in part]
        capacity = (sum(gaps) * 1000 + deadline_ms) / mean
        overload = make_load(send(engine, part, metrics, deadline_ms, gaps), expected, capacity)
    results = Goodput(sorted(spent)[len(spent) // 2], deadline_ms, bursts[1:], overload)  # the first burst warms up
    middle = sorted(load.ratio for load in results.bursts)[repeats // 2]
    targets = (
        PerformanceTarget.at_least("burst of four times the capacity, in time", middle, 0.8, "of one at a time"),
        PerformanceTarget.at_least(
            "two and a half times the capacity, in time", overload.ratio, 0.8, "of one at a time"
        ),
    )
    rows = [
        [name, str(load.sent), str(load.in_time), f"{load.capacity:.1f}", f"{load.ratio:.2f}", f"{load.dropped_ms:.0f}"]
        for name, load in [*(("burst", load) for load in results.bursts), ("overload", results.overload)]
    ]
    columns = ("load", "sent", "in time", "one at a time", "ratio", "others ended after ms")
    common.console().print(common.table("requests finished in time", columns, rows))
    settings: dict[str, int | float | str | None] = {
        "bundle": bundle,
        "metrics": metrics,
        "threads": threads,
        "repeats": repeats,
        "within": within,
    }
    common.finish("goodput", settings, results, targets, out)


if __name__ == "__main__":
    typer.run(main)
