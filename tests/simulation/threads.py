"""A machine with virtual time: its threads are events, which run one at a time in an order that a seed decides."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from random import Random
from typing import Never

from groundwire.engine.scheduling.threads import Message

MOST_MESSAGES = 20_000
"""Of one simulation; more means that the scheduler never comes to rest."""


class Stuck(BaseException):
    """Ends a simulation that cannot go on."""


class VirtualThreads:
    """Implements ``Threads``. ``run_loop`` runs the loop on the caller's thread, and the events while it waits."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.time = 0.0
        self.process_number = 1
        self.messages = 0
        self.violations: list[str] = []
        self.longest_work = 0.0
        self._events: list[tuple[float, float, int, Callable[[], None]]] = []
        self._number = 0
        self._loop: Callable[[], None] = lambda: None
        self.observers: list[Callable[[], None]] = []
        """Called whenever the loop has handled all messages."""

    def now(self) -> float:
        """Virtual seconds."""
        return self.time

    def process(self) -> int:
        """The number that the scenario has set."""
        return self.process_number

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Run ``action`` at a time; events of one time run in random order."""
        self._number += 1
        heapq.heappush(self._events, (time, self.random.random(), self._number, action))

    def make_inbox(self) -> VirtualInbox:
        """An inbox whose ``get`` lets time pass."""
        return VirtualInbox(self)

    def start_loop(self, run: Callable[[], None]) -> Callable[[], None]:
        """Keep the loop for ``run_loop``; nothing can wait for it on this one thread."""
        self._loop = run
        return lambda: None

    def stop(self, violation: str) -> Never:
        """End the simulation; the loop may catch the exception, so that the reason is kept."""
        self.violations.append(violation)
        raise Stuck(violation)

    def run_loop(self) -> None:
        """Run the loop until it ends, then what is left of the pools' work."""
        self._loop()
        while self._events:
            self.run_next_event()

    def start_pool(self, name: str, size: int) -> VirtualPool:
        """A pool whose work takes random time."""
        return VirtualPool(self, name, size)

    def run_next_event(self, until: float = inf) -> bool:
        """Run the next event at or before ``until``; False when there is none."""
        if not self._events or self._events[0][0] > until:
            return False
        time, _, _, action = heapq.heappop(self._events)
        self.time = max(self.time, time)
        action()
        return True


class VirtualInbox:
    """First in, first out; between two messages other threads may run."""

    def __init__(self, world: VirtualThreads) -> None:
        self._world = world
        self._messages: deque[Message] = deque()

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, item: Message) -> None:
        """Append a message."""
        self._messages.append(item)

    def get(self, timeout: float | None) -> Message | None:
        """Run events until there is a message, or until ``timeout`` has passed."""
        world = self._world
        world.messages += 1
        if world.messages > MOST_MESSAGES:
            world.stop("the loop never comes to rest")
        if world.random.random() < 0.2:
            world.run_next_event(world.time)
        if not self._messages:
            for observe in world.observers:
                observe()
        until = inf if timeout is None else world.time + timeout
        while not self._messages:
            if not world.run_next_event(until):
                if timeout is None:
                    world.stop("the loop waits for ever")
                world.time = until
                return None
        return self._messages.popleft()


class VirtualPool:
    """Runs work at the end of the time it takes."""

    def __init__(self, world: VirtualThreads, name: str, size: int) -> None:
        self._world = world
        self._name = name
        self._size = size
        self._busy = 0
        self._queue: deque[Callable[[], None]] = deque()

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` when a thread is free. Batches must never wait for one: the loop knows which threads are."""
        self._queue.append(work)
        if self._name != "tasks" and self._busy + len(self._queue) > self._size:
            self._world.stop(f"pool {self._name} has {self._size} threads and was given more")
        self._begin()

    def shutdown(self) -> None:
        """Work that was begun goes on."""

    def _begin(self) -> None:
        while self._queue and self._busy < self._size:
            work = self._queue.popleft()
            self._busy += 1
            random = self._world.random
            seconds = random.choice((0.0, 0.001, 0.01)) * random.random() * (30 if random.random() < 0.05 else 1)
            self._world.longest_work = max(self._world.longest_work, seconds)
            self._world.at(self._world.time + seconds, partial(self._end, work))

    def _end(self, work: Callable[[], None]) -> None:
        self._busy -= 1
        work()
        self._begin()
