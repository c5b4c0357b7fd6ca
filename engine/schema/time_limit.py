"""A limit on the time of work that no batch of models interrupts: its caller sets the limit, its loops check it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfTime(Exception):
    """The limit has passed."""


class _Limit(threading.local):
    end: float | None = None


_limit = _Limit()


@contextmanager
def limit_time(seconds: float | None) -> Iterator[None]:
    """Let ``check_time`` raise OutOfTime in this thread after a time; None for no limit."""
    before, _limit.end = _limit.end, None if seconds is None else time.monotonic() + seconds
    try:
        yield
    finally:
        _limit.end = before


def check_time() -> None:
    """Raise OutOfTime if the limit of this thread has passed; loops over the words or sentences of a text call it."""
    if _limit.end is not None and time.monotonic() > _limit.end:
        raise OutOfTime("The request was not finished in time; raise Options.deadline_ms, or score the text in parts.")
