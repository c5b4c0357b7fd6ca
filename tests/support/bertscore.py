"""Readers of a BERTScore's explanation, precision, recall and F1."""

from __future__ import annotations

from groundwire.engine import Score
from groundwire.engine.schema.explanations import BertScoreExplanation


def get_explanation(score: Score) -> BertScoreExplanation:
    explanation = score.metrics["bertscore"].explanation
    assert isinstance(explanation, BertScoreExplanation)
    return explanation


def get_values(score: Score) -> tuple[float, float, float]:
    """Precision, recall and F1."""
    explanation = get_explanation(score)
    assert score.value == explanation.f1
    return explanation.precision, explanation.recall, explanation.f1
