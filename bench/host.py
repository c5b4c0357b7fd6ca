"""Processor time of the host for a response, by layer: everything but the graphs.

    python -m bench.host

Clocks of threads, not of the wall, so what else the machine does matters less; what shares a core still slows it. The
least of the rounds counts, layer by layer. A round scores all examples, said to someone else each time, so that nothing
is answered from the cache; ``together`` has all of them in flight.

- caller: the thread that asks: checks of arguments, the verdict, the score;
- scheduler: its loop;
- metrics: the threads of the metrics' own Python;
- a role: tokenizing, packing, search and reading of results; what ONNX Runtime does is ``graphs``.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import msgspec
import typer

from groundwire.engine import Engine
from groundwire.runtime.local import LocalRuntime

from .support import common
from .support.dialogues import Dialogue, distinct, examples

METRICS: dict[str, Any] = {"fast": ["fast"], "default": None, "all": ["all"]}
THREADS = {"MainThread": "caller", "groundwire-loop": "scheduler", "groundwire-tasks": "metrics"}
"""Layers that have threads of their own, by the beginning of their names."""
GRAPHS = "graphs"


class Layers(msgspec.Struct, frozen=True):
    """Milliseconds of a response by layer."""

    metrics: str
    alone: dict[str, float]
    together: dict[str, float]


class Clock:
    """Seconds by role without its graphs, and seconds of all graphs."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()
        self._inside = threading.local()

    def time_role(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Count a method that runs calls of a role."""

        def timed(runtime: Any, role: str, *rest: Any) -> Any:
            self._inside.graphs, started = 0.0, time.thread_time()
            try:
                return run(runtime, role, *rest)
            finally:
                self._add(role, time.thread_time() - started - self._inside.graphs)

        return timed

    def time_graph(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Count a method that runs a graph."""

        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.thread_time()
            try:
                return run(*arguments, **named)
            finally:
                spent = time.thread_time() - started
                self._inside.graphs = getattr(self._inside, "graphs", 0.0) + spent
                self._add(GRAPHS, spent)

        return timed

    def _add(self, layer: str, seconds: float) -> None:
        with self._lock:
            self.seconds[layer] = self.seconds.get(layer, 0.0) + seconds


@contextmanager
def count_layers(clock: Clock) -> Iterator[None]:
    """Count inside the block."""
    methods = [
        (sys.modules["onnxruntime"].InferenceSession, name, clock.time_graph) for name in ("run", "run_with_ort_values")
    ]
    patches = [mock.patch.object(owner, name, wrap(getattr(owner, name))) for owner, name, wrap in methods]
    patches.append(mock.patch.object(LocalRuntime, "run", clock.time_role(LocalRuntime.run)))
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def read_threads() -> dict[str, float]:
    """Seconds of the threads that are a layer."""
    seconds = dict.fromkeys(THREADS.values(), 0.0)
    for thread in threading.enumerate():
        for name, layer in THREADS.items():
            if thread.name.startswith(name) and thread.ident is not None:
                seconds[layer] += time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    return seconds


def measure(engine: Engine, clock: Clock, score: Callable[[], None], responses: int) -> dict[str, float]:
    """Milliseconds of a response by layer."""
    before = read_threads()
    clock.seconds.clear()
    score()
    seconds = {layer: spent - before[layer] for layer, spent in read_threads().items()} | clock.seconds
    return {layer: 1000 * spent / responses for layer, spent in seconds.items()}


def take_least(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The least of each layer, the largest layer first."""
    least = {layer: min(times.get(layer, 0.0) for times in rounds) for layer in set().union(*rounds)}
    return {layer: round(spent, 3) for layer, spent in sorted(least.items(), key=lambda item: -item[1])}


def measure_metrics(engine: Engine, name: str, texts: Iterator[Dialogue], count: int, rounds: int) -> Layers:
    """All rounds of one set of metrics, with so many responses in each."""
    metrics, clock = METRICS[name], Clock()
    alone, together = [], []

    def take() -> list[dict[str, Any]]:
        return [
            {"response": dialogue.response, "knowledge": dialogue.knowledge, "history": ("Tell me.",)}
            for dialogue in itertools.islice(texts, count)
        ]

    def score_alone() -> None:
        for item in take():
            engine.score(**item, metrics=metrics)

    def score_together() -> None:
        list(engine.score_many(take(), metrics=metrics))

    score_alone()  # what happens once
    with count_layers(clock):
        for _ in range(rounds):
            alone.append(measure(engine, clock, score_alone, count))
            together.append(measure(engine, clock, score_together, count))
    return Layers(name, take_least(alone), take_least(together))


def main(
    bundle: Annotated[str, typer.Option(help="Bundle: a name, a directory or hf://.")] = "compact",
    rounds: Annotated[int, typer.Option(help="Rounds, of which the least time counts.", min=1)] = 7,
    responses: Annotated[int, typer.Option(help="Responses of a round.", min=1)] = len(examples()),
    only: Annotated[str, typer.Option(help="One of the sets of metrics; empty: all.")] = "",
    out: Annotated[Path | None, typer.Option(help="The JSON file.")] = common.RESULTS / "host.json",
) -> None:
    """Measure the processor time of the host by layer."""
    with Engine.load(bundle, "cpu") as engine:
        texts = distinct(2 * len(METRICS) * (rounds + 1) * responses)
        names = [name for name in METRICS if only in ("", name)]
        results = [measure_metrics(engine, name, texts, responses, rounds) for name in names]
    for layers in results:
        rows = [
            (layer, f"{spent:.2f}", f"{layers.together.get(layer, 0.0):.2f}") for layer, spent in layers.alone.items()
        ]
        sums = [sum(times.values()) - times[GRAPHS] for times in (layers.alone, layers.together)]
        rows.append(("without graphs", f"{sums[0]:.2f}", f"{sums[1]:.2f}"))
        common.console().print(
            common.table(f"{layers.metrics}: ms of a response", ("layer", "alone", "together"), rows)
        )
    common.finish("host", {"bundle": bundle, "rounds": rounds}, results, (), out)


if __name__ == "__main__":
    typer.run(main)
