"""Runs the stages of a long measurement, each in a process of its own with a time limit, and keeps what they found.

A stage that raises, crashes, loses the GPU or takes too long is recorded with what happened, and the others go on. It
may save its results as it goes: the last results count. Processes fork from a process that has imported the large
libraries and used none of them (``preload.py``), so a stage starts at once.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

PRELOAD = "bench.gpu.preload"
"""Imported by the process that stages fork from."""
TRACEBACK_LINES = 8
POLL_SECONDS = 0.05

Status: TypeAlias = Literal["running", "done", "failed", "skipped", "cut"]
Save: TypeAlias = Callable[[Any], None]
"""Keeps the results so far."""


class Skipped(Exception):
    """There is nothing to measure here; the message says why."""


class Stage(NamedTuple):
    """A measurement: ``function`` of ``module`` gets the setup and a way to save, and the last it saves is kept."""

    name: str
    module: str
    function: str
    seconds: float
    """Its time limit."""
    arguments: tuple[str, ...] = ()
    """Further arguments of the function."""


class Record(msgspec.Struct):
    """What became of a stage."""

    name: str
    status: Status
    """``cut`` when its time was over; ``results`` may have a part then."""
    seconds: float
    message: str = ""
    """The error, or why there is nothing to measure."""
    results: Any = None


class _Outcome(msgspec.Struct):
    status: Status
    message: str
    results: Any
    seconds: float


def find_file(folder: Path, name: str) -> Path:
    """The file in which a stage keeps what it found."""
    return folder / f"{name}.json"


def read_results(folder: Path, name: str) -> Any:
    """What another stage of the run has found so far; None for nothing."""
    outcome = _read_outcome(find_file(folder, name))
    return None if outcome is None else outcome.results


def read_done(folder: Path, stages: Iterable[Stage]) -> list[Record]:
    """The records of those stages that were done when they ran with this folder, in the order of ``stages``."""
    read = [(stage.name, _read_outcome(find_file(folder, stage.name))) for stage in stages]
    return [
        Record(name, outcome.status, outcome.seconds, outcome.message, outcome.results)
        for name, outcome in read
        if outcome is not None and outcome.status == "done"
    ]


def _read_outcome(path: Path) -> _Outcome | None:
    return msgspec.json.decode(path.read_bytes(), type=_Outcome) if path.exists() else None


def run_stages(
    groups: Sequence[Sequence[Stage]],
    setup: Any,
    folder: Path,
    seconds: float,
    on_change: Callable[[Sequence[Record]], None],
    at_once: int,
    done: Sequence[Record] = (),
) -> list[Record]:
    """Run groups one after another, up to ``at_once`` stages of a group at the same time; all within ``seconds``.

    ``setup`` is passed to each and has to be picklable; ``folder`` has their files. ``on_change`` gets the records
    whenever a stage has ended, and with what it has so far whenever a stage has saved something. ``done`` are the
    records of an earlier run, whose stages do not run again.
    """
    names = {record.name for record in done}
    end = time.monotonic() + seconds
    folder.mkdir(parents=True, exist_ok=True)
    context = _choose_context()
    records = list(done)
    running: dict[str, _Running] = {}
    try:
        for group in groups:
            waiting = [stage for stage in group if stage.name not in names]
            while waiting or running:
                if waiting and len(running) < at_once:
                    stage = waiting.pop(0)
                    path = find_file(folder, stage.name)
                    left = end - time.monotonic()
                    if left <= 0:
                        records.append(Record(stage.name, "skipped", 0.0, "no time was left"))
                        on_change(records)
                        continue
                    path.unlink(missing_ok=True)  # of an earlier run
                    process = context.Process(target=enter, args=(stage, setup, path))
                    process.start()
                    running[stage.name] = _Running(process, path, time.monotonic(), min(stage.seconds, left))
                    continue
                for name, run in list(running.items()):
                    if run.has_ended():
                        records.append(run.end(name))
                        del running[name]
                        on_change(records)
                    elif (partial := run.read_partial(name)) is not None:
                        on_change([*records, partial])
                time.sleep(POLL_SECONDS)
    finally:
        for run in running.values():  # after an interrupt
            _kill(run.process)
    return records


def _choose_context() -> ForkServerContext | SpawnContext:
    """A way to start processes: forks, unless what they fork from has started CUDA, which does not survive it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOAD])
    probe = context.Process(target=_probe)
    probe.start()
    probe.join()
    return context if probe.exitcode == 0 else multiprocessing.get_context("spawn")


def _probe() -> None:
    os._exit(getattr(sys.modules.get(PRELOAD), "CUDA_STARTED", False))


@dataclass
class _Running:
    process: BaseProcess
    path: Path
    started: float
    limit: float
    read: int = 0
    """When what was read last was saved, in nanoseconds."""

    def read_partial(self, name: str) -> Record | None:
        """What it has saved since the last call; None for nothing."""
        saved = self.path.stat().st_mtime_ns if self.path.exists() else 0
        if saved == self.read:
            return None
        self.read = saved
        outcome = _read_outcome(self.path)
        if outcome is None or outcome.status != "running":  # it has ended
            return None
        return Record(name, "running", round(time.monotonic() - self.started, 1), "", outcome.results)

    def has_ended(self) -> bool:
        return not self.process.is_alive() or time.monotonic() - self.started > self.limit

    def end(self, name: str) -> Record:
        """Stop the process if it still runs, and read what it saved."""
        cut = self.process.is_alive()
        spent = round(time.monotonic() - self.started, 1)
        if cut:
            _kill(self.process)
        self.process.join()
        code = self.process.exitcode
        outcome = _read_outcome(self.path)
        results = None if outcome is None else outcome.results
        if outcome is not None and outcome.status != "running":
            return Record(name, outcome.status, spent, outcome.message, results)
        if cut:
            return Record(name, "cut", spent, f"its {self.limit:.0f} seconds were over", results)
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        return Record(name, "failed", spent, f"the process ended with {how}", results)


def _kill(process: BaseProcess) -> None:
    """End a stage and what it has started: compilers, say."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.pid is not None and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def enter(stage: Stage, setup: Any, path: Path) -> None:
    """Run a stage in this process, which is its own, and write what becomes of it to ``path``."""
    os.setpgrp()  # a group of processes of its own, to end with what it starts
    latest: list[Any] = [None]
    started = time.monotonic()

    def write(status: Status, message: str = "") -> None:
        partial = path.with_suffix(".part")
        partial.write_bytes(
            msgspec.json.encode(_Outcome(status, message, latest[0], round(time.monotonic() - started, 1)))
        )
        partial.replace(path)

    def save(results: Any) -> None:
        latest[0] = msgspec.to_builtins(results)
        write("running")

    try:
        getattr(importlib.import_module(stage.module), stage.function)(setup, save, *stage.arguments)
    except Skipped as reason:
        write("skipped", str(reason))
    except BaseException as error:
        traceback.print_exc()
        lines = "".join(traceback.format_exception(error)).splitlines()
        write("failed", f"{type(error).__name__}: {error}\n" + "\n".join(lines[-TRACEBACK_LINES:]))
    else:
        write("done")
    sys.stdout.flush()
    sys.stderr.flush()
    # What libraries do at exit, with a GPU that may be lost, does not count as part of the stage.
    os._exit(0)


@contextlib.contextmanager
def noted(errors: dict[str, str], name: str) -> Iterator[None]:
    """Keep the error of one subject of a stage in ``errors``, so that the other subjects go on."""
    try:
        yield
    except Skipped as reason:
        errors[name] = str(reason)
    except Exception as error:
        errors[name] = f"{type(error).__name__}: {str(error)[:500]}"
