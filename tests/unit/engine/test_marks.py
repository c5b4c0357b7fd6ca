"""Marks are values, phrases, negated or exchanged words, and never function words alone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from groundwire.engine import MetricResult, UnsupportedSpan
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.explanations import FlaggedToken, ReaderExplanation, StatedValue, ValuesExplanation
from groundwire.engine.verdict.marks import LIGHT, fit_marks, is_negation
from tests.support.verdicts import bind


def fit(
    response: str,
    texts: list[str],
    knowledge: str = "",
    values: tuple[StatedValue, ...] = (),
    doubts: Mapping[str, float] = MappingProxyType({}),
) -> list[str]:
    """The marks that come of the given texts of a response, by two metrics; ``doubts`` are the reader's, by word."""
    spans = [
        UnsupportedSpan(
            text, response.index(text), response.index(text) + len(text), "detected", "", "token_classifier"
        )
        for text in texts
    ]
    results = [
        MetricResult("token_classifier", "scored", 0.1),
        MetricResult("values", "scored", 0.1, explanation=ValuesExplanation(values)),
    ]
    if doubts:
        tokens = [FlaggedToken(response.index(word), response.index(word) + len(word), p) for word, p in doubts.items()]
        explanation = ReaderExplanation((), (), tuple(sorted(tokens, key=lambda token: token.start)))
        results.append(MetricResult("reader", "scored", 0.1, explanation=explanation))
    marks = fit_marks(ReadRequest(response, (knowledge,) if knowledge else ()), spans, bind(results))
    assert all(response[mark.start : mark.end] == mark.text for mark in marks)
    return [mark.text for mark in marks]


def state(response: str, text: str, outcome: Any, kind: Any = "number", normalized: str = "") -> StatedValue:
    start = response.index(text)
    return StatedValue(kind, text, start, start + len(text), normalized or text, outcome)


@pytest.mark.parametrize(
    ("response", "marked", "expected"),
    [
        # Whole values,
        ("It opens at 7 pm.", ["7"], ["7 pm"]),
        ("It costs £5.95 a day.", ["5"], ["£5.95"]),
        ("It ended in the Baltic Sea.", ["Baltic"], ["Baltic Sea"]),
        # phrases without function words at their ends,
        ("She is paid by the crown.", ["is paid by"], ["paid"]),
        ("She saw the old lake.", ["the old", "lake"], ["old lake"]),
        # and no function word alone, unless it says something.
        ("You can still go.", ["can"], []),
        ("It was seen by them.", ["by"], []),
        # A negation or an adverb of degree is marked with the word that it is about,
        ("You can't go.", ["can't"], ["can't go"]),
        ("It is never open.", ["never"], ["never open"]),
        ("Coffee is very acidic.", ["very"], ["very acidic"]),
        ("Two of them only serve the gills.", ["only"], ["only serve"]),
        # unless nothing follows.
        ("They do not, as we said.", ["not"], ["not"]),
        # A line and a label end a mark.
        ("Monday: Vikram", ["Monday: Vikram"], ["Monday", "Vikram"]),
        ("It keeps 1 metre.\n\n### Applying", ["metre.\n\n### Applying"], ["1 metre"]),
        ("Opening hours\n* Monday: 9 to 5", ["hours\n* Monday"], ["hours"]),
        ("It has three: red, blue.", ["three:"], ["three"]),
        ("It opens, though, at noon.", ["though"], []),
        ("All of it is blue.", ["All"], ["All"]),
    ],
)
def test_marks_are_values_and_phrases(response: str, marked: list[str], expected: list[str]) -> None:
    assert fit(response, marked) == expected


def test_the_words_after_a_contradicted_value_are_not_marked_with_it() -> None:
    response = "A marathon is 50 kilometres long, and it was added later."
    values = (state(response, "50 kilometres", "contradicted"),)
    assert fit(response, ["50 kilometres", "long, and it was added"], values=values) == ["50 kilometres"]
    assert fit(response, ["50 kilometres", "added later"], values=values) == ["50 kilometres", "added later"]
    assert fit(response, ["50 kilometres", "long"], values=values) == ["50 kilometres", "long"]


@pytest.mark.parametrize(
    ("doubts", "expected"),
    [
        ({}, ["Three"]),
        ({"30": 0.99, "Three": 0.6}, ["Three", "30 %"]),
        ({"30": 0.6, "Three": 0.99}, ["Three"]),
        ({"charge": 0.99, "30": 0.6}, ["Three"]),
    ],
)
def test_a_word_of_the_knowledge_is_marked_beside_others_if_the_reader_doubts_it_most(
    doubts: dict[str, float], expected: list[str]
) -> None:
    response, knowledge = "Three lights stand for 30 % of the charge.", "Two lights stand for 30 %, four for 100 %."
    assert fit(response, ["Three", "30 %"], knowledge, doubts=doubts) == expected
    assert fit(response, ["30 %"], knowledge, doubts=doubts) == ["30 %"], "where nothing else is marked it stays"


def test_a_function_word_gives_way_to_the_unsupported_value_after_it() -> None:
    response = "It spoils within two weeks."
    assert fit(response, ["within"], values=(state(response, "two weeks", "absent"),)) == ["two weeks"]
    assert fit(response, ["within"], values=(state(response, "two weeks", "supported"),)) == []


def test_beside_a_contradicted_value_words_of_the_knowledge_are_not_marked() -> None:
    response = "An octopus has nine hearts."
    values = (state(response, "nine", "contradicted"),)
    assert fit(response, ["octopus", "nine"], "An octopus has three hearts.", values) == ["nine"]
    assert fit(response, ["octopus"], "An octopus has three hearts.") == ["octopus"]


def test_words_one_by_one_are_divided_by_commas() -> None:
    response = "The jacket, provided it is new."
    spans = [UnsupportedSpan("jacket, provided", 4, 20, "not_in_knowledge", "", "overlap")]
    results = [MetricResult("overlap", "scored", 0.1), MetricResult("token_classifier", "scored", 0.1)]
    assert [mark.text for mark in fit_marks(ReadRequest(response, ()), spans, bind(results))] == ["jacket", "provided"]


def test_a_supported_value_is_marked_only_where_nothing_else_is() -> None:
    response = "It shuts at 8 pm for repairs."
    values = (state(response, "8 pm", "supported"),)
    assert fit(response, ["8 pm", "repairs"], "It closes at 20:00.", values) == ["repairs"]
    assert fit(response, ["8 pm"], "It closes at 20:00.", values) == ["8 pm"]


def test_a_mark_says_what_the_knowledge_has_of_its_value() -> None:
    response = "An American chain."
    value = StatedValue("nationality", "American", 3, 11, "america", "contradicted", "French")
    span = UnsupportedSpan("American", 3, 11, "contradiction", "Sephora", "q2")
    results = [
        MetricResult("q2", "scored", 0.1),
        MetricResult("values", "scored", 0.1, explanation=ValuesExplanation((value,))),
    ]
    (mark,) = fit_marks(ReadRequest(response, ()), [span], bind(results))
    assert (mark.text, mark.knowledge_says) == ("American", "French")


def test_an_invented_sentence_is_one_mark() -> None:
    response = "Monks in Nepal ride elephants to pick them."
    assert fit(response, ["Monks", "Nepal ride elephants", "pick"]) == [response[:-1]]


def test_the_spans_of_a_metric_that_is_asked_alone_stay() -> None:
    span = UnsupportedSpan("can", 4, 7, "detected", "", "token_classifier")
    result = MetricResult("token_classifier", "scored", 0.1)
    assert fit_marks(ReadRequest("You can go.", ()), [span], bind([result])) == (span,)


def test_negations_are_no_light_words() -> None:
    assert not any(is_negation(word) for word in LIGHT)


def test_a_comma_inside_a_value_divides_no_mark() -> None:
    response = "It was on March 12, 2020 in Leeds."
    start, end = response.index("on"), response.index(" in")
    span = UnsupportedSpan(response[start:end], start, end, "not_in_knowledge", "", "overlap_precision")
    results = [MetricResult(name, "scored", 0.1) for name in ("overlap_precision", "token_classifier")]
    assert [mark.text for mark in fit_marks(ReadRequest(response, ()), [span], bind(results))] == ["March 12, 2020"]


def test_marks_that_cover_nearly_all_of_a_sentence_become_one() -> None:
    response = "Fresh herring spawn near harbours each spring."
    assert fit(response, ["Fresh herring", "spawn", "harbours", "each spring"]) == [response[:-1]]
    apart = "Fresh herring spawn here, near harbours each spring."
    assert len(fit(apart, ["Fresh herring spawn", "harbours each spring"])) == 2


def test_a_mark_without_a_word_is_none() -> None:
    assert fit("Wait … it is red.", ["…"]) == []


def test_a_mark_inside_another_is_left_out() -> None:
    assert fit("It costs £5.95 a day.", ["5", "95"]) == ["£5.95"]


@pytest.mark.parametrize(
    ("response", "marked", "knowledge", "expected"),
    [
        # A value that the knowledge lacks is marked without the words around it that the knowledge has,
        ("Next-day delivery costs £9.95.", "costs £9.95", "Next-day delivery costs £7.95.", "£9.95"),
        # and with those that it does not have.
        ("Next-day delivery costs £9.95.", "costs £9.95", "Next-day delivery is £7.95.", "costs £9.95"),
        ("It never costs £9.95.", "never costs £9.95", "It costs £7.95.", "never costs £9.95"),
    ],
)
def test_a_value_that_is_absent_is_marked_alone(response: str, marked: str, knowledge: str, expected: str) -> None:
    assert fit(response, [marked], knowledge, (state(response, "£9.95", "absent", "money"),)) == [expected]
    assert fit(response, [marked], knowledge, (state(response, "£9.95", "supported", "money"),)) != ["£9.95"]
