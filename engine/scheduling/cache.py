"""Results of model calls that were answered before, in bounded memory."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from groundwire.runtime.calls import Call
from groundwire.runtime.protocol import Outcome

ENTRY_BYTES = 512
"""Of an entry's key, tuple and place in the order."""


@dataclass(frozen=True, slots=True)
class Key:
    """What determines a call's result. ``max_windows`` bounds it, so it is a part of the key."""

    call: Call
    max_windows: int


class Cache:
    """Least recently used results, bounded by the memory of their calls and of the results themselves."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.bytes = 0
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
        if key in self._entries or self._max_bytes < ENTRY_BYTES:
            return
        cost = ENTRY_BYTES + count_bytes(key.call) + count_bytes(outcome)
        if cost > self._max_bytes:
            return
        self._entries[key] = (outcome, cost)
        self.bytes += cost
        while self.bytes > self._max_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self.bytes -= freed


def count_bytes(value: object) -> int:
    """The memory of a call or a result, in bytes: of itself and of all its parts, shared ones each time."""
    if isinstance(value, np.ndarray):
        return value.nbytes + 128
    size = sys.getsizeof(value)
    if isinstance(value, str | int | float):
        return size
    if isinstance(value, tuple | list):
        if value and isinstance(value[0], int | float):
            return size + len(value) * 32
        return size + sum(map(count_bytes, value))
    if isinstance(value, Mapping):
        return size + sum(count_bytes(name) + count_bytes(part) for name, part in value.items())
    return size + sum(count_bytes(getattr(value, name)) for name in getattr(value, "__struct_fields__", ()))
