"""Verifiability: does the response state something that knowledge could confirm or contradict?

About a third of good dialogue responses are opinions, suggestions, questions, changes of topic or small talk; no
factual score is defined for those (Santhanam et al. 2021, "Rome was built in 1776").
"""

from __future__ import annotations

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import VerifiabilityExplanation
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Request
from groundwire.engine.text.sentences import sentences

from .base import Metric
from .claims import VERIFIABILITY, classified_span, verifiable


def verifiability(request: Request, options: Options) -> Steps[MetricResult]:
    """The probability, 0–1, of the response's most verifiable sentence: below 0.5 there is nothing to check."""
    found = sentences(request.response)
    answers = yield verifiable(found)
    each = tuple(
        classified_span((sentence.start, sentence.end), answer) for sentence, answer in zip(found, answers, strict=True)
    )
    return MetricResult(
        "verifiability",
        "scored",
        max(one.supported for one in each),
        explanation=VerifiabilityExplanation(each),
    )


METRICS = (Metric("verifiability", "Verifiability", frozenset({VERIFIABILITY}), verifiability),)
