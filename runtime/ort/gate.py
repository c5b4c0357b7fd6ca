"""Runs on a GPU, and captures, which nothing else may run beside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class CaptureGate:
    """Any number of runs at the same time, or one capture: what another thread allocates on the GPU meanwhile would
    end a capture."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._runs = 0
        self._captures = False

    @contextmanager
    def run(self) -> Iterator[None]:
        """Inside the block nothing is captured."""
        with self._changed:
            self._changed.wait_for(lambda: not self._captures)
            self._runs += 1
        try:
            yield
        finally:
            with self._changed:
                self._runs -= 1
                self._changed.notify_all()

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Inside the block nothing else runs."""
        with self._changed:
            self._changed.wait_for(lambda: not self._captures and not self._runs)
            self._captures = True
        try:
            yield
        finally:
            with self._changed:
                self._captures = False
                self._changed.notify_all()


GATE = CaptureGate()
"""Of this process."""
