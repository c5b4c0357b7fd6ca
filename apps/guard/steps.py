"""Work with waits in it, which threads and asyncio drive alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Step: TypeAlias = tuple[Callable[[], Any], Callable[[], Awaitable[Any]]]
"""Something to wait for: a function for threads, and the same for asyncio."""
Steps: TypeAlias = Generator[Step, Any, T]
"""Yields steps, and is resumed with the result of each; returns a result."""


def run(steps: Steps[T]) -> T:
    """Take steps, and return their result."""
    value = None
    while True:
        try:
            wait, _ = steps.send(value)
        except StopIteration as done:
            result: T = done.value
            return result
        value = wait()


async def arun(steps: Steps[T]) -> T:
    """Take steps in asyncio, as ``run``."""
    value = None
    while True:
        try:
            _, wait = steps.send(value)
        except StopIteration as done:
            result: T = done.value
            return result
        value = await wait()
