"""A lock: captures of graphs run alone, other GPU work runs together.

While ONNX Runtime captures a graph, CUDA refuses to every thread of the process what may wait for the device: to
allocate or free its memory or page-locked memory, to copy ordinary memory, to wait. The refusal ends the capture too.
So all of it passes the gate: the loading of graphs, allocations, copies, runs, probes and waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import onnxruntime as ort


class CaptureGate:
    """Any number of threads that work at the same time, or a single capture."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._runs = 0
        self._captures = False
        self._waiting = 0
        """Threads that wait to capture; they go before work that has not begun."""
        self._inside = threading.local()
        self._unfreed: deque[Callable[[], object]] = deque()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Inside the block no other thread captures. Blocks may be nested, also in ``capture``."""
        if getattr(self._inside, "entered", False):
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._captures and not self._waiting)
            self._runs += 1
        try:
            with self._enter():
                yield
        finally:
            self._leave()

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Inside the block no other thread works. RuntimeError inside ``run``, for whose end it would wait."""
        if getattr(self._inside, "entered", False):
            raise RuntimeError("a capture inside of other work on the GPU would wait for its end")
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._captures and not self._runs)
                self._captures = True
            finally:
                self._waiting -= 1
        try:
            with self._enter():
                yield
        finally:
            with self._changed:
                self._captures = False
                self._changed.notify_all()
            self.free()

    def release(self, free: Callable[[], object]) -> None:
        """Call ``free`` now, or when the open capture has ended; nothing waits, since finalizers run at any time in any
        thread."""
        self._unfreed.append(free)
        self.free()

    def free(self) -> None:
        """Free what was released, unless a capture is open; its end does it then."""
        with self._changed:
            if self._captures or not self._unfreed:
                return
            self._runs += 1
        try:
            with suppress(IndexError):  # another thread may take the last one
                while True:
                    self._unfreed.popleft()()
        finally:
            self._leave()

    @contextmanager
    def _enter(self) -> Iterator[None]:
        self._inside.entered = True
        try:
            yield
        finally:
            self._inside.entered = False

    def _leave(self) -> None:
        with self._changed:
            self._runs -= 1
            self._changed.notify_all()


GATE = CaptureGate()
"""The lock that all GPU work of this process takes."""


class GpuSession(ort.InferenceSession):  # type: ignore[misc]
    """ONNX Runtime's session on a GPU, whose memory is allocated and freed while nothing is captured."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """As ``onnxruntime.InferenceSession``."""
        with GATE.run():
            super().__init__(*arguments, **options)

    def __del__(self) -> None:
        session = [self.__dict__.pop("_sess", None)]
        GATE.release(session.clear)
