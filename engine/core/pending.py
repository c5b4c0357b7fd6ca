"""A submitted request: the one way in which threads and asyncio wait for results.

A **procedure** is a generator that yields what it waits for and is resumed with the result: a ``Job`` of the scheduler,
or a function that may take long. Scores, rankings, corrections, repairs and streams are procedures, and ``Pending``
drives all of them, for threads and for asyncio.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

from groundwire.runtime.errors import InvalidRequest

from ..scheduling.jobs import Job

T = TypeVar("T")
Wait: TypeAlias = "Job[Any] | Callable[[], Any]"
Procedure: TypeAlias = Generator[Wait, Any, T]


class NeedsAsyncio(InvalidRequest):
    """A procedure waits for a coroutine function, and the caller for the procedure without asyncio."""


class Pending(Generic[T]):
    """A request in flight. Wait for it with ``result`` or ``await``, or give it up with ``cancel``.

    The first model calls run from the moment of submission. A request that takes several rounds of jobs (a correction)
    starts the next round while somebody waits for it.

    >>> pending = engine.submit(Request("Bees fly.", ("Bees fly and make honey.",)))           # doctest: +SKIP
    >>> score = pending.result(timeout=1.0)                                                    # doctest: +SKIP
    """

    def __init__(
        self, procedure: Procedure[T], cancel: Callable[[Job[Any]], None], threads: Executor | None = None
    ) -> None:
        """Start a procedure.

        Args:
            procedure: A generator of waits that returns the result.
            cancel: Gives up a job; ``Scheduler.cancel``.
            threads: Where ``await`` resumes the procedure, so that the event loop goes on; None for asyncio's own.
        """
        self._procedure = procedure
        self._cancel = cancel
        self._threads = threads
        self._lock = threading.Lock()
        self._wait: Wait | None = None
        self._value: T
        self._error: BaseException | None = None
        self._is_cancelled = False
        self._is_running = False
        """Whether a thread resumes the procedure for ``await``, or is about to."""
        self._step: asyncio.Future[None] | None = None
        """The last time that a thread resumed the procedure for ``await``."""
        self._advance(None)

    @property
    def done(self) -> bool:
        """Whether ``result`` returns or raises at once, without a further job."""
        return self._wait is None

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result.

        Args:
            timeout: Seconds to wait; None waits until the result is there.

        Returns:
            The result of the request.

        Raises:
            TimeoutError: It is not there after ``timeout`` seconds; the request goes on.
            InvalidRequest: Another thread waits for it already.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self._use():
            while (wait := self._wait) is not None:
                if isinstance(wait, Job):
                    value = wait.future.result(None if end is None else max(0.0, end - time.monotonic()))
                else:
                    value = _call(wait)
                self._advance(value)
        return self._get()

    def cancel(self) -> None:
        """Give the request up: what has not been computed ends with status ``cancelled``. Safe from any thread."""
        self._is_cancelled = True
        if isinstance(wait := self._wait, Job):
            self._cancel(wait)

    def __await__(self) -> Generator[Any, None, T]:
        return self._await().__await__()

    async def _await(self) -> T:
        with self._use():
            while (wait := self._wait) is not None:
                if isinstance(wait, Job):
                    value = await asyncio.wrap_future(wait.future)
                else:
                    value = await asyncio.to_thread(wait)
                    value = await value if inspect.isawaitable(value) else value
                self._is_running = True
                self._step = asyncio.get_running_loop().run_in_executor(self._threads, self._advance, value)
                await asyncio.shield(self._step)
        return self._get()

    async def settle(self) -> None:
        """Wait, even when cancelled, until no thread runs the procedure: before that it cannot be resumed or closed."""
        while self._step is not None and not self._step.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((self._step,))

    def _use(self) -> _Use:
        return _Use(self)

    def _advance(self, value: Any) -> None:
        """Resume the procedure until it waits again or ends."""
        try:
            self._wait = self._procedure.send(value)
        except StopIteration as end:
            self._wait, self._value = None, end.value
        except BaseException as error:
            self._wait, self._error = None, error
            raise
        finally:
            self._is_running = False
        if self._is_cancelled:  # while the procedure ran, perhaps on another thread
            self.cancel()

    def _get(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value


class _Use:
    """Keeps a second waiter out, and cancels the request when the first one is interrupted."""

    def __init__(self, pending: Pending[Any]) -> None:
        self._pending = pending

    def __enter__(self) -> None:
        is_free = self._pending._lock.acquire(blocking=False)
        if is_free and self._pending._is_running:  # on a thread that a cancelled task has left
            self._pending._lock.release()
            is_free = False
        if not is_free:
            raise InvalidRequest("Another thread or task waits for this request; wait for it in one place.")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._pending._lock.release()
        if error is None or isinstance(error, TimeoutError):
            return
        is_interrupted = not isinstance(error, Exception)  # a cancelled task, or Ctrl-C
        if is_interrupted or isinstance(self._pending._wait, Job):
            self._pending.cancel()


def _call(function: Callable[[], Any]) -> Any:
    value = function()
    if inspect.iscoroutine(value):
        value.close()
        raise NeedsAsyncio("The callback is a coroutine function; use the asynchronous methods.")
    return value
