"""Streams of several threads and tasks: what waits gets an answer or a typed error, and nothing hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from groundwire.engine import Engine, EngineClosed, InvalidRequest, LoadOptions, Options, Overloaded, StreamClosed
from groundwire.guard import Blocked, FinalEvent, Guard, Policy, Regenerate, Release, SentenceEvent
from groundwire.guard.core import AT_ONCE
from groundwire.guard.records import Event
from groundwire.guard.stream import ResponseStream
from groundwire.runtime.protocol import Outcome
from tests.support.streams import KNOWLEDGE, METRICS, ROLES, text_of, world

TEXT = "Honey is sweet. It is golden. So it is"


class Gate:
    """A model that answers about texts with "slow" in them only when the gate is open."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.opened = threading.Event()

    def classify(self, call: Any) -> Outcome:
        if "slow" in text_of(call):
            self.asked.set()
            assert self.opened.wait(60)
        return ROLES["nli"](call)


@contextmanager
def open_engine(options: LoadOptions | None = None) -> Iterator[tuple[Engine, Gate]]:
    gate = Gate()
    with Engine(world(nli=gate.classify), options) as engine:
        try:
            yield engine, gate
        finally:
            gate.opened.set()


def open_stream(engine: Engine, policy: Policy | None = None, **settings: Any) -> ResponseStream:
    return Guard(engine).open(KNOWLEDGE, metrics=METRICS, policy=policy, **settings)


def list_kinds(events: Any) -> list[str]:
    return [type(event).__name__ for event in events]


@pytest.mark.parametrize("close", ["stream", "engine"])
def test_a_feed_that_waits_ends_when_the_stream_or_the_engine_is_closed(close: str) -> None:
    with open_engine() as (engine, gate), ThreadPoolExecutor(2) as pool:
        stream = open_stream(engine)
        feeding = pool.submit(stream.feed, "Honey is slow. It")
        assert gate.asked.wait(60)
        if close == "stream":
            stream.close()
        else:
            closing = pool.submit(engine.close)
        with pytest.raises(StreamClosed if close == "stream" else EngineClosed, match="closed while a sentence"):
            feeding.result(60)
        gate.opened.set()
        if close == "engine":
            closing.result(60)
        assert (stream.released, stream.held) == ("", "Honey is slow. It")
        for call in (lambda: stream.feed(" is"), stream.finish):
            with pytest.raises(StreamClosed if close == "stream" else EngineClosed):
                call()


def test_a_forked_process_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_engine() as (engine, _):
        stream = open_stream(engine)
        stream.feed("Honey")
        with monkeypatch.context() as patch:
            patch.setattr(engine.core.scheduler, "_get_process", lambda: -1)
            with pytest.raises(EngineClosed, match="Load the engine after the fork"):
                stream.feed(" is")
            stream.close()
        assert stream.text == "Honey"


def test_one_thread_feeds_at_a_time() -> None:
    with open_engine() as (engine, gate), ThreadPoolExecutor(1) as pool, open_stream(engine) as stream:
        feeding = pool.submit(stream.feed, "Honey is slow. It")
        assert gate.asked.wait(60)
        with pytest.raises(InvalidRequest, match="in use by another"):
            stream.feed(" is")
        gate.opened.set()
        assert list_kinds(feeding.result(60)) == ["SentenceEvent", "Release"]


@pytest.mark.parametrize("bound", ["options", "held", "stream"])
def test_a_check_that_takes_too_long_has_no_verdict(bound: str) -> None:
    options = Options(deadline_ms=20) if bound == "options" else None
    policy = {"held": Policy(max_held_ms=20), "stream": Policy(deadline_ms=50), "options": Policy()}[bound]
    with open_engine() as (engine, _), open_stream(engine, policy, scoring=options) as stream:
        event, blocked = stream.feed("Honey is slow. It")
        assert isinstance(event, SentenceEvent)
        assert isinstance(blocked, Blocked)
        assert event.outcome == blocked.outcome == "deadline"
        assert stream.released == ""


def test_when_the_engine_is_full_the_text_is_held_for_the_next_call() -> None:
    options = LoadOptions(max_waiting=1)
    with open_engine(options) as (engine, gate), ThreadPoolExecutor(1) as pool, open_stream(engine) as stream:
        other = pool.submit(engine.score, "so slow", KNOWLEDGE, metrics=METRICS)
        assert gate.asked.wait(60)
        with pytest.raises(Overloaded):
            stream.feed("Honey is sweet. It is golden. So")
        with pytest.raises(Overloaded):
            stream.finish()
        assert stream.released == ""
        gate.opened.set()
        other.result(60)
        # One at a time: the first makes room for the second.
        assert list_kinds(stream.feed("")) == ["SentenceEvent", "Release"] * 2
        stream.finish()
        assert stream.released == stream.text


def test_many_streams_share_an_engine() -> None:
    def run(index: int) -> str:
        stream = open_stream(engine, Policy(inconsistent="redact"))
        for word in f"Honey {index} is sweet. It is {('golden', 'blue')[index % 2]}. So it is {index}.".split(" "):
            stream.feed(f"{word} ")
        stream.finish()
        return stream.released

    with open_engine() as (engine, _), ThreadPoolExecutor(8) as pool:
        released = list(pool.map(run, range(40)))
    assert released == [
        f"Honey {index} is sweet. It is {('golden', '[…]')[index % 2]}. So it is {index}. " for index in range(40)
    ]


def test_a_stream_that_is_closed_while_a_sentence_is_rewritten_lets_nothing_leave() -> None:
    def rewrite(event: SentenceEvent) -> str:
        stream.close()
        return "Honey is golden."

    with open_engine() as (engine, _):
        stream = open_stream(engine, Policy(inconsistent=Regenerate(rewrite)))
        with pytest.raises(StreamClosed):
            stream.feed("Honey is blue. It")
        assert stream.released == ""


def test_a_stream_that_is_closed_between_two_starts_cancels_the_second() -> None:
    with open_engine() as (engine, _):
        stream = open_stream(engine)
        start = stream._core._start

        def close_first(*arguments: Any) -> Any:
            stream.close()
            return start(*arguments)

        stream._core._start = close_first
        with pytest.raises(StreamClosed):
            stream.feed("Honey is sweet. It")
        assert stream.released == ""


# asyncio


async def pieces(*texts: str, then: Callable[[], None] = lambda: None) -> AsyncIterator[str]:
    try:
        for text in texts:
            yield text
    finally:
        then()


def test_asyncio_gets_the_same_events() -> None:
    async def run() -> list[Event]:
        stream = open_stream(engine)
        events = [*await stream.afeed("Honey is swe"), *await stream.afeed("et. It is golden")]
        await stream.afinish()
        return [*events, *stream.last_events][:-1]

    with open_engine() as (engine, _):
        events = asyncio.run(run())
        stream = open_stream(engine)
        expected = [*stream.feed("Honey is sweet. It is golden")]
        stream.finish()
        assert events == [*expected, *stream.last_events][:-1]


def test_a_guard_yields_what_may_leave_and_finishes() -> None:
    async def run() -> list[str]:
        return [text async for text in stream.guard(pieces(*TEXT))]

    with open_engine() as (engine, _):
        stream = open_stream(engine)
        assert asyncio.run(run()) == ["Honey is sweet.", " It is golden.", " So it is"]
        assert stream.score is not None
        assert isinstance(stream.last_events[-1], FinalEvent)


def test_a_guard_stops_the_source_when_the_policy_ends_the_stream() -> None:
    stopped: list[str] = []

    async def run() -> list[str]:
        source = pieces("Honey is sweet. ", "Honey is blue. ", "It", " is", then=lambda: stopped.append(stream.text))
        return [text async for text in stream.guard(source)]

    with open_engine() as (engine, _):
        stream = open_stream(engine)
        assert asyncio.run(run()) == ["Honey is sweet."]
        assert stopped == ["Honey is sweet. Honey is blue. It"]
        assert stream.score is None
        assert stream.finish().verdict.label == "inconsistent"


def test_a_guard_that_is_left_closes_stream_and_source() -> None:
    stopped: list[bool] = []

    async def run() -> None:
        guarded = stream.guard(pieces(*TEXT, then=lambda: stopped.append(True)))
        async for text in guarded:
            assert text == "Honey is sweet."
            break
        await guarded.aclose()

    with open_engine() as (engine, _):
        stream = open_stream(engine)
        asyncio.run(run())
        assert stopped == [True]
        assert stream.is_ended
        with pytest.raises(StreamClosed, match="is closed"):
            stream.feed("")


def test_a_guard_of_a_closed_stream_says_so() -> None:
    async def run() -> None:
        async for _ in stream.guard(pieces("Honey")):
            raise AssertionError("nothing may leave")

    with open_engine() as (engine, _):
        stream = open_stream(engine)
        stream.close()
        with pytest.raises(StreamClosed, match="is closed"):
            asyncio.run(run())


class Endless:
    """Yields one text, then nothing for ever; it has no ``aclose``."""

    def __init__(self, text: str) -> None:
        self._texts = [text]

    def __aiter__(self) -> Endless:
        return self

    async def __anext__(self) -> str:
        if self._texts:
            return self._texts.pop()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def test_while_a_source_is_silent_time_passes_for_what_is_held() -> None:
    async def run() -> list[str]:
        guarded = stream.guard(Endless("Honey is"))
        texts = [await anext(guarded)]
        await guarded.aclose()
        return texts

    with open_engine() as (engine, _):
        stream = open_stream(engine, Policy(overflow="flag", max_held_ms=5))
        assert asyncio.run(run()) == ["Honey is"]


def test_a_failing_source_ends_a_guard_with_its_error() -> None:
    async def fail() -> AsyncIterator[str]:
        yield "Honey is sweet. It"
        raise OSError("the connection is lost")

    async def run() -> None:
        async for text in stream.guard(fail()):
            texts.append(text)

    texts: list[str] = []
    with open_engine() as (engine, _):
        stream = open_stream(engine)
        with pytest.raises(OSError, match="connection is lost"):
            asyncio.run(run())
        assert texts == ["Honey is sweet."]
        assert stream.is_ended


def test_a_cancelled_task_leaves_the_text_held_for_the_next_call() -> None:
    async def run() -> None:
        feeding = asyncio.create_task(stream.afeed("Honey is slow. It"))
        assert await asyncio.to_thread(gate.asked.wait, 60)
        feeding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await feeding
        assert stream.released == ""
        gate.opened.set()
        await stream.afeed("")

    with open_engine() as (engine, gate):
        stream = open_stream(engine)
        asyncio.run(run())
        assert stream.released == "Honey is slow."


def test_a_task_that_is_cancelled_while_a_thread_folds_ends_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A soak met "generator already executing" where a client left at that moment."""
    folding, goes_on = threading.Event(), threading.Event()

    def feed(delta: str) -> Iterator[Any]:
        yield lambda: None
        folding.set()
        assert goes_on.wait(60)
        yield lambda: None

    async def run() -> None:
        monkeypatch.setattr(stream._core, "feed", feed)
        feeding = asyncio.create_task(stream.afeed("Honey is sweet. It"))
        assert await asyncio.to_thread(folding.wait, 60)
        feeding.cancel()
        await asyncio.sleep(0)
        assert not feeding.done()
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await feeding

    with open_engine() as (engine, _):
        stream = open_stream(engine)
        asyncio.run(run())
        assert not stream.is_ended


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_functions_of_both_kinds_may_rewrite_from_asyncio(is_coroutine: bool) -> None:
    async def rewrite(event: SentenceEvent) -> str:
        await asyncio.sleep(0)
        return "Honey is golden."

    callback: Any = rewrite if is_coroutine else lambda event: "Honey is golden."

    async def run() -> list[Event]:
        return [event async for event in stream.watch(pieces("Honey is blue. It"))]

    with open_engine() as (engine, _):
        stream = open_stream(engine, Policy(inconsistent=Regenerate(callback)))
        events = asyncio.run(run())
    assert [event.text for event in events if isinstance(event, Release)] == ["Honey is golden.", " It"]


def test_the_check_of_a_sentence_runs_while_the_next_word_is_awaited() -> None:
    with open_engine() as (engine, gate):
        stream = open_stream(engine)
        assert stream.feed("Honey is slow.") == ()  # returns while the model works
        assert gate.asked.wait(60)
        gate.opened.set()
        assert list_kinds(stream.feed(" It")) == ["SentenceEvent", "Release"]
        asked = [text_of(call) for _, calls in engine.core.runtime.batches for call in calls]  # type: ignore[attr-defined]
        assert asked == ["Honey is slow."] * len(METRICS)


def test_a_check_that_was_started_too_early_is_cancelled() -> None:
    with open_engine() as (engine, gate):
        stream = open_stream(engine)
        stream.feed("Honey is slow, says Dr.")
        assert gate.asked.wait(60)
        (early,) = stream._core._jobs
        stream.feed(" Dre.")
        assert early.future.result(60).outcomes[0].status == "cancelled"  # type: ignore[union-attr]
        gate.opened.set()
        assert [event.text for event in stream.feed(" So") if isinstance(event, SentenceEvent)] == [
            "Honey is slow, says Dr. Dre."
        ]
        stream.feed(" it is.")
        stream.finish()
        assert stream.released == stream.text


def test_many_sentences_at_once_leave_room_for_others() -> None:
    numbers: list[int] = []

    with open_engine() as (engine, _):
        stream = open_stream(engine)
        start = stream._core._start

        def count(*arguments: Any) -> Any:
            numbers.append(len(stream._core._jobs))
            return start(*arguments)

        stream._core._start = count
        text = " ".join(f"Honey is sweet {index} times." for index in range(30))
        stream.feed(text)
        stream.finish()
        assert stream.released == text
    assert len(numbers) == 31
    assert max(numbers) <= AT_ONCE


def test_a_check_that_nothing_needs_any_more_is_cancelled_at_the_end() -> None:
    with open_engine() as (engine, gate), ThreadPoolExecutor(1) as pool:
        stream = open_stream(engine)
        stream.feed("Honey is slow.")
        assert gate.asked.wait(60)
        (early,) = stream._core._jobs
        finishing = pool.submit(stream.finish)
        assert early.future.result(60).outcomes[0].status == "cancelled"  # type: ignore[union-attr]
        gate.opened.set()
        assert finishing.result(60).verdict.label == "consistent"
        assert stream.released == "Honey is slow."
