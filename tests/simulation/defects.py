"""Planted defects of the scheduler: a simulation that finds none of them would be worth nothing."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from groundwire.engine.scheduling import admission, jobs, scheduler
from groundwire.engine.scheduling import calls as cache
from groundwire.engine.scheduling import calls as pending


class Defect(NamedTuple):
    """A change of one class's source that makes it wrong."""

    name: str
    owner: type
    old: str
    new: str


DEFECTS = (
    Defect("a waiter of a running call is lost", pending.PendingCalls, "running.append(waiter)", "pass"),
    Defect(
        "a stopped job takes away calls that others wait for",
        pending.WaitingCalls,
        "[waiter for waiter in self._waiters[key] if waiter.job is not job]",
        "[]",
    ),
    Defect(
        "calls with different limits share a batch",
        pending.PendingCalls,
        "key.max_windows == keys[0].max_windows",
        "True",
    ),
    Defect(
        "roles of different graphs share a batch",
        scheduler.Scheduler,
        "self._runtime.batch_group(role)",
        "'nli'",
    ),
    Defect(
        "a call is taken twice",
        pending.PendingCalls,
        "for key in keys:\n            for waiter in waiting.pop(key)",
        "for key in keys[:1]:\n            for waiter in waiting.pop(key)",
    ),
    Defect(
        "a thread is not given back after a batch",
        scheduler.Scheduler,
        "workers.free += 1",
        "workers.free += not any(isinstance(outcome, GroundwireError) for outcome in outcomes)",
    ),
    Defect(
        "results go to the wrong calls",
        scheduler.Scheduler,
        "zip(batch.keys, outcomes, waiters",
        "zip(batch.keys, outcomes[::-1], waiters",
    ),
    Defect(
        "an error of an earlier round comes back",
        scheduler.Scheduler,
        "task.error, task.missing = [None] * len(keys), None, 0",
        "task.missing = [None] * len(keys), 0",
    ),
    Defect("the number of results is not checked", scheduler.Scheduler, "if len(outcomes) != len(calls):", "if False:"),
    Defect(
        "a finished job still counts",
        scheduler.Scheduler,
        "self._backlog.remove(job.size, now, is_bulk=job.is_bulk)",
        "job.admitted is None or self._backlog.remove(job.size, now, is_bulk=job.is_bulk)",
    ),
    Defect(
        "the bound of waiting jobs is off by one",
        admission.Backlog,
        "self.requests >= self._max_requests",
        "self.requests > self._max_requests",
    ),
    Defect("the tokens of finished jobs still count", admission.Backlog, "self.tokens -= tokens", "pass"),
    Defect(
        "bulk work takes all tokens",
        admission.Backlog,
        "BULK_SHARE if is_bulk and self._bulk else 1.0",
        "1.0",
    ),
    Defect(
        "several jobs beyond the bound are accepted at the same time",
        admission.Backlog,
        "tokens > self._max_tokens >= self.tokens",
        "tokens > self._max_tokens",
    ),
    Defect(
        "the tokens of a job are not bounded",
        admission.Backlog,
        "self._max_tokens is None or not is_bounded",
        "True",
    ),
    Defect(
        "the deadline of a queued job is not noticed",
        scheduler.Scheduler,
        "if job.deadline is not None:\n            self._deadlines",
        "if False:\n            self._deadlines",
    ),
    Defect(
        "closing leaves jobs unfinished",
        scheduler.Scheduler,
        "while not (self._closing and not self._jobs)",
        "while not self._closing",
    ),
    Defect("a generator of a stopped job stays open", scheduler.Scheduler, "if not task.advancing:", "if False:"),
    Defect(
        "a forked process may submit",
        scheduler.Scheduler,
        "return self._process != self._get_process()",
        "return False",
    ),
    Defect(
        "failed results are cached",
        scheduler.Scheduler,
        "if not isinstance(outcome, GroundwireError):\n                    self",
        "if True:\n                    self",
    ),
    Defect("a task without a result never ends", jobs.Task, "if end.value is None:", "if False:"),
    Defect(
        "an exit of a task ends the thread",
        jobs.Task,
        "except BaseException as error:\n            return",
        "except ZeroDivisionError as error:\n            return",
    ),
    Defect("the cache forgets to count", cache.Cache, "self.bytes -= freed", "self.bytes -= 0"),
    Defect("jobs stay active after their end", admission.Admission, "self._active.remove(job)", "pass"),
    Defect("one job too few is admitted", admission.Admission, "< self._max_active", "< self._max_active - 1"),
)


@contextmanager
def plant(defect: Defect) -> Iterator[type[scheduler.Scheduler]]:
    """A scheduler with the defect, as long as the context lasts."""
    module = inspect.getmodule(defect.owner)
    assert module is not None
    source = inspect.getsource(defect.owner)
    assert source.count(defect.old) == 1, f"{defect.name}: {source.count(defect.old)} places"
    name = defect.owner.__name__
    changed = dict(vars(module))
    exec(compile(source.replace(defect.old, defect.new), f"<{defect.name}>", "exec"), changed)
    users = [user for user in (module, scheduler) if getattr(user, name, None) is defect.owner]
    for user in users:
        setattr(user, name, changed[name])
    try:
        yield scheduler.Scheduler
    finally:
        for user in users:
            setattr(user, name, defect.owner)
