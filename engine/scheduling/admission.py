"""Which jobs are worked on: few at the same time, by priority and deadline, and none that cannot finish in time.

If all jobs advanced together, all would finish late. A bounded number of **active** jobs is worked on; the others are
queued. Jobs rank by priority, then by deadline, then by age (earliest deadline first, which meets every deadline that
can be met while the machine is not overloaded). Under overload it alone would go on serving the jobs that are about to
be late; so a job is admitted beside others only while it can finish beside them, and dropped before any work when it
could not even alone, or when another one can take the place that it cannot.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, TypeAlias

from .jobs import Job

PATIENCE = 60.0
"""Seconds after which a job without a deadline ranks before those submitted later with one that is as far off."""
RECENT = 32
"""Durations kept per kind of job."""
KINDS = 256
"""Kinds of jobs whose durations are kept, those used last."""

Rank: TypeAlias = tuple[int, float, int]


def rank(job: Job[Any]) -> Rank:
    """The order of service, smaller first: priority, deadline, age."""
    deadline = job.submitted + PATIENCE if job.deadline is None else job.deadline
    return -job.priority, deadline, job.number


class JobHeap:
    """Jobs by a key, smallest first. Those for which ``is_stale`` holds are skipped, and forgotten in time."""

    def __init__(self, key: Callable[[Job[Any]], tuple[float, ...]], is_stale: Callable[[Job[Any]], bool]) -> None:
        self._key = key
        self._is_stale = is_stale
        self._heap: list[tuple[tuple[float, ...], Job[Any]]] = []
        self._bound = 64

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, job: Job[Any]) -> None:
        """Add a job; its key ends with its number, so that no two are equal."""
        heapq.heappush(self._heap, (self._key(job), job))
        if len(self._heap) > self._bound:
            self._heap = [entry for entry in self._heap if not self._is_stale(entry[1])]
            heapq.heapify(self._heap)
            self._bound = max(64, 2 * len(self._heap))

    def __iter__(self) -> Iterator[Job[Any]]:
        """The jobs that are not stale, in no order."""
        return (job for _, job in self._heap if not self._is_stale(job))

    def first(self) -> Job[Any] | None:
        """The first job that is not stale, or None; it stays in the heap."""
        while self._heap and self._is_stale(self._heap[0][1]):
            heapq.heappop(self._heap)
        return self._heap[0][1] if self._heap else None


class Admission:
    """The queue of jobs, the active ones, and how long recent ones took. Not thread-safe."""

    def __init__(self, max_active: int) -> None:
        self._max_active = max_active
        self._active: list[Job[Any]] = []
        self._queue = JobHeap(rank, lambda job: job.over or job.admitted is not None)
        self._durations: OrderedDict[tuple[str, ...], deque[float]] = OrderedDict()

    @property
    def active(self) -> Iterator[Job[Any]]:
        """The active jobs, first the one to serve first."""
        return iter(self._active)

    def add(self, job: Job[Any]) -> None:
        """Queue a job."""
        self._queue.push(job)

    def remove(self, job: Job[Any], now: float, *, complete: bool) -> None:
        """Forget a job that is over; a ``complete`` one (all tasks have results) shows how long its kind takes."""
        if job.admitted is None:
            return
        self._active.remove(job)
        if complete:
            durations = self._durations.setdefault(job.kind, deque(maxlen=RECENT))
            durations.append((now - job.admitted) / (job.active_beside + 1))
            self._durations.move_to_end(job.kind)
            if len(self._durations) > KINDS:
                self._durations.popitem(last=False)

    @property
    def first(self) -> Job[Any] | None:
        """The queued job to admit or to drop next."""
        return self._queue.first()

    def has_place(self, job: Job[Any], now: float) -> bool:
        """Whether a queued job may become active, and can finish in time beside those that are.

        Only jobs of the same or a higher priority take places from it, so that a queue full of bulk work delays no
        urgent job. Alone it is tried whatever is expected, so that the engine learns when things have become faster.
        """
        beside = self._count_beside(job)
        return beside < self._max_active and self._fits(job, now, beside)

    def is_hopeless(self, job: Job[Any], now: float) -> bool:
        """Whether a queued job should be dropped.

        That is one that cannot finish in time even alone, or only alone while another could beside what is active.
        """
        if self.latest_start(job) <= now:
            return True
        beside = self._count_beside(job)
        if beside >= self._max_active or self._fits(job, now, beside):
            return False
        return any(other.priority == job.priority and self._fits(other, now, beside) for other in self._queue)

    def _count_beside(self, job: Job[Any]) -> int:
        return sum(active.priority >= job.priority for active in self._active)

    def _fits(self, job: Job[Any], now: float, beside: int) -> bool:
        if not beside or job.deadline is None:
            return True
        return now + self.expected_seconds(job) * (beside + 1) <= job.deadline

    def admit(self, job: Job[Any], now: float) -> None:
        """Make a queued job an active one."""
        job.admitted = now
        job.active_beside = len(self._active)
        insort(self._active, job, key=rank)

    def expected_seconds(self, job: Job[Any]) -> float:
        """The time that a job of this kind takes alone, by what three of four recent ones did not exceed.

        Jobs share the machine, so the time of each is divided by the number of those that were active when it was
        admitted. 0 when none is known, and while nothing of its priority or a higher one is active: an engine that has
        nothing else to do for it tries every job.
        """
        durations = self._durations.get(job.kind) if self._count_beside(job) else None
        return sorted(durations)[len(durations) * 3 // 4] if durations else 0.0

    def latest_start(self, job: Job[Any]) -> float:
        """When a queued job must be admitted to finish in time, even alone; infinite without a deadline."""
        return inf if job.deadline is None else job.deadline - self.expected_seconds(job)
