"""What the metrics that classify sentences share: which sentences count, and how they are reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundwire.runtime.calls import Classified, Classify, TextSpan

from ..scheduling.steps import Steps
from ..schema.explanations import ClassifiedSpan, Reason, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult, Request
from ..text.sentences import Sentence, sentences
from ..text.words import find_overlaps
from .base import Details

VERIFIABILITY = "detector.verifiability"
"""The role that distinguishes factual claims from opinions, questions and small talk."""
VERIFIABLE = 0.5
"""Probability from which a sentence counts as verifiable."""


def find_claims(request: Request, options: Options) -> Steps[tuple[Sentence, ...]]:
    """The sentences that the factual metrics check: all, or with ``Options.claim_filter`` the verifiable ones."""
    all_sentences = sentences(request.response)
    if options.claim_filter == "none":
        return all_sentences
    answers: list[Classified] = yield verifiability_calls(all_sentences)
    return tuple(
        sentence
        for sentence, answer in zip(all_sentences, answers, strict=True)
        if (answer.supported or 0.0) >= VERIFIABLE
    )


def verifiability_calls(checked: Sequence[Sentence]) -> list[Classify]:
    """The calls that ask whether each sentence can be verified."""
    return [Classify(VERIFIABILITY, (), sentence.text) for sentence in checked]


def keep_overlapping(spans: Sequence[TextSpan], claims: Sequence[Sentence]) -> tuple[TextSpan, ...]:
    """Those spans that overlap one of the sentences."""
    ordered = sorted(spans, key=lambda span: span.start)
    overlaps = find_overlaps([(span.start, span.end) for span in ordered], claims)
    overlapping = {span for span, of_span in zip(ordered, overlaps, strict=True) if of_span}
    return tuple(span for span in spans if span in overlapping)


def join_claims(request: Request, claims: Sequence[Sentence]) -> str:
    """The text of these sentences; the response itself when they are all it has."""
    if len(claims) == len(sentences(request.response)):
        return request.response
    return " ".join(claim.text for claim in claims)


def range_of(claims: Sequence[Sentence]) -> tuple[int, int]:
    """The range from the first to the last of these sentences."""
    return claims[0].start, claims[-1].end


def classified_span(bounds: tuple[int, int], answer: Classified, supported: float | None = None) -> ClassifiedSpan:
    """A range of the response and what a classifier says of it; ``supported`` overrides the classifier's own share."""
    share = answer.supported if supported is None else supported
    return ClassifiedSpan(*bounds, answer.label, answer.probabilities, share or 0.0)


def unsupported_span(request: Request, span: ClassifiedSpan, reason: Reason, metric: str) -> UnsupportedSpan:
    """A classified range as a span of the response that is not supported."""
    return UnsupportedSpan(request.response[span.start : span.end], span.start, span.end, reason, "", metric)


def nothing_to_verify(metric: str) -> MetricResult:
    """The result of a factual metric for a response without a verifiable sentence."""
    return MetricResult(metric, "nothing_to_verify", message="No sentence of the response states a checkable fact.")


def least_coverage(answers: Sequence[Classified]) -> float:
    """The smallest share of the knowledge's characters that one of these calls read."""
    return min(answer.read.characters / answer.read.total for answer in answers)


def describe_spans(spans: Iterable[ClassifiedSpan]) -> Details:
    """Classified ranges as a table for people."""
    rows = tuple((f"{span.start}–{span.end}", span.label, span.supported) for span in spans)
    return Details(("characters", "label", "supported"), rows)
