"""Several processes that score at once, each with an engine of its own.

One engine spends part of its time in Python, where only one thread runs; on few cores, two engines of half the threads
score more than one of all of them. What is scored, and in which order it comes back, is the same.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Protocol

import msgspec

from groundwire.engine.api import Engine
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import Request, Score
from groundwire.runtime.errors import ModelError

CHUNK = 16
"""Requests that a process takes at once: enough to share batches, few enough that none waits long for the others."""
AHEAD = 4
"""Chunks given out before they are asked for, to each process."""


class Scorer(Protocol):
    """What scores requests: an ``Engine``, or ``Workers``."""

    def score_many(self, items: Iterable[Request], *, metrics: tuple[str, ...], options: Options) -> Iterator[Score]:
        """Yield one Score per request, in order."""
        ...


def usable() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """``count`` processes that each load an engine with ``load``, a picklable function without arguments."""

    def __init__(self, load: Callable[[], Engine], count: int) -> None:
        # Not forked: threads of the runtime's libraries would not be there in a copy.
        context = multiprocessing.get_context("spawn")
        self._count = count
        self._pool = ProcessPoolExecutor(count, context, _start, (load,))

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def score_many(self, items: Iterable[Request], *, metrics: tuple[str, ...], options: Options) -> Iterator[Score]:
        """As ``Engine.score_many``. ModelError when a process ends before its work is done."""
        requests = iter(items)
        chunks = iter(lambda: list(itertools.islice(requests, CHUNK)), [])
        asked = (self._pool.submit(_score, msgspec.json.encode(chunk), metrics, options) for chunk in chunks)
        flying = list(itertools.islice(asked, self._count * AHEAD))
        try:
            while flying:
                yield from _SCORES.decode(flying.pop(0).result())
                flying.extend(itertools.islice(asked, 1))
        except BrokenProcessPool as error:
            raise ModelError(
                f"One of {self._count} scoring processes ended; perhaps memory ran out. Use fewer: --workers 1."
            ) from error


_REQUESTS = msgspec.json.Decoder(list[Request])
_SCORES = msgspec.json.Decoder(list[Score])
_engine: Engine | None = None
"""Of this process, when it is one of the workers."""


def _start(load: Callable[[], Engine]) -> None:
    global _engine
    _engine = load()


def _score(requests: bytes, metrics: tuple[str, ...], options: Options) -> bytes:
    assert _engine is not None
    return msgspec.json.encode(list(_engine.score_many(_REQUESTS.decode(requests), metrics=metrics, options=options)))
