"""Which jobs are accepted, and which are worked on.

``Backlog`` bounds the accepted jobs by their number and by their estimated tokens: a request of 50,000 characters is
not a request of 100, so a bound on the number alone is either too small for short texts or too large for long ones.
The tokens of finished jobs per busy second say when a refused caller should try again.

``Admission`` chooses the jobs to work on: few at the same time, by urgency and deadline, and none that cannot finish
in time. If all jobs advanced together, all would finish late. A bounded number of **active** jobs is worked on; the
others are queued, by tenant. Jobs of a tenant rank by urgency, then by deadline, then by age (earliest
deadline first, which meets every deadline that can be met while the machine is not overloaded). Under overload it alone
would go on serving the jobs that are about to be late; so a job is admitted beside others only while it can finish
beside them, and dropped before any work when it could not even alone, or when another job can take the place that it
cannot.

Tenants share the engine's time. A tenant's clock runs by the seconds that its jobs took, divided by its weight. Among
the jobs that are next in order of their tenants, one of the highest urgency is served, and among them a job of the
tenant with the smallest clock. A tenant that was idle starts at the virtual time, which is the latest finish of what
was admitted (self-clocked fair queueing, Golestani 1994): time that it did not use does not count, and whoever comes
later, under whatever name, starts no earlier. A tenant's wait is also bounded by the number of jobs admitted before it.
With one tenant ``rank`` alone decides the order.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any

from groundwire.runtime.calls import Decoding
from groundwire.runtime.errors import Overloaded

from .jobs import Job, rank


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


KEPT_TENANTS = 512
"""Tenants from which on the idle ones are forgotten."""
LEAST_SECONDS = 0.001
"""Seconds that every job is charged with when it is admitted, at least: the virtual time always advances."""
JOBS_PER_WAITING_TENANT = 16
"""A tenant of weight 1 that was passed over this often for each tenant that waited when it came is served next."""


@dataclass(slots=True)
class Tenant:
    """The queued jobs of one tenant, and the time it has had."""

    weight: float
    clock: float
    queue: JobHeap
    turn: int = 0
    """When it was served last, or began to wait, as a count of such moments."""
    patience: float = inf
    """Jobs that may be admitted before it from then on."""
    active: int = 0
    """Jobs that are admitted and not over."""
    is_untried: bool = False
    """Its last job that ended, or was admitted, was dropped unadmitted."""

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing queued, and nothing active."""
        return not self.active and self.queue.first() is None


class FairQueue:
    """The jobs that wait for admission. Not thread-safe."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """A tenant that ``weights`` does not name has weight 1."""
        self._weights = weights
        self._tenants: dict[str, Tenant] = {}
        self._clock = 0.0
        """The virtual time: the latest finish of what was admitted, as far as it was expected."""
        self._turn = 0
        self._admitted = 0
        self._bound = KEPT_TENANTS

    def __iter__(self) -> Iterator[Job[Any]]:
        """The queued jobs, in no order."""
        return (job for tenant in self._tenants.values() for job in tenant.queue)

    def push(self, job: Job[Any]) -> None:
        """Queue a job."""
        tenant = self._tenants.get(job.tenant)
        if tenant is None or tenant.is_idle:
            queue = JobHeap(rank, lambda job: job.over or job.admitted is not None)
            tenant = self._tenants[job.tenant] = Tenant(self._weights.get(job.tenant, 1.0), self._clock, queue)
        if tenant.queue.first() is None:
            tenant.clock = max(tenant.clock, self._clock)
            self._take_turn(tenant)
        tenant.queue.push(job)
        if len(self._tenants) > self._bound:
            self._tenants = {name: tenant for name, tenant in self._tenants.items() if not tenant.is_idle}
            self._bound = 2 * len(self._tenants) + KEPT_TENANTS

    def first(self) -> Job[Any] | None:
        """The job to admit or to drop next, or None; it stays in the queue."""
        heads = [(job, tenant) for tenant in self._tenants.values() if (job := tenant.queue.first()) is not None]
        if len(heads) < 2:
            return heads[0][0] if heads else None
        return min(heads, key=lambda head: (-head[0].urgency, *self._order(head[1])))[0]

    def _order(self, tenant: Tenant) -> tuple[float, int]:
        """The smallest clock first, of equal clocks who was not served for longest; before them who lost patience."""
        return (-inf if self._admitted >= tenant.patience else tenant.clock), tenant.turn

    def _take_turn(self, tenant: Tenant) -> None:
        self._turn += 1
        tenant.turn = self._turn
        waiting = sum(other.queue.first() is not None for other in self._tenants.values())
        tenant.patience = self._admitted + JOBS_PER_WAITING_TENANT * (waiting + 1) / min(1.0, tenant.weight)

    def begin(self, job: Job[Any], seconds: float) -> None:
        """Charge a job that is admitted to its tenant, as far as its time is known."""
        self._admitted += 1
        tenant = self._tenants.get(job.tenant)
        if tenant is not None:
            tenant.is_untried = False
            tenant.active += 1
            tenant.clock += seconds / tenant.weight
            self._clock = max(self._clock, tenant.clock)
            self._take_turn(tenant)

    def drop(self, job: Job[Any]) -> None:
        """Note that a job is over without having been admitted."""
        tenant = self._tenants.get(job.tenant)
        if tenant is not None:
            tenant.is_untried = True

    def is_untried(self, tenant: str) -> bool:
        """Whether a tenant's last job was dropped unadmitted."""
        return tenant in self._tenants and self._tenants[tenant].is_untried

    def end(self, job: Job[Any], seconds: float) -> None:
        """Correct what a job was charged with, when it is over; a negative value refunds."""
        tenant = self._tenants.get(job.tenant)
        if tenant is not None:
            tenant.active -= 1
            tenant.clock += seconds / tenant.weight


RECENT = 32
"""Durations kept per tenant and kind of job."""
TIMED_TENANTS = 64
"""Tenants whose durations are kept per kind of job, those that finished a job last."""
KINDS = 256
"""Kinds and sizes of jobs whose durations are kept, those used last."""
CHARS_PER_TOKEN = 4
"""About, in English."""
USUAL_SEQUENCES = 5
"""Sequences that Q²'s default decoding continues at the same time."""
MAX_SEQUENCES = 64
"""More are refused before they run."""
BULK_SHARE = 0.5
"""Share of the tokens that bulk work may take, so that it delays no single request by more than that."""
MEMORY_SECONDS = 30.0
"""Busy seconds after which a measured rate counts for a third."""
MAX_RETRY_SECONDS = 60


def estimate_tokens(texts: Iterable[str], passes: int = 1, decoding: Decoding | None = None) -> int:
    """Return about how many tokens models read for some texts, 1 or more.

    Args:
        texts: The texts that are read.
        passes: How often each is read: the number of metrics, or of generated sequences.
        decoding: How Q² generates questions; more parallel sequences than usual count in proportion.
    """
    sequences = 1 if decoding is None else min(max(decoding.parallel_sequences, 1), MAX_SEQUENCES)
    share = max(1.0, sequences / USUAL_SEQUENCES)
    return max(1, round(sum(map(len, texts)) / CHARS_PER_TOKEN * max(1, passes) * share))


@dataclass(slots=True)
class FinishRate:
    """How much is finished in a busy second, recent work first."""

    amount: float = 0.0
    seconds: float = 0.0

    def add(self, amount: float, seconds: float) -> None:
        """Count an amount that was finished after further busy seconds."""
        decay = math.exp(-seconds / MEMORY_SECONDS)
        self.amount = self.amount * decay + amount
        self.seconds = self.seconds * decay + seconds

    def seconds_for(self, amount: float) -> int:
        """Whole seconds until this amount is finished, 1–60; 1 where nothing was measured."""
        if not self.amount or not self.seconds:
            return 1
        return min(max(math.ceil(amount * self.seconds / self.amount - 1e-6), 1), MAX_RETRY_SECONDS)


class Backlog:
    """The unfinished requests. Not thread-safe: the scheduler holds its lock around every call.

    A single request of more tokens than the bound is accepted beside others that are within it, one such request at a
    time; bulk work of that size while no other is unfinished.
    """

    def __init__(self, max_requests: int, max_tokens: int | None = None) -> None:
        """``max_tokens`` of None is without bound."""
        self._max_requests = max_requests
        self._max_tokens = max_tokens
        self.requests = 0
        """Requests that are accepted and not finished."""
        self.tokens = 0
        """Their estimated tokens."""
        self._bulk = 0
        self._measured_at = 0.0
        self._request_rate = FinishRate()
        self._token_rate = FinishRate()

    def check(self, tokens: int, *, is_bulk: bool = False, is_bounded: bool = True) -> None:
        """Raise Overloaded if a request of this size is not accepted now; without ``is_bounded`` only for the number.

        Bulk work may take half of the tokens, but one bulk request at a time may take what single requests leave.
        """
        if self.requests >= self._max_requests:
            raise Overloaded(
                f"{self.requests} requests are unfinished, the most this engine accepts; wait for some, "
                "or load the engine with a larger max_waiting.",
                self._request_rate.seconds_for(1),
            )
        if self._max_tokens is None or not is_bounded or not self.tokens:
            return
        if not is_bulk and tokens > self._max_tokens >= self.tokens:
            return
        if self.tokens + tokens > self._max_tokens * (BULK_SHARE if is_bulk and self._bulk else 1.0):
            seconds = self._token_rate.seconds_for(min(self.tokens + tokens - self._max_tokens, self.tokens))
            raise Overloaded(
                f"Requests for about {self.tokens} of {self._max_tokens} tokens are unfinished, and this one is for "
                f"about {tokens}. Try again in {seconds} s, send less at a time, or load the engine with a larger "
                "max_waiting_tokens.",
                seconds,
            )

    def add(self, tokens: int, now: float, *, is_bulk: bool = False) -> None:
        """Count a request that was accepted; ``now`` is in seconds."""
        if not self.requests:
            self._measured_at = now
        self.requests += 1
        self.tokens += tokens
        self._bulk += is_bulk

    def remove(self, tokens: int, now: float, *, is_bulk: bool = False) -> None:
        """Forget a request that is over."""
        elapsed, self._measured_at = now - self._measured_at, now
        self._request_rate.add(1, elapsed)
        self._token_rate.add(tokens, elapsed)
        self.requests -= 1
        self.tokens -= tokens
        self._bulk -= is_bulk


class KindTimes:
    """How long recent jobs of one kind and size took.

    A tenant's jobs show how long its next one takes. While they are not known, those of others do, each tenant once:
    one that sends what takes long raises what is expected of others no more than any other tenant.
    """

    def __init__(self) -> None:
        self._tenants: OrderedDict[str, deque[float]] = OrderedDict()
        self._expected: dict[str, float] = {}
        """By tenant: what three of four of its recent jobs did not exceed."""
        self._usual = 0.0
        """What three of four tenants do not exceed."""

    def add(self, tenant: str, seconds: float) -> None:
        """Note a job that is finished."""
        durations = self._tenants.setdefault(tenant, deque(maxlen=RECENT))
        durations.append(seconds)
        self._tenants.move_to_end(tenant)
        self._expected[tenant] = sorted(durations)[len(durations) * 3 // 4]
        if len(self._tenants) > TIMED_TENANTS:
            del self._expected[self._tenants.popitem(last=False)[0]]
        self._usual = sorted(self._expected.values())[len(self._expected) * 3 // 4]

    def expect(self, tenant: str, is_untried: bool) -> float:
        """Return the seconds that a tenant's job is expected to take; 0 for one that is to show how long it takes."""
        return self._expected.get(tenant, 0.0 if is_untried else self._usual)


class Admission:
    """The queue of jobs, the active ones, and how long recent ones took. Not thread-safe."""

    def __init__(self, max_active: int, weights: Mapping[str, float] = MappingProxyType({})) -> None:
        """``weights`` of tenants; 1 for a tenant that it does not name."""
        self._max_active = max_active
        self._active: list[Job[Any]] = []
        self._queue = FairQueue(weights)
        self._times: OrderedDict[tuple[tuple[str, ...], int], KindTimes] = OrderedDict()

    @property
    def active(self) -> Iterator[Job[Any]]:
        """The active jobs, first the one to serve first."""
        return iter(self._active)

    @property
    def queued(self) -> Iterator[Job[Any]]:
        """The queued jobs, in no order."""
        return iter(self._queue)

    def add(self, job: Job[Any]) -> None:
        """Queue a job."""
        self._queue.push(job)

    def remove(self, job: Job[Any], now: float, *, complete: bool) -> None:
        """Forget a job that is over; a ``complete`` one (all tasks have results) shows how long its kind takes."""
        if job.admitted is None:
            self._queue.drop(job)
            return
        self._active.remove(job)
        seconds = (now - job.admitted) / (job.active_beside + 1)
        self._queue.end(job, seconds - job.charged)
        if complete:
            key = (job.kind, job.size_class)
            self._times.setdefault(key, KindTimes()).add(job.tenant, seconds)
            self._times.move_to_end(key)
            if len(self._times) > KINDS:
                self._times.popitem(last=False)

    @property
    def first(self) -> Job[Any] | None:
        """The queued job to admit or to drop next."""
        return self._queue.first()

    def has_place(self, job: Job[Any], now: float) -> bool:
        """Whether a queued job may become active, and can finish in time beside the active jobs.

        Only jobs of the same or a higher urgency take places from it, so that a queue full of bulk work delays no
        urgent job. Alone it is tried whatever is expected, so that the engine learns when things have become faster.
        """
        beside = self._count_beside(job)
        return beside < self._max_active and self._fits(job, now, beside)

    def is_hopeless(self, job: Job[Any], now: float) -> bool:
        """Whether a queued job should be dropped.

        It is dropped if it cannot finish in time even alone, or only alone while another could beside active jobs.
        """
        if self.latest_start(job) <= now:
            return True
        beside = self._count_beside(job)
        if beside >= self._max_active or self._fits(job, now, beside):
            return False
        return any(other.urgency == job.urgency and self._fits(other, now, beside) for other in self._queue)

    def _count_beside(self, job: Job[Any]) -> int:
        return sum(active.urgency >= job.urgency for active in self._active)

    def _fits(self, job: Job[Any], now: float, beside: int) -> bool:
        if not beside or job.deadline is None:
            return True
        return now + self.expected_seconds(job) * (beside + 1) <= job.deadline

    def admit(self, job: Job[Any], now: float) -> None:
        """Make a queued job an active one."""
        job.admitted = now
        job.active_beside = len(self._active)
        job.charged = max(self._known_seconds(job), LEAST_SECONDS)
        self._queue.begin(job, job.charged)
        insort(self._active, job, key=rank)

    def expected_seconds(self, job: Job[Any]) -> float:
        """The time that a job of this kind takes alone, by recent ones of its tenant, or else of others.

        Jobs share the machine, so the time of each is divided by the number of jobs that were active when it was
        admitted. 0 when none is known, and while nothing of its urgency or a higher one is active: an engine that has
        nothing else to do for it tries every job.
        """
        return self._known_seconds(job) if self._count_beside(job) else 0.0

    def _known_seconds(self, job: Job[Any]) -> float:
        """By jobs with texts of about the same length, or else by the longest known that are shorter: a lower bound."""
        kind = job.kind
        for size_class in range(job.size_class, -1, -1):
            if times := self._times.get((kind, size_class)):
                return times.expect(job.tenant, self._queue.is_untried(job.tenant))
        return 0.0

    def latest_start(self, job: Job[Any]) -> float:
        """When a queued job must be admitted to finish in time, even alone; infinite without a deadline."""
        return inf if job.deadline is None else job.deadline - self.expected_seconds(job)
