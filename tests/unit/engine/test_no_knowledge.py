"""A response without knowledge, as where a search found nothing: an abstention is fine, an assertion is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from groundwire.engine import Engine, Request
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.text.terms import is_small_talk
from groundwire.engine.verdict.adjustments import NO_KNOWLEDGE
from groundwire.engine.verdict.decision import decide_without_knowledge
from groundwire.engine.verdict.fusion import bind_criteria
from groundwire.guard import Guard
from groundwire.guard.records import Release, SentenceEvent
from tests.support.small_talk import ASSERTIONS, SMALL_TALK
from tests.support.streams import METRICS, world

EMPTY: list[Any] = [
    *(None, "", [], {}, ["\u200b", "  "], "{}", ["[]", "."]),
    *("<p></p>", "<!-- nothing -->", "&nbsp;", "<ul><li>&nbsp;</li></ul>", "null", "N/A", ["None", "{}"]),
    *({"results": []}, '{"results": []}', {"found": {"items": []}, "pages": []}),
]
"""What says nothing."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(world()) as opened:
        yield opened


@pytest.mark.parametrize("knowledge", EMPTY)
@pytest.mark.parametrize(
    ("response", "labels"),
    [
        ("Honey is sweet.", ["unknown"]),
        ("Sorry, I could not find that.", ["unverifiable"]),
        ("I don't know. Honey costs 20 euros.", ["unverifiable", "unknown"]),
        ("Which order do you mean?", ["unverifiable"]),
        ("Sorry, we are closed on Saturdays.", ["unknown"]),
        ("I've refunded your order and you will get an email shortly.", ["unknown"]),
    ],
)
def test_what_is_stated_is_unknown(engine: Engine, knowledge: Any, response: str, labels: list[str]) -> None:
    score = engine.score(response, knowledge, metrics=METRICS)
    assert [sentence.verdict.label for sentence in score.sentences] == labels
    assert score.verdict.label == ("unknown" if "unknown" in labels else "unverifiable")
    assert (score.unsupported, score.verdict.probability) == ((), None)
    assert score.verdict.sure == ("unknown" not in labels)
    unread = [sentence.verdict.message for sentence in score.sentences if sentence.verdict.label == "unknown"]
    assert set(unread) <= {NO_KNOWLEDGE}


def test_no_metric_that_compares_has_a_value(engine: Engine) -> None:
    score = engine.submit(Request("Honey is sweet.", ()), engine.plan(METRICS)).result()
    compared = [result for result in score.metrics.values() if result.name != "verifiability"]
    assert compared
    assert {(result.status, result.value) for result in compared} == {("nothing_to_verify", None)}


def test_a_stream_says_what_the_score_says(engine: Engine) -> None:
    with Guard(engine).open([], metrics=METRICS) as stream:
        events = list(stream.feed("Sorry, I don't know. "))
        score = stream.finish()
    sentences = [event for event in (*events, *stream.last_events) if isinstance(event, SentenceEvent)]
    assert [event.verdict.label for event in sentences] == ["unverifiable"]
    assert score.verdict.label == "unverifiable"


def test_triples_are_knowledge(engine: Engine) -> None:
    score = engine.score("Honey is sweet.", [], triples=[("Honey", "taste", "sweet")], metrics=METRICS)
    assert all(sentence.verdict.message != NO_KNOWLEDGE for sentence in score.sentences)


def test_without_a_calibration_there_is_no_verdict() -> None:
    verdict, parts = decide_without_knowledge(
        ReadRequest("Honey is sweet.", ()), (), bind_criteria([], None, "balanced")
    )
    assert (verdict.label, verdict.probability, parts) == ("unknown", None, ())


@pytest.mark.parametrize("history", [[], ["hi"], ["Hi", "Hello!", "Is it open?"]])
def test_small_talk_states_nothing_in_a_score_and_in_a_stream(engine: Engine, history: list[str]) -> None:
    labels = dict.fromkeys(SMALL_TALK, "unverifiable") | dict.fromkeys(ASSERTIONS, "unknown")
    for text, label in labels.items():
        assert engine.score(text, [], history=history, metrics=METRICS).verdict.label == label, text
        with Guard(engine).open([], history=history, metrics=METRICS) as stream:
            events = [*stream.feed(text)]
            score = stream.finish()
        assert score.verdict.label == label, text
        released = "".join(event.text for event in (*events, *stream.last_events) if isinstance(event, Release))
        assert (released == text) == (label == "unverifiable"), text


def test_a_long_text_is_not_small_talk() -> None:
    assert not is_small_talk("I " * 50_000 + "can help")


@pytest.mark.parametrize(
    "knowledge", [{"deposit": None}, {"results": [], "total": 0}, "No.", "None were sold.", "a: 3"]
)
def test_what_a_field_says_is_knowledge(engine: Engine, knowledge: Any) -> None:
    score = engine.score("Honey is sweet.", knowledge, metrics=METRICS)
    assert all(sentence.verdict.message != NO_KNOWLEDGE for sentence in score.sentences)
