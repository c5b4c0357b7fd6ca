"""Unsupported words from the evidence of several metrics."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import MetricResult, UnsupportedSpan
from groundwire.engine.verdict.span_fusion import fuse_spans

RESPONSE = "Elvis sang in “Paris, Texas” for $5,000. He was 20."


def said(metric: str, *found: tuple[str, str]) -> MetricResult:
    """A metric that doubts each of these texts of the response, for a reason."""
    spans = tuple(
        UnsupportedSpan(text, RESPONSE.index(text), RESPONSE.index(text) + len(text), reason, "", metric)  # type: ignore[arg-type]
        for text, reason in found
    )
    return MetricResult(metric, "scored", 0.5, unsupported=spans)


FIRST = "Elvis sang in “Paris, Texas” for $5,000."


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], []),
        ([said("q2")], []),
        # A metric that is asked alone is reported as it is, whatever its weight.
        ([said("q2", ("$5,000", "mismatch"))], [("$5,000", "mismatch", ("q2",))]),
        ([said("pmi", ("Paris", "not_entailed"))], [("Paris", "not_entailed", ("pmi",))]),
        ([said("nli", (FIRST, "contradiction"))], [(FIRST, "contradiction", ("nli",))]),
        # The same metric in two forms is one witness.
        (
            [said("q2", ("20", "no_answer")), said("q2_no_nli", ("20", "no_answer"))],
            [("20", "no_answer", ("q2", "q2_no_nli"))],
        ),
        # Blunt evidence needs a second metric,
        ([said("nli", (FIRST, "not_entailed")), said("q2")], []),
        (
            [said("nli", (FIRST, "contradiction")), said("detector.x", (FIRST, "detected"))],
            [(FIRST, "contradiction", ("nli", "detector.x"))],
        ),
        # and gives way to words inside the sentence.
        (
            [said("nli", (FIRST, "contradiction")), said("q2", ("Texas", "contradiction"))],
            [("Texas", "contradiction", ("q2", "nli"))],
        ),
        (
            [said("pmi", ("Paris", "not_entailed")), said("nli", (FIRST, "contradiction")), said("q2")],
            [("Paris", "contradiction", ("nli", "pmi"))],
        ),
        # A stop word makes no claim of its own.
        (
            [
                said("pmi", ("in", "less_likely")),
                said("nli", (FIRST, "contradiction")),
                said("q2", ("Texas", "mismatch")),
            ],
            [("Texas", "mismatch", ("q2", "nli"))],
        ),
        # A word that the knowledge lacks is less likely with it anyway; a third witness counts.
        ([said("overlap", ("Paris", "not_in_knowledge")), said("pmi", ("Paris", "less_likely")), said("q2")], []),
        (
            [
                said("overlap", ("Paris", "not_in_knowledge"), ("Texas", "not_in_knowledge")),
                said("pmi", ("Paris", "less_likely"), ("Texas", "less_likely")),
                said("nli", (FIRST, "not_entailed")),
                said("q2"),
            ],
            [("Paris, Texas", "not_in_knowledge", ("overlap", "pmi", "nli"))],
        ),
        # Sharp evidence marks by itself.
        ([said("q2", ("20", "no_answer")), said("nli")], [("20", "no_answer", ("q2",))]),
        # Overlapping spans become disjoint.
        (
            [said("q2", ("“Paris, Texas”", "mismatch"), ("Texas", "no_answer"))],
            [("“Paris, Texas”", "mismatch", ("q2",))],
        ),
    ],
)
def test_evidence_adds_up_word_by_word(results: list[MetricResult], expected: list[Any]) -> None:
    assert [(span.text, span.reason, span.metrics) for span in fuse_spans(RESPONSE, results)] == expected


def test_what_did_not_score_says_nothing() -> None:
    failed = MetricResult("q2", "failed", message="x", unsupported=said("q2", ("20", "no_answer")).unsupported)
    assert fuse_spans(RESPONSE, [failed]) == ()


METRICS = ("q2", "nli", "detector.x", "pmi", "feqa", "token_classifier")
REASONS = {"q2": "mismatch", "nli": "contradiction", "detector.x": "detected"}


@given(st.text(min_size=1), st.data())
def test_ranges_are_disjoint_ordered_and_inside_any_text(text: str, data: st.DataObject) -> None:
    results = []
    for metric in data.draw(st.lists(st.sampled_from(METRICS), unique=True)):
        place = st.integers(0, len(text))
        ranges = [tuple(sorted(pair)) for pair in data.draw(st.lists(st.tuples(place, place), max_size=4))]
        reason: Any = REASONS.get(metric, "not_entailed")
        spans = tuple(UnsupportedSpan(text[a:b], a, b, reason, "", metric) for a, b in ranges if a < b)
        results.append(MetricResult(metric, "scored", 0.5, unsupported=spans))
    found = fuse_spans(text, results)
    assert all(text[span.start : span.end] == span.text and span.text for span in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(span.metrics and span.metric in span.metrics for span in found)
