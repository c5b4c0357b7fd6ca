"""Runs one scenario and checks what must hold after it, whatever happened in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from groundwire.engine.scheduling.admission import BULK_SHARE
from groundwire.engine.scheduling.calls import ENTRY_BYTES, count_bytes
from groundwire.engine.scheduling.jobs import Failure, Job, JobResult
from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.engine.schema.statistics import EngineStatistics
from groundwire.runtime.calls import Call
from groundwire.runtime.errors import EngineClosed, GroundwireError, Overloaded

from .names import NameSimulation
from .scenario import FaultyRuntime, TaskRecord, is_poison, is_too_long
from .threads import Stuck, VirtualThreads

Factory = Callable[..., Scheduler]


class Violation(AssertionError):
    """The scheduler did what it must never do."""


@dataclass
class Client:
    """One request: when it came, what it wanted, and what it got."""

    tasks: list[TaskRecord]
    max_windows: int
    deadline_ms: float | None
    priority: int
    is_bulk: bool
    tenant: str
    size: int
    is_bounded: bool
    job: Job[Any] | None = None
    submitted: float = 0.0
    finished: list[float] = field(default_factory=list)
    cancelled: bool = False
    refused: str = ""


class Simulation:
    """Random arrivals, deadlines, priorities, cancels, faults, forks, and a close; all from one seed."""

    def __init__(self, seed: int, scheduler: Factory = Scheduler) -> None:
        self.random = random = Random(seed)
        self.seed = seed
        self.world = VirtualThreads(random)
        self.runtime = FaultyRuntime(random)
        self.max_waiting = random.choice((1, 3, 100))
        self.max_tokens = random.choice((None, None, 25, 100_000))
        self.cache_bytes = random.choice((0, 5_000, 1_000_000))
        self.scheduler = scheduler(
            self.runtime,
            max_waiting=self.max_waiting,
            max_waiting_tokens=self.max_tokens,
            cache_bytes=self.cache_bytes,
            tenant_weights={"a": 0.25},
            threads=self.world,
        )
        self.clients = [self._make_client() for _ in range(random.choice((1, 2, 4, 8, 16)))]
        self.unfinished: list[Client] = []
        self.closed_at: float | None = None
        self.drains = False
        self.violations: list[str] = []
        self._schedule()

    def _make_client(self) -> Client:
        random = self.random
        max_windows = random.choice((8, 8, 8, 16))
        tasks = [TaskRecord(random, max_windows) for _ in range(random.choice((0, 1, 1, 2, 3)))]
        has_deadline = random.random() < 0.4 or any(task.behaviour == "endless" for task in tasks)
        deadline_ms = random.choice((0.0, 1.0, 10.0, 50.0)) * (0.5 + random.random()) if has_deadline else None
        return Client(
            tasks,
            max_windows,
            deadline_ms,
            priority=random.choice((0, 0, 0, 1, -1)),
            is_bulk=random.random() < 0.2,
            tenant=random.choice(("", "", "a", "b")),
            size=random.choice((0, 10, 100_000)),
            is_bounded=random.random() < 0.9,
        )

    def _schedule(self) -> None:
        random = self.random
        spread = random.choice((0.0, 0.01, 0.1))
        for client in self.clients:
            arrival = random.random() * spread
            self.world.at(arrival, lambda client=client: self._submit(client))  # type: ignore[misc]
            if random.random() < 0.1:
                later = arrival + random.random() * 0.02
                self.world.at(later, lambda client=client: self._cancel(client))  # type: ignore[misc]
        if random.random() < 0.1:
            self.world.at(random.random() * spread, self._lose_device)
        if random.random() < 0.2:
            self.world.at(random.random() * spread, self._fork)
        early = random.random() < 0.3
        self.world.at(random.random() * spread if early else spread + 5.0, self._close)
        self.world.observers.append(self._observe)

    def run(self) -> None:
        """Run everything; Violation names the seed and what went wrong."""
        try:
            self.world.run_loop()
            self.scheduler.close()
        except (Exception, Stuck) as error:
            raise Violation(f"seed {self.seed}: {type(error).__name__}: {error}") from error
        self._check()
        violations = self.violations + self.world.violations + self.runtime.violations
        if violations:
            raise Violation(f"seed {self.seed}: {'; '.join(violations)}")

    # What the clients do.

    def _submit(self, client: Client) -> None:
        client.submitted = self.world.now()
        steps = [task.steps() for task in client.tasks]
        before = tuple(self.unfinished)
        has_room = self._has_room(client, before)
        self.unfinished.append(client)
        try:
            client.job = self.scheduler.submit(
                steps,
                client.max_windows,
                client.deadline_ms,
                client.priority,
                is_bulk=client.is_bulk,
                tenant=client.tenant,
                size=client.size,
                is_bounded=client.is_bounded,
            )
        except (EngineClosed, Overloaded) as error:
            client.refused = type(error).__name__
            self.unfinished.remove(client)
            if isinstance(error, Overloaded) and has_room:
                self.violations.append(f"{len(before)} unfinished jobs were too many: {error}")
            if isinstance(error, Overloaded) and not 1 <= error.retry_after_s <= 60:
                self.violations.append(f"a client should try again after {error.retry_after_s} s")
            if isinstance(error, EngineClosed) and self.closed_at is None:
                self.violations.append("refused as closed before it was")
            return
        if self.closed_at is not None or not has_room:
            self.violations.append("a job was accepted after the close or beyond the bound")
        client.job.future.add_done_callback(lambda future: self._note_end(client))

    def _has_room(self, client: Client, before: Sequence[Client]) -> bool:
        """Whether both bounds allow one more request."""
        if len(before) >= self.max_waiting:
            return False
        tokens = sum(other.size for other in before)
        if self.max_tokens is None or not client.is_bounded or not tokens:
            return True
        if not client.is_bulk and client.size > self.max_tokens:
            return tokens <= self.max_tokens
        share = BULK_SHARE if client.is_bulk and any(other.is_bulk for other in before) else 1.0
        return tokens + client.size <= share * self.max_tokens

    def _note_end(self, client: Client) -> None:
        client.finished.append(self.world.now())
        self.unfinished.remove(client)
        if self.random.random() < 0.1:
            raise ValueError("a client's callback fails")

    def _cancel(self, client: Client) -> None:
        if client.job is not None:
            client.cancelled = True
            self.scheduler.cancel(client.job)

    def _lose_device(self) -> None:
        self.runtime.is_lost = True
        self.world.at(self.world.now() + self.random.random() * 0.02, self._find_device)

    def _find_device(self) -> None:
        self.runtime.is_lost = False

    def _fork(self) -> None:
        """What the forked process does may change nothing in this one."""
        self.world.process_number = 2
        try:
            self.scheduler.submit([], 8)
            self.violations.append("a forked process could submit")
        except EngineClosed:
            pass
        for client in self.clients:
            if client.job is not None:
                self.scheduler.cancel(client.job)
        self.scheduler.close()
        self.world.process_number = 1

    def _close(self) -> None:
        self.closed_at = self.world.now()
        self.drains = self.random.random() < 0.5
        timeout_ms = self.random.choice((None, 0.0, 5.0)) if self.drains else None
        self.scheduler.close(drain=self.drains, timeout_ms=timeout_ms)
        if self.random.random() < 0.2:
            self.scheduler.close()
            self.drains = False
        if timeout_ms is not None:
            self.drains = False

    # What must hold.

    def _observe(self) -> None:
        """Whenever the loop has nothing to do: no thread is idle while a call waits that it could run."""
        for workers in self.scheduler._workers.values():
            if workers.free and any(
                role in workers.batch for job in self.scheduler._admission.active for role in job.waiting_calls
            ):
                self.violations.append("a thread is idle while calls wait for it")

    def _check(self) -> None:
        for client in self.clients:
            self._check_client(client)
        scheduler = self.scheduler
        waiting = sum(1 for _ in scheduler._pending.waiting_keys())
        active = len(list(scheduler._admission.active))
        backlog = scheduler._backlog
        left = (backlog.requests, backlog.tokens, len(scheduler._jobs), waiting, len(self.unfinished), active)
        if any(left):
            self.violations.append(f"something is left: {left}")
        self._check_statistics(scheduler.statistics())
        cached = [(key.call, value) for key, (value, _) in scheduler._cache._entries.items()]
        cost = sum(ENTRY_BYTES + count_bytes(call) + count_bytes(value) for call, value in cached)
        if cost != scheduler._cache.bytes or cost > self.cache_bytes:
            self.violations.append(f"the cache holds {cost} bytes and counts {scheduler._cache.bytes}")
        if any(isinstance(value, GroundwireError) for _, value in cached):
            self.violations.append("the cache holds an error")

    def _check_statistics(self, statistics: EngineStatistics) -> None:
        accepted = sum(client.job is not None for client in self.clients)
        backlog = (statistics.unfinished, statistics.unfinished_tokens)
        present = (sum(statistics.queued.values()), statistics.active, len(statistics.waiting_calls), *backlog)
        if any(present) or statistics.running_calls or statistics.finished != accepted:
            self.violations.append(f"{statistics} after {accepted} requests")
        ran = sum(stage.calls for stage in statistics.stages.values())
        if ran > sum(len(calls) for _, calls in self.runtime.batches) or sum(statistics.stopped.values()) > accepted:
            self.violations.append(f"{statistics} counts more than there was")

    def _check_client(self, client: Client) -> None:
        if client.job is None:
            return
        if len(client.finished) != 1 or not client.job.future.done():
            self.violations.append(f"a request ended {len(client.finished)} times")
            return
        if (error := client.job.future.exception()) is not None:
            self.violations.append(f"the scheduler stopped: {error}")
            return
        job_result: JobResult[Any] = client.job.future.result()
        if len(job_result.outcomes) != len(client.tasks):
            self.violations.append("a request has outcomes of another")
        late = client.finished[0] - client.submitted - (client.deadline_ms or 0.0) / 1000
        if client.deadline_ms is not None and late > self.world.longest_work + 1e-9:
            self.violations.append(f"a deadline was overrun by {late} s")
        for task, outcome in zip(client.tasks, job_result.outcomes, strict=True):
            self._check_outcome(client, task, outcome, late)

    def _check_outcome(self, client: Client, task: TaskRecord, outcome: object, late: float) -> None:
        if task.is_open:
            self.violations.append("a generator was never closed")
        if task.wrong_results:
            self.violations.append(f"a task got the results of other calls: {task.wrong_results[0]}")
        calls = [call for calls in task.rounds for call in calls]

        def has_failed(call: Call) -> bool:
            return is_too_long(call) or is_poison(call) or (call, task.max_windows) in self.runtime.failed

        has_error = any(map(has_failed, calls))
        fails = task.behaviour in ("defect", "recursion", "exit", "garbage", "nothing")
        if not isinstance(outcome, Failure):
            if not task.is_value(outcome, has_failed):
                self.violations.append(f"{task.behaviour}: {outcome} is not the result of {task.rounds}")
            return
        assert client.job is not None
        possible = {
            "failed": fails or has_error,
            "truncated": any(map(is_too_long, calls)),
            "cancelled": client.cancelled or (self.closed_at is not None and not self.drains),
            "deadline": client.deadline_ms is not None and (late >= -1e-9 or client.job.admitted is None),
        }
        if not possible[outcome.status]:
            self.violations.append(f"{task.behaviour}: {outcome} without a reason")


def simulate(seed: int, scheduler: Factory = Scheduler) -> None:
    """Run the scenario of a seed; Violation when something does not hold."""
    Simulation(seed, scheduler).run()


def run_seeds(seeds: range) -> list[str]:
    """What went wrong, for each seed that failed."""
    logging.disable(logging.CRITICAL)
    failures = []
    for seed in seeds:
        try:
            simulate(seed)
        except Violation as violation:
            failures.append(str(violation))
    return failures


def run_names(seeds: range) -> list[str]:
    """The same for the schedules of ``names``."""
    return [
        f"names, seed {seed}: {'; '.join(violations)}" for seed in seeds if (violations := NameSimulation(seed).run())
    ]
