"""Tenants under adversarial names in virtual time: one comes back again and again while the others do all they can."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from groundwire.engine.scheduling.admission import Admission
from groundwire.engine.scheduling.jobs import Job
from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.engine.schema.steps import Steps
from groundwire.runtime.calls import Classified, Classify, Read
from groundwire.runtime.fake import FakeRuntime

from .threads import Stuck, VirtualThreads

POLITE = "polite"
ROUNDS = 6
"""How often the polite tenant comes back in a schedule."""


class WatchedAdmission(Admission):
    """Counts, each time the polite tenant comes, who waits, and what is admitted up to its job."""

    def __init__(self, max_active: int) -> None:
        super().__init__(max_active)
        self.waits: list[tuple[int, int]] = []
        """Tenants that waited when it came, and the jobs that were then admitted up to its own."""
        self._waiting = self._admitted = 0

    def add(self, job: Job[Any]) -> None:
        """Queue a job."""
        if job.tenant == POLITE:
            self._waiting, self._admitted = len({other.tenant for other in self.queued}), 0
        super().add(job)

    def admit(self, job: Job[Any], now: float) -> None:
        """Make a queued job an active one."""
        super().admit(job, now)
        self._admitted += 1
        if job.tenant == POLITE:
            self.waits.append((self._waiting, self._admitted))


class NameSimulation:
    """Clients with one request at a time each; all but one call themselves what suits them. All from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.world = VirtualThreads(random)
        runtime = FakeRuntime(
            {"nli": lambda call: Classified("neutral", {}, 0, Read(1, 1, 1))},  # type: ignore[dict-item]
            batch=1,
            concurrent_batches=random.choice((1, 2)),
            concurrent_requests=random.choice((1, 1, 2, 4)),
        )
        self.scheduler = Scheduler(runtime, cache_bytes=0, threads=self.world)
        self.admission = WatchedAdmission(runtime.concurrent_requests)
        self.scheduler._admission = self.admission
        self._flood_size = random.choice((1, 3, 8, 24))
        self._share_of_new_names = random.choice((0.0, 0.5, 1.0))
        self._has_deadlines = random.random() < 0.3
        self._in_flight: set[str] = set()
        self._submitted = 0
        self._left = ROUNDS

    def run(self) -> list[str]:
        """Run everything; returns what must never happen and did."""
        for _ in range(self._flood_size):
            self.world.at(self.random.random() * 0.01, self._flood)
        self.world.at(self.random.random() * 0.05, self._come_back)
        with suppress(Stuck):
            self.world.run_loop()
        late = [
            f"{waiting} tenants waited, and it was number {jobs}"
            for waiting, jobs in self.admission.waits
            if jobs > waiting + 1
        ]
        starved = ["the polite tenant starves"] if len(self.admission.waits) != ROUNDS else []
        return self.world.violations + late + starved

    def _flood(self) -> None:
        if self._left:
            self._submit(self._choose_name(), self._flood)

    def _choose_name(self) -> str:
        """A new name, or one that comes back as the polite tenant does."""
        if self.random.random() < self._share_of_new_names:
            return f"new {self._submitted}"
        return self.random.choice([name for name in map(str, range(50)) if name not in self._in_flight])

    def _come_back(self) -> None:
        self._left -= 1
        self._submit(POLITE, self._pause if self._left else self.scheduler.close)

    def _pause(self) -> None:
        self.world.at(self.world.now() + self.random.choice((0.0, 0.001, 0.05)), self._come_back)

    def _submit(self, tenant: str, then: Callable[[], None]) -> None:
        self._submitted += 1
        number, rounds = self._submitted, self.random.choice((0, 1, 1, 3))

        def steps() -> Steps[str]:
            for part in range(rounds):
                yield [Classify("nli", ("p",), f"{number} {part}")]
            return "done"

        def go_on(_: object) -> None:
            self._in_flight.discard(tenant)
            self.world.at(self.world.now(), then)

        self._in_flight.add(tenant)
        deadline_ms = 1e6 - 10 * number if self._has_deadlines else None  # the later it comes, the more urgent
        self.scheduler.submit([steps()], 8, deadline_ms, tenant=tenant).future.add_done_callback(go_on)
