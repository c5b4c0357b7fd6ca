"""Responses per second with a number of requests in flight."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from groundwire.engine import Engine, Options, Request, Score

from .records import Timing


class Throughput(msgspec.Struct, frozen=True):
    """Callers that each ask one request after another."""

    in_flight: int
    """Callers."""
    finished: int
    """Responses that the rate is of."""
    seconds: float
    """Time in which they finished."""
    per_second: float
    latency: Timing | None
    """Of these responses, from request to score; None when none finished."""
    statuses: dict[str, int]


@dataclass
class _Finished:
    """What finished so far."""

    ends: list[float] = field(default_factory=list)
    spent_ms: list[float] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)


def measure_rate(
    engine: Engine,
    requests: Iterable[Request],
    in_flight: int,
    seconds: float,
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
    at_least: int = 1,
) -> Throughput:
    """Score ``requests`` with ``in_flight`` callers until they end, or ``seconds`` have passed and ``at_least`` have
    finished; give the rest up.

    The rate counts the requests after the first ``in_flight``, while all callers had something to ask; when too few
    finished for that, it counts all of them, from the start.
    """

    def score(request: Request) -> Awaitable[Score]:
        return engine.ascore(
            request.response,
            request.knowledge,
            history=request.history,
            triples=request.triples,
            metrics=metrics,
            options=options,
        )

    return asyncio.run(_measure(score, iter(requests), in_flight, seconds, at_least))


async def _measure(
    score: Callable[[Request], Awaitable[Score]],
    requests: Iterator[Request],
    in_flight: int,
    seconds: float,
    at_least: int,
) -> Throughput:
    done = _Finished()
    started = time.perf_counter()
    stopped: list[float] = []
    enough = asyncio.Event()

    async def call() -> None:
        for request in requests:
            asked = time.perf_counter()
            status = (await score(request)).status
            now = time.perf_counter()
            done.ends.append(now)
            done.spent_ms.append((now - asked) * 1000)
            done.statuses.append(status)
            if len(done.ends) >= at_least:
                enough.set()
        stopped.append(time.perf_counter())

    callers = [asyncio.create_task(call()) for _ in range(in_flight)]
    limit = asyncio.create_task(_wait(seconds, enough))
    asking = asyncio.gather(*callers)
    first: list[asyncio.Future[Any]] = [asking, limit]
    await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    end = time.perf_counter()
    for task in (limit, *callers):
        task.cancel()
    ended = await asyncio.gather(*callers, asking, return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
            raise error  # the rate of the other callers would be a rate of fewer callers
    # From the first caller without anything to ask, fewer than in_flight were at work.
    return _count(done, started, min([*stopped, end]), in_flight)


async def _wait(seconds: float, enough: asyncio.Event) -> None:
    await asyncio.sleep(seconds)
    await enough.wait()


def _count(done: _Finished, started: float, end: float, in_flight: int) -> Throughput:
    busy = [index for index, moment in enumerate(done.ends) if moment <= end]
    if len(busy) > 2 * in_flight:
        chosen, since = busy[in_flight:], done.ends[busy[in_flight - 1]]
        until = end
    else:
        chosen, since = list(range(len(done.ends))), started
        until = done.ends[-1] if chosen else end
    spent = max(until - since, 1e-9)
    latency = Timing.of(done.spent_ms[index] for index in chosen) if chosen else None
    statuses = Counter(done.statuses[index] for index in chosen)
    return Throughput(in_flight, len(chosen), spent, len(chosen) / spent, latency, dict(statuses))
