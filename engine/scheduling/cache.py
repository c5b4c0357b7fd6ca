"""Results of model calls that were answered before, bounded by what they hold."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from groundwire.runtime.calls import Call
from groundwire.runtime.protocol import Outcome


@dataclass(frozen=True, slots=True)
class Key:
    """What determines a call's result. ``max_windows`` bounds it and so belongs to it."""

    call: Call
    max_windows: int


class Cache:
    """Least recently used results, bounded by the characters of their calls and the bytes of arrays in them."""

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._chars = 0
        self._held: OrderedDict[Key, tuple[Outcome, int]] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Key) -> Outcome | None:
        """The result of an equal call, or None."""
        found = self._held.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: Key, outcome: Outcome) -> None:
        """Hold a result, and let go of the oldest ones beyond the bound."""
        cost = 256 + _chars(key.call) + _array_bytes(outcome)
        if key in self._held or cost > self._max_chars:
            return
        self._held[key] = (outcome, cost)
        self._chars += cost
        while self._chars > self._max_chars:
            _, (_, freed) = self._held.popitem(last=False)
            self._chars -= freed


def _chars(value: object) -> int:
    """The characters of all texts in a call, or in any part of it."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return sum(map(_chars, value))
    return sum(_chars(getattr(value, name)) for name in getattr(value, "__struct_fields__", ()))


def _array_bytes(outcome: Outcome) -> int:
    values = [getattr(outcome, name) for name in getattr(outcome, "__struct_fields__", ())]
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))
