"""Whatever the text, a score is a score: no metric, fold or stream fails, and each range lies in its text."""

from __future__ import annotations

import warnings
from typing import Any

import msgspec
from hypothesis import assume, example, given
from hypothesis import strategies as st

from groundwire.engine import Engine, Score
from groundwire.engine.schema.explanations import CitationCandidate, PassageRange, StatedValue
from groundwire.engine.schema.results import Citation
from groundwire.guard import Guard, Policy, SentenceEvent
from groundwire.repair import Corrector
from groundwire.runtime.texts.unread import is_blank
from tests.support.odd_texts import ODD_TEXTS
from tests.support.streams import world

ENGINE = Engine(world())
FLAGGING = Policy(
    **dict.fromkeys(("inconsistent", "unverifiable", "unknown", "deadline", "failed", "truncated", "overflow"), "flag")
)
NAME = "🅿️"
"""Of a name of such signs no word was left, and the last of them was asked for."""


def check_ranges(item: Any, response: str, knowledge: tuple[str, ...]) -> None:
    """Each range of a record lies in its text, and quotes it."""
    if isinstance(item, tuple | dict):
        for part in item.values() if isinstance(item, dict) else item:
            check_ranges(part, response, knowledge)
    elif isinstance(item, PassageRange):
        assert 0 <= item.start <= item.end <= len(knowledge[item.passage])
    elif isinstance(item, msgspec.Struct):
        start, end = getattr(item, "start", None), getattr(item, "end", None)
        evidence = getattr(item, "evidence", None)
        if isinstance(item, Citation | CitationCandidate):
            assert item.text == knowledge[item.evidence.passage][item.evidence.start : item.evidence.end]
        elif isinstance(item, StatedValue) and evidence is not None:
            assert item.knowledge_says == knowledge[evidence.passage][evidence.start : evidence.end]
        if start is not None and end is not None:
            assert 0 <= start <= end <= len(response)
            if not isinstance(item, Citation) and hasattr(item, "text"):
                assert item.text == response[start:end]
        for name in item.__struct_fields__:
            check_ranges(getattr(item, name), response, knowledge)


def check_score(score: Score, response: str, knowledge: tuple[str, ...]) -> None:
    failed = [result for result in score.metrics.values() if result.status == "failed"]
    assert (score.status == "failed", failed) == (False, []), score.message
    check_ranges(score, response, knowledge)
    ends = [0]
    for sentence in score.sentences:
        assert ends[-1] <= sentence.start
        ends.append(sentence.end)
    assert Score.from_json(score.to_json()) == score


@given(ODD_TEXTS, st.lists(ODD_TEXTS, max_size=2).map(tuple), st.lists(ODD_TEXTS, max_size=1))
@example(f"Parking is £9 {NAME} a day.", ("The hotel has free parking.",), [])
@example("1. 1", ("1. 1",), ["1. 1?"])
@example("no, 36", ("③⑥ No problem!",), [])
@example("] ", ("A.",), ["Is it so?"])
@example("<b>Yes</b>, of course!", ("It is &#51;6.",), ["Is it 3️⃣6️⃣?"])
def test_any_text_has_a_score(response: str, knowledge: tuple[str, ...], history: list[str]) -> None:
    assume(not is_blank(response))
    passages = tuple(passage for passage in knowledge if not is_blank(passage))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = ENGINE.score(response, list(passages), history=history, metrics="all")
    check_score(score, response, passages)


@given(ODD_TEXTS, ODD_TEXTS, st.integers(1, 7))
@example("<p>A b.</p><p>C", "A b.", 3)
def test_any_text_is_streamed(response: str, knowledge: str, size: int) -> None:
    assume(not is_blank(response))
    with Guard(ENGINE).open(knowledge, FLAGGING, history=["Is it so?"]) as stream:
        events: list[Any] = []
        for start in range(0, len(response), size):
            events += stream.feed(response[start : start + size])
        stream.finish()
    assert stream.released == response
    checked = [event for event in (*events, *stream.last_events) if isinstance(event, SentenceEvent)]
    assert "failed" not in {event.outcome for event in checked}
    for event in checked:
        assert response[event.start : event.end] == event.text
        check_ranges(event.unsupported, response, (knowledge,))


@given(ODD_TEXTS, ODD_TEXTS)
def test_any_text_is_corrected_or_left(response: str, knowledge: str) -> None:
    assume(not is_blank(response))
    correction = Corrector(ENGINE).correct(response, knowledge)
    assert correction.original == response
    assert correction.status != "failed"
    for edit in correction.edits:
        assert response[edit.start : edit.end] == edit.old
