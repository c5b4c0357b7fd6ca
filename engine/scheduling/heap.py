"""Jobs in order of a key, without those that no longer count."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from .jobs import Job


class JobHeap:
    """Jobs by a key, smallest first. Those for which ``is_stale`` holds are skipped, and forgotten in time."""

    def __init__(self, key: Callable[[Job[Any]], tuple[float, ...]], is_stale: Callable[[Job[Any]], bool]) -> None:
        self._key = key
        self._is_stale = is_stale
        self._heap: list[tuple[tuple[float, ...], Job[Any]]] = []
        self._bound = 64

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, job: Job[Any]) -> None:
        """Add a job; its key ends with its number, so that no two are equal."""
        heapq.heappush(self._heap, (self._key(job), job))
        if len(self._heap) > self._bound:
            self._heap = [entry for entry in self._heap if not self._is_stale(entry[1])]
            heapq.heapify(self._heap)
            self._bound = max(64, 2 * len(self._heap))

    def __iter__(self) -> Iterator[Job[Any]]:
        """The jobs that are not stale, in no order."""
        return (job for _, job in self._heap if not self._is_stale(job))

    def first(self) -> Job[Any] | None:
        """The first job that is not stale, or None; it stays in the heap."""
        while self._heap and self._is_stale(self._heap[0][1]):
            heapq.heappop(self._heap)
        return self._heap[0][1] if self._heap else None
