"""Claims: which sentences of a response state something that knowledge could confirm or contradict.

About a third of good dialogue responses are opinions, suggestions, questions, changes of topic or small talk; no
factual score is defined for those (Santhanam et al. 2021, "Rome was built in 1776"). The metric ``verifiability``
reports which sentences state something; other metrics find, read and report their sentences with the functions here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from groundwire.runtime.calls import Call, Classified, ClassifiedTokens, Classify, TextSpan
from groundwire.runtime.errors import TooLong, Unreadable

from ..schema.explanations import ClassifiedSpan, Reason, UnsupportedSpan, VerifiabilityExplanation
from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.reading import LEAST_SIZE, WINDOW_SIZE, ReadText, count_pieces, cut_reading
from ..text.sentences import Sentence
from ..text.words import find_overlaps, within
from .base import Details, Metric, MetricNumber, RoleInfos
from .requests import ReadRequest

T = TypeVar("T")

VERIFIABILITY = "detector.verifiability"
"""The role that distinguishes factual claims from opinions, questions and small talk."""
VERIFIABLE = 0.5
"""Probability from which a sentence counts as verifiable."""


def find_claims(request: ReadRequest, options: Options) -> Steps[tuple[Sentence, ...]]:
    """The sentences that the factual metrics check: all, or with ``Options.claim_filter`` the verifiable ones."""
    all_sentences = request.sentences
    if options.claim_filter == "none":
        return all_sentences
    spans = yield from rate_verifiability(request)
    return tuple(sentence for sentence, span in zip(all_sentences, spans, strict=True) if span.supported >= VERIFIABLE)


def rate_verifiability(request: ReadRequest) -> Steps[tuple[ClassifiedSpan, ...]]:
    """Whether each sentence of the response can be verified; what no model reads, such as code, states nothing."""
    readings = request.answer
    prose = [reading for reading in readings if not reading.unread]
    answers = yield from ask_in_parts(prose, lambda part: Classify(VERIFIABILITY, (), part.text))
    best = iter([max(of_reading, key=lambda answer: answer.supported or 0.0) for of_reading in answers])
    return tuple(
        ClassifiedSpan(reading.start, reading.end, reading.stance, {reading.stance: 1.0}, 0.0)
        if reading.unread
        else classified_span((reading.start, reading.end), next(best))
        for reading in readings
    )


def read_claims(request: ReadRequest, claims: Sequence[Sentence]) -> list[ReadText]:
    """What models read of these sentences, one by one, without what they do not read."""
    wanted = {(claim.start, claim.end) for claim in claims}
    return [reading for reading in request.answer if (reading.start, reading.end) in wanted and not reading.unread]


def join_claims(request: ReadRequest, claims: Sequence[Sentence]) -> ReadText:
    """What models read of these sentences together; the response itself when they are all it has."""
    wanted = {(claim.start, claim.end) for claim in claims}
    readings = [reading for reading in request.answer if (reading.start, reading.end) in wanted]
    return request.join(readings)


def ask_in_parts(readings: Sequence[ReadText], ask: Callable[[ReadText], Call]) -> Steps[list[list[Any]]]:
    """Ask about each reading at once where the model can read it, and otherwise window by window.

    Args:
        readings: Sentences, or the whole response.
        ask: Builds the call about a reading or a window of it.

    Returns:
        The answers about each reading, one or more.

    Raises:
        TooLong: The knowledge alone is more than the model reads.
    """
    calls = yield from cut_to_fit(readings, lambda parts: [ask(part) for part in parts])
    return [[answer for _, answer in of_reading] for of_reading in calls]


def cut_to_fit(
    readings: Sequence[ReadText], ask: Callable[[Sequence[ReadText]], Sequence[Call]]
) -> Steps[list[list[tuple[ReadText, Any]]]]:
    """``ask_in_parts`` with the part that each answer is about."""
    answers: dict[int, list[tuple[ReadText, Any]]] = {}
    # A long reading is asked about first, alone, so that nothing else is computed for a round that is refused.
    long = [index for index, reading in enumerate(readings) if count_pieces(reading.text) > WINDOW_SIZE]
    others = [index for index in range(len(readings)) if index not in long]
    for indices in (long, others) if long else (others,):
        size: int | None = None
        while True:
            parts = [[readings[index]] if size is None else cut_reading(readings[index], size) for index in indices]
            try:
                results = iter((yield ask([part for of_reading in parts for part in of_reading])))
                break
            except TooLong as error:
                if isinstance(error, Unreadable) or size == LEAST_SIZE:
                    raise
                size = WINDOW_SIZE if size is None else size // 2
        for index, of_reading in zip(indices, parts, strict=True):
            answers[index] = [(part, next(results)) for part in of_reading]
    return [answers[index] for index in range(len(readings))]


def keep_overlapping(spans: Sequence[TextSpan], claims: Sequence[Sentence]) -> tuple[TextSpan, ...]:
    """Those spans that overlap one of the sentences."""
    ordered = sorted(spans, key=lambda span: span.start)
    overlaps = find_overlaps([(span.start, span.end) for span in ordered], claims)
    overlapping = {span for span, of_span in zip(ordered, overlaps, strict=True) if of_span}
    return tuple(span for span in spans if span in overlapping)


def range_of(claims: Sequence[Sentence]) -> tuple[int, int]:
    """The range from the first to the last of these sentences."""
    return claims[0].start, claims[-1].end


def classified_span(bounds: tuple[int, int], answer: Classified, supported: float | None = None) -> ClassifiedSpan:
    """A range of the response and what a classifier says of it; ``supported`` overrides the classifier's own share."""
    share = answer.supported if supported is None else supported
    return ClassifiedSpan(*bounds, answer.label, answer.probabilities, share or 0.0)


def unsupported_span(request: ReadRequest, span: ClassifiedSpan, reason: Reason, metric: str) -> UnsupportedSpan:
    """A classified range as a span of the response that is not supported."""
    return UnsupportedSpan(request.response[span.start : span.end], span.start, span.end, reason, "", metric)


def nothing_to_verify(metric: str) -> MetricResult:
    """The result of a factual metric for a response without a verifiable sentence."""
    return MetricResult(metric, "nothing_to_verify", message="No sentence of the response states a checkable fact.")


def least_coverage(answers: Sequence[Classified | ClassifiedTokens]) -> float:
    """The smallest share of the knowledge's characters that one of these calls read."""
    return min(answer.read.share for answer in answers)


def describe_spans(spans: Iterable[ClassifiedSpan]) -> Details:
    """Classified ranges as a table for people."""
    rows = tuple((f"{span.start}–{span.end}", span.label, span.supported) for span in spans)
    return Details(("characters", "label", "supported"), rows)


def verifiability(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The probability, 0–1, of the response's most verifiable sentence: below 0.5 there is nothing to check."""
    spans = yield from rate_verifiability(request)
    return MetricResult(
        "verifiability",
        "scored",
        max(span.supported for span in spans),
        explanation=VerifiabilityExplanation(spans),
    )


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, VerifiabilityExplanation):
        return {}
    inside = within(result.explanation.sentences, start, end)
    return {"": max(span.supported for span in inside)} if inside else {}


METRICS = (
    Metric(
        name="verifiability",
        title="Verifiability",
        description="whether the response states a checkable fact at all",
        compute=verifiability,
        roles=frozenset({VERIFIABILITY}),
        groups=frozenset({"paper", "fast"}),
        order=5,
        numbers=(MetricNumber(about="verifiability"),),
        part=_part,
    ),
)
