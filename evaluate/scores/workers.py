"""Worker processes that score at the same time, each with an engine of its own.

An engine spends part of its time in Python, where only one thread runs. On few cores, two engines with half the threads
each score more than one engine with all of them. The scores and their order are the same.
"""

from __future__ import annotations

import itertools
import multiprocessing
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
"""Requests that a process takes at once: enough to share batches, few enough that no process waits long."""
AHEAD = 4
"""Chunks per process that are submitted before their results are needed."""


class RequestScorer(Protocol):
    """Scores requests: an ``Engine``, or ``ScoringProcesses``."""

    def score_many(self, items: Iterable[Request], *, metrics: tuple[str, ...], options: Options) -> Iterator[Score]:
        """Yield one Score per request, in order."""
        ...


class ScoringProcesses:
    """``count`` processes that each load an engine with ``load``, a picklable function without arguments."""

    def __init__(self, load: Callable[[], Engine], count: int) -> None:
        # Spawned, not forked: a forked copy has no threads of the runtime's libraries.
        context = multiprocessing.get_context("spawn")
        self._count = count
        self._pool = ProcessPoolExecutor(count, context, _load_engine, (load,))

    def __enter__(self) -> ScoringProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def score_many(self, items: Iterable[Request], *, metrics: tuple[str, ...], options: Options) -> Iterator[Score]:
        """As ``Engine.score_many``. ModelError when a process ends before its work is done."""
        requests = iter(items)
        chunks = iter(lambda: list(itertools.islice(requests, CHUNK)), [])
        submitted = (self._pool.submit(_score_chunk, msgspec.json.encode(chunk), metrics, options) for chunk in chunks)
        pending = list(itertools.islice(submitted, self._count * AHEAD))
        try:
            while pending:
                yield from _SCORES.decode(pending.pop(0).result())
                pending.extend(itertools.islice(submitted, 1))
        except BrokenProcessPool as error:
            raise ModelError(
                f"One of {self._count} scoring processes ended, perhaps for lack of memory. Use fewer: --workers 1."
            ) from error


_REQUESTS = msgspec.json.Decoder(list[Request])
_SCORES = msgspec.json.Decoder(list[Score])
_engine: Engine | None = None
"""The engine of this process, if it is one of the workers."""


def _load_engine(load: Callable[[], Engine]) -> None:
    global _engine
    _engine = load()


def _score_chunk(requests: bytes, metrics: tuple[str, ...], options: Options) -> bytes:
    assert _engine is not None
    return msgspec.json.encode(list(_engine.score_many(_REQUESTS.decode(requests), metrics=metrics, options=options)))
