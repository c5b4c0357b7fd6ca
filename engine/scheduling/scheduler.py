"""Runs the tasks of every request in flight and merges their model calls.

One thread, the loop, owns all state and does nothing that takes long. It admits jobs (``admission``), collects the
calls that their tasks yield, answers repeated ones from a bounded cache, and passes the rest to the runtime in batches
of one group of roles (one role, or the roles that read one graph): the group that the first job in order of service
waits for, filled with other waiting calls of that group, so that requests share batches. Batches run on the threads of
the runtime's worker pools: ``device`` runs graphs, ``host`` runs spaCy. The tasks' own Python runs on threads of a
third pool, so that a long text delays neither a deadline nor a cancellation: both take effect at once. The results of a
batch that is running are kept for its other waiters.

The loop handles every message in a guard: a defect fails the jobs that the message is about, and no other. ``jobs`` has
the records and the states of jobs and tasks, ``threads`` what is needed of the machine.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from math import inf
from typing import Any, NamedTuple, TypeAlias, TypeVar

from groundwire.runtime.calls import Call, role_of
from groundwire.runtime.errors import EngineClosed, GroundwireError, ModelError
from groundwire.runtime.protocol import Outcome, Runtime, Withdrawn

from ..schema.results import Timings
from ..schema.statistics import EngineStatistics, StageStatistics
from ..schema.steps import Round, Steps
from .admission import Admission, Backlog, JobHeap
from .calls import Cache, PendingCalls
from .jobs import Failure, Job, JobResult, Key, Returned, StopStatus, Task, Waiter
from .threads import Message, Pool, SystemThreads, Threads

T = TypeVar("T")
ObserveBatch: TypeAlias = Callable[[str, int, float], None]
"""Gets the role of a batch (several are joined by ``+``), the number of its calls, and its milliseconds."""
log = logging.getLogger("groundwire")

TASK_THREADS = 2
"""Threads for the tasks' own Python: one long text leaves the other to the rest."""
POLL_SECONDS = 0.1
"""Between two looks whether the loop, which is to answer, has ended."""
DEFECT = "This is a defect of the scheduler; please report it."


class Workers:
    """A worker pool of the runtime, its idle threads, and its groups of roles with the size of their batches."""

    def __init__(self, pool: Pool, size: int) -> None:
        self.pool = pool
        self.free = size
        self.batch: dict[str, int] = {}


class Batch(NamedTuple):
    """Calls of one group of roles that run together."""

    group: str
    keys: Sequence[Key]

    @property
    def stage(self) -> str:
        """As timings name it: its role, or its roles joined by ``+``."""
        return "+".join(sorted({role_of(key.call) for key in self.keys}))


class Scheduler:
    """Drives jobs over one runtime. ``submit``, ``cancel`` and ``close`` may be called from any thread."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        max_waiting: int = 4096,
        max_waiting_tokens: int | None = None,
        cache_bytes: int = 64_000_000,
        tenant_weights: Mapping[str, float] | None = None,
        threads: Threads | None = None,
    ) -> None:
        """Start the threads. ``max_waiting`` bounds the unfinished jobs, ``max_waiting_tokens`` their estimated tokens
        (None: no bound), ``cache_bytes`` the memory of cached calls.

        ``tenant_weights`` are the tenants' shares of the engine's time; 1 for a tenant that it does not name.
        """
        threads = threads or SystemThreads()
        self._runtime = runtime
        self._now = threads.now
        self._inbox = threads.make_inbox()
        self._admission = Admission(runtime.concurrent_requests, dict(tenant_weights or {}))
        self._deadlines = JobHeap(lambda job: (job.deadline or 0.0, job.number), lambda job: job.over)
        self._jobs: set[Job[Any]] = set()
        self._pending = PendingCalls()
        self._cache = Cache(cache_bytes)
        self._workers = {
            name: Workers(threads.start_pool(name, size), size) for name, size in runtime.worker_pools.items()
        }
        self._groups: dict[str, str] = {}
        self._tasks = threads.start_pool("tasks", TASK_THREADS)
        self._lock = threading.Lock()
        self._backlog = Backlog(max_waiting, max_waiting_tokens)
        self._submitted = 0
        self._closed = False
        self._closing = False
        self._close_at = inf
        self._ended = False
        self._loop_thread: int | None = None
        self._finished = 0
        self._stopped: dict[str, int] = {}
        self._stages: dict[str, StageStatistics] = {}
        self._dead = ""
        self._get_process = threads.process
        self._process = threads.process()
        self.observe_batch: ObserveBatch | None = None
        """Called after every batch, on the loop's thread; what it raises is logged."""
        self._join = threads.start_loop(self._run)

    def submit(
        self,
        tasks: Sequence[Steps[T]],
        max_windows: int,
        deadline_ms: float | None = None,
        priority: int = 0,
        *,
        is_bulk: bool = False,
        tenant: str = "",
        size: int = 0,
        is_bounded: bool = True,
    ) -> Job[T]:
        """Queue the tasks of a request; ``job.future`` gets one outcome per task, never an exception of a task.

        ``priority``, ``is_bulk`` and ``tenant`` decide when it is served, ``size`` (estimated tokens) how long it is
        expected to take; ``Job`` has the same fields. Without ``is_bounded`` its tokens count, but are not too many.

        Raises EngineClosed after ``close``, in a process forked from the scheduler's, and after a
        defect that ended it; Overloaded when too many requests are unfinished, or requests of too many tokens.
        """
        self.check_open()
        now = self._now()
        job = Job(
            [Task(steps) for steps in tasks],
            max_windows,
            now,
            priority=priority,
            is_bulk=is_bulk,
            tenant=tenant,
            size=size,
        )
        if deadline_ms is not None:
            job.deadline = now + deadline_ms / 1000
        with self._lock:
            self.check_open()
            self._backlog.check(size, is_bulk=is_bulk, is_bounded=is_bounded)
            self._backlog.add(size, now, is_bulk=is_bulk)
            self._submitted += 1
            job.number = self._submitted
            self._put([job], lambda: self._start(job))
        return job

    def check_room(self, size: int) -> None:
        """Raise Overloaded if a job of ``size`` estimated tokens would be refused now."""
        with self._lock:
            self._backlog.check(size)

    def check_open(self) -> None:
        """Raise EngineClosed if no job is accepted; ``submit`` describes the reasons."""
        if self.is_forked:
            raise EngineClosed(
                f"The engine was loaded in process {self._process}, and its threads do not exist in process "
                f"{self._get_process()}, which was forked from it. Load the engine after the fork."
            )
        if self._closed:
            raise EngineClosed(self._dead or "The engine is closed; load another one.")

    def seconds_left(self, job: Job[Any]) -> float | None:
        """Seconds until the deadline of a job, negative after it; None without a deadline."""
        return None if job.deadline is None else job.deadline - self._now()

    def cancel(self, job: Job[Any]) -> None:
        """Give a job up; its unfinished tasks end with status ``cancelled``."""
        if not self.is_forked:
            self._put([job], lambda: self._stop(job, "cancelled", "The request was cancelled."))

    def close(
        self,
        *,
        drain: bool = False,
        timeout_ms: float | None = None,
        on_answered: Callable[[], object] | None = None,
    ) -> None:
        """Accept no more jobs, and return when none is unfinished and no batch is running.

        Unfinished jobs end with status ``cancelled``: at once, or with ``drain`` after ``timeout_ms`` (None: never, all
        of them finish). ``on_answered`` is called between the two: it may end batches that are not needed.
        Does nothing in a forked process, where the threads that it would wait for do not exist.
        """
        if self.is_forked:
            return
        with self._lock:
            self._closed = True
        self._put([], lambda: self._begin_close(drain, timeout_ms))
        self._join()
        if on_answered is not None:
            on_answered()
        for workers in self._workers.values():
            workers.pool.shutdown()
        self._tasks.shutdown()
        self._empty_inbox()

    @property
    def is_forked(self) -> bool:
        """This process was forked from the scheduler's process, and has none of its threads."""
        return self._process != self._get_process()

    @property
    def accepts_jobs(self) -> bool:
        """The scheduler runs: it was not closed, has not stopped by a defect, and is not a forked copy."""
        return not (self._closed or self.is_forked)

    @property
    def unfinished(self) -> int:
        """How many requests wait or are worked on."""
        return self._backlog.requests

    @property
    def unfinished_tokens(self) -> int:
        """The estimated tokens of these requests."""
        return self._backlog.tokens

    def statistics(self) -> EngineStatistics:
        """What the scheduler does now, and has done; the loop answers, so that all numbers are of one moment."""
        if self._loop_thread == threading.get_ident() or self.is_forked:
            return self._collect_statistics()
        answer: Future[EngineStatistics] = Future()
        self._put([], lambda: answer.set_result(self._collect_statistics()))
        while not self._ended:
            with contextlib.suppress(TimeoutError):
                return answer.result(POLL_SECONDS)
        return self._collect_statistics()

    @property
    def cache_info(self) -> tuple[int, int, int]:
        """Cached calls, hits and misses so far."""
        return len(self._cache), self._cache.hits, self._cache.misses

    # The loop: what follows runs on its thread.

    def _run(self) -> None:
        self._loop_thread = threading.get_ident()
        try:
            while not (self._closing and not self._jobs):
                message = self._inbox.get(self._seconds_to_wait())
                if message is not None:
                    message()
                self._expire()
                self._admit()
                self._fill()
        except BaseException as error:  # a defect of the loop itself must not leave callers waiting for ever
            self._die(error)
        finally:
            self._ended = True

    def _empty_inbox(self) -> None:
        """Handle what came from the pools after the loop: generators that ran when they were stopped are freed."""
        while self._ended and (message := self._inbox.get(0.0)) is not None:
            message()

    def _put(self, jobs: Iterable[Job[Any]], action: Message) -> None:
        """Send the loop a message about some jobs; if handling it fails, so do they."""

        def handle() -> None:
            try:
                action()
            except BaseException as error:
                self._fail(jobs, error)

        self._inbox.put(handle)

    def _fail(self, jobs: Iterable[Job[Any]], error: BaseException) -> None:
        log.error("the scheduler failed", exc_info=error)
        for job in jobs:
            self._stop(job, "failed", f"{type(error).__name__}: {error}. {DEFECT}")

    def _seconds_to_wait(self) -> float | None:
        """Seconds until a job runs out of time, at least 0; None when none has a deadline."""
        times = [self._close_at] if self._closing else []
        if (job := self._deadlines.first()) is not None and job.deadline is not None:
            times.append(job.deadline)
        if (job := self._admission.first) is not None:
            times.append(self._admission.latest_start(job))
        wait = min(times, default=inf) - self._now()
        return None if wait == inf else max(0.0, wait)

    def _start(self, job: Job[Any]) -> None:
        self._jobs.add(job)
        self._admission.add(job)
        if job.deadline is not None:
            self._deadlines.push(job)

    def _expire(self) -> None:
        """Stop the jobs whose deadline has passed, and all of them when the time to finish them is over."""
        if self._closing and self._close_at <= self._now():
            for unfinished in sorted(self._jobs, key=lambda job: job.number):
                self._stop(unfinished, "cancelled", "The engine was closed.")
        while (job := self._deadlines.first()) is not None:
            assert job.deadline is not None
            if job.deadline > self._now():
                return
            budget_ms = (job.deadline - job.submitted) * 1000
            self._stop(
                job,
                "deadline",
                f"The request was not finished within {budget_ms:.0f} ms; raise Options.deadline_ms, or send fewer "
                "requests at a time.",
            )

    def _admit(self) -> None:
        """Start queued jobs while there are places, and drop jobs that can no longer finish in time."""
        while (job := self._admission.first) is not None:
            now = self._now()
            if job.deadline is not None and self._admission.is_hopeless(job, now):
                usual_ms = self._admission.expected_seconds(job) * 1000
                self._stop(
                    job,
                    "deadline",
                    f"The request cannot be finished within {(job.deadline - job.submitted) * 1000:.0f} ms: others are "
                    f"before it, and such requests take about {usual_ms:.0f} ms at present. Nothing was computed. "
                    "Raise Options.deadline_ms, or send fewer requests at a time.",
                )
            elif self._admission.has_place(job, now):
                self._admission.admit(job, now)
                self._advance(job, job.tasks)
                self._finish_if_done(job)
            else:
                return

    def _advance(self, job: Job[Any], tasks: Sequence[Task[Any]]) -> None:
        """Resume tasks of one job, one after another, on a thread for Python."""
        for task in tasks:
            task.advancing = True

        def advance() -> None:
            steps = [None if job.over else task.advance() for task in tasks]
            self._put([job], lambda: self._continue(job, tasks, steps))

        self._tasks.submit(advance)

    def _continue(self, job: Job[Any], tasks: Sequence[Task[Any]], steps: Sequence[Round | Returned | None]) -> None:
        """Ask for what the tasks have yielded, and keep the outcomes of tasks that have ended."""
        for task in tasks:
            task.advancing = False
        if job.over:
            for task in tasks:
                task.close()
            return
        complete = []
        for task, step in zip(tasks, steps, strict=True):
            if isinstance(step, Returned):
                task.outcome = step.outcome
                continue
            try:
                self._request_round(job, task, step)
            except Exception as error:  # not a sequence of calls, or calls of no role that the runtime has a pool for
                task.close()
                task.outcome = task.explain_defect(error)
            if task.outcome is None and not task.missing:
                complete.append(task)
        if complete:
            self._advance(job, complete)
        self._finish_if_done(job)

    def _request_round(self, job: Job[Any], task: Task[Any], calls: Any) -> None:
        """Answer the calls of a round from the cache, and add the others to the waiting calls."""
        keys = [(self._group_of(role_of(call)), Key(call, job.max_windows)) for call in calls]
        cached = [self._cache.get(key) for _, key in keys]
        task.results, task.error, task.missing = [None] * len(keys), None, 0
        for index, ((group, key), outcome) in enumerate(zip(keys, cached, strict=True)):
            if outcome is not None:
                self._store(task, index, outcome)
            else:
                task.missing += 1
                self._pending.add(group, key, Waiter(job, task, index))

    def _group_of(self, role: str) -> str:
        """The group of roles that share batches with ``role``; what the runtime says about it is asked for once."""
        group = self._groups.get(role)
        if group is None:
            pool = self._runtime.worker_pool(role)
            if pool not in self._workers:
                raise ModelError(f"Role {role!r} runs on the pool {pool!r}; there are {', '.join(self._workers)}.")
            group = self._runtime.batch_group(role)
            self._workers[pool].batch.setdefault(group, max(1, self._runtime.batch(role)))
            self._groups[role] = group
        return group

    @staticmethod
    def _store(task: Task[Any], index: int, outcome: Outcome) -> None:
        assert task.results is not None
        if isinstance(outcome, GroundwireError):
            task.error = task.error or outcome
        else:
            task.results[index] = outcome

    def _fill(self) -> None:
        """Start batches until the threads of every pool are busy or no call waits for them."""
        for workers in self._workers.values():
            while workers.free:
                group = self._pending.next_group(self._admission.active, workers.batch)
                if group is None:
                    break
                keys = self._pending.take(group, self._admission.active, workers.batch[group], workers.free)
                workers.free -= 1
                self._run_batch(workers, Batch(group, keys))

    def _run_batch(self, workers: Workers, batch: Batch) -> None:
        def run() -> None:
            started = self._now()
            outcomes = self._execute(batch.group, [key.call for key in batch.keys], batch.keys[0].max_windows)
            elapsed_ms = (self._now() - started) * 1000
            self._put([], lambda: self._deliver(workers, batch, outcomes, elapsed_ms))

        workers.pool.submit(run)

    def _deliver(self, workers: Workers, batch: Batch, outcomes: Sequence[Outcome], elapsed_ms: float) -> None:
        """Give the outcomes of a batch to their waiters, and resume the tasks whose round is complete."""
        workers.free += 1
        self._expire()  # what comes too late does not count
        waiters = [self._pending.finish(key) for key in batch.keys]
        jobs = dict.fromkeys(waiter.job for call in waiters for waiter in call if not waiter.job.over)
        try:
            for key, outcome, waiting in zip(batch.keys, outcomes, waiters, strict=True):
                if not isinstance(outcome, GroundwireError):
                    self._cache.put(key, outcome)
                for waiter in waiting:
                    if waiter.job.over:
                        continue
                    if isinstance(outcome, Withdrawn):  # it has begun to wait after the others had left
                        self._pending.add(batch.group, key, waiter)
                    else:
                        self._store(waiter.task, waiter.index, outcome)
                        waiter.task.missing -= 1
        except Exception as error:  # an outcome that cannot be measured
            self._fail(jobs, error)
        stage = batch.stage
        for job in jobs:
            if job.over:
                continue
            job.stages_ms[stage] = job.stages_ms.get(stage, 0.0) + elapsed_ms
        before = self._stages.get(stage, StageStatistics())
        self._stages[stage] = StageStatistics(
            before.batches + 1, before.calls + len(batch.keys), before.ms + elapsed_ms
        )
        tasks = dict.fromkeys(waiter.task for call in waiters for waiter in call)
        for job in jobs:
            ready = [task for task in job.unfinished_tasks() if task in tasks and not task.missing]
            if ready:
                self._advance(job, ready)
        if self.observe_batch is not None:
            self.observe_batch(stage, len(batch.keys), elapsed_ms)

    def _stop(self, job: Job[Any], status: StopStatus, message: str) -> None:
        """End the unfinished tasks of a job; a generator that is running is freed when it comes back."""
        if job.over:
            return
        self._stopped[status] = self._stopped.get(status, 0) + 1
        for task in job.unfinished_tasks():
            task.outcome = Failure(status, message)
            if not task.advancing:
                task.close()
        self._finish_if_done(job)

    def _finish_if_done(self, job: Job[Any]) -> None:
        if job.over or job.unfinished_tasks():
            return
        job.over = True
        self._pending.forget(job)
        now = self._now()
        outcomes = tuple(task.outcome for task in job.tasks)
        self._admission.remove(job, now, complete=not any(isinstance(outcome, Failure) for outcome in outcomes))
        self._jobs.discard(job)
        self._finished += 1
        with self._lock:
            self._backlog.remove(job.size, now, is_bulk=job.is_bulk)
        queued = (now if job.admitted is None else job.admitted) - job.submitted
        timings = Timings((now - job.submitted) * 1000, job.stages_ms, queued * 1000)
        try:
            if job.future.set_running_or_notify_cancel():
                job.future.set_result(JobResult(outcomes, timings))
        except BaseException:  # of a callback that someone has added to the future
            log.exception("a callback of a request failed")

    def _collect_statistics(self) -> EngineStatistics:
        return EngineStatistics(
            queued=dict(Counter(job.tenant for job in self._admission.queued)),
            active=sum(1 for _ in self._admission.active),
            waiting_calls=self._pending.count_waiting(),
            running_calls=self._pending.running,
            finished=self._finished,
            stopped=dict(self._stopped),
            stages=dict(self._stages),
            unfinished=self._backlog.requests,
            unfinished_tokens=self._backlog.tokens,
            cached_calls=len(self._cache),
            cached_bytes=self._cache.bytes,
            cache_hits=self._cache.hits,
            cache_misses=self._cache.misses,
        )

    def _begin_close(self, drain: bool, timeout_ms: float | None) -> None:
        self._closing = True
        left = 0.0 if not drain else inf if timeout_ms is None else timeout_ms / 1000
        self._close_at = min(self._close_at, self._now() + left)

    def _die(self, error: BaseException) -> None:
        """Answer everyone, and refuse what comes later."""
        log.critical("the scheduler stopped", exc_info=error)
        with self._lock:
            self._closed = True
            self._dead = f"The engine has stopped: {type(error).__name__}: {error}. {DEFECT} Load another engine."
        self._ended = True
        self._empty_inbox()  # what was submitted before becomes known, and is answered below
        for job in list(self._jobs):
            with contextlib.suppress(InvalidStateError):  # the caller has cancelled the future
                job.future.set_exception(EngineClosed(self._dead))

    # Batches: what follows runs on a pool's threads and touches nothing that the loop owns.

    def _execute(self, role: str, calls: list[Call], max_windows: int) -> list[Outcome]:
        """One outcome per call. Calls that a model failed on run again with fewer others, down to each alone: one call
        may have spoiled the batch for all, or the batch may have been too large for the memory."""
        outcomes = self._attempt(role, calls, max_windows)
        failed = [index for index, outcome in enumerate(outcomes) if isinstance(outcome, ModelError)]
        if len(calls) == 1:
            return outcomes
        half = (len(failed) + 1) // 2 if len(failed) == len(calls) else len(failed)
        for part in (failed[:half], failed[half:]):
            if part:
                again = self._execute(role, [calls[index] for index in part], max_windows)
                for index, outcome in zip(part, again, strict=True):
                    outcomes[index] = outcome
        return outcomes

    def _attempt(self, role: str, calls: list[Call], max_windows: int) -> list[Outcome]:
        try:
            outcomes = list(self._runtime.run(role, calls, max_windows))
            if len(outcomes) != len(calls):
                raise ModelError(f"Role {role} gave {len(outcomes)} results for {len(calls)} calls.")
        except GroundwireError as error:
            return [error] * len(calls)
        except BaseException as error:
            log.exception("role %s failed", role)
            return [ModelError(f"Role {role} failed: {type(error).__name__}: {error}")] * len(calls)
        return outcomes
