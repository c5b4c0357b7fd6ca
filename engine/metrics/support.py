"""The probability that one sentence supports another, from a few numbers: a logistic regression.

``python -m groundwire.recipes.citing`` fits it to claims with the sentences that support them.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class SupportFeatures(NamedTuple):
    """What is known about a sentence of the response and one of the knowledge; all 0–1."""

    similarity: float
    overlap: float
    entailment: float
    contradiction: float

    def transform(self) -> tuple[float, float, float, float]:
        """Similarity, overlap, and the log odds of entailment and of contradiction."""
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
        """Order of a sentence among the sentences that the inference model may read."""
        return similarity + self.rank_overlap * overlap

    def support(self, features: SupportFeatures) -> float:
        """Probability, 0–1."""
        logit = self.intercept + sum(
            weight * number for weight, number in zip(self[1:5], features.transform(), strict=True)
        )
        return 1 / (1 + math.exp(-min(max(logit, -_LARGEST), _LARGEST)))


_LARGEST = 30.0
"""The largest absolute logit."""
_SURE = 0.001
"""Probabilities nearer than this to 0 or 1 count as this near: a small model that is surer is not more often right."""


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, _SURE), 1 - _SURE)
    return math.log(bounded / (1 - bounded))


EMBEDDED = SupportModel(
    intercept=-3.98, similarity=1.22, overlap=3.23, entailment=0.368, contradiction=-0.11, rank_overlap=0.5
)
"""For the models of the embedded bundle."""
