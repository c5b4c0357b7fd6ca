"""A BERTScore's explanation and its three numbers."""

from __future__ import annotations

from groundwire.engine import BertScoreExplanation, Score


def explained(found: Score) -> BertScoreExplanation:
    explanation = found.metrics["bertscore"].explanation
    assert isinstance(explanation, BertScoreExplanation)
    return explanation


def triple(found: Score) -> tuple[float, float, float]:
    explanation = explained(found)
    assert found.value == explanation.f1
    return explanation.precision, explanation.recall, explanation.f1
