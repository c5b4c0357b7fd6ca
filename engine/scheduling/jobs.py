"""What the scheduler keeps of a request while it runs, and what it returns.

A **job** is the work of one request: one or several **tasks**, each a generator of rounds of model calls. The states of
a job:

```
    submit ──► queued ──────────────► active ──────► over
                 │   a place is free          all tasks finished
                 └──────────────────────────────────► over
                   it cannot finish before its deadline
```

and the states of a task of an active job:

```
            its job is admitted      the results of a round
    new ───────────► advancing ◄──────────────────────────── waiting
                      │  │ │        yields a round             ▲
                      │  │ └───────────────────────────────────┘
        returns       │  │ raises TooLong, another error,
        a result      │  │ or the job is stopped
                      ▼  ▼
                    finished (with a result, or a Failure that says why there is none)
```

A job is over when all of its tasks are finished; its future then gets one outcome per task.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from groundwire.runtime.calls import Call
from groundwire.runtime.errors import GroundwireError, TooLong

from ..schema.results import Timings
from ..schema.steps import Round, Steps

T = TypeVar("T")
StopStatus: TypeAlias = Literal["truncated", "deadline", "cancelled", "failed"]
Rank: TypeAlias = tuple[int, float, int]
log = logging.getLogger("groundwire")

MAX_WAIT_S = 60.0
"""Seconds after which a job without a deadline ranks before later jobs with a deadline that is as far off."""


class Key(NamedTuple):
    """What determines a call's result. ``max_windows`` bounds it, so it is a part of the key."""

    call: Call
    max_windows: int


class Failure(NamedTuple):
    """Why a task has no result."""

    status: StopStatus
    """``truncated``: a text exceeds what may be read; ``deadline``, ``cancelled``: the job was stopped; ``failed``: a
    model failed, or the task itself."""
    message: str


def explain_defect(culprit: str, error: BaseException) -> Failure:
    """Log an error that is a defect of a part of the engine, and describe it."""
    log.error("%s failed", culprit, exc_info=error)
    return Failure("failed", f"{type(error).__name__}: {error}. This is a defect of {culprit}; please report it.")


@dataclass(frozen=True, slots=True)
class JobResult(Generic[T]):
    """What became of a job: one outcome per task, in order, and where the time went."""

    outcomes: tuple[T | Failure, ...]
    timings: Timings


class Returned(NamedTuple):
    """How a generator ended: its result, or why there is none."""

    outcome: Any


@dataclass(eq=False, slots=True)
class Task(Generic[T]):
    """One generator of a job."""

    steps: Steps[T]
    results: list[Any] | None = None
    """Results of the round it waits for; None before its first."""
    missing: int = 0
    """How many of ``results`` are not there yet."""
    error: GroundwireError | None = None
    """The error of a call of the round; raised in the generator when the round is complete."""
    outcome: T | Failure | None = None
    advancing: bool = False
    """Its generator runs, or is about to, on a thread of the scheduler's."""

    @property
    def name(self) -> str:
        """The generator function's name, for messages and logs."""
        return getattr(self.steps, "__name__", type(self.steps).__name__)

    def advance(self) -> Round | Returned:
        """Resume the generator with the results or the error of its round, until it yields another round or ends."""
        try:
            if self.error is not None:
                return self.steps.throw(self.error)
            return self.steps.send(self.results)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            if end.value is None:
                return Returned(self.explain_defect(TypeError("it ended without a result")))
            return Returned(end.value)
        except GroundwireError as error:
            return Returned(Failure("truncated" if isinstance(error, TooLong) else "failed", str(error)))
        except BaseException as error:
            return Returned(self.explain_defect(error))

    def explain_defect(self, error: BaseException) -> Failure:
        """Log an error that is a defect of the task, and describe it."""
        return explain_defect(f"task {self.name}", error)

    def close(self) -> None:
        """Free the generator, whatever its clean-up does."""
        try:
            self.steps.close()
        except BaseException:
            log.exception("task %s failed while it was stopped", self.name)


@dataclass(eq=False, slots=True)
class Job(Generic[T]):
    """The work of one request."""

    tasks: list[Task[T]]
    max_windows: int
    submitted: float
    """This time and those below are seconds on the scheduler's clock."""
    deadline: float | None = None
    priority: int = 0
    """Jobs with a higher one are served first."""
    number: int = 0
    """In the order of submission."""
    is_bulk: bool = False
    """One of many: it is served after the single requests of its priority."""
    tenant: str = ""
    """Tenants share the engine's time."""
    size: int = 0
    """Estimated tokens that models read for it."""
    admitted: float | None = None
    active_beside: int = 0
    """Jobs that were active when it was admitted."""
    charged: float = 0.0
    """Seconds that its tenant was charged with when it was admitted."""
    future: Future[JobResult[T]] = field(default_factory=Future)
    stages_ms: dict[str, float] = field(default_factory=dict)
    waiting_calls: dict[str, OrderedDict[Key, None]] = field(default_factory=dict)
    """By role, in the order they were asked: the calls that no batch has taken."""
    over: bool = False

    @property
    def kind(self) -> tuple[str, ...]:
        """What the job computes: jobs of one kind take comparable time."""
        return tuple(task.name for task in self.tasks)

    @property
    def urgency(self) -> int:
        """Jobs with a higher one are served first: priority, and single requests before one of many."""
        return 2 * self.priority - self.is_bulk

    @property
    def size_class(self) -> int:
        """Jobs of one kind and class have texts whose lengths differ by less than a factor of two."""
        return self.size.bit_length()

    def unfinished_tasks(self) -> Sequence[Task[T]]:
        """The tasks without an outcome."""
        return [task for task in self.tasks if task.outcome is None]


def rank(job: Job[Any]) -> Rank:
    """The order of service, smaller first: urgency, deadline, age."""
    deadline = job.submitted + MAX_WAIT_S if job.deadline is None else job.deadline
    return -job.urgency, deadline, job.number


@dataclass(frozen=True, slots=True)
class Waiter:
    """A task that waits for a call, and the call's index in the task's round."""

    job: Job[Any]
    task: Task[Any]
    index: int
