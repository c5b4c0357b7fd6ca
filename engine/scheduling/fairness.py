"""Queued jobs, by tenant: each tenant gets its share of the engine's time while it has something to do.

A tenant's clock runs by the seconds that its jobs took, divided by its weight; of the jobs that are next in order of
their tenants, one of the highest urgency is served, and among those one of the tenant with the smallest clock
(start-time fair queueing, Goyal, Vin and Cheng 1996). A tenant that was idle starts where the others are: time that it
did not use is no credit. With one tenant the order is that of ``rank`` alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .heap import JobHeap
from .jobs import Job, rank

KEPT = 256
"""Idle tenants whose clocks are kept, those that are furthest ahead; the others may have a little more than their share
when they come back."""


@dataclass(slots=True)
class Tenant:
    """The queued jobs of one tenant, and the time it has had."""

    weight: float
    clock: float
    queue: JobHeap


class FairQueue:
    """The jobs that wait for admission. Not thread-safe."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """A tenant that ``weights`` does not name has weight 1."""
        self._weights = weights
        self._tenants: dict[str, Tenant] = {}
        self._clock = 0.0
        self._bound = 2 * KEPT

    def __iter__(self) -> Iterator[Job[Any]]:
        """The queued jobs, in no order."""
        return (job for tenant in self._tenants.values() for job in tenant.queue)

    def push(self, job: Job[Any]) -> None:
        """Queue a job."""
        tenant = self._tenants.get(job.tenant)
        if tenant is None:
            queue = JobHeap(rank, lambda job: job.over or job.admitted is not None)
            tenant = self._tenants[job.tenant] = Tenant(self._weights.get(job.tenant, 1.0), self._clock, queue)
        elif tenant.queue.first() is None:
            tenant.clock = max(tenant.clock, self._clock)
        tenant.queue.push(job)

    def first(self) -> Job[Any] | None:
        """The job to admit or to drop next, or None; it stays in the queue."""
        heads = [(tenant.clock, job) for tenant in self._tenants.values() if (job := tenant.queue.first()) is not None]
        if not heads:
            return None
        return min(heads, key=lambda head: (-head[1].urgency, head[0], rank(head[1])))[1]

    def begin(self, job: Job[Any], seconds: float) -> None:
        """Charge a job that is admitted to its tenant, as far as its time is known."""
        tenant = self._tenants.get(job.tenant)
        if tenant is not None:
            self._clock = max(self._clock, tenant.clock)
        self.charge(job, seconds)
        if len(self._tenants) > self._bound:
            self._forget_idle()

    def charge(self, job: Job[Any], seconds: float) -> None:
        """Add to the clock of a job's tenant; less than nothing gives back what was charged too much."""
        tenant = self._tenants.get(job.tenant)
        if tenant is not None:
            tenant.clock += seconds / tenant.weight

    def _forget_idle(self) -> None:
        busy = {name: tenant for name, tenant in self._tenants.items() if tenant.queue.first() is not None}
        ahead = sorted(
            ((name, tenant) for name, tenant in self._tenants.items() if tenant.clock > self._clock),
            key=lambda item: -item[1].clock,
        )
        self._tenants = busy | dict(ahead[:KEPT])
        self._bound = 2 * (KEPT + len(busy))
