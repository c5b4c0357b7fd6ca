"""Bounds the work that is accepted and not finished: by the number of requests and by their estimated tokens.

A request of 50,000 characters is not a request of 100: a bound on the number alone is either too small for short texts
or too large for long ones. The tokens of finished work per busy second say when a refused caller should try again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from groundwire.runtime.calls import Decoding
from groundwire.runtime.decoding.search import count_parallel_sequences
from groundwire.runtime.errors import Overloaded

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
    sequences = 1 if decoding is None else min(max(count_parallel_sequences(decoding), 1), MAX_SEQUENCES)
    share = max(1.0, sequences / USUAL_SEQUENCES)
    return max(1, round(sum(map(len, texts)) / CHARS_PER_TOKEN * max(1, passes) * share))


@dataclass(slots=True)
class Rate:
    """How much is finished in a busy second, recent work first."""

    amount: float = 0.0
    seconds: float = 0.0

    def add(self, amount: float, seconds: float) -> None:
        """Count an amount that was finished after further busy seconds."""
        kept = math.exp(-seconds / MEMORY_SECONDS)
        self.amount = self.amount * kept + amount
        self.seconds = self.seconds * kept + seconds

    def seconds_for(self, amount: float) -> int:
        """Whole seconds until this amount is finished, 1–60; 1 where nothing was measured."""
        if not self.amount or not self.seconds:
            return 1
        return min(max(math.ceil(amount * self.seconds / self.amount - 1e-6), 1), MAX_RETRY_SECONDS)


class Backlog:
    """The unfinished requests. Not thread-safe: the scheduler holds its lock around every call.

    A request of more tokens than the bound is accepted while no other is unfinished.
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
        self._request_rate = Rate()
        self._token_rate = Rate()

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
