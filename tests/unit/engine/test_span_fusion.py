"""Fusing the unsupported spans of several metrics."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import MetricResult, UnsupportedSpan
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.text.words import words
from groundwire.engine.verdict.spans import fuse_spans, list_certain
from tests.reference import span_fusion as reference
from tests.support.texts import TEXT
from tests.support.verdicts import bind
from tests.support.work import count_steps

RESPONSE = "Elvis sang in “Paris, Texas” for $5,000. He was 20."


def make_result(metric: str, *doubts: tuple[str, str]) -> MetricResult:
    """The result of a metric whose unsupported spans are the given texts of the response, each with its reason."""
    spans = tuple(
        UnsupportedSpan(text, RESPONSE.index(text), RESPONSE.index(text) + len(text), reason, "", metric)  # type: ignore[arg-type]
        for text, reason in doubts
    )
    return MetricResult(metric, "scored", 0.5, unsupported=spans)


FIRST = "Elvis sang in “Paris, Texas” for $5,000."


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], []),
        ([make_result("q2")], []),
        # If only one metric is requested, its spans are reported unchanged, whatever its weight.
        ([make_result("q2", ("$5,000", "mismatch"))], [("$5,000", "mismatch", ("q2",))]),
        ([make_result("pmi", ("Paris", "not_entailed"))], [("Paris", "not_entailed", ("pmi",))]),
        ([make_result("nli", (FIRST, "contradiction"))], [(FIRST, "contradiction", ("nli",))]),
        # Two variants of a metric count as one piece of evidence.
        (
            [make_result("q2", ("20", "no_answer")), make_result("q2_no_nli", ("20", "no_answer"))],
            [("20", "no_answer", ("q2", "q2_no_nli"))],
        ),
        # What says nothing by itself is not marked, unless its metric is asked alone.
        ([make_result("values", ("He was", "mismatch")), make_result("nli")], []),
        ([make_result("values", ("He was", "mismatch"))], [("He was", "mismatch", ("values",))]),
        (
            [make_result("values", ("was 20", "mismatch")), make_result("nli")],
            [("was 20", "mismatch", ("values",))],
        ),
        # Evidence about a whole sentence needs a second metric,
        ([make_result("nli", (FIRST, "not_entailed")), make_result("q2")], []),
        (
            [make_result("nli", (FIRST, "contradiction")), make_result("detector.x", (FIRST, "detected"))],
            [(FIRST, "contradiction", ("nli", "detector.x"))],
        ),
        # and is replaced by evidence about words inside the sentence.
        (
            [make_result("nli", (FIRST, "contradiction")), make_result("q2", ("Texas", "contradiction"))],
            [("Texas", "contradiction", ("q2", "nli"))],
        ),
        (
            [
                make_result("pmi", ("Paris", "not_entailed")),
                make_result("nli", (FIRST, "contradiction")),
                make_result("q2"),
            ],
            [("Paris", "contradiction", ("nli", "pmi"))],
        ),
        # A stop word alone makes no claim.
        (
            [
                make_result("pmi", ("in", "less_likely")),
                make_result("nli", (FIRST, "contradiction")),
                make_result("q2", ("Texas", "mismatch")),
            ],
            [("Texas", "mismatch", ("q2", "nli"))],
        ),
        # The knowledge also makes a word less likely that it does not contain; evidence of a third metric counts.
        (
            [
                make_result("overlap", ("Paris", "not_in_knowledge")),
                make_result("pmi", ("Paris", "less_likely")),
                make_result("q2"),
            ],
            [],
        ),
        (
            [
                make_result("overlap", ("Paris", "not_in_knowledge"), ("Texas", "not_in_knowledge")),
                make_result("pmi", ("Paris", "less_likely"), ("Texas", "less_likely")),
                make_result("nli", (FIRST, "not_entailed")),
                make_result("q2"),
            ],
            [("Paris, Texas", "not_in_knowledge", ("overlap", "pmi", "nli"))],
        ),
        # Strong evidence of one metric suffices.
        ([make_result("q2", ("20", "no_answer")), make_result("nli")], [("20", "no_answer", ("q2",))]),
        # Overlapping spans become disjoint.
        (
            [make_result("q2", ("“Paris, Texas”", "mismatch"), ("Texas", "no_answer"))],
            [("“Paris, Texas”", "mismatch", ("q2",))],
        ),
    ],
)
def test_evidence_adds_up_word_by_word(results: list[MetricResult], expected: list[Any]) -> None:
    assert [
        (span.text, span.reason, span.metrics) for span in fuse_spans(ReadRequest(RESPONSE, ()), bind(results))
    ] == expected


def test_a_mark_has_what_weaker_evidence_about_the_same_words_says_of_the_knowledge() -> None:
    start = RESPONSE.index("$5,000")
    absent = UnsupportedSpan("$5,000", start, start + 6, "not_in_knowledge", "$4,000", "values")
    values = MetricResult("values", "scored", 0.5, unsupported=(absent,))
    (mark,) = fuse_spans(ReadRequest(RESPONSE, ()), bind([make_result("q2", ("$5,000", "no_answer")), values]))
    assert (mark.reason, mark.metric, mark.knowledge_says) == ("no_answer", "q2", "$4,000")
    (longer,) = fuse_spans(ReadRequest(RESPONSE, ()), bind([make_result("q2", ("for $5,000", "no_answer")), values]))
    assert (longer.text, longer.knowledge_says) == ("for $5,000", "")


def test_the_spans_of_a_failed_metric_are_ignored() -> None:
    failed = MetricResult("q2", "failed", message="x", unsupported=make_result("q2", ("20", "no_answer")).unsupported)
    assert fuse_spans(ReadRequest(RESPONSE, ()), bind([failed])) == ()


METRICS = ("q2", "nli", "detector.x", "pmi", "feqa", "token_classifier")
REASONS = {"q2": "mismatch", "nli": "contradiction", "detector.x": "detected"}


@given(st.text(min_size=1), st.data())
def test_fused_spans_of_any_text_are_disjoint_ordered_and_inside_it(text: str, data: st.DataObject) -> None:
    results = []
    for metric in data.draw(st.lists(st.sampled_from(METRICS), unique=True)):
        offset = st.integers(0, len(text))
        ranges = [tuple(sorted(pair)) for pair in data.draw(st.lists(st.tuples(offset, offset), max_size=4))]
        reason: Any = REASONS.get(metric, "not_entailed")
        spans = tuple(UnsupportedSpan(text[a:b], a, b, reason, "", metric) for a, b in ranges if a < b)
        results.append(MetricResult(metric, "scored", 0.5, unsupported=spans))
    fused = fuse_spans(ReadRequest(text, ()), bind(results))
    assert all(text[span.start : span.end] == span.text and span.text for span in fused)
    assert all(span.end <= following.start for span, following in pairwise(fused))
    assert all(span.metrics and span.metric in span.metrics for span in fused)


@given(st.data())
def test_fused_spans_are_those_of_the_reference(data: st.DataObject) -> None:
    text = data.draw(st.text('ab ,.’"', max_size=40) | st.sampled_from([RESPONSE, TEXT[:120]]))
    offset = st.integers(0, len(text))
    results = []
    for metric in data.draw(st.lists(st.sampled_from((*METRICS, "overlap", "q2_no_nli")), unique=True)):
        ranges = data.draw(st.lists(st.tuples(offset, offset), max_size=6))
        reasons = st.sampled_from(["mismatch", "contradiction", "not_entailed", "less_likely", "not_in_knowledge"])
        spans = tuple(
            UnsupportedSpan(text[a:b], a, b, data.draw(reasons), "", metric)  # type: ignore[arg-type]
            for a, b in map(sorted, ranges)
        )
        results.append(MetricResult(metric, "scored", 0.5, unsupported=spans))
    assert fuse_spans(ReadRequest(text, ()), bind(results)) == reference.fuse_spans(text, results)


def test_the_work_grows_linearly_with_words_and_evidence() -> None:
    def count(sentences: int) -> int:
        sentence = "The quick brown fox saw Paris, Texas. "
        text = sentence * sentences
        starts = range(0, len(text), len(sentence))
        answers = [
            UnsupportedSpan(
                "Paris", start + sentence.index("Paris"), start + sentence.index(", T"), "mismatch", "", "q2"
            )
            for start in starts[::2]
        ]
        whole = [
            UnsupportedSpan(sentence[:-1], start, start + len(sentence) - 1, "contradiction", "", metric)
            for start in starts
            for metric in ("nli", "detector.x")
        ]
        results = [MetricResult("q2", "scored", 0.5, unsupported=tuple(answers))]
        results += [
            MetricResult(metric, "scored", 0.5, unsupported=tuple(span for span in whole if span.metric == metric))
            for metric in ("nli", "detector.x")
        ]
        words(text)  # the tokenizer has tests of its own
        return count_steps(lambda: fuse_spans(ReadRequest(text, ()), bind(results)))

    assert count(40) < 2.5 * count(20)


def test_of_certain_marks_that_overlap_the_first_stays() -> None:
    spans = (
        UnsupportedSpan("“No rain”", 5, 14, "absent_quotation"),
        UnsupportedSpan("rain", 9, 13, "absent_quotation"),
        UnsupportedSpan("“Snow”", 20, 26, "absent_quotation"),
    )
    result = MetricResult("quotations", "scored", 0.0, unsupported=spans)
    certain = list_certain(bind([result]))
    assert [(span.start, span.end, span.metrics) for span in certain] == [
        (5, 14, ("quotations",)),
        (20, 26, ("quotations",)),
    ]
