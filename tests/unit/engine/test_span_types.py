"""What unsupported words are, and whether the knowledge contradicts them."""

from __future__ import annotations

import pytest

from groundwire.engine import MetricResult, UnsupportedSpan
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.explanations import (
    AnsweredPhrase,
    ClassifiedSpan,
    FeqaExplanation,
    Q2Explanation,
    Reason,
    VerifiabilityExplanation,
)
from groundwire.engine.verdict.spans import type_spans
from groundwire.runtime.calls import TextSpan
from tests.support.verdicts import bind

RESPONSE = "In May 1999 Bob Ross didn't sell 12 paintings of quiet rivers. It is the best one."


def make_span(text: str, reason: Reason, metric: str = "") -> UnsupportedSpan:
    start = RESPONSE.index(text)
    return UnsupportedSpan(text, start, start + len(text), reason, "", metric)


def describe(span: UnsupportedSpan, *results: MetricResult) -> tuple[str | None, ...]:
    (described,) = type_spans(ReadRequest(RESPONSE, ()), [span], bind(results))
    assert (described.text, described.reason) == (span.text, span.reason)
    return described.type, described.knowledge, described.severity, described.category, described.subcategory


@pytest.mark.parametrize(
    ("text", "reason", "expected"),
    [
        ("May 1999", "mismatch", ("date", "contradicts", "high", "contradiction", "temporal")),
        ("In May 1999", "no_answer", ("date", "silent", "medium", "unsupported_addition", "claim")),
        ("Bob Ross", "contradiction", ("entity", "contradicts", "high", "contradiction", "entity")),
        ("Bob Ross", "not_in_knowledge", ("entity", "silent", "medium", "fabricated_reference", "entity")),
        ("12 paintings", "mismatch", ("number", "contradicts", "high", "contradiction", "numerical")),
        ("12", "less_likely", ("number", "silent", "medium", "unsupported_addition", "claim")),
        ("didn't sell", "contradiction", ("negation", "contradicts", "high", "contradiction", "relational")),
        ("didn't", "detected", ("negation", "silent", "low", "unsupported_addition", "claim")),
        ("quiet rivers", "contradiction", ("relation", "contradicts", "medium", "contradiction", "relational")),
        ("quiet rivers", "not_entailed", ("addition", "silent", "low", "unsupported_addition", "elaboration")),
        # A value is what a span is about if it covers most of it.
        (
            "12 paintings of quiet rivers",
            "no_answer",
            ("addition", "silent", "low", "unsupported_addition", "elaboration"),
        ),
        ("best", "contradiction", ("opinion", "silent", "low", "unsupported_addition", "subjective")),
        # Of a long span a negation is not what it is.
        (
            "Bob Ross didn't sell 12 paintings of quiet rivers",
            "contradiction",
            ("relation", "contradicts", "medium", "contradiction", "relational"),
        ),
    ],
)
def test_words_have_a_type_a_stance_of_the_knowledge_and_a_severity(
    text: str, reason: Reason, expected: tuple[str, ...]
) -> None:
    assert describe(make_span(text, reason)) == expected


def test_entities_that_were_asked_about_have_the_type_of_the_recogniser() -> None:
    rivers = make_span("quiet rivers", "no_answer")
    for label, kind in (("ent:GPE", "entity"), ("ent:CARDINAL", "number"), ("ent:TIME", "date")):
        span = TextSpan(rivers.text, rivers.start, rivers.end, label)
        asked = MetricResult("q2", "scored", 0.5, explanation=Q2Explanation((span,), ()))
        phrase = FeqaExplanation((AnsweredPhrase(span, "who?", "", 0.0),))
        assert describe(rivers, asked)[0] == kind
        assert describe(rivers, MetricResult("feqa", "scored", 0.5, explanation=phrase))[0] == kind
    chunk = TextSpan(rivers.text, rivers.start, rivers.end, "noun_chunk")
    asked = MetricResult("q2", "scored", 0.5, explanation=Q2Explanation((chunk,), ()))
    assert describe(rivers, asked)[0] == "addition"


def test_what_another_metric_contradicts_precisely_is_contradicted() -> None:
    span = make_span("Bob Ross", "no_answer", "q2")
    results = {
        name: MetricResult(name, "scored", 0.5, unsupported=(make_span(text, "mismatch", name),))
        for name, text in (("values", "Bob Ross"), ("nli", RESPONSE.split(".")[0]), ("unknown", "Bob Ross"))
    }
    assert describe(span, results["values"])[1] == "contradicts"
    assert describe(span, results["nli"])[1] == "silent"  # about the sentence, not about these words
    assert describe(span, results["unknown"])[1] == "silent"
    failed = MetricResult("values", "failed", message="out of order", unsupported=results["values"].unsupported)
    assert describe(span, failed)[1] == "silent"
    # A detector gives no reason, so that of the sentence counts.
    detected = make_span("quiet rivers", "detected", "token_classifier")
    assert describe(detected, results["nli"])[:2] == ("relation", "contradicts")
    unregistered = MetricResult("mine", "scored", 0.5, unsupported=(make_span("Bob Ross", "mismatch", "mine"),))
    assert describe(span, unregistered)[1] == "silent"


def test_words_of_a_sentence_that_states_nothing_are_an_opinion() -> None:
    at = RESPONSE.index("It is")
    explanation = VerifiabilityExplanation(
        (
            ClassifiedSpan(0, at - 1, "verifiable", {}, 0.9),
            ClassifiedSpan(at, len(RESPONSE), "non-verifiable", {}, 0.1),
        )
    )
    result = MetricResult("verifiability", "scored", 0.9, explanation=explanation)
    assert describe(make_span("one", "mismatch"), result)[:2] == ("opinion", "silent")
    assert describe(make_span("12", "mismatch"), result)[:2] == ("number", "contradicts")


@pytest.mark.parametrize(
    ("response", "text", "expected"),
    [
        # A value stays one in a sentence that states nothing,
        ("Yes, come on Sundays!", "Sundays", ("date", "medium")),
        ("I have just issued your refund of £189.00.", "£189.00", ("number", "medium")),
        # and what is said to have been done for the reader is no opinion.
        ("I have just issued your refund of £189.00.", "issued", ("relation", "medium")),
        ("Good news! Your order was delivered yesterday.", "delivered", ("relation", "medium")),
        ("I loved your story.", "loved", ("opinion", "low")),
        ("I am pleased to hear that your order arrived.", "pleased", ("opinion", "low")),
    ],
)
def test_values_and_claimed_actions_are_no_opinions(response: str, text: str, expected: tuple[str, str]) -> None:
    explanation = VerifiabilityExplanation((ClassifiedSpan(0, len(response), "non-verifiable", {}, 0.1),))
    result = MetricResult("verifiability", "scored", 0.9, explanation=explanation)
    start = response.index(text)
    (span,) = type_spans(
        ReadRequest(response, ()), [UnsupportedSpan(text, start, start + len(text), "detected")], bind([result])
    )
    assert (span.type, span.severity) == expected


def test_there_may_be_nothing_to_describe() -> None:
    assert type_spans(ReadRequest(RESPONSE, ()), [], ()) == ()
    alone = UnsupportedSpan("a", 0, 1, "detected")
    assert (alone.type, alone.knowledge, alone.severity, alone.category, alone.subcategory) == (None,) * 5
