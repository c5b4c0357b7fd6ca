"""What a user gets by default: the embedded bundles, with the trained reader, and the default metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path

import msgspec

from groundwire.engine import Engine, LoadOptions, Request
from groundwire.engine.text.sentences import sentences
from groundwire.evaluate.speed.dialogues import make_name, read_examples
from groundwire.evaluate.speed.measure import Latency, measure_latency
from groundwire.evaluate.speed.rates import Throughput, measure_rate
from groundwire.runtime.bundles.bundle import embedded

from .counting import read_gpu_memory
from .processes import ProcessRates, measure_processes
from .setup import EMBEDDED, READER, Setup
from .stages import Save, Skipped, read_results
from .whole import WarmUp, open_engine, subtract

SENTENCES = (1, 8)
"""Sentences of a response."""
RESPONSES = 400
"""Responses of each length, one at a time: enough for a 99th percentile."""
PROCESSES = (8, 4, 1)
WORKLOAD = "responses of one sentence, made of the example dialogues"


class Default(msgspec.Struct, frozen=True):
    """The default metrics in one process."""

    signature: str
    warm_up: WarmUp
    """Of the models of the default metrics alone."""
    latency: list[Latency]
    """By the number of sentences."""
    rates: list[Throughput]
    """With many requests in flight, of one sentence each."""
    grown_gib: float | None
    """Memory that the engine took after its warm-up; None on a CPU."""


def measure(setup: Setup, save: Save) -> None:
    """Warm up what the default metrics need; score one response at a time, then with many in flight."""
    measure_engine(setup, save, *open_default(setup))


def measure_half(setup: Setup, save: Save) -> None:
    """The same with graphs for the GPU of the reader's weights."""
    setup.open_bundle(READER)
    measure_engine(setup, save, *open_default(setup, extra=(setup.bundles / READER,)))


def measure_engine(setup: Setup, save: Save, engine: Engine, warm_up: WarmUp) -> None:
    """Measure a warm engine, and close it."""
    with engine:
        warm = read_gpu_memory(setup)
        latency: list[Latency] = []
        rates: list[Throughput] = []

        def save_all() -> None:
            save(Default(engine.plan().signature, warm_up, latency, rates, subtract(setup, warm)))

        save_all()
        for length in SENTENCES:
            texts = make_responses(length)
            name = f"{length} sentence{'s' * (length > 1)}"
            latency.append(measure_latency(engine, name, None, texts, 0.0, 2 if setup.tiny else RESPONSES))
            save_all()
        for in_flight in setup.in_flight:
            rates.append(measure_default_rate(setup, engine, in_flight))
            save_all()
    warm_up.check()


def measure_by_processes(setup: Setup, save: Save) -> None:
    """The rates of several processes on one GPU."""
    measure_processes(
        setup,
        None if setup.stages is None else read_results(setup.stages, "default"),
        lambda room, rows: save(ProcessRates(WORKLOAD, room, rows)),
        partial(open_default, setup),
        lambda engine, processes: measure_default_rate(setup, engine, 64 * processes),
        PROCESSES,
    )


def open_default(setup: Setup, processes: int = 1, extra: Sequence[Path] = ()) -> tuple[Engine, WarmUp]:
    """The engine that ``Engine.load`` gives on the device, warm for its default metrics; Skipped without a bundle."""
    missing = [name for name in EMBEDDED if name not in embedded()]
    if missing:
        raise Skipped(f"the bundle {' and '.join(missing)} is not installed")
    options = LoadOptions(cache_bytes=0)
    return open_engine(
        setup,
        lambda: Engine.load(EMBEDDED[0], setup.device, extra=extra, processes=processes, options=options),
        lambda engine: engine.warmup(engine.plan().names),
    )


def measure_default_rate(setup: Setup, engine: Engine, in_flight: int) -> Throughput:
    """Responses of one sentence per second with so many requests in flight."""
    texts = islice(make_responses(1), in_flight + 4 if setup.tiny else 64 * in_flight)
    return measure_rate(engine, texts, in_flight, 5 * setup.seconds, at_least=min(in_flight, 64))


def make_responses(length: int) -> Iterator[Request]:
    """Responses of ``length`` sentences, all different: sentences of the examples, each time said to someone else."""
    examples = [example for example in read_examples() if len(sentences(example.response)) == 1]
    for index in count():
        chosen = [examples[(index + offset) % len(examples)] for offset in range(length)]
        text = " ".join(f"{example.response.rstrip('.')}." for example in chosen)
        knowledge = tuple(dict.fromkeys(passage for example in chosen for passage in example.knowledge))
        yield Request(f"{make_name(index)}, {text}", knowledge, ("Tell me.",))
