"""Runs a request that takes several jobs, one after another: a generator of jobs, resumed with what became of each."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ..schema.results import Timings
from .jobs import Finished, Job
from .scheduler import Scheduler

T = TypeVar("T")
Jobs: TypeAlias = Generator[Job[Any], Finished[Any], T]


class _Done(NamedTuple, Generic[T]):
    """What the generator returned."""

    value: T


def run_jobs(jobs: Jobs[T], scheduler: Scheduler) -> T:
    """Wait for each job, and return what the generator returns; a job that is not waited for any more is cancelled."""
    step = _resume(jobs, None)
    while isinstance(step, Job):
        try:
            finished = step.future.result()
        except BaseException:
            scheduler.cancel(step)
            raise
        step = _resume(jobs, finished)
    return step.value


async def arun_jobs(jobs: Jobs[T], scheduler: Scheduler) -> T:
    """``run_jobs`` for asyncio; the generator itself runs on other threads, so that the event loop goes on."""
    step = _resume(jobs, None)
    while isinstance(step, Job):
        try:
            finished = await asyncio.wrap_future(step.future)
        except asyncio.CancelledError:
            scheduler.cancel(step)
            raise
        step = await asyncio.to_thread(_resume, jobs, finished)
    return step.value


def add_timings(first: Timings, second: Timings) -> Timings:
    """The time of two jobs, one after the other."""
    roles = dict.fromkeys((*first.stages_ms, *second.stages_ms))
    return Timings(
        first.total_ms + second.total_ms,
        {role: first.stages_ms.get(role, 0.0) + second.stages_ms.get(role, 0.0) for role in roles},
        first.queued_ms + second.queued_ms,
    )


def _resume(jobs: Jobs[T], finished: Finished[Any] | None) -> Job[Any] | _Done[T]:
    try:
        return jobs.send(finished)  # type: ignore[arg-type]  # None starts a generator
    except StopIteration as end:
        return _Done(end.value)
