"""The engine: load a bundle once, score from anywhere."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from groundwire.runtime.backend import LocalRuntime, Runtime
from groundwire.runtime.calls import Call
from groundwire.runtime.errors import InvalidRequest, ModelError
from groundwire.runtime.session import DeviceChoice

from .metrics import Steps, select
from .options import Options
from .records import MetricResult, Request, Score, Timings
from .scheduler import Finished, Job, Scheduler
from .signature import signature
from .validate import make_request

IN_FLIGHT = 64
"""Requests ``score_many`` keeps in flight: enough to fill batches, few enough to bound memory."""
DEFAULT_METRICS = ("q2",)

Knowledge = str | Sequence[str]
Item = Request | tuple[str, Knowledge] | dict[str, Any]


class Engine:
    """Scores responses with the models of one bundle. Safe to use from many threads at once.

    >>> with Engine.load() as engine:                                                          # doctest: +SKIP
    ...     score = engine.score("Bob Ross hosted the show.", "Bob Ross was its creator and host.")
    ...     score.value, score.unsupported
    """

    def __init__(self, runtime: Runtime, *, max_waiting: int = 4096, cache_chars: int = 8_000_000) -> None:
        """An engine over any runtime; ``load`` is the usual way.

        ``max_waiting`` bounds the unfinished requests, ``cache_chars`` the characters of cached model calls.
        """
        self._runtime = runtime
        self._scheduler = Scheduler(runtime, max_waiting=max_waiting, cache_chars=cache_chars)

    @classmethod
    def load(
        cls,
        bundle: str | Path = "compact",
        device: DeviceChoice = "auto",
        precision: str | None = None,
        threads: int | None = None,
        *,
        max_waiting: int = 4096,
        cache_chars: int = 8_000_000,
    ) -> Engine:
        """Open a bundle: the name of an embedded one, or a directory that ``groundwire export`` wrote.

        ``device`` is ``auto``, ``cpu``, ``cuda`` or ``tensorrt``; nothing falls back silently. ``precision`` refuses a
        bundle of another one. ``threads`` bounds the CPU threads of a graph run; None takes the usable processors.
        Raises BundleError, DeviceError or InvalidRequest.
        """
        runtime = LocalRuntime.load(bundle, device, precision, threads)
        return cls(runtime, max_waiting=max_waiting, cache_chars=cache_chars)

    def score(
        self,
        response: str,
        knowledge: Knowledge,
        *,
        history: Sequence[str] = (),
        metrics: Sequence[str] | None = None,
        options: Options | None = None,
    ) -> Score:
        """Score one response and wait for the result.

        ``knowledge`` is a string or several passages; ``history`` the utterances before, oldest first; ``metrics``
        names from ``METRICS`` (default Q²). Raises InvalidRequest for unusable input; what happens to a valid request
        is a status of the Score, never an exception.
        """
        options = options or Options()
        request = make_request(response, knowledge, history, options)
        job, sign = self._submit(request, metrics, options)
        try:
            return _score(job.future.result(), sign)
        except BaseException:
            self._scheduler.cancel(job)
            raise

    async def ascore(
        self,
        response: str,
        knowledge: Knowledge,
        *,
        history: Sequence[str] = (),
        metrics: Sequence[str] | None = None,
        options: Options | None = None,
    ) -> Score:
        """``score`` for asyncio; cancelling the awaiting task gives the request up."""
        options = options or Options()
        request = make_request(response, knowledge, history, options)
        job, sign = self._submit(request, metrics, options)
        try:
            return _score(await asyncio.wrap_future(job.future), sign)
        except asyncio.CancelledError:
            self._scheduler.cancel(job)
            raise

    def score_many(
        self,
        items: Iterable[Item],
        *,
        metrics: Sequence[str] | None = None,
        options: Options | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Score]:
        """Yield one Score per item, in order, with up to 64 requests in flight and no more held in memory.

        An item is a Request, a pair (response, knowledge), or a mapping with ``response``, ``knowledge`` and perhaps
        ``history``. An unusable item yields status ``invalid`` and the others go on. ``progress`` is called with the
        number of scores yielded so far.
        """
        options = options or Options()
        names = self._names(metrics)  # so that a wrong name is told before the first item is read
        flying: deque[tuple[Job, str] | Score] = deque()
        done = 0
        try:
            for item in items:
                try:
                    flying.append(self._submit(_as_request(item, options), names, options))
                except InvalidRequest as error:
                    flying.append(_invalid(str(error), signature(self._runtime.identity, names, options)))
                while len(flying) >= IN_FLIGHT:
                    yield _land(flying.popleft())
                    done += 1
                    if progress is not None:
                        progress(done)
            while flying:
                yield _land(flying.popleft())
                done += 1
                if progress is not None:
                    progress(done)
        finally:
            for one in flying:
                if not isinstance(one, Score):
                    self._scheduler.cancel(one[0])

    def warmup(self) -> None:
        """Run every model once, so that the first request pays for nothing but itself; ModelError when one fails."""
        job = self._scheduler.submit([("warmup", _warm(self._runtime.warm_calls()))], Options().max_windows, None)
        (result,) = job.future.result().results
        if result.status != "scored":
            raise ModelError(f"Warming up failed: {result.message}")

    def close(self) -> None:
        """Cancel what is unfinished and free the models; later calls raise EngineClosed."""
        self._scheduler.close()
        self._runtime.close()

    @property
    def runtime(self) -> Runtime:
        """What runs the models."""
        return self._runtime

    @property
    def cache_info(self) -> tuple[int, int, int]:
        """Cached model calls, hits and misses."""
        return self._scheduler.cache_info

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _names(self, metrics: Sequence[str] | None) -> tuple[str, ...]:
        if isinstance(metrics, str):
            raise InvalidRequest(f"metrics={metrics!r} is one string; pass a list of names.")
        names = DEFAULT_METRICS if metrics is None else tuple(metrics)
        return tuple(metric.name for metric in select(names, self._runtime.roles))

    def _submit(self, request: Request, metrics: Sequence[str] | None, options: Options) -> tuple[Job, str]:
        names = self._names(metrics)
        chosen = select(names, self._runtime.roles)
        tasks = [(metric.name, metric.steps(request, options)) for metric in chosen]
        job = self._scheduler.submit(tasks, options.max_windows, options.deadline_ms)
        return job, signature(self._runtime.identity, names, options)


def _warm(calls: Sequence[Call]) -> Steps[MetricResult]:
    yield calls
    return MetricResult("warmup", "scored", 1.0)


def _as_request(item: Item, options: Options) -> Request:
    if isinstance(item, Request):
        return make_request(item.response, item.knowledge, item.history, options)
    if isinstance(item, dict):
        absent = [name for name in ("response", "knowledge") if name not in item]
        if absent:
            raise InvalidRequest(f"The item has no {' and no '.join(absent)}; it has {', '.join(map(str, item))}.")
        return make_request(item["response"], item["knowledge"], item.get("history") or (), options)
    if isinstance(item, tuple) and len(item) == 2:
        return make_request(*item, options=options)
    raise InvalidRequest(f"An item is a Request, a pair or a mapping; this is {type(item).__name__}.")


def _land(flying: tuple[Job, str] | Score) -> Score:
    return flying if isinstance(flying, Score) else _score(flying[0].future.result(), flying[1])


def _score(finished: Finished, sign: str) -> Score:
    first = finished.results[0]
    coverages = [result.coverage for result in finished.results if result.coverage is not None]
    spans = {span for result in finished.results for span in result.unsupported}
    return Score(
        status=first.status,
        value=first.value,
        metrics={result.name: result for result in finished.results},
        unsupported=tuple(sorted(spans, key=lambda span: (span.start, span.end, span.metric))),
        coverage=min(coverages) if coverages else None,
        timings=finished.timings,
        signature=sign,
        message=first.message,
    )


def _invalid(message: str, sign: str) -> Score:
    return Score("invalid", None, {}, (), None, Timings(0.0, {}), sign, message)
