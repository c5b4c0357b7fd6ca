"""Bounds the work that is accepted and not finished, by its estimated cost and not by the number of requests.

A request of 50,000 characters is not a request of 100: a queue that counts requests is either too short for small ones
or too long for large ones. All calls are made from one event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from .problems import Refusal

BULK_SHARE = 0.5
"""Of the capacity: what work that can wait may take, so that it delays no single request by more than that."""
MEMORY_SECONDS = 30.0
"""Busy seconds after which a measured rate counts for a third."""
MAX_RETRY_SECONDS = 60


class Ticket:
    """The right to work at a cost, until the block that it opens is left, or ``release`` is called."""

    def __init__(self, gate: CostGate, cost: int, *, is_bulk: bool) -> None:
        self.cost = cost
        self.is_bulk = is_bulk
        self._gate = gate
        self._is_over = False

    def release(self) -> None:
        """Make room for others, once."""
        if not self._is_over:
            self._is_over = True
            self._gate._leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class CostGate:
    """Lets work in while its cost, with that of all unfinished work, is at most the capacity.

    What costs more than the capacity is let in alone. ``now`` is a clock in seconds.
    """

    def __init__(self, capacity: int, now: Callable[[], float]) -> None:
        self.capacity = capacity
        self._now = now
        self.used = 0
        """Cost of the work that is accepted and not finished."""
        self.count = 0
        """Number of the requests with that work."""
        self._bulk = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._measured_at = 0.0
        self._done_cost = 0.0
        self._busy_seconds = 0.0

    def enter(self, cost: int) -> Ticket:
        """Let a single request in, or raise Refusal ``overloaded`` with the seconds to wait."""
        if not self._fits(cost, self.capacity):
            seconds = self.retry_seconds(cost)
            raise Refusal(
                "overloaded",
                f"The server is full: requests for about {self.used} of {self.capacity} tokens are unfinished, and "
                f"this one is for about {cost}. Try again in {seconds} s, or send less at a time.",
                headers={"Retry-After": str(seconds)},
            )
        return self._let_in(cost, is_bulk=False)

    async def wait(self, cost: int) -> Ticket:
        """Let work in that can wait, as soon as there is room for it; those that wait are let in in their order."""
        if self._waiting or not self._fits_bulk(cost):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((cost, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # it was this one's turn, which the next one takes
                    self._leave(Ticket(self, cost, is_bulk=True))
                else:
                    with suppress(ValueError):
                        self._waiting.remove((cost, turn))
                    self._let_waiting_in()
                raise
            return Ticket(self, cost, is_bulk=True)
        return self._let_in(cost, is_bulk=True)

    def retry_seconds(self, cost: int) -> int:
        """Whole seconds until there is room for this cost, by the rate at which work was finished so far; 1–60."""
        rate = self._done_cost / self._busy_seconds if self._busy_seconds else 0.0
        excess = min(self.used + cost - self.capacity, self.used)
        return min(max(math.ceil(excess / rate - 1e-6), 1), MAX_RETRY_SECONDS) if rate else 1

    def _fits(self, cost: int, limit: float) -> bool:
        return not self.used or self.used + cost <= limit

    def _fits_bulk(self, cost: int) -> bool:
        return self._fits(cost, self.capacity * (BULK_SHARE if self._bulk else 1.0))

    def _let_in(self, cost: int, *, is_bulk: bool) -> Ticket:
        if not self.used:
            self._measured_at = self._now()
        self.used += cost
        self.count += 1
        self._bulk += is_bulk
        return Ticket(self, cost, is_bulk=is_bulk)

    def _leave(self, ticket: Ticket) -> None:
        now = self._now()
        elapsed, self._measured_at = now - self._measured_at, now
        kept = math.exp(-elapsed / MEMORY_SECONDS)
        self._done_cost = self._done_cost * kept + ticket.cost
        self._busy_seconds = self._busy_seconds * kept + elapsed
        self.used -= ticket.cost
        self.count -= 1
        self._bulk -= ticket.is_bulk
        self._let_waiting_in()

    def _let_waiting_in(self) -> None:
        while self._waiting and self._fits_bulk(self._waiting[0][0]):
            cost, turn = self._waiting.popleft()
            if not turn.done():
                self._let_in(cost, is_bulk=True)
                turn.set_result(None)
