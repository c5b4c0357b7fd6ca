"""Runs the metrics of every request in flight and merges their model calls.

One thread, the loop, owns all state and runs the metrics' own Python. It collects the calls that waiting metrics
yielded, answers repeats from a bounded cache, and hands the rest to the runtime in batches of one role: first the role
whose oldest call waits longest, together with every other waiting call of that role, so requests share batches and none
starves. The batches run on the threads of the runtime's pools: the ``device`` runs graphs, the ``host`` spaCy. A
deadline or a cancellation takes effect at once; of a batch that is running, what others asked is kept.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.results import MetricResult, Status, Timings
from groundwire.runtime.calls import Call, role_of
from groundwire.runtime.errors import EngineClosed, GroundwireError, ModelError, Overloaded, TooLong
from groundwire.runtime.protocol import Outcome, Runtime

from .cache import Cache, Key

log = logging.getLogger("groundwire")


@dataclass(eq=False, slots=True)
class Job:
    """The metrics of one request."""

    tasks: list[Task]
    max_windows: int
    deadline: float | None
    """On the monotonic clock, in seconds."""
    started: float = field(default_factory=time.monotonic)
    future: Future[Finished] = field(default_factory=Future)
    stages_ms: dict[str, float] = field(default_factory=dict)
    over: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of a job: one result per metric, and where the time went."""

    results: tuple[MetricResult, ...]
    timings: Timings


@dataclass(eq=False, slots=True)
class Task:
    """One metric of one request, stopped at a wave."""

    name: str
    steps: Steps[MetricResult]
    results: list[Any] | None = None
    """Of the wave it waits for; None before its first."""
    missing: int = 0
    error: GroundwireError | None = None
    outcome: MetricResult | None = None


@dataclass(frozen=True, slots=True)
class Waiter:
    """A place in a wave that waits for a call."""

    job: Job
    task: Task
    place: int


class WorkerPool:
    """Threads that run batches beside each other, each one at a time."""

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.free = width
        self.threads = ThreadPoolExecutor(width, thread_name_prefix=f"groundwire-{name}")


class Scheduler:
    """Drives jobs over one runtime. ``submit`` is safe from any thread."""

    def __init__(self, runtime: Runtime, *, max_waiting: int = 4096, cache_chars: int = 8_000_000) -> None:
        self._runtime = runtime
        self._max_waiting = max_waiting
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._jobs: set[Job] = set()
        self._pending: dict[str, OrderedDict[Key, list[Waiter]]] = {}
        self._running: dict[Key, list[Waiter]] = {}
        self._cache = Cache(cache_chars)
        self._pools = [WorkerPool(name, width) for name, width in runtime.worker_pools.items()]
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False
        self._loop = threading.Thread(target=self._run, name="groundwire-loop", daemon=True)
        self._loop.start()

    def submit(
        self, tasks: Sequence[tuple[str, Steps[MetricResult]]], max_windows: int, deadline_ms: float | None
    ) -> Job:
        """Start the metrics of a request; ``job.future`` gets their results and never an exception of a metric.

        Raises EngineClosed after ``close`` and Overloaded when ``max_waiting`` requests are unfinished.
        """
        deadline = None if deadline_ms is None else time.monotonic() + deadline_ms / 1000
        job = Job([Task(name, steps) for name, steps in tasks], max_windows, deadline)
        with self._lock:
            if self._closed:
                raise EngineClosed("The engine is closed; load another one.")
            if self._waiting >= self._max_waiting:
                raise Overloaded(
                    f"{self._waiting} requests are unfinished, the most this engine accepts; wait for some, "
                    "or load the engine with a larger max_waiting."
                )
            self._waiting += 1
            self._inbox.put(lambda: self._start(job))
        return job

    def cancel(self, job: Job) -> None:
        """Give a job up; its unfinished metrics end with status ``cancelled``."""
        self._inbox.put(lambda: self._stop(job, "cancelled", "The request was cancelled."))

    def close(self) -> None:
        """Finish no more work: unfinished jobs end with status ``cancelled``. Returns when no batch is running."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._inbox.put(self._shut)
        self._loop.join()
        for pool in self._pools:
            pool.threads.shutdown(wait=True)

    @property
    def cache_info(self) -> tuple[int, int, int]:
        """Cached calls, hits and misses so far."""
        return len(self._cache), self._cache.hits, self._cache.misses

    # The loop; what is below runs on its thread.

    def _run(self) -> None:
        try:
            while not self._closed or self._jobs:
                for pool in self._pools:
                    self._feed(pool)
                self._listen()
        except BaseException as error:  # a defect of the loop itself must not leave callers waiting for ever
            log.exception("the scheduler stopped")
            with self._lock:
                self._closed = True
            for job in self._jobs:
                if not job.future.done():
                    job.future.set_exception(error)

    def _listen(self) -> None:
        """Take one message, so that a pool which it sets free or brings work for is fed before the next one."""
        try:
            message = self._inbox.get(timeout=self._patience())
        except queue.Empty:
            pass
        else:
            message()
        self._expire()

    def _patience(self) -> float | None:
        deadlines = [job.deadline for job in self._jobs if job.deadline is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _start(self, job: Job) -> None:
        self._jobs.add(job)
        for task in job.tasks:
            self._resume(job, task)
        self._settle(job)

    def _resume(self, job: Job, task: Task) -> None:
        """Advance a metric until it waits for a call that is not cached, or ends."""
        while task.outcome is None and not job.over:
            try:
                if task.error is not None:
                    error, task.error = task.error, None
                    wave = task.steps.throw(error)
                else:
                    wave = task.steps.send(task.results)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as end:
                task.outcome = end.value
            except GroundwireError as error:
                status: Status = "truncated" if isinstance(error, TooLong) else "failed"
                task.outcome = MetricResult(task.name, status, message=str(error))
            except Exception as error:
                log.exception("metric %s failed", task.name)
                message = f"{type(error).__name__}: {error}. This is a defect of the metric; please report it."
                task.outcome = MetricResult(task.name, "failed", message=message)
            else:
                self._ask(job, task, wave)
                if task.missing:
                    return

    def _ask(self, job: Job, task: Task, wave: Sequence[Call]) -> None:
        task.results = [None] * len(wave)
        task.missing = 0
        for place, call in enumerate(wave):
            key = Key(call, job.max_windows)
            known = self._cache.get(key)
            if known is not None:
                self._place(task, place, known)
                continue
            task.missing += 1
            waiter = Waiter(job, task, place)
            if key in self._running:
                self._running[key].append(waiter)
            else:
                self._pending.setdefault(role_of(call), OrderedDict()).setdefault(key, []).append(waiter)

    @staticmethod
    def _place(task: Task, place: int, outcome: Outcome) -> None:
        assert task.results is not None
        if isinstance(outcome, GroundwireError):
            task.error = task.error or outcome
        else:
            task.results[place] = outcome

    def _feed(self, pool: WorkerPool) -> None:
        """Hand batches to a pool until its threads are busy or nothing waits for it."""
        while pool.free and (role := self._next_role(pool)) is not None:
            keys, limit = self._take(role, pool.free)
            pool.free -= 1
            pool.threads.submit(self._work, pool, role, keys, limit)

    def _next_role(self, pool: WorkerPool) -> str | None:
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

    def _take(self, role: str, free: int) -> tuple[list[Key], int]:
        """The calls to run next, at least one: of what waits, the share of one of the ``free`` threads."""
        calls = self._pending[role]
        most = min(self._runtime.batch(role), ceil(len(calls) / free))
        limit = next(iter(calls)).max_windows
        keys: list[Key] = []
        for key in list(calls):
            if len(keys) == most:
                break
            if all(waiter.job.over for waiter in calls[key]):
                del calls[key]
            elif key.max_windows == limit:
                keys.append(key)
        for key in keys:
            self._running[key] = calls.pop(key)
        return keys, limit

    def _deliver(self, role: str, keys: list[Key], outcomes: list[Outcome], spent_ms: float) -> None:
        served: set[Job] = set()
        ready: dict[Task, Job] = {}
        for key, outcome in zip(keys, outcomes, strict=True):
            if not isinstance(outcome, GroundwireError):
                self._cache.put(key, outcome)
            for waiter in self._running.pop(key):
                if waiter.job.over:
                    continue
                served.add(waiter.job)
                self._place(waiter.task, waiter.place, outcome)
                waiter.task.missing -= 1
                if waiter.task.missing == 0:
                    ready[waiter.task] = waiter.job
        for job in served:
            job.stages_ms[role] = job.stages_ms.get(role, 0.0) + spent_ms
        for task, job in ready.items():
            self._resume(job, task)
        for job in served:
            self._settle(job)

    def _expire(self) -> None:
        now = time.monotonic()
        for job in [job for job in self._jobs if job.deadline is not None and job.deadline <= now]:
            assert job.deadline is not None
            budget = (job.deadline - job.started) * 1000
            message = f"The request was not finished within {budget:.0f} ms; raise Options.deadline_ms."
            self._stop(job, "deadline", message)

    def _stop(self, job: Job, status: Status, message: str) -> None:
        if job.over:
            return
        for task in job.tasks:
            if task.outcome is None:
                task.outcome = MetricResult(task.name, status, message=message)
                task.steps.close()
        self._settle(job)

    def _settle(self, job: Job) -> None:
        if job.over or any(task.outcome is None for task in job.tasks):
            return
        job.over = True
        self._jobs.discard(job)
        with self._lock:
            self._waiting -= 1
        timings = Timings((time.monotonic() - job.started) * 1000, job.stages_ms)
        results = tuple(task.outcome for task in job.tasks if task.outcome is not None)
        if job.future.set_running_or_notify_cancel():
            job.future.set_result(Finished(results, timings))

    def _shut(self) -> None:
        for job in list(self._jobs):
            self._stop(job, "cancelled", "The engine was closed.")

    # Batches; what is below runs on a pool's threads and touches nothing of the loop's.

    def _work(self, pool: WorkerPool, role: str, keys: list[Key], limit: int) -> None:
        started = time.perf_counter()
        outcomes = self._execute(role, [key.call for key in keys], limit)
        spent_ms = (time.perf_counter() - started) * 1000

        def landed() -> None:
            pool.free += 1
            self._expire()  # what comes too late does not count
            self._deliver(role, keys, outcomes, spent_ms)

        self._inbox.put(landed)

    def _execute(self, role: str, calls: list[Call], limit: int) -> list[Outcome]:
        outcomes = self._attempt(role, calls, limit)
        if len(calls) > 1 and any(isinstance(outcome, ModelError) for outcome in outcomes):
            # One call may have spoiled the batch for all; alone, only the culprit fails.
            outcomes = [self._attempt(role, [call], limit)[0] for call in calls]
        return outcomes

    def _attempt(self, role: str, calls: list[Call], limit: int) -> list[Outcome]:
        try:
            return list(self._runtime.run(role, calls, limit))
        except GroundwireError as error:
            return [error] * len(calls)
        except Exception as error:
            log.exception("role %s failed", role)
            return [ModelError(f"Role {role} failed: {type(error).__name__}: {error}")] * len(calls)
