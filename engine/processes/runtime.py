"""The runtime of an engine with worker processes: requests go to the process with the least to do.

Each process has an engine of its own, models included. A request's metrics are computed whole in one of them, so that
the engine's own interpreter has only admission, verdict and answer to do; the calls of everything else (corrections,
repairs, metrics of the caller's own) are passed on as they are. A process that ends, or gives no sign of life
(``watchdog.py``), is replaced. Its requests are asked again, once, of another; a request that ends that process too
fails.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.calls import PROCESSES, Call, Compute, Generate, SequencePart
from groundwire.runtime.errors import EngineClosed, GroundwireError, ModelError
from groundwire.runtime.protocol import CaptureCounts, Identity, Outcome, RoleInfo

from ..schema.options import Options
from ..schema.results import Request
from ..schema.statistics import EngineStatistics, StageStatistics
from .messages import AskStatistics, Loaded, RunCalls, Start, StreamCall, WarmUp
from .process import ProcessEnded, WorkerProcess, end_all
from .watchdog import TICK_SECONDS, Watchdog

log = logging.getLogger("groundwire")
FIRST_DELAY, LONGEST_DELAY = 1.0, 60.0
"""Seconds from an attempt to start a process that failed to the next one; each delay is twice as long."""
STATISTICS_SECONDS = 1.0


class ProcessRuntime:
    """Runs calls, and whole metrics, in worker processes."""

    def __init__(self, count: int, start: Start) -> None:
        """Start the processes, and return when all of them have loaded their models.

        Args:
            count: Processes, 1 or more.
            start: What makes the engine of each.

        Raises:
            GroundwireError: What loading an engine raised in a process.
            ModelError: A process ended while it loaded.
        """
        self._start = start
        self._changed = threading.Condition()
        self._ready: list[WorkerProcess] = []
        self._started: set[WorkerProcess] = set()
        """Processes that load in place of others."""
        self._loading = 0
        """Processes that are started in place of others, now."""
        self._restarts = 0
        self._failure = ""
        """Why the last attempt to start one failed."""
        self._second_attempts = threading.Lock()
        self._closed = False
        self._wanted: Counter[Call] = Counter()
        """How many unfinished jobs wait for a call, of the calls that were passed to ``hold``."""
        self._asked: dict[Call, tuple[WorkerProcess, int]] = {}
        """The process, and the number of the message, of each such call that is worked on."""
        self._holding = threading.Lock()
        started = [WorkerProcess(start, self._replace) for _ in range(count)]
        try:
            self._loaded, *_ = [self._add(process) for process in started]
        except BaseException:
            self._closed = True
            for process in started:
                process.kill()
            raise
        self._count = count
        threading.Thread(target=self._watch, name="groundwire-watchdog", daemon=True).start()

    @property
    def running(self) -> int:
        """Processes that compute now."""
        return sum(not process.has_ended for process in self._ready)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Their numbers."""
        return tuple(process.pid for process in list(self._ready) if not process.has_ended)

    @property
    def roles(self) -> frozenset[str]:
        """The roles of the processes' bundles."""
        return frozenset(self._loaded.roles)

    @property
    def identity(self) -> Identity:
        """As in each process; which one computes a score does not matter to it."""
        return self._loaded.identity

    @property
    def calibration(self) -> Calibration | None:
        """From the bundles."""
        return self._loaded.calibration

    def role_info(self, role: str) -> RoleInfo:
        """Return what the bundle says about a role, as ``Runtime.role_info``."""
        return self._loaded.roles.get(role, RoleInfo())

    @property
    def worker_pools(self) -> Mapping[str, int]:
        """One pool for all processes, with a thread for each request that they work on."""
        return {PROCESSES: self.concurrent_requests}

    @property
    def concurrent_requests(self) -> int:
        """As many as the processes work on together."""
        return self._count * self._loaded.concurrent_requests

    @property
    def spare_requests(self) -> int:
        """None: the engines of the processes use what time they have to spare."""
        return 0

    def worker_pool(self, role: str) -> str:
        """Return the only pool, as ``Runtime.worker_pool``."""
        return PROCESSES

    def batch_group(self, role: str) -> str:
        """Return the role itself: the processes join what shares a graph; as ``Runtime.batch_group``."""
        return role

    def batch(self, role: str) -> int:
        """Return the size of batches in a process; the metrics of a request go alone, to the next idle process."""
        return self._loaded.batches.get(role, 1)

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """Answer calls in the process with the least to do, as ``Runtime.run``."""
        outcomes: Sequence[Outcome] = self._ask(RunCalls(role, calls, max_windows), calls[0])
        return outcomes

    def hold(self, call: Compute, future: Future[Any]) -> None:
        """Let the process that works on a call stop when no job wants it any more; then its outcome is ``Withdrawn``.

        Args:
            call: The call that a job waits for.
            future: What is done when the job is over: finished, past its deadline or cancelled.
        """
        with self._holding:
            self._wanted[call] += 1
        future.add_done_callback(lambda _: self._release(call))

    def _release(self, call: Compute) -> None:
        with self._holding:
            self._wanted[call] -= 1
            if self._wanted[call] > 0:
                return
            del self._wanted[call]
            asked = self._asked.get(call)
        if asked is not None:
            process, number = asked
            process.withdraw(number)

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """Generate the best response to a call, as ``Runtime.stream``; ModelError when the process ends meanwhile."""
        try:
            yield from self._choose().stream(StreamCall(call))
        except ProcessEnded as error:
            raise ModelError(f"The worker process of the stream has ended: {error}.") from error

    def warm_calls(self, roles: Collection[str] | None = None) -> Sequence[Call]:
        """Warm every process up, and return no calls; ModelError when one fails."""
        message = WarmUp(None if roles is None else frozenset(roles))
        for answer in [process.ask(message) for process in list(self._ready)]:
            try:
                answer.result()
            except ProcessEnded as error:
                raise ModelError(f"Warming up failed: {error}.") from error
        return ()

    def interrupt(self) -> None:
        """End the processes, as ``Interruptible.interrupt``."""
        self.close()

    def close(self) -> None:
        """End the processes, whatever they work on, and return when they have ended."""
        with self._changed:
            self._closed = True
            ready, self._ready = self._ready, []
            started = list(self._started)
            self._changed.notify_all()
        for process in started:
            process.kill()
        end_all(ready)

    def computes(self, metric: str) -> bool:
        """Whether the processes know a metric; what the caller has registered here, they do not."""
        return metric in self._loaded.metrics

    def make_call(
        self,
        request: Request,
        metrics: Sequence[str],
        options: Options,
        *,
        whole: bool = False,
        max_entries: int | None = None,
    ) -> Compute:
        """Return the call that computes metrics of a request in a process.

        Args:
            request: The texts.
            metrics: Names of metrics that ``computes`` holds for.
            options: Options of the request. Its deadline, priority and tenant count here and not in the process.
            whole: Whether the result is the score; then ``metrics`` has all metrics of its plan.
            max_entries: Entries of each list of the score; None for all.
        """
        without = msgspec.structs.replace(options, deadline_ms=None, priority=0, tenant="")
        texts, chosen = msgspec.msgpack.encode(request), msgspec.msgpack.encode(without)
        return Compute(texts, tuple(metrics), chosen, whole, max_entries)

    def complete(self, statistics: EngineStatistics) -> EngineStatistics:
        """Return the statistics with the batches and captures of all processes in place of the messages to them."""
        asked = [process.ask(AskStatistics()) for process in list(self._ready)]
        stages: dict[str, StageStatistics] = {}
        captures = CaptureCounts()
        end = time.monotonic() + STATISTICS_SECONDS
        for answer in asked:
            try:
                counted: EngineStatistics = answer.result(max(0.0, end - time.monotonic()))
            except (ProcessEnded, TimeoutError):
                continue
            captures += counted.captures
            for role, stage in counted.stages.items():
                sum_ = stages.get(role, StageStatistics())
                stages[role] = StageStatistics(
                    sum_.batches + stage.batches, sum_.calls + stage.calls, sum_.ms + stage.ms
                )
        return msgspec.structs.replace(
            statistics,
            stages=stages,
            configured_processes=self._count,
            processes=self.running,
            restarts=self._restarts,
            captures=captures,
        )

    def _ask(self, content: RunCalls, call: Call) -> Any:
        try:
            return self._ask_once(content, call)
        except ProcessEnded:
            pass
        # Of what a process was asked when it ended, something may have ended it: one after the other, beside others
        # that are asked for the first time, so that it takes no other with it for good.
        with self._second_attempts:
            try:
                return self._ask_once(content, call)
            except ProcessEnded as error:
                raise ModelError(
                    f"Two worker processes ended while they worked on it, the last one: {error}. If others go on, it "
                    "is this request; if not, memory may be short: load the engine with fewer processes."
                ) from error

    def _ask_once(self, content: RunCalls, call: Call) -> Any:
        process = self._choose()

        def note(number: int) -> None:
            with self._holding:
                if call in self._wanted:
                    self._asked[call] = process, number

        try:
            return process.ask(content, note).result()
        finally:
            with self._holding:
                self._asked.pop(call, None)

    def _choose(self) -> WorkerProcess:
        """The process with the least to do; waits while there is none and one is loading."""
        with self._changed:
            while not self._closed:
                if ready := [process for process in self._ready if not process.has_ended]:
                    return min(ready, key=lambda process: process.unanswered)
                if not self._ready and not self._loading:
                    raise ModelError(f"No worker process runs; {self._failure} Another attempt is made soon.")
                self._changed.wait()
        raise EngineClosed("The runtime was closed and its processes have ended; load the bundle again.")

    def _add(self, process: WorkerProcess) -> Loaded:
        loaded = process.wait_until_loaded()
        with self._changed:
            if process.has_ended:
                raise ModelError("A worker process ended as soon as it was loaded.")
            if not self._closed:
                self._ready.append(process)
                self._changed.notify_all()
                return loaded
        end_all([process])
        raise EngineClosed("The runtime was closed.")

    def _start_other(self) -> WorkerProcess:
        """Start a process in place of another one, and return it when it computes."""
        process = WorkerProcess(self._start, self._replace)
        with self._changed:
            if self._closed:
                process.kill()
                raise EngineClosed("The runtime was closed.")
            self._started.add(process)
        try:
            self._add(process)
        finally:
            self._started.discard(process)
        return process

    def _watch(self) -> None:
        """Kill processes that hang, until the runtime is closed; ``_replace`` is called for them as for others."""
        watchdog = Watchdog()
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, TICK_SECONDS):
                    return
                ready = list(self._ready)
            watchdog.check(ready)

    def _replace(self, ended: WorkerProcess) -> None:
        """Start another process in place of a ready process that has ended; try until it is loaded."""
        with self._changed:
            if ended not in self._ready:
                return
            self._ready.remove(ended)
            self._loading += 1
        log.warning("worker process %d has ended; another is started", ended.pid)
        delay = FIRST_DELAY
        while True:
            try:
                other = self._start_other()
            except GroundwireError as error:
                if self._closed:
                    break
                log.exception("a worker process could not be started; the next attempt is in %.0f s", delay)
                self._failure = str(error)
            else:
                log.info("worker process %d computes in place of %d", other.pid, ended.pid)
                self._restarts += 1
                break
            with self._changed:
                self._loading -= 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed, delay)
                self._loading += 1
            delay = min(2 * delay, LONGEST_DELAY)
        with self._changed:
            self._loading -= 1
            self._changed.notify_all()
