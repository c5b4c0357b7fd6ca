"""Measures a loaded engine: groups of metrics one response at a time, rates at several concurrencies, memory."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TypeAlias

import msgspec

from groundwire.engine import Engine, Request, Score
from groundwire.runtime.protocol import CaptureCounts

from .dialogues import vary_requests
from .memory import peak_mb, resident_mb, used_gpu_mb
from .rates import Throughput, measure_rate
from .records import Timing

WARM_UP = 2
"""Responses of each group before its times count."""
AT_LEAST = 5
"""Responses of each group, however long they take."""


class Stage(msgspec.Struct):
    """The batches of one role, or of several that run together (their names are joined by ``+``)."""

    calls: int = 0
    batches: int = 0
    run_ms: float = 0.0
    """Milliseconds of all batches; batches of different roles may run at the same time."""


class Latency(msgspec.Struct, frozen=True):
    """A group of metrics, one response at a time, nothing cached."""

    group: str
    metrics: tuple[str, ...]
    timing: Timing
    statuses: dict[str, int]
    stages: dict[str, Stage]
    """By role, over all responses."""
    captures: CaptureCounts
    """Counts of the engine since loading; zeros on a CPU."""


class GroupRate(msgspec.Struct, frozen=True):
    """Responses per second by a group of metrics."""

    group: str
    rate: Throughput
    captures: CaptureCounts
    """As for ``Latency``."""


class Memory(msgspec.Struct, frozen=True):
    """In MB; None where the system does not say."""

    loaded: float | None
    """Resident, with the models loaded and nothing scored."""
    peak: float | None
    """The largest resident size of the process."""
    gpu: float | None
    """In use on the GPU, by all processes, at the end."""


class Speed(msgspec.Struct, frozen=True):
    """What was measured."""

    signature: str
    """Signature of the first group: what determines the results, and with them the times."""
    load_ms: float
    first_score_ms: float
    """A response by the first group, after the warm-up of every model."""
    latency: tuple[Latency, ...]
    rates: tuple[GroupRate, ...]
    memory: Memory


Groups: TypeAlias = Mapping[str, Sequence[str] | str | None]
"""Names for people, and what ``Engine.score`` gets as ``metrics``."""


def measure_speed(
    load: Callable[[], Engine],
    groups: Callable[[Engine], Groups],
    requests: Sequence[Request],
    concurrencies: Sequence[int],
    seconds: float,
    watch: Callable[[str], None] = lambda what: None,
    gpu: int = 0,
) -> Speed:
    """Load an engine and measure it, each group and each rate for ``seconds``, longer where responses take longer.

    ``watch`` gets the name of what begins; ``gpu`` is the number of the GPU whose memory is read, if the engine uses
    one. Raises what loading or warming up raises.
    """
    watch("loading")
    started = time.perf_counter()
    with load() as engine:
        load_ms = 1000 * (time.perf_counter() - started)
        loaded = _read(resident_mb)
        engine.warmup()
        chosen = groups(engine)
        texts = vary_requests(requests)
        first = next(iter(chosen.values()))
        started = time.perf_counter()
        signature = _score(engine, next(texts), first).signature
        first_ms = 1000 * (time.perf_counter() - started)
        latency = []
        for name, metrics in chosen.items():
            watch(f"{name}: one response at a time")
            latency.append(measure_latency(engine, name, metrics, texts, seconds))
        rates = []
        for (name, metrics), callers in itertools.product(chosen.items(), concurrencies):
            watch(f"{name}: {callers} in flight")
            rate = measure_rate(engine, texts, callers, seconds, metrics, at_least=callers)
            rates.append(GroupRate(name, rate, engine.statistics().captures))
        on_gpu = engine.core.runtime.identity.device != "cpu"
        memory = Memory(loaded, _read(peak_mb), used_gpu_mb(gpu) if on_gpu else None)
    return Speed(signature, load_ms, first_ms, tuple(latency), tuple(rates), memory)


def measure_latency(
    engine: Engine,
    name: str,
    metrics: Sequence[str] | str | None,
    requests: Iterator[Request],
    seconds: float,
    at_least: int = AT_LEAST,
) -> Latency:
    """Score requests one after another for ``seconds``, ``at_least`` of them."""
    for _ in range(WARM_UP):
        _score(engine, next(requests), metrics)
    spent: list[float] = []
    statuses: Counter[str] = Counter()
    end = time.perf_counter() + seconds
    with observe_stages(engine) as stages:
        while len(spent) < at_least or time.perf_counter() < end:
            request = next(requests)
            started = time.perf_counter()
            score = _score(engine, request, metrics)
            spent.append(1000 * (time.perf_counter() - started))
            statuses[score.status] += 1
    names, captures = engine.plan(metrics).names, engine.statistics().captures
    return Latency(name, names, Timing.of(spent), dict(statuses), stages, captures)


@contextmanager
def observe_stages(engine: Engine) -> Iterator[dict[str, Stage]]:
    """Inside the block, the batches of the engine are added up by role."""
    stages: dict[str, Stage] = {}

    def add(role: str, calls: int, milliseconds: float) -> None:
        stage = stages.setdefault(role, Stage())
        stage.calls += calls
        stage.batches += 1
        stage.run_ms += milliseconds

    engine.core.observe_batches(add)
    try:
        yield stages
    finally:
        engine.core.observe_batches(None)


def _score(engine: Engine, request: Request, metrics: Sequence[str] | str | None) -> Score:
    return engine.score(
        request.response, request.knowledge, history=request.history, triples=request.triples, metrics=metrics
    )


def _read(memory: Callable[[], float]) -> float | None:
    with suppress(OSError):
        return memory()
    return None
