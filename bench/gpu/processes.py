"""Several processes of one engine on one GPU, never more than its memory holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

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
    """Whether the stage ``load`` has measured it; else it is the upper bound that was predicted."""
    free_gib: float
    """Before the first process starts."""

    @property
    def most(self) -> int:
        """The processes that fit."""
        return int(self.free_gib / self.process_gib)


class ProcessRate(msgspec.Struct, frozen=True):
    """A rate of several processes of one engine, by the full set."""

    processes: int
    warm_up: WarmUp
    rate: Throughput
    processor_ms: float
    """Processor time of the processes for each response, all threads; the process that asks them counts, too."""
    qa_tokens: float | None
    """Tokens that extractive QA reads for each response, from the stage ``load``; None where it measured none."""
    qa_tflop: float | None
    """Work of these, with padding."""
    captures: CaptureCounts
    """Counts of all processes since loading."""


class ProcessRates(msgspec.Struct, frozen=True):
    """Rates by the number of processes, the most first."""

    workload: str
    """What the aim in responses per second is stated for."""
    room: Room | None
    """None on a CPU."""
    rows: list[ProcessRate]


def measure(setup: Setup, save: Save) -> None:
    """Responses per second of several processes on one GPU, the most that its memory holds first."""
    load = None if setup.stages is None else read_results(setup.stages, "load")
    room = find_room(setup, load)
    counts = choose_counts(room)
    if not counts:
        raise Skipped(f"a process needs {room.process_gib:.1f} GiB of {room.free_gib:.1f} that are free")  # type: ignore[union-attr]
    counts = counts[-2:] if setup.tiny else counts
    of_load: Mapping[str, Any] = load["rows"][0] if load and load["rows"] else {}
    results: list[ProcessRate] = []
    save(ProcessRates(WORKLOAD, room, results))
    texts, options = make_requests(), find_options(setup)
    for count in counts:
        engine, warm_up = load_engine(setup, count)
        with engine:
            before = time.process_time() + read_children_seconds()
            rate = measure_in_flight(setup, engine, texts, METRICS["full"], 64 * count, options)
            after = time.process_time() + read_children_seconds()
            spent = 1000 * (after - before) / max(rate.finished, 1)
            tokens, work = (of_load.get(name) for name in ("qa_tokens", "qa_tflop"))
            results.append(ProcessRate(count, warm_up, rate, spent, tokens, work, engine.statistics().captures))
        save(ProcessRates(WORKLOAD, room, results))
    for row in results:
        row.warm_up.check()


def find_room(setup: Setup, load: Mapping[str, Any] | None) -> Room | None:
    """The room for processes, with what the stage ``load`` measured of one; None on a CPU."""
    memory = read_gpu_memory(setup)
    if memory is None:
        return None
    taken = None if load is None else load["warm_up"]["gib"]
    if load is None or taken is None:
        return Room(PROCESS_GIB + CONTEXT_GIB, False, memory.free)
    return Room(taken + max(load["grown_gib"] or 0.0, 0.0) + CONTEXT_GIB, True, memory.free)


def choose_counts(room: Room | None) -> tuple[int, ...]:
    """The numbers of processes to measure: the most that fit, at most the first of ``COUNTS``, and those below."""
    most = COUNTS[0] if room is None else min(COUNTS[0], room.most)
    return (*([most] if most else []), *(count for count in COUNTS if count < most))
