"""The words of a response that are not supported, from what all metrics say about its parts.

Evidence differs in how precisely it points. A question that the knowledge answers otherwise names the very words; a
contradicted sentence says only that something in it is wrong; a word that the knowledge lacks may paraphrase it. So
evidence is added up word by word (``Metric.weight``): precise evidence marks a word by itself, vague evidence where
metrics agree, and in a sentence the most precise evidence decides (``WordEvidence.precision``). A word that the
knowledge lacks is less likely with it, too, so those two alone do not mark it. A stop word makes no claim of its own:
it is marked by precise evidence, or with the other words of a sentence. Evidence about nothing but articles, pronouns,
conjunctions and forms of "be" marks nothing. A metric that is asked alone is reported as it is.

Rules say what the marked words are, whether the knowledge contradicts them, and how much they may mislead: by the
values that the response states, the named entities that Q² asked about, and the answers and labels that doubt the
words.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from groundwire.runtime.calls import TextSpan
from groundwire.runtime.texts.characters import is_alphanumeric

from ..metrics.base import BoundResult, Metric
from ..metrics.claims import VERIFIABLE
from ..metrics.requests import ReadRequest
from ..schema.explanations import (
    QUOTATION_REASONS,
    ClassifiedSpan,
    FeqaExplanation,
    Q2Explanation,
    Reason,
    Severity,
    SpanType,
    UnsupportedSpan,
    VerifiabilityExplanation,
)
from ..schema.results import MetricResult
from ..text.words import WORD, RangeIndex, find_overlaps, words
from ..values.tokens import NEGATIONS, read_table

MARKED = 1.0
"""Weight from which a word is marked."""
SILENT = frozenset(
    {
        *("a", "an", "the", "this", "that", "these", "those", "it", "its", "he", "his", "him", "she", "her", "they"),
        *("their", "them", "i", "my", "me", "you", "your", "we", "our", "us", "is", "are", "was", "were", "be", "been"),
        *("being", "am", "and", "or", "but", "so", "as", "too", "also", "there", "here"),
    }
)
"""Words that say nothing by themselves; "not", "two" and "most", which are stop words too, do."""
_ABOUT_WORDS: frozenset[Reason] = frozenset({"not_in_knowledge", "less_likely"})
"""Reasons that say the same of every word they are given for."""


class Evidence(NamedTuple):
    """A span that one metric does not find supported."""

    span: UnsupportedSpan
    start: int
    """Start of the span, and below its end."""
    end: int
    weight: float
    family: str
    precision: int


class MarkedWord(NamedTuple):
    """A word of the response and the evidence about it, strongest first."""

    start: int
    end: int
    content: bool
    """Not a stop word."""
    evidence: tuple[Evidence, ...]
    weight: float
    """The evidence added up, each family of metrics once."""
    marked: bool
    """Whether the evidence is enough."""
    precision: int
    """How precisely its evidence points at it (``WordEvidence.precision``)."""


def mark_word(bounds: tuple[int, int], content: bool, evidence: Sequence[Evidence]) -> MarkedWord:
    """Return a word of the response with what its evidence, strongest first, adds up to."""
    best: dict[str, float] = {}
    for item in evidence:
        best.setdefault(item.family, item.weight)
    weight = sum(best.values())
    marked = bool(evidence) and (weight if content else evidence[0].weight) >= MARKED
    precision = max([item.precision for item in evidence], default=0)
    return MarkedWord(*bounds, content, tuple(evidence), weight, marked, precision)


def fuse_spans(request: ReadRequest, results: Iterable[BoundResult]) -> tuple[UnsupportedSpan, ...]:
    """Disjoint ranges of the response, in order, each with its strongest evidence and the metrics that agree."""
    response = request.response
    scored = [bound for bound in results if bound.result.status == "scored"]
    alone = len({metric.family for metric, _ in scored}) == 1
    evidence = [item for item in _collect(scored) if alone or _says_something(response[item.start : item.end])]
    evidence.sort(key=rank_evidence)
    if not evidence:
        return ()
    marked_words = _mark_words(request, evidence)
    marked = [word for word in marked_words if word.evidence and (alone or word.marked)]
    more_precise = [[word.start for word in marked if word.precision > level] for level in range(3)]
    remaining = [word for word in marked if not _has_neighbour(word, more_precise[word.precision])]
    if not alone:
        sentences = {word.evidence[0] for word in remaining if not word.precision}
        remaining = sorted(
            {*remaining, *(word for word in marked_words if _is_stop_word_of(word, sentences))},
            key=lambda word: word.start,
        )
    return tuple(_merge(response, marked_words, remaining))


def is_certain(bound: BoundResult) -> bool:
    """Return whether the spans of a result are reported as they are (``WordEvidence.is_certain``)."""
    return bound.metric.words is not None and bound.metric.words.is_certain


def list_certain(results: Iterable[BoundResult]) -> tuple[UnsupportedSpan, ...]:
    """Return the spans that are reported as they are, in order and disjoint, each with its metric."""
    scored = [bound for bound in results if is_certain(bound) and bound.result.status == "scored"]
    spans = [replace(span, metrics=(metric.name,)) for metric, result in scored for span in metric.list_spans(result)]
    certain: list[UnsupportedSpan] = []
    for span in sorted(spans, key=lambda span: span.start):
        if not certain or span.start >= certain[-1].end:
            certain.append(span)
    return tuple(certain)


def join_spans(certain: Sequence[UnsupportedSpan], spans: Sequence[UnsupportedSpan]) -> tuple[UnsupportedSpan, ...]:
    """Return the spans in order and disjoint; of two that overlap, the certain one with the metrics of both."""
    ranges = RangeIndex(certain)
    joined: list[UnsupportedSpan] = []
    for span, others in zip(certain, find_overlaps([(span.start, span.end) for span in certain], spans), strict=True):
        metrics = dict.fromkeys((*span.metrics, *(name for other in others for name in other.metrics)))
        joined.append(replace(span, metrics=tuple(metrics)))
    return tuple(sorted((*joined, *(span for span in spans if not ranges.overlaps(span))), key=lambda span: span.start))


def _collect(scored: Iterable[BoundResult]) -> list[Evidence]:
    return [weigh(span, metric) for metric, result in scored for span in metric.list_spans(result)]


def weigh(span: UnsupportedSpan, metric: Metric) -> Evidence:
    """Return ``span`` as evidence; evidence below weight 1 has at most precision 1."""
    weight, precision = metric.weight(span), metric.precision
    return Evidence(
        span, span.start, span.end, weight, metric.family, precision if weight >= MARKED else min(precision, 1)
    )


def rank_evidence(item: Evidence) -> tuple[float, bool]:
    """Stronger evidence comes first; of equal evidence, what says what the knowledge has instead."""
    return -item.weight, not item.span.knowledge_says


def _says_something(text: str) -> bool:
    """Whether a part of a response has a word that can be unsupported by itself."""
    return not SILENT.issuperset(map(str.lower, WORD.findall(text)))


def _mark_words(request: ReadRequest, evidence: Sequence[Evidence]) -> list[MarkedWord]:
    bounds = [match.span() for match in WORD.finditer(request.response)]
    content = find_overlaps(bounds, request.content)
    return [
        mark_word(of_word, bool(content_words), about_word)
        for of_word, content_words, about_word in zip(bounds, content, find_overlaps(bounds, evidence), strict=True)
    ]


def _has_neighbour(word: MarkedWord, others: Sequence[int]) -> bool:
    """Whether evidence about ``word`` is also about one of the words that start at ``others``, ascending."""
    return bool(others) and any(
        bisect_left(others, item.start) < bisect_left(others, item.end) for item in word.evidence
    )


def _is_stop_word_of(word: MarkedWord, sentences: Set[Evidence]) -> bool:
    """Whether ``word`` is a stop word of a sentence that is marked as a whole."""
    return not word.content and word.weight >= MARKED and word.evidence[0] in sentences


def _find_saying(group: Sequence[MarkedWord], start: int, end: int) -> str:
    """What weaker evidence about just these characters says that the knowledge has instead."""
    return next(
        (
            item.span.knowledge_says
            for item in group[0].evidence
            if item.span.knowledge_says and (item.start, item.end) == (start, end)
        ),
        "",
    )


def _merge(response: str, all_words: Sequence[MarkedWord], remaining: Sequence[MarkedWord]) -> list[UnsupportedSpan]:
    """Neighbouring words with the same strongest evidence as one range, out to where that evidence ends.

    Evidence about single words (overlap, PMI) is the same where it gives the same reason.
    """
    index_of = {word.start: index for index, word in enumerate(all_words)}
    starts, ends = list(index_of), [word.end for word in all_words]
    groups: list[list[MarkedWord]] = []
    for word in remaining:
        last = groups[-1][-1] if groups else None
        adjacent = last is not None and index_of[word.start] == index_of[last.start] + 1
        if last is not None and adjacent and _agree(word.evidence[0].span, last.evidence[0].span):
            groups[-1].append(word)
        else:
            groups.append([word])
    merged: list[UnsupportedSpan] = []
    for group in groups:
        top, start, end = group[0].evidence[0].span, group[0].start, group[-1].end
        covers_group = all(word.evidence[0].span == top for word in group)
        if covers_group and bisect_left(starts, top.end) - bisect_right(ends, top.start) == len(group):
            # The evidence covers these words and no other, so what it covers beside them may be marked too: a currency
            # sign, quotation marks.
            start, end = max(min(start, top.start), merged[-1].end if merged else 0), max(end, top.end)
        metrics = tuple(dict.fromkeys(item.span.metric for word in group for item in word.evidence))
        says = top.knowledge_says or _find_saying(group, start, end)
        merged.append(
            msgspec.structs.replace(
                top, text=response[start:end], start=start, end=end, knowledge_says=says, metrics=metrics
            )
        )
    return merged


def _agree(span: UnsupportedSpan, other: UnsupportedSpan) -> bool:
    """Whether two spans say the same: equal, or the same reason of the same metric about single words."""
    if span == other:
        return True
    return span.reason in _ABOUT_WORDS and (span.metric, span.reason) == (other.metric, other.reason)


CONTRADICTING: frozenset[Reason] = frozenset({"contradiction", "mismatch", "misattributed_quotation"})
"""Reasons by which the knowledge says otherwise."""
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
_ACTION = re.compile(
    r"\b(?:I|we)(?:['’]ve| have)?(?: just| already| now| also)* (?!lov|lik|enjoy|want|hop|need)"
    r"(?P<did>\w+ed|sent|paid|put)\b(?= (?:\w+ ){0,3}your?s?\b)"
    r"|\byour (?:[\w-]+ ){1,4}?(?:was|were|(?:has|have)(?: just| already| now)? been)"
    r"(?: \w+ly| just| already| now)? (?P<done>\w+ed|sent|paid|put)\b",
    re.IGNORECASE,
)
"""What a response claims to have been done for its reader: "I have just issued your refund"."""
_OPINIONS = frozenset(
    read_table("""
    best worst better worse great greatest good bad amazing awesome awful beautiful boring brilliant cool cute excellent
    exciting fantastic favorite favourite fun funny gorgeous horrible impressive incredible interesting lovely nice
    overrated perfect pretty sad stunning stupid terrible ugly underrated weird wonderful obviously clearly definitely
    really truly honestly should deserve deserves
""")
)


class TypedRange(NamedTuple):
    """Characters of a response with a known type."""

    start: int
    end: int
    type: SpanType


def type_spans(
    request: ReadRequest, spans: Sequence[UnsupportedSpan], results: Sequence[BoundResult]
) -> tuple[UnsupportedSpan, ...]:
    """The spans of a response, in order and disjoint, with type, ``knowledge`` and severity."""
    if not spans:
        return ()
    scored = [bound for bound in results if bound.result.status == "scored"]
    bounds = [(span.start, span.end) for span in spans]
    doubts = list(_collect(scored))
    typed = [*_list_values(request), *_list_entities(scored), *_list_actions(request.response)]
    opinions = [part for _, result in scored for part in _list_opinions(result)]
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


def _list_values(request: ReadRequest) -> list[TypedRange]:
    """The numbers, dates and names that a response states, in order."""
    return [TypedRange(value.start, value.end, value.type) for value in request.values.find_values()]


def _describe(
    span: UnsupportedSpan, doubts: Sequence[Evidence], typed: Sequence[TypedRange], *, is_opinion: bool
) -> UnsupportedSpan:
    contradicts = span.reason in CONTRADICTING or any(
        doubt.span.reason in CONTRADICTING and (doubt.precision > 0 or span.reason == "detected") for doubt in doubts
    )
    kind = _find_type(span, typed, is_opinion=is_opinion)
    if kind is None:
        kind = "relation" if contradicts else "addition"
    contradicts = contradicts and kind != "opinion"
    knowledge, severity = ("contradicts" if contradicts else "silent"), _rate(kind, contradicts=contradicts)
    severity = "high" if span.reason in QUOTATION_REASONS else severity
    return replace(span, type=kind, knowledge=knowledge, severity=severity)


def _find_type(span: UnsupportedSpan, typed: Sequence[TypedRange], *, is_opinion: bool) -> SpanType | None:
    """What the words of a span are by themselves; None if only the knowledge makes them wrong."""
    span_words = [word.lower().replace("’", "'") for word in WORD.findall(span.text)]
    if not is_opinion and len(span_words) <= NEGATION_WORDS and any(map(_is_negation, span_words)):
        return "negation"
    letters = _count_letters(span.text)
    covering = max(typed, key=lambda part: _count_covered(span, part), default=None)
    if covering is not None:
        counts = covering.type == "number" and len(span_words) <= COUNT_WORDS and _count_covered(span, covering)
        if counts or _count_covered(span, covering) >= COVERED * letters:
            return covering.type
    content = [word.lower for word in words(span.text) if word.content]
    return "opinion" if is_opinion or (content and all(word in _OPINIONS for word in content)) else None


def _is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")


def _count_covered(span: UnsupportedSpan, part: TypedRange) -> int:
    return _count_letters(span.text[max(part.start - span.start, 0) : part.end - span.start])


def _count_letters(text: str) -> int:
    return sum(map(is_alphanumeric, text))


def _rate(kind: SpanType, *, contradicts: bool) -> Severity:
    if contradicts:
        return "medium" if kind == "relation" else "high"
    return "medium" if kind in ("entity", "number", "date", "relation") else "low"


def _list_entities(results: Iterable[BoundResult]) -> list[TypedRange]:
    """The named entities that the recogniser found for the metrics that ask questions."""
    spans: list[TextSpan] = []
    for _, result in results:
        if isinstance(result.explanation, Q2Explanation):
            spans += result.explanation.spans
        elif isinstance(result.explanation, FeqaExplanation):
            spans += [phrase.span for phrase in result.explanation.phrases]
    return [
        TypedRange(span.start, span.end, ENTITY_TYPES.get(span.kind.removeprefix("ent:"), "entity"))
        for span in spans
        if span.kind.startswith("ent:")
    ]


def _list_actions(response: str) -> list[TypedRange]:
    matches = ((match, "did" if match["did"] else "done") for match in _ACTION.finditer(response))
    return [TypedRange(*match.span(name), "relation") for match, name in matches]


def _list_opinions(result: MetricResult) -> list[ClassifiedSpan]:
    explanation = result.explanation
    if not isinstance(explanation, VerifiabilityExplanation):
        return []
    return [part for part in explanation.sentences if part.supported < VERIFIABLE]
