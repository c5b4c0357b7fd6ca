"""What the scheduler keeps of a request while it runs, and what it returns.

A **job** is the work of one request: one or several **tasks**, each a generator of rounds of model calls. The states of
a task:

```
            start                    the results of a round
    new ───────────► resumed ◄────────────────────────────── waiting
                      │  │ │        yields a round             ▲
                      │  │ └───────────────────────────────────┘
        returns       │  │ raises TooLong, another error,
        a result      │  │ or the job is stopped
                      ▼  ▼
                    finished (with a result, or an Unfinished that says why there is none)
```

A job is over when all of its tasks are finished; its future then gets one outcome per task.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from groundwire.runtime.errors import GroundwireError

from ..schema.results import Timings
from .steps import Steps

T = TypeVar("T")
StopStatus: TypeAlias = Literal["truncated", "deadline", "cancelled", "failed"]


class Unfinished(NamedTuple):
    """Why a task has no result."""

    status: StopStatus
    """``truncated``: a text exceeds what may be read; ``deadline``, ``cancelled``: the job was stopped; ``failed``: a
    model failed, or the task itself."""
    message: str


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """What became of a job: one outcome per task, in order, and where the time went."""

    outcomes: tuple[T | Unfinished, ...]
    timings: Timings


@dataclass(eq=False, slots=True)
class Task(Generic[T]):
    """One generator of a job."""

    steps: Steps[T]
    results: list[Any] | None = None
    """Of the round it waits for; None before its first."""
    missing: int = 0
    """How many of ``results`` are not there yet."""
    error: GroundwireError | None = None
    """Of a call of the round; raised in the generator when the round is complete."""
    outcome: T | Unfinished | None = None

    @property
    def name(self) -> str:
        """The generator function's name, for messages and logs."""
        return getattr(self.steps, "__name__", type(self.steps).__name__)


@dataclass(eq=False, slots=True)
class Job(Generic[T]):
    """The work of one request."""

    tasks: list[Task[T]]
    max_windows: int
    deadline: float | None
    """On the monotonic clock, in seconds."""
    started: float = field(default_factory=time.monotonic)
    future: Future[Finished[T]] = field(default_factory=Future)
    stages_ms: dict[str, float] = field(default_factory=dict)
    over: bool = False


@dataclass(frozen=True, slots=True)
class Waiter:
    """A task that waits for a call, and the call's index in the task's round."""

    job: Job[Any]
    task: Task[Any]
    index: int
