"""Results of model calls that were answered before, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from groundwire.runtime.calls import Call
from groundwire.runtime.protocol import Outcome


@dataclass(frozen=True, slots=True)
class Key:
    """What determines a call's result. ``max_windows`` bounds it, so it is a part of the key."""

    call: Call
    max_windows: int


class Cache:
    """Least recently used results, bounded by the characters of their calls and the bytes of arrays in them."""

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._chars = 0
        self._entries: OrderedDict[Key, tuple[Outcome, int]] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Outcome | None:
        """The result of an equal call, or None."""
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Key, outcome: Outcome) -> None:
        """Store a result, and drop the least recently used ones beyond the bound."""
        cost = 256 + _count_chars(key.call) + _count_array_bytes(outcome)
        if key in self._entries or cost > self._max_chars:
            return
        self._entries[key] = (outcome, cost)
        self._chars += cost
        while self._chars > self._max_chars:
            _, (_, freed) = self._entries.popitem(last=False)
            self._chars -= freed


def _count_chars(value: object) -> int:
    """The characters of all texts in a call, or in any part of it."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return sum(map(_count_chars, value))
    return sum(_count_chars(getattr(value, name)) for name in getattr(value, "__struct_fields__", ()))


def _count_array_bytes(outcome: Outcome) -> int:
    values = [getattr(outcome, name) for name in getattr(outcome, "__struct_fields__", ())]
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))
