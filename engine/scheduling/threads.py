"""What the scheduler needs of the machine: a clock, an inbox, threads, and the number of the process.

The scheduler takes them as an argument, so that a simulation can give it virtual time and run everything on one thread.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeAlias

Message: TypeAlias = Callable[[], None]
"""What the loop runs next, on its own thread."""

LONGEST_WAIT = 3600.0
"""Seconds that the loop waits at most before it looks at the clock again; a lock takes no timeout beyond 292 years."""


class Inbox(Protocol):
    """Messages to the loop, first in, first out; ``put`` may be called from any thread."""

    def put(self, item: Message) -> None:
        """Append a message."""
        ...

    def get(self, timeout: float | None) -> Message | None:
        """Take the oldest message; None when there is none within ``timeout`` seconds (None waits without limit)."""
        ...


class Pool(Protocol):
    """Threads that run what they are given, at most as many at the same time as the pool has threads."""

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` on a thread of the pool; ``work`` raises nothing."""
        ...

    def shutdown(self) -> None:
        """Return when all work is done; no more may be submitted."""
        ...


class Threads(Protocol):
    """A clock, the number of the process, and the makers of inbox, loop and pools."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def process(self) -> int:
        """The number of the process; a forked one has another."""
        ...

    def make_inbox(self) -> Inbox:
        """An empty inbox."""
        ...

    def start_loop(self, run: Callable[[], None]) -> Callable[[], None]:
        """Run ``run`` on a thread of its own; the returned function waits until it ends."""
        ...

    def start_pool(self, name: str, size: int) -> Pool:
        """``size`` threads, all started."""
        ...


class SystemThreads:
    """Those of the machine."""

    def now(self) -> float:
        """The monotonic clock."""
        return time.monotonic()

    def process(self) -> int:
        """As the operating system says."""
        return os.getpid()

    def make_inbox(self) -> Inbox:
        """A queue without a bound."""
        return _QueueInbox()

    def start_loop(self, run: Callable[[], None]) -> Callable[[], None]:
        """A daemon thread; waiting for it from itself (a future's callback may close the engine) returns at once."""
        thread = threading.Thread(target=run, name="groundwire-loop", daemon=True)
        thread.start()

        def join() -> None:
            if threading.current_thread() is not thread:
                thread.join()

        return join

    def start_pool(self, name: str, size: int) -> Pool:
        """A pool of the standard library whose threads all run before it returns."""
        return _ExecutorPool(name, size)


class _QueueInbox:
    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def put(self, item: Message) -> None:
        self._messages.put(item)

    def get(self, timeout: float | None) -> Message | None:
        try:
            return self._messages.get(timeout=None if timeout is None else min(timeout, LONGEST_WAIT))
        except queue.Empty:
            return None


class _ExecutorPool:
    """Starts its threads at once: where a process may start no more, loading fails and no request does."""

    def __init__(self, name: str, size: int) -> None:
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=f"groundwire-{name}")
        started = threading.Barrier(size + 1)
        for _ in range(size):
            self._executor.submit(started.wait)
        started.wait()

    def submit(self, work: Callable[[], None]) -> None:
        self._executor.submit(work)

    def shutdown(self) -> None:
        self._executor.shutdown(wait=True)
