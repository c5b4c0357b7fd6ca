"""Verifiability: does the response state something that knowledge could confirm or contradict?

About a third of good dialogue responses are opinions, suggestions, questions, changes of topic or small talk; no
factual score is defined for those (Santhanam et al. 2021, "Rome was built in 1776").
"""

from __future__ import annotations

from ..scheduling.steps import Steps
from ..schema.explanations import VerifiabilityExplanation
from ..schema.options import Options
from ..schema.results import MetricResult, Request
from .base import Metric, RoleInfos, within
from .claims import VERIFIABILITY, rate_verifiability


def verifiability(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
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
        uninformative=("",),
        verifiability="",
        part=_part,
    ),
)
