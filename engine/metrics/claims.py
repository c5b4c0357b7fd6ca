"""What the metrics that judge sentences share: which sentences to judge, and how to report them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import ClassifiedSpan
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Request, UnsupportedSpan
from groundwire.engine.text.sentences import Sentence, sentences
from groundwire.runtime.calls import Classified, Classify, TextSpan

VERIFIABILITY = "detector.verifiability"
"""The role that tells factual claims from opinions, questions and small talk."""
VERIFIABLE = 0.5
"""Probability from which a sentence counts as verifiable."""


def claims(request: Request, options: Options) -> Steps[tuple[Sentence, ...]]:
    """The sentences that the factual metrics judge: all, or with ``Options.claim_filter`` the verifiable ones."""
    found = sentences(request.response)
    if options.claim_filter == "none":
        return found
    answers: list[Classified] = yield verifiable(found)
    return tuple(
        sentence for sentence, answer in zip(found, answers, strict=True) if (answer.supported or 0.0) >= VERIFIABLE
    )


def verifiable(found: Sequence[Sentence]) -> list[Classify]:
    """The calls that ask whether each sentence can be verified."""
    return [Classify(VERIFIABILITY, (), sentence.text) for sentence in found]


def within(spans: Iterable[TextSpan], found: Sequence[Sentence]) -> tuple[TextSpan, ...]:
    """Those spans that overlap one of the sentences."""
    return tuple(span for span in spans if any(one.start < span.end and span.start < one.end for one in found))


def joined(request: Request, found: Sequence[Sentence]) -> str:
    """The text of these sentences; the response itself when they are all it has."""
    if len(found) == len(sentences(request.response)):
        return request.response
    return " ".join(sentence.text for sentence in found)


def around(found: Sequence[Sentence]) -> tuple[int, int]:
    """The range from the first to the last of these sentences."""
    return found[0].start, found[-1].end


def classified_span(place: tuple[int, int], answer: Classified, supported: float | None = None) -> ClassifiedSpan:
    """A range of the response and what a classifier says of it."""
    share = answer.supported if supported is None else supported
    return ClassifiedSpan(*place, answer.label, answer.probabilities, share or 0.0)


def marked(
    request: Request, one: ClassifiedSpan, reason: Literal["contradiction", "not_entailed", "detected"], name: str
) -> UnsupportedSpan:
    """A judged range as a span of the response that is not supported."""
    return UnsupportedSpan(request.response[one.start : one.end], one.start, one.end, reason, "", name)


def nothing_to_verify(name: str) -> MetricResult:
    """What a factual metric says of a response without a verifiable sentence."""
    return MetricResult(name, "nothing_to_verify", message="No sentence of the response states a checkable fact.")


def coverage(answers: Sequence[Classified]) -> float:
    """The share of the knowledge's characters that the least of these calls read."""
    return min(answer.read.characters / answer.read.total for answer in answers)
