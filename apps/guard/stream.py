"""A response that is checked while it is written, for threads and for asyncio; nothing leaves before its check."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress
from types import TracebackType
from typing import Self

from groundwire.engine import Score
from groundwire.engine.extend import Core, NeedsAsyncio, Procedure
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
        """Use ``Guard.open``, which makes these parts.

        Args:
            core: The state of the stream.
            engine: The parts of the engine that checks it.
        """
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
        return self._core.text[self._core.released_end :]

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
        """Append a part of the response, and check the sentences that it completes.

        When the policy has ended the stream, parts are not taken.

        Args:
            delta: The next part of the text. An empty part appends nothing, and looks at the clock.

        Returns:
            What happened, in order.

        Raises:
            InvalidRequest: ``Engine.score`` refuses the text, which is not taken, or another thread is feeding the
                stream.
            StreamClosed: The stream is closed or finished.
            EngineClosed: The engine is closed.
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts. The text is held, and the
                next
                call checks it.
        """
        self._run(self._core.feed(delta))
        return self._last_events

    async def afeed(self, delta: str) -> tuple[Event, ...]:
        """Feed a part in asyncio, as ``feed``. When it is cancelled, the text is held, and the next call checks it."""
        await self._arun(self._core.feed(delta))
        return self._last_events

    def finish(self) -> Score:
        """Check what is left, and score the whole response.

        Returns:
            The score, as from ``Engine.score``; with a warning where a sentence was inconsistent by itself and the
            whole is not. If the policy has ended the stream, it is about the text that was taken.
            ``last_events`` has what happened, with a FinalEvent at its end.

        Raises:
            InvalidRequest: The text has no words, or another thread is feeding the stream.
            StreamClosed: The stream is closed or finished.
            EngineClosed: The engine is closed.
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts.
        """
        self._run(self._core.finish())
        assert self._core.score is not None
        return self._core.score

    async def afinish(self) -> Score:
        """Finish the stream in asyncio, as ``finish``."""
        await self._arun(self._core.finish())
        assert self._core.score is not None
        return self._core.score

    async def watch(self, tokens: AsyncIterable[str]) -> AsyncGenerator[Event, None]:
        """Feed the parts of a response, finish, and yield what happens.

        The next part is taken when the previous part is checked. While none comes, time passes for what is held. When
        the
        policy ends the stream, the loop ends early, and ``tokens`` is closed. A caller that leaves the loop closes the
        stream.

        Args:
            tokens: The parts of the text, as a model writes them.

        Returns:
            An asynchronous generator of the events.

        Raises:
            InvalidRequest: As for ``feed`` and ``finish``.
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts.
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
        """Yield the text that may leave, as ``watch`` releases it.

        Args:
            tokens: The parts of the text, as a model writes them.

        Returns:
            An asynchronous generator of checked text.
        """
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
                self._engine.drive(work).result()
            except NeedsAsyncio as error:
                raise InvalidRequest("The policy's callback is a coroutine function; use afeed and afinish.") from error

    async def _arun(self, work: Procedure[None]) -> None:
        with self._use(work):
            pending = self._engine.drive(work)
            try:
                await pending
            finally:
                await pending.settle()


async def _take(iterator: AsyncIterator[str]) -> str | None:
    """The next part; None after the last."""
    try:
        return await anext(iterator)
    except StopAsyncIteration:
        return None
