"""Responses a second of an engine with two worker processes, over one process.

    python -m bench.processes              models that take no time
    python -m bench.processes --models     the models themselves, two processes of one thread over one of two

Without ``--models``, the model calls of the bundle are recorded once and answered from the record, so what is measured
is Python: metrics, scheduling and verdict in each process, and the messages between them. Every score must equal the
score of one process. ``estimated`` is for ``--cores`` cores: one for the engine's own process, the others for workers.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer

from groundwire.engine import Engine, LoadOptions, Score
from groundwire.engine.processes.messages import Start
from groundwire.engine.processes.runtime import ProcessRuntime
from groundwire.runtime.calls import Call
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome

from .support import common
from .support.dialogues import distinct

GAIN = 1.8
"""Two processes over one, on two cores, at least."""
PER_SECOND = 200.0
"""Wanted on sixteen cores."""


class Throughput(msgspec.Struct, frozen=True):
    """What an engine with a number of processes does."""

    processes: int
    per_second: float
    own_ms: float
    """Processor time of the engine's own process for a response; with one process, all of it."""


def record(bundle: str, requests: list[tuple[str, Any]], metrics: str | None, path: Path) -> None:
    """Score the requests with the models, and write what they answered."""
    with Engine.load(bundle, "cpu", options=LoadOptions(cache_bytes=0)) as engine:
        runtime: Any = engine.core.runtime
        answers: dict[str, dict[Call, Outcome]] = {role: {} for role in runtime.roles}
        run = runtime.run

        def keep(role: str, calls: list[Call], max_windows: int) -> list[Outcome]:
            outcomes: list[Outcome] = run(role, calls, max_windows)
            answers[role] |= zip(calls, outcomes, strict=True)
            return outcomes

        runtime.run = keep
        for _ in engine.score_many(requests, metrics=metrics):
            pass
        # Roles that share a graph are asked about together, so each has to know the calls of all.
        shared: dict[str, dict[Call, Outcome]] = {}
        for role in runtime.roles:
            shared.setdefault(runtime.batch_group(role), {}).update(answers[role])
        recorded = {
            "answers": {role: shared[runtime.batch_group(role)] for role in runtime.roles},
            "role_info": {role: runtime.role_info(role) for role in runtime.roles},
            "calibration": runtime.calibration,
        }
    path.write_bytes(pickle.dumps(recorded))


def load_models(bundle: str, threads: int) -> Engine:
    """An engine with the models of a bundle."""
    return Engine.load(bundle, "cpu", threads=threads, options=LoadOptions(cache_bytes=0))


def load_recorded(path: Path, threads: int) -> Engine:
    """An engine whose models answer from a record, on any number of threads."""
    recorded: Mapping[str, Any] = pickle.loads(path.read_bytes())
    answers = {role: by_call.__getitem__ for role, by_call in recorded["answers"].items()}
    runtime = FakeRuntime(answers, 64, recorded["role_info"], recorded["calibration"], concurrent_requests=8)
    return Engine(runtime, LoadOptions(cache_bytes=0))


def main(
    bundle: Annotated[str, typer.Option(help="Bundle: a name, a directory or hf://.")] = "compact",
    metrics: Annotated[str | None, typer.Option(help="Metrics or a group; by default those of the verdict.")] = None,
    count: Annotated[int, typer.Option(help="Responses of a run.", min=2)] = 192,
    repeats: Annotated[int, typer.Option(help="Runs of each side.", min=1)] = 5,
    cores: Annotated[int, typer.Option(help="Cores of the machine that is estimated.", min=2)] = 16,
    models: Annotated[bool, typer.Option(help="Run the models.")] = False,
    tiny: Annotated[bool, typer.Option(help="A few responses, to try the benchmark itself.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results, or none with --tiny.")] = None,
) -> None:
    """Measure one process and two, in turn."""
    if tiny:
        count, repeats = 4, 1
    requests = [(dialogue.response, dialogue.knowledge) for dialogue in distinct(count)]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        load = load_models if models else load_recorded
        settings = {"bundle": bundle} if models else {"path": Path(folder) / "record"}
        if not models:
            record(bundle, requests, metrics, Path(folder) / "record")
        # This module has another name while it runs as a program.
        start = Start(f"bench.processes:{load.__name__}", settings | {"threads": 1})
        engines = {
            1: stack.enter_context(load(**settings, threads=2)),
            2: stack.enter_context(Engine(ProcessRuntime(2, start), LoadOptions(cache_bytes=0))),
        }
        results, spent_ms = measure(engines, requests, metrics, repeats)
    alone, shared = results
    estimated = min(1000 / shared.own_ms, (cores - 1) * 1000 / spent_ms)
    common.console().print(
        common.table(
            f"{count} responses, {'models' if models else 'models that take no time'}",
            ("processes", "a second", "processor ms of the engine's own process, each"),
            [(str(each.processes), f"{each.per_second:.1f}", f"{each.own_ms:.2f}") for each in results],
        )
    )
    target = common.PerformanceTarget.at_least
    common.finish(
        "processes",
        {
            "bundle": bundle,
            "metrics": metrics,
            "models": str(models),
            "count": count,
            "repeats": repeats,
            "cores": cores,
        },
        {"measured": results, "estimated_per_second": estimated},
        []
        if tiny
        else [
            target("two processes over one", shared.per_second / alone.per_second, GAIN, "x"),
            target(f"estimated on {cores} cores", estimated, PER_SECOND, "/s"),
        ],
        out or (None if tiny else common.RESULTS / f"processes{'_models' * models}.json"),
    )


def measure(
    engines: Mapping[int, Engine], requests: list[tuple[str, Any]], metrics: str | None, repeats: int
) -> tuple[list[Throughput], float]:
    """The throughput of each engine, and the processor milliseconds of a response in one process."""
    seconds: dict[int, list[float]] = {processes: [] for processes in engines}
    processor_ms: dict[int, list[float]] = {processes: [] for processes in engines}
    expected: list[object] | None = None
    for turn in range(-1, repeats):
        for processes in common.in_turn(engines, turn):
            started, began = time.perf_counter(), time.process_time()
            scores = list(engines[processes].score_many(requests, metrics=metrics))
            spent, passed = time.process_time() - began, time.perf_counter() - started
            compared = [_drop_times(score) for score in scores]
            expected = expected or compared
            common.check(compared == expected, f"{processes} processes gave other scores than one")
            if turn >= 0:
                seconds[processes].append(passed)
                processor_ms[processes].append(spent * 1000 / len(requests))
    measured = [
        Throughput(
            processes, len(requests) / float(np.median(seconds[processes])), float(np.median(processor_ms[processes]))
        )
        for processes in engines
    ]
    return measured, measured[0].own_ms


def _drop_times(score: Score) -> object:
    common.check(score.status == "scored", f"not scored: {score.message}")
    return msgspec.structs.replace(score, timings=None)


if __name__ == "__main__":
    typer.run(main)
