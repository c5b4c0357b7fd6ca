"""Model calls of active jobs that wait for a batch or are being run, and results that were computed before."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import ceil
from typing import Any

import msgspec
import numpy as np

from groundwire.runtime.calls import shared_text
from groundwire.runtime.protocol import Outcome

from .jobs import Job, Key, Waiter

ENTRY_BYTES = 512
"""Bytes of an entry's key, tuple and place in the order."""
PART_BYTES = 40
"""Bytes of a number, or of the head of a text, and of its place in what holds it, about."""
CHARACTER_BYTES = 4
"""Bytes of a character at most, in a text that is not of ASCII alone."""


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
    """The memory of a call or a result, in bytes, about: of itself and of all its parts, shared ones each time.

    It is read off the value's JSON, which is written in a thirtieth of the time that a look at each part takes.
    """
    others: list[object] = []
    text = msgspec.json.encode(value, enc_hook=others.append)
    parts = 1 + text.count(b",") + text.count(b"[")
    size = len(text) * (1 if text.isascii() else CHARACTER_BYTES) + PART_BYTES * parts
    return size + sum(other.nbytes if isinstance(other, np.ndarray) else sys.getsizeof(other) for other in others)


class PendingCalls:
    """Every call that some task waits for, once, with all who wait for it. Not thread-safe."""

    def __init__(self) -> None:
        self._waiting: dict[str, WaitingCalls] = {}
        self._running: dict[Key, list[Waiter]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) + len(self._running)

    @property
    def running(self) -> int:
        """How many calls a batch is running."""
        return len(self._running)

    def count_waiting(self) -> dict[str, int]:
        """How many calls no batch has taken, by group; groups without any are left out."""
        return {group: len(calls) for group, calls in self._waiting.items() if len(calls)}

    def add(self, group: str, key: Key, waiter: Waiter) -> None:
        """Wait for a call, with others that do so already."""
        running = self._running.get(key)
        if running is not None:
            running.append(waiter)
            return
        self._waiting.setdefault(group, WaitingCalls()).add(key, waiter)
        waiter.job.waiting_calls.setdefault(group, OrderedDict())[key] = None

    def forget(self, job: Job[Any]) -> None:
        """Drop the waiting calls of a job that is over, but not the calls that others wait for too."""
        for group, keys in job.waiting_calls.items():
            calls = self._waiting[group]
            for key in keys:
                calls.forget(key, job)
        job.waiting_calls.clear()

    def next_group(self, jobs: Iterable[Job[Any]], groups: Iterable[str]) -> str | None:
        """The one of ``groups`` that the first of ``jobs`` with any waiting call asked for longest ago."""
        allowed = frozenset(groups)
        for job in jobs:
            for group in job.waiting_calls:
                if group in allowed:
                    return group
        return None

    def take(self, group: str, jobs: Iterable[Job[Any]], limit: int, free: int) -> Sequence[Key]:
        """The calls of a group to run next, at least one; the first jobs' calls come first.

        At most ``limit`` texts, at most one of ``free`` threads' share of what waits, and only calls with the first
        one's ``max_windows``. What roles of the group ask about the same text is taken together.
        """
        waiting = self._waiting[group]
        size = max(1, min(limit, ceil(waiting.texts / free)))
        keys: list[Key] = []
        texts = 0
        for key in (key for job in jobs for key in job.waiting_calls.get(group, ())):
            if texts == size or len(keys) >= limit:
                break
            if key not in self._running and (not keys or key.max_windows == keys[0].max_windows):
                texts += 1
                for other in waiting.of_same_text(key):
                    keys.append(other)
                    self._running[other] = waiting.waiters(other)
        for key in keys:
            for waiter in waiting.pop(key):
                calls = waiter.job.waiting_calls.get(group)
                if calls is not None and calls.pop(key, self) is None and not calls:
                    del waiter.job.waiting_calls[group]
        return keys

    def finish(self, key: Key) -> Sequence[Waiter]:
        """Who waited for a call that has run."""
        return self._running.pop(key)

    def waiting_keys(self) -> Iterator[Key]:
        """The calls that no batch has taken."""
        return (key for calls in self._waiting.values() for key in calls)


class WaitingCalls:
    """The calls of one group that no batch has taken, by the text that they are about."""

    def __init__(self) -> None:
        self._waiters: dict[Key, list[Waiter]] = {}
        self._keys: dict[Hashable, dict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._waiters)

    @property
    def texts(self) -> int:
        """How many different texts the calls are about."""
        return len(self._keys)

    def add(self, key: Key, waiter: Waiter) -> None:
        """Let a waiter wait for a call."""
        self._waiters.setdefault(key, []).append(waiter)
        self._keys.setdefault(_text_of(key), {})[key] = None

    def waiters(self, key: Key) -> list[Waiter]:
        """Who waits for a call."""
        return self._waiters[key]

    def of_same_text(self, key: Key) -> Sequence[Key]:
        """The call, and the others about the same text with the same ``max_windows``."""
        return tuple(self._keys[_text_of(key)])

    def pop(self, key: Key) -> list[Waiter]:
        """Remove a call; returns who waited."""
        text = _text_of(key)
        del self._keys[text][key]
        if not self._keys[text]:
            del self._keys[text]
        return self._waiters.pop(key)

    def forget(self, key: Key, job: Job[Any]) -> None:
        """Remove a job's waiters, and the call if no waiter is left."""
        self._waiters[key] = [waiter for waiter in self._waiters[key] if waiter.job is not job]
        if not self._waiters[key]:
            self.pop(key)


def _text_of(key: Key) -> Hashable:
    text = shared_text(key.call)
    return key if text is None else (text, key.max_windows)
