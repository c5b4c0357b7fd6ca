"""Streams on the embedded bundle: the score of the whole, and for each sentence the verdict that it has there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from groundwire.engine import Engine, EngineClosed, Score
from groundwire.engine.schema.results import Timings
from groundwire.guard import Guard, Policy, Release, SentenceEvent
from groundwire.guard.policies import OUTCOMES
from tests.support.small_talk import ASSERTIONS, SMALL_TALK
from tests.support.streams import cut, cut_units

FAST = ("nli", "detector.consistency", "verifiability", "overlap", "overlap_precision", "values")
ACTIONS: dict[str, Any] = dict.fromkeys(OUTCOMES, "flag")
FLAG = Policy(**ACTIONS)
KNOWLEDGE = (
    "Coffee is slightly acidic (pH 5.0 to 5.1) and has a stimulating effect on humans.",
    "It was first sold in Yemen. Dr. Stanley said in 1999 that 3.5 cups a day are no harm.",
)
RESPONSE = (
    "I love coffee! 🙂 Coffee is slightly acidic. It was first sold in Norway.\r\n"
    'Dr. Stanley said "no harm" (e.g. 3.5 cups)! Is it 7.2 cups?.. Well, so it is.'
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("compact", "cpu") as loaded:
        yield loaded


def without_time(score: Score) -> Score:
    return msgspec.structs.replace(score, timings=Timings(0.0, {}))


@pytest.mark.parametrize(
    "pieces",
    [
        list(RESPONSE),
        cut_units(RESPONSE),
        re.findall(r"\S+\s*", RESPONSE),
        [RESPONSE],
        cut(RESPONSE, [18, 19, 50, 77, 99]),
    ],
)
def test_score_and_sentences_are_those_of_the_whole(engine: Engine, pieces: list[str]) -> None:
    with Guard(engine).open(KNOWLEDGE, metrics=FAST, policy=FLAG) as stream:
        events = [event for piece in pieces for event in stream.feed(piece)]
        assert len([event for event in events if isinstance(event, SentenceEvent)]) == 5
        score = stream.finish()
    expected = engine.score(RESPONSE, KNOWLEDGE, metrics=FAST)
    assert without_time(score) == without_time(expected)
    checked = [event for event in (*events, *stream.last_events) if isinstance(event, SentenceEvent)]
    assert [(event.text, event.verdict.label, event.verdict.probability, event.unsupported) for event in checked] == [
        (part.text, part.verdict.label, part.verdict.probability, part.unsupported) for part in expected.sentences
    ]
    assert stream.released == stream.text == RESPONSE
    assert {event.checked for event in events if isinstance(event, Release)} == {True}


def test_metrics_that_read_a_sentence_in_its_context_give_the_score_of_the_whole(engine: Engine) -> None:
    response, history = "Coffee is slightly acidic. It was first sold in Norway.", ("Tell me about coffee.",)
    with Guard(engine).open(KNOWLEDGE, history=history, metrics="all", policy=FLAG) as stream:
        first = stream.feed(f"{response[:-1]}")
        assert [event.outcome for event in first if isinstance(event, SentenceEvent)] == ["consistent"]
        stream.feed(".")
        score = stream.finish()
    expected = engine.score(response, KNOWLEDGE, history=history, metrics="all")
    assert without_time(score) == without_time(expected)
    assert [event.outcome for event in stream.last_events if isinstance(event, SentenceEvent)] == ["inconsistent"]


def test_by_default_an_unsupported_sentence_ends_the_stream(engine: Engine) -> None:
    with Guard(engine).open(KNOWLEDGE, metrics=FAST) as stream:
        for character in RESPONSE:
            stream.feed(character)
        assert stream.is_ended
        assert stream.released == "I love coffee! 🙂 Coffee is slightly acidic."


def test_what_a_sentence_asked_is_not_asked_again_at_the_end(engine: Engine) -> None:
    """Of the classifiers' calls about the whole only that about all of it is new; rules and words ask nothing."""
    metrics = ("nli", "detector.consistency", "verifiability")
    with Guard(engine).open(KNOWLEDGE, metrics=metrics, policy=FLAG) as stream:
        stream.feed("Coffee is acidic, they say. It was sold in Yemen, they say. It is no harm, they say.")
        _, hits, misses = engine.core.scheduler.cache_info
        stream.feed(" So")  # the third sentence was asked at its full stop
        stream.finish()
    _, more_hits, more_misses = engine.core.scheduler.cache_info
    # New: the whole by nli and the detector, and the last sentence by all three.
    assert more_misses - misses <= 3 + 2 + 3
    assert more_hits - hits >= 9


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks with a loaded engine")
def test_a_forked_process_gets_an_error(engine: Engine) -> None:
    stream = Guard(engine).open(KNOWLEDGE, metrics=FAST)
    stream.feed("Coffee")
    child = os.fork()
    if child == 0:
        try:
            stream.feed(" is acidic. It")
        except EngineClosed:
            os._exit(7)
        os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert stream.feed(" is slightly acidic. It")


def test_small_talk_leaves_without_knowledge_and_an_assertion_does_not() -> None:
    history = ["hi"]
    with Engine.load(device="cpu") as loaded:
        for text in (*SMALL_TALK[::2], *ASSERTIONS[::2]):
            label = loaded.score(text, [], history=history).verdict.label
            assert label == ("unverifiable" if text in SMALL_TALK else "unknown"), text
            with Guard(loaded).open([], history=history) as stream:
                events = [*stream.feed(text)]
                stream.finish()
            left = "".join(event.text for event in (*events, *stream.last_events) if isinstance(event, Release))
            assert (left == text) == (text in SMALL_TALK), text
