"""What a rule refutes is not consistent, whatever the rest of the evidence says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ..metrics import find
from ..schema.results import Verdict
from .threshold import is_consistent


class Refutation(NamedTuple):
    """What a metric refutes by itself (``Metric.refutes``)."""

    feature: str
    """As contributions name it: ``values.contradicted``."""
    probability: float
    """Of being consistent, at most."""


def find_refutation(numbers: Mapping[str, float]) -> Refutation | None:
    """The strongest refutation that the features of a response or of a sentence tell of, or None."""
    refutations = []
    for name, number in numbers.items():
        prefix, _, key = name.rpartition(".")
        metric = find(prefix)
        if metric is not None and metric.refutes is not None and key == metric.refutes.feature and number > 0:
            refutations.append(Refutation(name, metric.refutes.probability))
    return min(refutations, key=lambda refutation: refutation.probability, default=None)


def refute(verdict: Verdict, refutation: Refutation | None) -> Verdict:
    """The verdict with no more probability than ``refutation`` leaves it, which has the part of a contribution.

    A verdict without a probability keeps it that way.
    """
    if refutation is None or verdict.probability is None or verdict.threshold is None:
        return verdict
    probability = min(verdict.probability, refutation.probability)
    contributions = dict(verdict.contributions or {})
    if probability < verdict.probability:
        contributions[refutation.feature] = logit(probability) - logit(verdict.probability)
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
