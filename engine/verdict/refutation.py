"""What a rule refutes is not consistent, whatever the rest of the evidence says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ..metrics import find
from ..schema.results import MetricResult, Verdict
from .threshold import is_consistent


class Refutation(NamedTuple):
    """A part of the response that a metric refutes by itself (``Metric.refutes``)."""

    start: int
    end: int
    feature: str
    """As contributions name it: ``values.contradicted``."""
    probability: float
    """Of being consistent, at most."""


def find_refutations(results: Mapping[str, MetricResult]) -> tuple[Refutation, ...]:
    """What the metrics refute, metric by metric."""
    return tuple(
        Refutation(span.start, span.end, f"{name}.{metric.refutes.feature}", metric.refutes.probability)
        for name, result in results.items()
        if (metric := find(name)) is not None and metric.refutes is not None
        for span in result.unsupported
        if span.reason == metric.refutes.reason
    )


def refute(verdict: Verdict, refutations: Sequence[Refutation]) -> Verdict:
    """The verdict with the least probability that ``refutations`` leave it, which has the part of a contribution.

    A verdict without a probability keeps it that way.
    """
    if not refutations or verdict.probability is None or verdict.threshold is None:
        return verdict
    strongest = min(refutations, key=lambda refutation: refutation.probability)
    probability = min(verdict.probability, strongest.probability)
    contributions = dict(verdict.contributions or {})
    if probability < verdict.probability:
        contributions[strongest.feature] = logit(probability) - logit(verdict.probability)
    consistent = is_consistent(probability, verdict.threshold, fitted=True)
    return replace(
        verdict,
        label="consistent" if consistent else "inconsistent",
        probability=probability,
        contributions=contributions,
        message="" if verdict.label == "unverifiable" else verdict.message,
    )


def logit(probability: float) -> float:
    """The inverse of ``decision.sigmoid``, finite for every probability."""
    bounded = min(max(probability, 1e-12), 1 - 1e-12)
    return math.log(bounded / (1 - bounded))
