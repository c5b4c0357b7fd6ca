"""Scores many items in order, for threads and for asyncio, with a bounded number in flight; and ranks candidates."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from groundwire.runtime.arguments import check_iterable, check_sequence, read_table
from groundwire.runtime.errors import InvalidRequest, Overloaded

from ..metrics.requests import ReadRequest, read_together
from ..scheduling.jobs import JobResult
from ..schema.options import Options
from ..schema.results import MetricResult, Ranked, Request, Score
from ..schema.validation import make_request
from ..verdict.score import locate_in_original
from .core import Core, make_unscored, result_of
from .pending import Pending, Procedure
from .plan import Plan

T = TypeVar("T")
Item: TypeAlias = Request | tuple[str, Any] | dict[str, Any]
Start: TypeAlias = Callable[[Request], Pending[Score]]
RETRY_SECONDS = 0.02
"""Between two attempts when other callers fill the engine's queue."""


class RequestWindow:
    """The requests of one caller in flight, oldest first."""

    def __init__(self, start: Start, plan: Plan, size: int) -> None:
        self._start = start
        self._plan = plan
        self._size = size
        self._pending: deque[Pending[Score] | Score] = deque()
        self._last: ReadRequest | None = None
        """The request before the next one, which may be about the same knowledge."""

    @property
    def is_full(self) -> bool:
        """No further item should be added before the oldest is taken."""
        return len(self._pending) >= self._size

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, item: Any) -> bool:
        """Start an item; False when the engine accepts no more requests now. An unusable one becomes a score too."""
        try:
            self._pending.append(self._start(self._read(to_request(item, self._plan.options))))
        except InvalidRequest as error:
            self._pending.append(make_unscored("invalid", str(error), self._plan))
        except Overloaded:
            return False
        return True

    def _read(self, request: Request) -> ReadRequest:
        """The request; it shares what is read of the knowledge with the one before it, if that is the same."""
        *_, self._last = read_together((request,) if self._last is None else (self._last, request))
        return self._last

    @property
    def oldest(self) -> Pending[Score] | Score:
        """The next in order; it stays until ``drop_oldest``, so that ``cancel`` reaches it."""
        return self._pending[0]

    def drop_oldest(self) -> None:
        """Remove the oldest."""
        self._pending.popleft()

    def cancel(self) -> None:
        """Give all of them up."""
        while self._pending:
            pending = self._pending.popleft()
            if isinstance(pending, Pending):
                pending.cancel()


def check_items(items: Any) -> Iterable[Any]:
    """``items``, when they can be scored one after another: no set, and no single item; of a table its rows."""
    allowed = "a list, or another iterable, of Request, (response, knowledge) or mappings"
    return check_iterable("items", read_table(items), allowed)


def score_window(
    items: Iterable[Any], window: RequestWindow, progress: Callable[[int], None] | None
) -> Iterator[Score]:
    """Score items in order and report progress; what is in flight is given up when the caller stops."""
    try:
        for done, score in enumerate(score_in_order(items, window), 1):
            yield score
            if progress is not None:
                progress(done)
    finally:
        window.cancel()


def score_in_order(items: Iterable[Any], window: RequestWindow) -> Iterator[Score]:
    """One score per item, in order; waits while the engine is full."""
    for item in items:
        while not window.add(item):
            if len(window):
                yield _wait_for_oldest(window)
            else:
                time.sleep(RETRY_SECONDS)
        if window.is_full:
            yield _wait_for_oldest(window)
    while len(window):
        yield _wait_for_oldest(window)


async def ascore_in_order(items: Iterable[Any] | AsyncIterable[Any], window: RequestWindow) -> AsyncIterator[Score]:
    """``score_in_order`` for asyncio."""
    async for item in _iterate(items):
        while not window.add(item):
            if len(window):
                yield await _await_oldest(window)
            else:
                await asyncio.sleep(RETRY_SECONDS)
        if window.is_full:
            yield await _await_oldest(window)
    while len(window):
        yield await _await_oldest(window)


async def _iterate(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def _wait_for_oldest(window: RequestWindow) -> Score:
    pending = window.oldest
    score = pending if isinstance(pending, Score) else pending.result()
    window.drop_oldest()
    return score


async def _await_oldest(window: RequestWindow) -> Score:
    pending = window.oldest
    score = pending if isinstance(pending, Score) else await pending
    window.drop_oldest()
    return score


def to_request(item: Any, options: Options) -> Request:
    """The request of an item: a Request, a pair, or a mapping. InvalidRequest says what it lacks."""
    if isinstance(item, Request):
        return make_request(item.response, item.knowledge, item.history, options, item.triples)
    if isinstance(item, dict):
        triples = item.get("triples") or ()
        absent = [
            name for name in ("response", "knowledge") if name not in item and not (name == "knowledge" and triples)
        ]
        if absent:
            raise InvalidRequest(f"The item has no {' and no '.join(absent)}; it has {', '.join(map(str, item))}.")
        knowledge = () if triples and item.get("knowledge") is None else item["knowledge"]
        return make_request(item["response"], knowledge, item.get("history"), options, triples)
    if isinstance(item, tuple | list) and len(item) == 2:
        return make_request(item[0], item[1], options=options)
    raise InvalidRequest(f"An item is a Request, a pair or a mapping; this is {type(item).__name__}.")


def start_ranking(
    core: Core,
    candidates: Sequence[str],
    knowledge: Any,
    history: Any,
    triples: Any,
    metric: str,
    options: Options | None,
) -> Pending[tuple[Ranked, ...]]:
    """Start one job about all candidates; see ``Engine.rank``."""
    candidates = check_sequence("candidates", candidates, "a list of responses")
    if not candidates:
        raise InvalidRequest("candidates is empty; pass a list of responses.")
    plan = core.plan((metric,), options)
    requests = read_together(
        make_request(candidate, knowledge, history, plan.options, triples) for candidate in candidates
    )
    if len(plan.metrics) > 1:
        raise InvalidRequest(f"metric={metric!r} is a group; rank by one of {', '.join(plan.names)}.")
    return core.drive(_rank(core, candidates, requests, plan))


def _rank(
    core: Core, candidates: Sequence[str], requests: Sequence[ReadRequest], plan: Plan
) -> Procedure[tuple[Ranked, ...]]:
    job_result: JobResult[MetricResult] = yield core.start(requests, plan)
    (metric,) = plan.metrics
    results = [
        locate_in_original(result_of(metric, outcome, request.response), request)
        for outcome, request in zip(job_result.outcomes, requests, strict=True)
    ]
    ranked = [Ranked(*candidate) for candidate in zip(candidates, range(len(candidates)), results, strict=True)]
    return tuple(sorted(ranked, key=lambda item: (item.result.value is None, -(item.result.value or 0.0))))
