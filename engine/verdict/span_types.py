"""What unsupported words are, whether the knowledge contradicts them, and how much they may mislead.

By rules over what the metrics found anyway: the values that the response states, the named entities that Q² asked
about, the answers and labels that doubt the words, and the sentences that state nothing verifiable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from groundwire.runtime.calls import TextSpan

from ..metrics import find
from ..schema.explanations import (
    ClassifiedSpan,
    FeqaExplanation,
    Q2Explanation,
    Reason,
    Severity,
    SpanType,
    UnsupportedSpan,
    ValueKind,
    VerifiabilityExplanation,
)
from ..schema.results import MetricResult
from ..text.words import WORD, find_overlaps, words
from ..values.knowledge import find_values
from ..values.support import NEGATIONS
from ..values.tokens import read_table, tokenize

CONTRADICTING: frozenset[Reason] = frozenset({"contradiction", "mismatch"})
"""Reasons by which the knowledge says otherwise."""
VALUE_TYPES: dict[ValueKind, SpanType] = {
    "date": "date",
    "time": "date",
    "name": "entity",
    "person": "entity",
    "place": "entity",
    "organisation": "entity",
    "nationality": "entity",
    "relation": "relation",
}
"""Types of values; other kinds are numbers."""
ENTITY_TYPES: dict[str, SpanType] = {
    "DATE": "date",
    "TIME": "date",
    "CARDINAL": "number",
    "ORDINAL": "number",
    "QUANTITY": "number",
    "MONEY": "number",
    "PERCENT": "number",
}
"""Types of named entities, by the label of the recogniser; other labels are entities."""
COVERED = 0.5
"""Share of the letters and digits of a span from which a value in it says what the span is."""
NEGATION_WORDS = 4
"""Words of a span at most that is what its negation is."""
COUNT_WORDS = 3
"""Words of a span at most that is a number with what it counts."""
VERIFIABLE = 0.5
"""Probability below which a sentence states an opinion, if anything."""
_OPINIONS = frozenset(
    read_table("""
    best worst better worse great greatest good bad amazing awesome awful beautiful boring brilliant cool cute excellent
    exciting fantastic favorite favourite fun funny gorgeous horrible impressive incredible interesting lovely nice
    overrated perfect pretty sad stunning stupid terrible ugly underrated weird wonderful obviously clearly definitely
    really truly honestly should deserve deserves
""")
)


class TypedRange(NamedTuple):
    """Characters of a response of which the type is known."""

    start: int
    end: int
    type: SpanType


def type_spans(
    response: str, spans: Sequence[UnsupportedSpan], results: Sequence[MetricResult]
) -> tuple[UnsupportedSpan, ...]:
    """The spans of a response, in order and disjoint, with type, ``knowledge`` and severity."""
    if not spans:
        return ()
    scored = [result for result in results if result.status == "scored"]
    bounds = [(span.start, span.end) for span in spans]
    doubts = [doubt for result in scored for doubt in _list_doubts(result)]
    typed = [*find_typed(response), *_list_entities(scored)]
    opinions = [part for result in scored for part in _list_opinions(result)]
    return tuple(
        _describe(span, about, ranges, is_opinion=bool(inside))
        for span, about, ranges, inside in zip(
            spans,
            find_overlaps(bounds, doubts),
            find_overlaps(bounds, typed),
            find_overlaps(bounds, opinions),
            strict=True,
        )
    )


def find_typed(text: str) -> list[TypedRange]:
    """The numbers, dates and names that a text states, in order."""
    return [
        TypedRange(value.start, value.end, VALUE_TYPES.get(value.kind, "number"))
        for value in find_values(tokenize(text))
    ]


def _describe(
    span: UnsupportedSpan, doubts: Sequence[UnsupportedSpan], typed: Sequence[TypedRange], *, is_opinion: bool
) -> UnsupportedSpan:
    contradicts = span.reason in CONTRADICTING or any(
        doubt.reason in CONTRADICTING and (_pinpoints(doubt.metric) or span.reason == "detected") for doubt in doubts
    )
    kind = _find_type(span, typed, is_opinion=is_opinion)
    if kind is None:
        kind = "relation" if contradicts else "addition"
    contradicts = contradicts and kind != "opinion"
    knowledge, severity = ("contradicts" if contradicts else "silent"), _rate(kind, contradicts=contradicts)
    return replace(span, type=kind, knowledge=knowledge, severity=severity)


def _find_type(span: UnsupportedSpan, typed: Sequence[TypedRange], *, is_opinion: bool) -> SpanType | None:
    """What the words of a span are by themselves; None if only the knowledge makes them wrong."""
    if is_opinion:
        return "opinion"
    span_words = [word.lower().replace("’", "'") for word in WORD.findall(span.text)]
    if len(span_words) <= NEGATION_WORDS and any(map(_is_negation, span_words)):
        return "negation"
    letters = _count_letters(span.text)
    covering = max(typed, key=lambda part: _count_covered(span, part), default=None)
    if covering is not None:
        counts = covering.type == "number" and len(span_words) <= COUNT_WORDS and _count_covered(span, covering)
        if counts or _count_covered(span, covering) >= COVERED * letters:
            return covering.type
    content = [word.lower for word in words(span.text) if word.content]
    return "opinion" if content and all(word in _OPINIONS for word in content) else None


def _is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")


def _count_covered(span: UnsupportedSpan, part: TypedRange) -> int:
    return _count_letters(span.text[max(part.start - span.start, 0) : part.end - span.start])


def _count_letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _rate(kind: SpanType, *, contradicts: bool) -> Severity:
    if contradicts:
        return "medium" if kind == "relation" else "high"
    return "medium" if kind in ("entity", "number", "date") else "low"


def _list_doubts(result: MetricResult) -> tuple[UnsupportedSpan, ...]:
    metric = find(result.name)
    return () if metric is None else metric.spans(result)


def _pinpoints(name: str) -> bool:
    metric = find(name)
    return metric is not None and metric.precision > 0


def _list_entities(results: Iterable[MetricResult]) -> list[TypedRange]:
    """The named entities that the recogniser found for the metrics that ask questions."""
    spans: list[TextSpan] = []
    for result in results:
        if isinstance(result.explanation, Q2Explanation):
            spans += result.explanation.spans
        elif isinstance(result.explanation, FeqaExplanation):
            spans += [phrase.span for phrase in result.explanation.phrases]
    return [
        TypedRange(span.start, span.end, ENTITY_TYPES.get(span.kind.removeprefix("ent:"), "entity"))
        for span in spans
        if span.kind.startswith("ent:")
    ]


def _list_opinions(result: MetricResult) -> list[ClassifiedSpan]:
    explanation = result.explanation
    if not isinstance(explanation, VerifiabilityExplanation):
        return []
    return [part for part in explanation.sentences if part.supported < VERIFIABLE]
