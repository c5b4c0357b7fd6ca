"""What the service costs over the engine, and what it does with more requests than it can serve.

    python -m bench.serving

``groundwire serve`` runs in a process of its own and is asked over loopback; the peer is an engine in this process.

- callers: 1 to 64 threads, each with one connection, ask one request after another; the peer is ``Engine.score`` from
  as many threads;
- overload: requests arrive at random times, two and a half times as many as are served, whatever became of others.

Every score over HTTP must equal the engine's.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, Self, TypeAlias

import msgspec
import typer

from groundwire.engine import Engine, Options
from tests.support.server import start_server

from .support import common
from .support.common import PerformanceTarget, Timing, check
from .support.dialogues import Dialogue, distinct

Names: TypeAlias = Sequence[str]
Ask: TypeAlias = Callable[[Dialogue], object]
OpenSide: TypeAlias = Callable[[], AbstractContextManager[Ask]]
OVERLOAD = 2.5
SECONDS = 60.0


class Callers(msgspec.Struct, frozen=True):
    """A number of callers, each asking one request after another."""

    callers: int
    engine: Timing
    service: Timing
    engine_per_second: float
    service_per_second: float
    added_ms: float
    """Difference of the medians."""


class Overload(msgspec.Struct, frozen=True):
    """Requests that arrive faster than they are served."""

    sent: int
    statuses: dict[str, int]
    in_time_ratio: float
    """Scores over the scores that one caller after another would have had in the same time."""
    refused_p50_ms: float
    """Median time until a request that got no score was answered."""


class Serving(msgspec.Struct, frozen=True):
    """The results."""

    callers: list[Callers]
    overload: Overload


class Connection:
    """One connection that is kept alive."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, dialogue: Dialogue, metrics: Names, deadline_ms: float = SECONDS * 1000) -> tuple[int, Any]:
        """The status and the record of the answer."""
        body = {"response": dialogue.response, "knowledge": dialogue.knowledge, "metrics": list(metrics)}
        headers = {"Content-Type": "application/json", "Groundwire-Deadline-Ms": f"{deadline_ms:.0f}"}
        self._connection.request("POST", "/score", json.dumps(body), headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


def run_callers(number: int, requests: Sequence[Dialogue], open_side: OpenSide) -> tuple[list[float], float]:
    """Milliseconds of each request, and of all, when ``number`` threads ask one after another."""
    left = iter(requests)
    lock = threading.Lock()
    spent: list[float] = []

    def work() -> None:
        with open_side() as ask:
            while True:
                with lock:
                    dialogue = next(left, None)
                if dialogue is None:
                    return
                spent.append(common.timed(partial(ask, dialogue))[0])

    with ThreadPoolExecutor(number) as pool:
        total_ms, _ = common.timed(lambda: [future.result() for future in [pool.submit(work) for _ in range(number)]])
    return spent, total_ms


def measure_callers(
    engine: Engine,
    port: int,
    number: int,
    dialogues: Iterator[Dialogue],
    per_turn: int,
    turns: int,
    metrics: Names,
) -> Callers:
    """Compare both sides in turn, on the same texts, which are new to both."""

    @contextlib.contextmanager
    def open_service() -> Iterator[Ask]:
        with Connection(port) as connection:

            def ask(dialogue: Dialogue) -> None:
                status, score = connection.ask(dialogue, metrics)
                check(status == 200, f"the service answered {status}: {score}")

            yield ask

    @contextlib.contextmanager
    def open_engine() -> Iterator[Ask]:
        yield lambda dialogue: engine.score(*dialogue, metrics=metrics)

    sides = {"engine": open_engine, "service": open_service}
    spent: dict[str, list[float]] = {"engine": [], "service": []}
    totals = {"engine": 0.0, "service": 0.0}
    for turn in range(-1, turns):
        requests = [next(dialogues) for _ in range(max(per_turn, 2 * number))]
        for side in common.in_turn(sides, turn):
            times, total_ms = run_callers(number, requests, sides[side])
            if turn >= 0:
                spent[side] += times
                totals[side] += total_ms
    timings = {side: Timing.of(times) for side, times in spent.items()}
    rates = {side: len(spent[side]) * 1000 / totals[side] for side in spent}
    added = timings["service"].p50_ms - timings["engine"].p50_ms
    return Callers(number, timings["engine"], timings["service"], rates["engine"], rates["service"], added)


def measure_overload(
    port: int,
    dialogues: Sequence[Dialogue],
    metrics: Names,
    alone_ms: float,
    per_second: float,
    deadline_ms: float,
) -> Overload:
    """Send requests at random times, each on a connection of its own."""
    random = Random(1)
    gaps = [random.expovariate(OVERLOAD * per_second) for _ in dialogues]
    answers: list[tuple[int, float]] = []

    def ask(dialogue: Dialogue) -> None:
        with Connection(port) as connection:
            spent, (status, score) = common.timed(lambda: connection.ask(dialogue, metrics, deadline_ms))
        check(status in (200, 429, 504), f"the service answered {status}: {score}")
        if status == 200:
            check(all(result["status"] != "deadline" for result in score["metrics"].values()), "a 200 was stopped")
        answers.append((status, spent))

    with ThreadPoolExecutor(len(dialogues)) as pool:
        futures = []
        for dialogue, gap in zip(dialogues, gaps, strict=True):
            time.sleep(gap)
            futures.append(pool.submit(ask, dialogue))
        for future in futures:
            future.result()
    statuses = {str(status): sum(other == status for other, _ in answers) for status in (200, 429, 504)}
    capacity = (sum(gaps) * 1000 + deadline_ms) / alone_ms
    refused = sorted(spent for status, spent in answers if status != 200)
    middle = refused[len(refused) // 2] if refused else 0.0
    return Overload(len(dialogues), statuses, statuses["200"] / capacity, middle)


def check_answers(engine: Engine, port: int, metrics: Names) -> None:
    """WrongAnswer unless a score over HTTP is the engine's."""
    for dialogue in distinct(8):
        with Connection(port) as connection:
            status, served = connection.ask(dialogue, metrics)
        local = json.loads(engine.score(*dialogue, metrics=metrics, options=Options()).to_json())
        check(status == 200, f"the service answered {status}")
        for name in ("status", "value", "verdict", "metrics", "unsupported", "signature"):
            check(served[name] == local[name], f"{name} of the service differs from the engine's")


def main(
    bundle: Annotated[str, typer.Option(help="A bundle's name or directory.")] = "compact",
    metrics: Annotated[str, typer.Option(help="A group of metrics.")] = "fast",
    threads: Annotated[int | None, typer.Option(help="CPU threads; default: all usable.", min=1)] = None,
    per_turn: Annotated[int, typer.Option(help="Requests of a side in a turn, at least.", min=2)] = 64,
    turns: Annotated[int, typer.Option(min=1)] = 5,
    tiny: Annotated[bool, typer.Option(help="Try it in seconds with word overlap alone; writes no file.")] = False,
    out: Annotated[Path | None, typer.Option(help="The JSON file.")] = None,
) -> None:
    """Measure the service beside its engine."""
    levels = (1, 4) if tiny else (1, 4, 16, 64)
    if tiny:
        metrics, per_turn, turns = "overlap", 8, 2
    # Admission is not what is measured with 64 callers; overload is ended by the deadline as well.
    limits = {"GROUNDWIRE_MAX_WAITING_TOKENS": "1000000"}
    with (
        Engine.load(bundle, "cpu", threads=threads) as engine,
        start_server("--bundle", bundle, threads=threads, **limits) as server,
    ):
        engine.warmup()
        server.wait_until_ready()
        names = engine.plan(metrics.split(",")).names
        port = int(server.url.rpartition(":")[2])
        dialogues = distinct(10**6)
        check_answers(engine, port, names)
        callers = [measure_callers(engine, port, number, dialogues, per_turn, turns, names) for number in levels]
        alone = callers[0].engine
        requests = [next(dialogues) for _ in range(20 if tiny else 200)]
        best = max(level.engine_per_second for level in callers)
        overload = measure_overload(port, requests, names, 1000 / best, best, 8 * alone.p50_ms + 50)
    results = Serving(callers, overload)
    targets = (
        PerformanceTarget.at_most("service over engine, one caller, p50", callers[0].added_ms, 2.0, "ms"),
        PerformanceTarget.at_least(
            "throughput of the service, most callers",
            callers[-1].service_per_second / callers[-1].engine_per_second,
            0.85,
            "of the engine's",
        ),
        PerformanceTarget.at_least(
            "two and a half times the capacity, in time", overload.in_time_ratio, 0.9, "of the capacity"
        ),
    )
    rows = [
        [
            str(level.callers),
            f"{level.engine.p50_ms:.1f}",
            f"{level.service.p50_ms:.1f}",
            f"{level.added_ms:.1f}",
            f"{level.engine.p99_ms:.1f}",
            f"{level.service.p99_ms:.1f}",
            f"{level.engine_per_second:.1f}",
            f"{level.service_per_second:.1f}",
        ]
        for level in callers
    ]
    columns = (
        "callers",
        "engine p50",
        "service p50",
        "added ms",
        "engine p99",
        "service p99",
        "engine/s",
        "interfaces/service/s",
    )
    common.console().print(common.table("requests over HTTP beside Engine.score, ms", columns, rows))
    common.console().print(f"overload: {overload}")
    used: dict[str, int | float | str | None] = {
        "bundle": bundle,
        "metrics": metrics,
        "threads": threads,
        "per_turn": per_turn,
        "turns": turns,
    }
    if out is None and not tiny:
        out = common.RESULTS / "serving.json"
    common.finish("serving", used, results, targets, out)


if __name__ == "__main__":
    typer.run(main)
