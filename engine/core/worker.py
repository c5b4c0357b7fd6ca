"""A worker process of an engine: loads an engine of its own, and answers messages until there are no more."""

from __future__ import annotations

import importlib
import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial, reduce
from typing import IO, Any, Never

import msgspec

from groundwire.runtime.calls import Call, Compute, Computed
from groundwire.runtime.errors import GroundwireError, ModelError
from groundwire.runtime.interpreter import leave_torch_out
from groundwire.runtime.protocol import Outcome, Withdrawn
from groundwire.runtime.resources import freeze_objects

from ..metrics import available
from ..processes.messages import (
    AnswerPart,
    AskStatistics,
    Envelope,
    Loaded,
    Ping,
    PipeClosed,
    RunCalls,
    Start,
    StreamCall,
    WarmUp,
    Withdraw,
    read_message,
    write_message,
)
from ..scheduling.jobs import Failure, Job, JobResult
from ..schema.options import Options
from ..schema.results import MetricResult, Request
from ..schema.steps import Steps
from .core import Core, fold_outcomes
from .plan import Plan

log = logging.getLogger("groundwire")
FOLDING_THREADS = 2


def work() -> None:
    """Answer the messages of standard input on standard output; the process ends when they end."""
    # Ctrl-C, and the end of a terminal, reach all its processes, and a service manager may ask all processes of a
    # service to end: it is the engine that ends these, after their requests.
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, signal.SIG_IGN)
    source, out = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a library may print
    leave_torch_out()
    first: Envelope = read_message(source)
    worker = _Worker(out)
    threading.Thread(target=worker.watch, args=[source.fileno()], name="groundwire-pipe", daemon=True).start()
    worker.read(source, worker.open(first))


class _Worker:
    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(FOLDING_THREADS, "groundwire-fold")
        self._jobs: dict[int, Job[Any]] = {}
        """The jobs that are not over, by the numbers of their messages."""

    def open(self, first: Envelope) -> Core:
        """Make the engine that the first message describes, say what it can do, and return its core."""
        start: Start = first.content
        try:
            module, _, name = start.factory.partition(":")
            make = reduce(getattr, name.split("."), importlib.import_module(module))
            core: Core = make(**start.arguments).core  # type: ignore[operator]
        except GroundwireError as error:
            self._write(first.number, error)
            raise SystemExit(1) from error
        except BaseException as error:
            log.exception("a worker process could not load its engine")
            self._write(first.number, ModelError(f"A worker process could not start: {type(error).__name__}: {error}"))
            raise SystemExit(1) from error
        freeze_objects()
        runtime = core.runtime
        loaded = Loaded(
            runtime.identity,
            runtime.calibration,
            {role: runtime.role_info(role) for role in sorted(runtime.roles)},
            {role: runtime.batch(role) for role in sorted(runtime.roles)},
            frozenset(available(runtime.roles)),
            runtime.concurrent_requests,
        )
        self._write(first.number, loaded)
        return core

    def read(self, source: IO[bytes], core: Core) -> Never:
        """Start what each message asks for; answers are written when they are there, in any order. Does not return."""
        while True:
            try:
                number, content = read_message(source)
            except PipeClosed:
                self._leave()
            self._answer(number, self._begin, number, content, core)

    def _answer(self, number: int, make: Callable[..., Any], *arguments: Any) -> None:
        """Write what ``make`` returns, if it returns anything yet, or the error that it raises."""
        try:
            content = make(*arguments)
        except GroundwireError as error:
            content = error
        except BaseException as error:
            log.exception("a message could not be answered")
            content = ModelError(f"{type(error).__name__}: {error}")
        if content is not None:
            self._write(number, content)

    def _begin(self, number: int, content: Any, core: Core) -> Any:
        match content:
            case RunCalls(_, [Compute() as call], _):
                request = _REQUEST.decode(call.request)
                plan = core.plan(call.metrics, _OPTIONS.decode(call.options))
                job: Job[Any] = core.start([request], plan, is_bounded=False)
                make = partial(_fold, request, plan, call.max_entries) if call.whole else _list_outcomes
                self._answer_when_done(number, job, make)
            case RunCalls():
                options = Options(max_windows=content.max_windows)
                job = core.run([_ask(call) for call in content.calls], options, is_bounded=False)
                self._answer_when_done(number, job, _read_outcomes)
            case StreamCall():
                self._start_thread(self._stream, number, content, core)
            case Withdraw():
                if (withdrawn := self._jobs.pop(content.number, None)) is not None:
                    core.scheduler.cancel(withdrawn)
            case WarmUp():
                self._start_thread(self._warm_up, number, content.roles, core)
            case Ping():
                return True
            case AskStatistics():
                return core.statistics()
        return None

    def _answer_when_done(self, number: int, job: Job[Any], make: Callable[[JobResult[Any]], Any]) -> None:
        """Write what ``make`` returns for a job when it is over; not on the scheduler's thread, which calls back."""

        def end(future: Future[JobResult[Any]]) -> None:
            withdrawn = self._jobs.pop(number, None) is None
            self._threads.submit(self._answer, number, _refuse if withdrawn else make, future.result())

        self._jobs[number] = job
        job.future.add_done_callback(end)

    def _start_thread(self, target: Callable[..., object], *arguments: Any) -> None:
        """For what takes long: meanwhile the process answers other messages, and shows that it lives."""
        threading.Thread(target=target, args=arguments, daemon=True).start()

    def _warm_up(self, number: int, roles: frozenset[str] | None, core: Core) -> None:
        def warm_up() -> bool:
            core.warm_up(roles)
            return True

        self._answer(number, warm_up)

    def _stream(self, number: int, content: StreamCall, core: Core) -> None:
        def write_parts() -> None:
            for part in core.runtime.stream(content.call):
                self._write(number, AnswerPart(part))
            self._write(number, None)

        self._answer(number, write_parts)

    def _write(self, number: int, content: Any) -> None:
        with self._lock:
            try:
                write_message(self._out, Envelope(number, content))
            except PipeClosed:
                os._exit(1)  # the engine has ended, and no answer can reach it

    def watch(self, pipe: int) -> None:
        """End the process when the other end of a pipe is closed, whatever it does: loading models takes seconds."""
        if hasattr(select, "poll"):
            waiting = select.poll()
            waiting.register(pipe, 0)  # hang-ups are reported all the same
            waiting.poll()
            self._leave()

    def _leave(self) -> Never:
        """End the process: nothing that it still computes is waited for, and the system frees its memory fastest."""
        with self._lock:
            os._exit(0)


_REQUEST = msgspec.msgpack.Decoder(Request)
_OPTIONS = msgspec.msgpack.Decoder(Options)


def _ask(call: Call) -> Steps[Outcome]:
    try:
        (outcome,) = yield [call]
    except GroundwireError as error:
        return error
    result: Outcome = outcome
    return result


def _fold(request: Request, plan: Plan, max_entries: int | None, job_result: JobResult[MetricResult]) -> list[Computed]:
    score = fold_outcomes(request, job_result.outcomes, job_result.timings, plan)
    return [Computed((score.shorten(max_entries),))]


def _refuse(_: JobResult[Any]) -> Never:
    raise Withdrawn("Nothing waited for the answer any more.")


def _list_outcomes(job_result: JobResult[MetricResult]) -> list[Computed]:
    return [Computed(job_result.outcomes)]


def _read_outcomes(job_result: JobResult[Outcome]) -> list[Outcome]:
    return [ModelError(outcome.message) if isinstance(outcome, Failure) else outcome for outcome in job_result.outcomes]
