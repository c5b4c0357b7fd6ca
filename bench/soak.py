"""Many requests of every kind, from several threads, with deadlines and cancels: memory stays flat and counts add up.

    python -m bench.soak                       20,000 requests to the embedded bundle
    python -m bench.soak --fake                1,000,000 to a runtime without models: the engine alone

Every finished score is compared with the same request without load.
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from pathlib import Path
from random import Random
from typing import Annotated, Any

import msgspec
import numpy as np
import typer

from groundwire.engine import Engine, Options, Pending, Score
from groundwire.engine.schema.validation import make_request
from groundwire.runtime.calls import Classified, Read
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Runtime

from . import common
from .common import PerformanceTarget, check
from .dialogues import Dialogue, distinct
from .memory import in_use_mb, resident_mb

POINTS = 40
DISTINCT = 400
"""Texts that are sent again and again; more than the cache of this benchmark holds."""
METRIC_SETS = (("nli",), ("nli", "overlap"), ("overlap",))
BUNDLE_METRIC_SETS = ("fast", ("q2",), ("nli", "pmi"), ("overlap", "bertscore"))
CLIENTS = 4
IN_FLIGHT = 16
"""Requests of each client."""


class Point(msgspec.Struct, frozen=True):
    """The process after a number of requests."""

    requests: int
    in_use_mb: float
    resident_mb: float
    threads: int
    files: int
    """Open file descriptors."""


class Soak(msgspec.Struct, frozen=True):
    """The results."""

    requests: int
    per_second: float
    statuses: dict[str, int]
    points: list[Point]
    slope_mb: float
    """Memory in use per 1,000 requests, least squares over the second half."""


class Client:
    """One thread that sends requests and reads the answers, some of them with a deadline, some cancelled."""

    def __init__(self, engine: Engine, seed: int, metric_sets: Any, texts: list[Dialogue], expected: dict[Any, Score]):
        self._engine = engine
        self._random = Random(seed)
        self._metric_sets = metric_sets
        self._texts = texts
        self._expected = expected
        self.statuses: Counter[str] = Counter()
        self.defects: list[str] = []

    def run(self, requests: int) -> None:
        """Send requests, ``IN_FLIGHT`` at a time, and check what comes back."""
        flight: list[tuple[Any, Pending[Score]]] = []
        for _ in range(requests):
            flight.append(self._send())
            if len(flight) == IN_FLIGHT:
                self._take(*flight.pop(0))
        for request in flight:
            self._take(*request)

    def _send(self) -> tuple[Any, Pending[Score]]:
        random = self._random
        number, metrics = random.randrange(len(self._texts)), random.choice(self._metric_sets)
        deadline_ms = random.choice((None, None, None, 1.0, 50.0, 5000.0))
        plan = self._engine.plan(metrics, Options(deadline_ms=deadline_ms, priority=random.choice((0, 0, 1))))
        text = self._texts[number]
        pending = self._engine.submit(make_request(text.response, text.knowledge, (), plan.options), plan)
        if random.random() < 0.05:
            pending.cancel()
        return (number, metrics), pending

    def _take(self, key: Any, pending: Pending[Score]) -> None:
        score = pending.result(timeout=600)
        statuses = {result.status for result in score.metrics.values()}
        self.statuses["stopped" if statuses & {"deadline", "cancelled"} else "finished"] += 1
        if not statuses & {"deadline", "cancelled"} and score.metrics != self._expected[key].metrics:
            self.defects.append(f"{key}: {score.metrics}")


def make_fake_runtime() -> Runtime:
    """A runtime whose only model labels a text by its length."""

    def label(call: Any) -> Classified:
        name = ("entailment", "neutral", "contradiction")[len(call.hypothesis) % 3]
        shares = {key: float(key == name) for key in ("entailment", "neutral", "contradiction")}
        return Classified(name, shares, 0, Read(1, 1, 1))

    class Forgetful(FakeRuntime):
        def run(self, role: str, calls: Any, max_windows: int) -> Any:
            self.batches.clear()
            return super().run(role, calls, max_windows)

    return Forgetful({"nli": label}, concurrent_batches=2, concurrent_requests=8)


def measure(engine: Engine, requests: int, metric_sets: Any) -> Soak:
    """Run all clients, and look at the process at even distances."""
    texts = list(distinct(DISTINCT))
    expected = {
        (number, metrics): engine.score(text.response, text.knowledge, metrics=metrics)
        for number, text in enumerate(texts)
        for metrics in metric_sets
    }
    clients = [Client(engine, seed, metric_sets, texts, expected) for seed in range(CLIENTS)]
    points: list[Point] = []
    part = requests // POINTS // CLIENTS

    def run_all() -> None:
        for done in range(1, POINTS + 1):
            threads = [threading.Thread(target=client.run, args=(part,)) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            gc.collect()
            files = sum(1 for _ in Path("/proc/self/fd").iterdir())
            size = done * part * CLIENTS
            points.append(Point(size, in_use_mb(), resident_mb(), threading.active_count(), files))

    spent, _ = common.timed(run_all)
    statuses = sum((client.statuses for client in clients), Counter[str]())
    sent = part * CLIENTS * POINTS
    for client in clients:
        check(not client.defects, f"a score depends on the load: {client.defects[:1]}")
    check(sum(statuses.values()) == sent, f"{sent} requests were sent and {sum(statuses.values())} answered")
    check(
        engine.core.scheduler.unfinished == 0 and len(engine.core.scheduler._pending) == 0,
        "the scheduler keeps something",
    )
    later = points[len(points) // 2 :]
    slope = np.polyfit([point.requests for point in later], [point.in_use_mb for point in later], 1)[0] * 1000
    return Soak(sent, sent / spent * 1000, dict(statuses), points, float(slope))


def main(
    bundle: Annotated[str, typer.Option(help="A bundle's name or directory.")] = "compact",
    fake: Annotated[bool, typer.Option("--fake", help="No models: the engine alone.")] = False,
    requests: Annotated[int | None, typer.Option(help="Default: 20,000; 1,000,000 with --fake.")] = None,
    cache_mb: Annotated[int, typer.Option(help="Small, so that it is full soon.")] = 4,
    out: Annotated[Path | None, typer.Option(help="The JSON file; default: bench/results/soak[_fake].json.")] = None,
) -> None:
    """Send many requests of every kind and look at memory, threads and files."""
    requests = requests or (1_000_000 if fake else 20_000)
    settings: dict[str, Any] = {"cache_bytes": cache_mb * 1_000_000}
    engine = Engine(make_fake_runtime(), **settings) if fake else Engine.load(bundle, "cpu", **settings)
    with engine:
        soak = measure(engine, requests, METRIC_SETS if fake else BUNDLE_METRIC_SETS)
    first, last = soak.points[len(soak.points) // 2], soak.points[-1]
    targets = (
        PerformanceTarget.at_most(
            "memory in use, growth per 1,000 requests", soak.slope_mb, 0.05 if fake else 2.0, "MB"
        ),
        PerformanceTarget.at_most("threads at the end", last.threads - first.threads, 0, "more"),
        PerformanceTarget.at_most("open files at the end", last.files - first.files, 0, "more"),
    )
    rows = [
        [f"{p.requests:,}", f"{p.in_use_mb:.1f}", f"{p.resident_mb:.0f}", str(p.threads), str(p.files)]
        for p in soak.points[:: max(1, len(soak.points) // 10)]
    ]
    columns = ("requests", "MB in use", "MB resident", "threads", "files")
    common.console().print(common.table(f"{soak.per_second:.0f} requests/s, {soak.statuses}", columns, rows))
    name = "soak_fake" if fake else "soak"
    choices: dict[str, int | float | str | None] = {
        "bundle": None if fake else bundle,
        "requests": requests,
        "cache_mb": cache_mb,
    }
    common.finish(name, choices, soak, targets, out or common.RESULTS / f"{name}.json")


if __name__ == "__main__":
    typer.run(main)
