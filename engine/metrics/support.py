"""The probability that one sentence supports another, from a few numbers: a logistic regression.

``python -m groundwire.evaluate.citing`` fits it to claims with the sentences that support them.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Evidence(NamedTuple):
    """What is known about a sentence of the response and one of the knowledge; all 0–1."""

    similarity: float
    overlap: float
    entailment: float
    contradiction: float

    def features(self) -> tuple[float, float, float, float]:
        """Similarity, overlap, and the logarithms of entailment and contradiction over "neutral or the other"."""
        return self.similarity, self.overlap, _log_odds(self.entailment), _log_odds(self.contradiction)


class SupportModel(NamedTuple):
    """Weights of a logistic regression."""

    intercept: float
    similarity: float
    overlap: float
    entailment: float
    contradiction: float
    rank_overlap: float
    """Weight of overlap beside similarity, whose weight is 1, in the choice of the candidates."""

    def rank(self, similarity: float, overlap: float) -> float:
        """Order of a sentence among those that the inference model may read."""
        return similarity + self.rank_overlap * overlap

    def support(self, evidence: Evidence) -> float:
        """Probability, 0–1."""
        logit = self.intercept + sum(
            weight * number for weight, number in zip(self[1:5], evidence.features(), strict=True)
        )
        return 1 / (1 + math.exp(-min(max(logit, -_LARGEST), _LARGEST)))


_LARGEST = 30.0
"""Of a logit."""
_SURE = 0.001
"""Probabilities nearer than this to 0 or 1 count as this near: a small model that is surer is not more often right."""


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, _SURE), 1 - _SURE)
    return math.log(bounded / (1 - bounded))


EMBEDDED = SupportModel(-2.0, 2.0, 2.0, 1.0, -0.5, 0.5)
