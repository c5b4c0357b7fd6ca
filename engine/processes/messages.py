"""What an engine and its worker processes send each other, over pipes that only the two of them have.

Both ends run the same code of the same installation, so messages are pickled; nothing that a bundle or a caller's file
holds is unpickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.calls import Call, Generate
from groundwire.runtime.protocol import Identity, RoleInfo

LENGTH_BYTES = 8


class Start(NamedTuple):
    """The first message: how the process makes its engine."""

    factory: str
    """``module:name`` of what makes it; ``Engine.load`` but in tests and benchmarks."""
    arguments: dict[str, Any]


class Loaded(NamedTuple):
    """The answer to ``Start``: what the engine of the process can do."""

    identity: Identity
    calibration: Calibration | None
    roles: dict[str, RoleInfo]
    batches: dict[str, int]
    """By role, how many calls make a batch."""
    metrics: frozenset[str]
    """Names of the metrics that it computes."""
    concurrent_requests: int


class RunCalls(NamedTuple):
    """Calls of one role; the answer has one outcome for each."""

    role: str
    calls: Sequence[Call]
    max_windows: int


class Withdraw(NamedTuple):
    """Stop working on an earlier message: nothing waits for its answer any more."""

    number: int


class StreamCall(NamedTuple):
    """A response to generate part by part; the answers are ``AnswerPart``, and None is the last one."""

    call: Generate


class WarmUp(NamedTuple):
    """Run the models of some roles once."""

    roles: frozenset[str] | None
    """None: every model."""


class AskStatistics(NamedTuple):
    """Count what the engine of the process does and has done."""


class Ping(NamedTuple):
    """Give a sign of life; the answer is True."""


class Envelope(NamedTuple):
    """A message to a process, or its answer, which has the number of the message."""

    number: int
    content: Any


class AnswerPart(NamedTuple):
    """One of several answers to a message, and not the last one."""

    content: Any


class PipeClosed(Exception):
    """The other end of a pipe is gone."""


def write_message(pipe: IO[bytes], message: Any) -> None:
    """Write a message; PipeClosed when it cannot be read any more."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    try:
        pipe.write(len(content).to_bytes(LENGTH_BYTES, "little"))
        pipe.write(content)
        pipe.flush()
    except (OSError, ValueError) as error:  # ValueError: this end is closed
        raise PipeClosed(str(error)) from error


def read_message(pipe: IO[bytes]) -> Any:
    """Wait for the next message; PipeClosed when there are no more."""
    try:
        header = pipe.read(LENGTH_BYTES)
        size = int.from_bytes(header, "little")
        content = pipe.read(size)
    except (OSError, ValueError) as error:
        raise PipeClosed(str(error)) from error
    if len(header) < LENGTH_BYTES or len(content) < size:
        raise PipeClosed("the pipe has ended")
    return pickle.loads(content)
