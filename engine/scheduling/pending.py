"""The calls of active jobs that wait for a batch, and those that a batch is running."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from .cache import Key
from .jobs import Job, Waiter


class PendingCalls:
    """Every call that some task waits for, once, with all who wait for it. Not thread-safe."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[Key, list[Waiter]]] = {}
        self._running: dict[Key, list[Waiter]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) + len(self._running)

    def add(self, role: str, key: Key, waiter: Waiter) -> None:
        """Wait for a call, with others that do so already."""
        running = self._running.get(key)
        if running is not None:
            running.append(waiter)
            return
        self._waiting.setdefault(role, {}).setdefault(key, []).append(waiter)
        waiter.job.waiting_calls.setdefault(role, OrderedDict())[key] = None

    def forget(self, job: Job[Any]) -> None:
        """Drop the waiting calls of a job that is over, but for those that others wait for too."""
        for role, keys in job.waiting_calls.items():
            calls = self._waiting[role]
            for key in keys:
                calls[key] = [waiter for waiter in calls[key] if waiter.job is not job]
                if not calls[key]:
                    del calls[key]
        job.waiting_calls.clear()

    def next_role(self, jobs: Iterable[Job[Any]], roles: Iterable[str]) -> str | None:
        """The one of ``roles`` that the first of ``jobs`` with any waiting call asked for longest ago."""
        allowed = frozenset(roles)
        for job in jobs:
            for role in job.waiting_calls:
                if role in allowed:
                    return role
        return None

    def take(self, role: str, jobs: Iterable[Job[Any]], limit: int, free: int) -> Sequence[Key]:
        """The calls of a role to run next, those of the first jobs first, at least one.

        At most ``limit``, at most one of ``free`` threads' share of what waits, and only calls with the first one's
        ``max_windows``.
        """
        waiting = self._waiting[role]
        size = max(1, min(limit, ceil(len(waiting) / free)))
        keys: list[Key] = []
        for job in jobs:
            for key in job.waiting_calls.get(role, ()):
                if len(keys) == size:
                    break
                if key not in self._running and (not keys or key.max_windows == keys[0].max_windows):
                    keys.append(key)
                    self._running[key] = waiting[key]
        for key in keys:
            for waiter in waiting.pop(key):
                calls = waiter.job.waiting_calls.get(role)
                if calls is not None and calls.pop(key, self) is None and not calls:
                    del waiter.job.waiting_calls[role]
        return keys

    def finish(self, key: Key) -> Sequence[Waiter]:
        """Who waited for a call that has run."""
        return self._running.pop(key)
