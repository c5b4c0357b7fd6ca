"""A response that is checked while it is written, for threads and for asyncio; nothing leaves before its check."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress
from types import TracebackType
from typing import Self

from groundwire.engine.core.core import Core
from groundwire.engine.core.pending import NeedsAsyncio, Procedure
from groundwire.engine.schema.results import Score
from groundwire.runtime.errors import InvalidRequest, StreamClosed

from .core import StreamCore
from .records import Event, Release


class ResponseStream:
    """The stream of one response; ``Guard.open`` opens it.

    ``feed`` takes the text part by part, wherever it is cut, checks each sentence when it is complete, and returns
    what happened; ``finish`` says that the text is complete. Only the text of ``Release`` events may leave. Both wait
    for the checks that they start, so the producer of the text cannot run ahead of them. ``afeed``, ``afinish``,
    ``watch`` and ``guard`` are for asyncio. One producer feeds a stream; ``close`` may be called from any thread.
    """

    def __init__(self, core: StreamCore, engine: Core) -> None:
        """A stream of ``core`` on the engine with these parts."""
        self._core = core
        self._engine = engine
        self._last_events: tuple[Event, ...] = ()
        self._in_use = threading.Lock()

    @property
    def text(self) -> str:
        """All text that was fed and taken."""
        return self._core.text

    @property
    def released(self) -> str:
        """All text that has left."""
        return "".join(self._core.released)

    @property
    def held(self) -> str:
        """The text that has neither left nor been replaced."""
        return self._core.text[self._core.left :]

    @property
    def is_ended(self) -> bool:
        """Whether nothing more leaves: the policy has ended the stream, or it is finished or closed."""
        return self._core.is_ended or self._core.is_closed or self._core.score is not None

    @property
    def score(self) -> Score | None:
        """What ``finish`` returned; None before."""
        return self._core.score

    @property
    def last_events(self) -> tuple[Event, ...]:
        """What happened in the last call of ``feed`` or ``finish``, in order."""
        return self._last_events

    def feed(self, delta: str) -> tuple[Event, ...]:
        """Append a part of the response, check the sentences that it completes, and return what happened, in order.

        An empty part appends nothing, and looks at the clock. When the policy has ended the stream, parts are not
        taken. Raises InvalidRequest for text that ``Engine.score`` refuses too, which is not taken, and if another
        thread is feeding the stream; StreamClosed after ``close`` and ``finish``; EngineClosed; and Overloaded, after
        which the text is held, and the next call checks it.
        """
        self._run(self._core.feed(delta))
        return self._last_events

    async def afeed(self, delta: str) -> tuple[Event, ...]:
        """``feed`` for asyncio. When it is cancelled, the text is held, and the next call checks it."""
        await self._arun(self._core.feed(delta))
        return self._last_events

    def finish(self) -> Score:
        """Check what is left, and return the score of the whole response, as ``Engine.score`` does.

        ``last_events`` has what happened, at its end a FinalEvent. If the policy has ended the stream, the score is
        about the text that was taken. Raises as ``feed``, and InvalidRequest if the text has no words.
        """
        self._run(self._core.finish())
        assert self._core.score is not None
        return self._core.score

    async def afinish(self) -> Score:
        """``finish`` for asyncio."""
        await self._arun(self._core.finish())
        assert self._core.score is not None
        return self._core.score

    async def watch(self, tokens: AsyncIterable[str]) -> AsyncGenerator[Event, None]:
        """Feed everything that ``tokens`` yields, finish, and yield what happens.

        The next part is taken when the one before is checked. While none comes, time passes for what is held. Ends
        early, and closes ``tokens``, when the policy ends the stream. Who leaves the loop over it closes the stream.
        """
        iterator = aiter(tokens)
        taking: asyncio.Task[str | None] | None = None
        try:
            while not self._core.is_ended:
                taking = taking or asyncio.create_task(_take(iterator))
                done, _ = await asyncio.wait((taking,), timeout=self._core.seconds_left())
                delta = taking.result() if done else ""
                taking = None if done else taking
                if delta is None:
                    await self.afinish()
                else:
                    await self.afeed(delta)
                for event in self._last_events:
                    yield event
                if delta is None:
                    return
        finally:
            if taking is not None:
                taking.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await taking
            if not self.is_ended:
                self.close()
            if isinstance(iterator, AsyncGenerator):
                await iterator.aclose()

    async def guard(self, tokens: AsyncIterable[str]) -> AsyncGenerator[str, None]:
        """Yield the text of ``tokens`` that may leave, as ``watch`` releases it."""
        async with aclosing(self.watch(tokens)) as events:
            async for event in events:
                if isinstance(event, Release) and event.text:
                    yield event.text

    def close(self) -> None:
        """Give the stream up: its checks are cancelled, and nothing more leaves.

        Whoever waits for it gets StreamClosed.
        """
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _use(self, work: Procedure[None]) -> Iterator[None]:
        """Keep others out, and take the events; if the work fails, cancel what it waits for."""
        self._engine.scheduler.check_open()
        if self._core.is_closed or self._core.score is not None:
            raise StreamClosed(f"The stream is {'closed' if self._core.is_closed else 'finished'}; open another one.")
        if not self._in_use.acquire(blocking=False):
            raise InvalidRequest("The stream is in use by another thread or task; feed it from one at a time.")
        try:
            yield
            self._last_events = tuple(self._core.events)
            self._core.events.clear()
        except BaseException:
            work.close()
            self._core.forget_jobs()
            raise
        finally:
            self._in_use.release()

    def _run(self, work: Procedure[None]) -> None:
        with self._use(work):
            try:
                self._engine.drive(work, on_threads=False).result()
            except NeedsAsyncio as error:
                raise InvalidRequest("The policy's callback is a coroutine function; use afeed and afinish.") from error

    async def _arun(self, work: Procedure[None]) -> None:
        with self._use(work):
            await self._engine.drive(work, on_threads=False)


async def _take(iterator: AsyncIterator[str]) -> str | None:
    """The next part; None after the last."""
    try:
        return await anext(iterator)
    except StopAsyncIteration:
        return None
