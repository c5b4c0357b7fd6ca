"""Splits an input over several runs: every request belongs to one shard."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from groundwire.runtime.errors import InvalidRequest

T = TypeVar("T")


@dataclass(frozen=True)
class Shard:
    """One of ``count`` shards, counted from 1."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard that ``NUMBER/COUNT`` names; InvalidRequest for another text.

        >>> Shard.parse("3/8")
        Shard(number=3, count=8)
        """
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        number, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= count:
            raise InvalidRequest(f"{text!r} is no shard; write NUMBER/COUNT with 1 ≤ NUMBER ≤ COUNT, as in 3/8.")
        return cls(number, count)

    def select(self, items: Iterable[T]) -> Iterator[T]:
        """Every ``count``-th item, from the ``number``-th on: shards are disjoint, complete, and of equal size but
        for one item."""
        return islice(items, self.number - 1, None, self.count)
