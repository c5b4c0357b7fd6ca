"""Runs the tasks of every request in flight and merges their model calls.

One thread, the loop, owns all state and runs the tasks' own Python. It collects the calls that tasks yield, answers
repeated ones from a bounded cache, and passes the rest to the runtime in batches of one role: first the role whose
oldest call has waited longest, with every other waiting call of that role, so that requests share batches and no role
starves. Batches run on the threads of the runtime's worker pools: ``device`` runs graphs, ``host`` runs spaCy. A
deadline or a cancellation takes effect at once; the results of a batch that is running are kept for its other waiters.

``jobs`` has the records and the states of a task.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import InvalidStateError, ThreadPoolExecutor
from math import ceil
from typing import Any, TypeVar

from groundwire.runtime.calls import Call, role_of
from groundwire.runtime.errors import EngineClosed, GroundwireError, ModelError, Overloaded, TooLong
from groundwire.runtime.protocol import Outcome, Runtime

from ..schema.results import Timings
from .cache import Cache, Key
from .jobs import Finished, Job, StopStatus, Task, Unfinished, Waiter
from .steps import Round, Steps

T = TypeVar("T")
log = logging.getLogger("groundwire")


class WorkerPool:
    """Threads that run batches at the same time, one batch per thread."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.free = size
        self.threads = ThreadPoolExecutor(size, thread_name_prefix=f"groundwire-{name}")


class Scheduler:
    """Drives jobs over one runtime. ``submit``, ``cancel`` and ``close`` may be called from any thread."""

    def __init__(self, runtime: Runtime, *, max_waiting: int = 4096, cache_chars: int = 8_000_000) -> None:
        self._runtime = runtime
        self._max_waiting = max_waiting
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._jobs: set[Job[Any]] = set()
        self._pending: dict[str, OrderedDict[Key, list[Waiter]]] = {}
        self._running: dict[Key, list[Waiter]] = {}
        self._cache = Cache(cache_chars)
        self._pools = [WorkerPool(name, size) for name, size in runtime.worker_pools.items()]
        self._lock = threading.Lock()
        self._unfinished = 0
        self._closed = False
        self._loop = threading.Thread(target=self._run, name="groundwire-loop", daemon=True)
        self._loop.start()

    def submit(self, tasks: Sequence[Steps[T]], max_windows: int, deadline_ms: float | None = None) -> Job[T]:
        """Start the tasks of a request; ``job.future`` gets one outcome per task, never an exception of a task.

        Raises EngineClosed after ``close`` and Overloaded when ``max_waiting`` requests are unfinished.
        """
        deadline = None if deadline_ms is None else time.monotonic() + deadline_ms / 1000
        job = Job([Task(steps) for steps in tasks], max_windows, deadline)
        with self._lock:
            if self._closed:
                raise EngineClosed("The engine is closed; load another one.")
            if self._unfinished >= self._max_waiting:
                raise Overloaded(
                    f"{self._unfinished} requests are unfinished, the most this engine accepts; wait for some, "
                    "or load the engine with a larger max_waiting."
                )
            self._unfinished += 1
            self._inbox.put(lambda: self._start(job))
        return job

    def cancel(self, job: Job[Any]) -> None:
        """Give a job up; its unfinished tasks end with status ``cancelled``."""
        self._inbox.put(lambda: self._stop(job, "cancelled", "The request was cancelled."))

    def close(self) -> None:
        """Finish no more work: unfinished jobs end with status ``cancelled``. Returns when no batch is running."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._inbox.put(self._cancel_all)
        self._loop.join()
        for pool in self._pools:
            pool.threads.shutdown(wait=True)

    @property
    def cache_info(self) -> tuple[int, int, int]:
        """Cached calls, hits and misses so far."""
        return len(self._cache), self._cache.hits, self._cache.misses

    # The loop: what follows runs on its thread.

    def _run(self) -> None:
        try:
            while not self._closed or self._jobs:
                for pool in self._pools:
                    self._fill(pool)
                self._process_message()
        except BaseException as error:  # a defect of the loop itself must not leave callers waiting for ever
            log.exception("the scheduler stopped")
            with self._lock:
                self._closed = True
            for job in self._jobs:
                with contextlib.suppress(InvalidStateError):  # the caller has cancelled the future
                    job.future.set_exception(error)

    def _process_message(self) -> None:
        """Process one message, so that a pool that it frees or brings work for is filled before the next one."""
        try:
            message = self._inbox.get(timeout=self._seconds_to_deadline())
        except queue.Empty:
            pass
        else:
            message()
        self._expire()

    def _seconds_to_deadline(self) -> float | None:
        """Seconds until the next deadline, at least 0; None without any."""
        deadlines = [job.deadline for job in self._jobs if job.deadline is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _start(self, job: Job[Any]) -> None:
        self._jobs.add(job)
        for task in job.tasks:
            self._resume(job, task)
        self._finish_if_done(job)

    def _resume(self, job: Job[Any], task: Task[Any]) -> None:
        """Advance a task until it waits for a call that is not cached, or ends."""
        while task.outcome is None and not job.over:
            try:
                if task.error is not None:
                    error, task.error = task.error, None
                    calls = task.steps.throw(error)
                else:
                    calls = task.steps.send(task.results)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as end:
                task.outcome = end.value
            except GroundwireError as error:
                task.outcome = Unfinished("truncated" if isinstance(error, TooLong) else "failed", str(error))
            except Exception as error:
                log.exception("task %s failed", task.name)
                message = f"{type(error).__name__}: {error}. This is a defect of {task.name}; please report it."
                task.outcome = Unfinished("failed", message)
            else:
                self._request_round(job, task, calls)
                if task.missing:
                    return

    def _request_round(self, job: Job[Any], task: Task[Any], calls: Round) -> None:
        """Answer the calls of a round from the cache, and queue the others."""
        task.results = [None] * len(calls)
        task.missing = 0
        for index, call in enumerate(calls):
            key = Key(call, job.max_windows)
            cached = self._cache.get(key)
            if cached is not None:
                self._store(task, index, cached)
                continue
            task.missing += 1
            waiter = Waiter(job, task, index)
            if key in self._running:
                self._running[key].append(waiter)
            else:
                self._pending.setdefault(role_of(call), OrderedDict()).setdefault(key, []).append(waiter)

    @staticmethod
    def _store(task: Task[Any], index: int, outcome: Outcome) -> None:
        assert task.results is not None
        if isinstance(outcome, GroundwireError):
            task.error = task.error or outcome
        else:
            task.results[index] = outcome

    def _fill(self, pool: WorkerPool) -> None:
        """Start batches on a pool until its threads are busy or no call waits for it."""
        while pool.free and (role := self._next_role(pool)) is not None:
            keys, max_windows = self._take_batch(role, pool.free)
            pool.free -= 1
            pool.threads.submit(self._run_batch, pool, role, keys, max_windows)

    def _next_role(self, pool: WorkerPool) -> str | None:
        """The role of ``pool`` whose oldest call has waited longest; None when no call waits."""
        oldest: tuple[float, str] | None = None
        for role, calls in self._pending.items():
            if self._runtime.worker_pool(role) != pool.name:
                continue
            while calls and all(waiter.job.over for waiter in next(iter(calls.values()))):
                calls.popitem(last=False)
            if calls:
                started = min(waiter.job.started for waiter in next(iter(calls.values())))
                if oldest is None or started < oldest[0]:
                    oldest = (started, role)
        return oldest[1] if oldest else None

    def _take_batch(self, role: str, free: int) -> tuple[list[Key], int]:
        """The calls to run next, at least one: one free thread's share of what waits, and their ``max_windows``."""
        calls = self._pending[role]
        size = min(self._runtime.batch(role), ceil(len(calls) / free))
        max_windows = next(iter(calls)).max_windows
        keys: list[Key] = []
        for key in list(calls):
            if len(keys) == size:
                break
            if all(waiter.job.over for waiter in calls[key]):
                del calls[key]
            elif key.max_windows == max_windows:
                keys.append(key)
        for key in keys:
            self._running[key] = calls.pop(key)
        return keys, max_windows

    def _deliver(self, role: str, keys: list[Key], outcomes: list[Outcome], elapsed_ms: float) -> None:
        """Give the outcomes of a batch to their waiters, and resume the tasks whose round is complete."""
        served: set[Job[Any]] = set()
        ready: dict[Task[Any], Job[Any]] = {}
        for key, outcome in zip(keys, outcomes, strict=True):
            if not isinstance(outcome, GroundwireError):
                self._cache.put(key, outcome)
            for waiter in self._running.pop(key):
                if waiter.job.over:
                    continue
                served.add(waiter.job)
                self._store(waiter.task, waiter.index, outcome)
                waiter.task.missing -= 1
                if waiter.task.missing == 0:
                    ready[waiter.task] = waiter.job
        for job in served:
            job.stages_ms[role] = job.stages_ms.get(role, 0.0) + elapsed_ms
        for task, job in ready.items():
            self._resume(job, task)
        for job in served:
            self._finish_if_done(job)

    def _expire(self) -> None:
        now = time.monotonic()
        for job in [job for job in self._jobs if job.deadline is not None and job.deadline <= now]:
            assert job.deadline is not None
            budget_ms = (job.deadline - job.started) * 1000
            message = f"The request was not finished within {budget_ms:.0f} ms; raise Options.deadline_ms."
            self._stop(job, "deadline", message)

    def _stop(self, job: Job[Any], status: StopStatus, message: str) -> None:
        if job.over:
            return
        for task in job.tasks:
            if task.outcome is None:
                task.outcome = Unfinished(status, message)
                task.steps.close()
        self._finish_if_done(job)

    def _finish_if_done(self, job: Job[Any]) -> None:
        if job.over or any(task.outcome is None for task in job.tasks):
            return
        job.over = True
        self._jobs.discard(job)
        with self._lock:
            self._unfinished -= 1
        timings = Timings((time.monotonic() - job.started) * 1000, job.stages_ms)
        outcomes = tuple(task.outcome for task in job.tasks)
        if job.future.set_running_or_notify_cancel():
            job.future.set_result(Finished(outcomes, timings))

    def _cancel_all(self) -> None:
        for job in list(self._jobs):
            self._stop(job, "cancelled", "The engine was closed.")

    # Batches: what follows runs on a pool's threads and touches nothing that the loop owns.

    def _run_batch(self, pool: WorkerPool, role: str, keys: list[Key], max_windows: int) -> None:
        started = time.perf_counter()
        outcomes = self._execute(role, [key.call for key in keys], max_windows)
        elapsed_ms = (time.perf_counter() - started) * 1000

        def deliver() -> None:
            pool.free += 1
            self._expire()  # what comes too late does not count
            self._deliver(role, keys, outcomes, elapsed_ms)

        self._inbox.put(deliver)

    def _execute(self, role: str, calls: list[Call], max_windows: int) -> list[Outcome]:
        outcomes = self._attempt(role, calls, max_windows)
        if len(calls) > 1 and any(isinstance(outcome, ModelError) for outcome in outcomes):
            # One call may have spoiled the batch for all; alone, only the culprit fails.
            outcomes = [self._attempt(role, [call], max_windows)[0] for call in calls]
        return outcomes

    def _attempt(self, role: str, calls: list[Call], max_windows: int) -> list[Outcome]:
        try:
            return list(self._runtime.run(role, calls, max_windows))
        except GroundwireError as error:
            return [error] * len(calls)
        except Exception as error:
            log.exception("role %s failed", role)
            return [ModelError(f"Role {role} failed: {type(error).__name__}: {error}")] * len(calls)
