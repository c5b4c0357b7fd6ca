"""Fits what the metric ``citations`` needs to call a sentence of the knowledge a support."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from groundwire.engine.metrics.support import SupportFeatures, SupportModel
from groundwire.engine.schema.explanations import CitationCandidate, CitationsExplanation
from groundwire.engine.schema.results import Score
from groundwire.evaluate.datasets.examples import Example

RANK_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0)
"""Of overlap beside similarity."""
PENALTY = 1.0
"""Of scikit-learn's logistic regression, on features that are about 1 in size; there are thousands of rows."""


class RatedSentence(NamedTuple):
    """A sentence of the knowledge beside one of a response, and whether it is part of the evidence."""

    candidate: CitationCandidate
    supports: bool


def collect_rated(examples: Sequence[Example], scores: Sequence[Score]) -> list[list[RatedSentence]]:
    """The candidates of each sentence of a response; examples are left out where the metric says nothing."""
    rated = []
    for example, score in zip(examples, scores, strict=True):
        explanation = score.metrics["citations"].explanation
        if not isinstance(explanation, CitationsExplanation):
            continue
        for sentence in explanation.sentences:
            rated.append([RatedSentence(item, _is_evidence(item, example)) for item in sentence.candidates])
    return rated


def fit_support(rated: Sequence[Sequence[RatedSentence]], candidates: int) -> SupportModel:
    """The model that puts most evidence among the first ``candidates``, and is calibrated on those.

    ``rated`` has all sentences of the knowledge for each sentence of a response.
    """
    model = SupportModel(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    ranked = [model._replace(rank_overlap=weight) for weight in RANK_WEIGHTS]
    best = max(ranked, key=lambda model: measure_reach(rated, model, candidates))
    rows = [item for sentence in rated for item in choose_nearest(sentence, best, candidates)]
    features = np.array([_collect_features(item.candidate).transform() for item in rows])
    labels = np.array([item.supports for item in rows])
    fitted = LogisticRegression(C=1 / PENALTY, max_iter=1000).fit(features, labels)
    return best._replace(
        intercept=float(fitted.intercept_[0]),
        **dict(zip(SupportModel._fields[1:5], fitted.coef_[0].tolist(), strict=True)),
    )


def measure_reach(rated: Iterable[Sequence[RatedSentence]], model: SupportModel, candidates: int) -> float:
    """Share, 0–1, of the sentences with evidence that have some of it among the first ``candidates``."""
    reached = [
        any(item.supports for item in choose_nearest(sentence, model, candidates))
        for sentence in rated
        if any(item.supports for item in sentence)
    ]
    return sum(reached) / len(reached) if reached else 0.0


def choose_nearest(sentence: Sequence[RatedSentence], model: SupportModel, candidates: int) -> list[RatedSentence]:
    """Those that the metric would read with the inference model."""
    ranked = sorted(sentence, key=lambda item: -model.rank(item.candidate.similarity, item.candidate.overlap))
    return ranked[:candidates]


def _is_evidence(candidate: CitationCandidate, example: Example) -> bool:
    where = candidate.evidence
    return any(
        part.passage == where.passage and where.start < part.end and part.start < where.end
        for part in example.evidence or ()
    )


def _collect_features(candidate: CitationCandidate) -> SupportFeatures:
    return SupportFeatures(candidate.similarity, candidate.overlap, candidate.entailment, candidate.contradiction)
