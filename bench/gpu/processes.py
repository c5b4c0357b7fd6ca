"""Several processes of one engine on one GPU, never more than its memory holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from groundwire.engine import Engine
from groundwire.evaluate.speed.rates import Throughput
from groundwire.runtime.protocol import CaptureCounts

from .counting import read_children_seconds, read_gpu_memory
from .predictions import PROCESS_GIB, WORKLOAD
from .setup import Setup
from .stages import Save, Skipped, read_results
from .whole import METRICS, WarmUp, find_options, load_engine, make_requests, measure_in_flight

COUNTS = (8, 4, 2, 1)
CONTEXT_GIB = 0.6
"""What CUDA takes in every process for itself, which is not among what a stage measures; assumed."""


class Room(msgspec.Struct, frozen=True):
    """How many processes the memory of the GPU holds."""

    process_gib: float
    """Memory of one process under load, with CUDA's own."""
    measured: bool
    """Whether a stage of one process has measured it; else it is the upper bound that was predicted."""
    free_gib: float
    """Before the first process starts."""

    @property
    def most(self) -> int:
        """The processes that fit."""
        return int(self.free_gib / self.process_gib)


class ProcessRate(msgspec.Struct, frozen=True):
    """A rate of several processes of one engine."""

    processes: int
    warm_up: WarmUp
    rate: Throughput
    processor_ms: float
    """Processor time of the processes for each response, all threads; the process that asks them counts, too."""
    captures: CaptureCounts
    """Counts of all processes since loading."""
    qa_tokens: float | None = None
    """Tokens that extractive QA reads for each response, from the stage ``load``; None where it measured none."""
    qa_tflop: float | None = None
    """Work of these, with padding."""


class ProcessRates(msgspec.Struct, frozen=True):
    """Rates by the number of processes, the most first."""

    workload: str
    """What the rates are of, or what the aim in responses per second is stated for."""
    room: Room | None
    """None on a CPU."""
    rows: list[ProcessRate]


def measure(setup: Setup, save: Save) -> None:
    """Responses per second of the full set by several processes."""
    load = None if setup.stages is None else read_results(setup.stages, "load")
    of_load: Mapping[str, Any] = load["rows"][0] if load and load["rows"] else {}
    tokens, work = (of_load.get(name) for name in ("qa_tokens", "qa_tflop"))
    texts, options = make_requests(), find_options(setup)
    measure_processes(
        setup,
        load,
        lambda room, rows: save(
            ProcessRates(WORKLOAD, room, [replace(row, qa_tokens=tokens, qa_tflop=work) for row in rows])
        ),
        partial(load_engine, setup),
        lambda engine, count: measure_in_flight(setup, engine, texts, METRICS["full"], 64 * count, options),
    )


def measure_processes(
    setup: Setup,
    of_one: Mapping[str, Any] | None,
    save: Callable[[Room | None, list[ProcessRate]], None],
    load: Callable[[int], tuple[Engine, WarmUp]],
    measure_rate: Callable[[Engine, int], Throughput],
    counts: Sequence[int] = COUNTS,
) -> None:
    """Measure the rates of several processes on one GPU, the most that its memory holds first.

    ``of_one`` is what a stage has measured of one process. ``load`` and ``measure_rate`` get the number of processes.
    Raises Skipped without memory for one process, and ModelError after the last row when a warm-up failed.
    """
    room = find_room(setup, of_one)
    chosen = choose_counts(room, counts)
    if not chosen:
        raise Skipped(f"a process needs {room.process_gib:.1f} GiB of {room.free_gib:.1f} that are free")  # type: ignore[union-attr]
    rows: list[ProcessRate] = []
    save(room, rows)
    for count in chosen[-2:] if setup.tiny else chosen:
        engine, warm_up = load(count)
        with engine:
            before = time.process_time() + read_children_seconds()
            rate = measure_rate(engine, count)
            after = time.process_time() + read_children_seconds()
            spent = 1000 * (after - before) / max(rate.finished, 1)
            rows.append(ProcessRate(count, warm_up, rate, spent, engine.statistics().captures))
        save(room, rows)
    for row in rows:
        row.warm_up.check()


def find_room(setup: Setup, of_one: Mapping[str, Any] | None) -> Room | None:
    """The room for processes, with what a stage measured of one; None on a CPU."""
    memory = read_gpu_memory(setup)
    if memory is None:
        return None
    taken = None if of_one is None else of_one["warm_up"]["gib"]
    if of_one is None or taken is None:
        return Room(PROCESS_GIB + CONTEXT_GIB, False, memory.free)
    return Room(taken + max(of_one["grown_gib"] or 0.0, 0.0) + CONTEXT_GIB, True, memory.free)


def choose_counts(room: Room | None, counts: Sequence[int] = COUNTS) -> tuple[int, ...]:
    """The numbers of processes to measure: the most that fit, at most the first of ``counts``, and those below."""
    most = counts[0] if room is None else min(counts[0], room.most)
    return (*([most] if most else []), *(count for count in counts if count < most))
