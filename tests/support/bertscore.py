"""A BERTScore's explanation and its three numbers."""

from __future__ import annotations

from groundwire.engine import BertScoreExplanation, Score


def explained(score: Score) -> BertScoreExplanation:
    explanation = score.metrics["bertscore"].explanation
    assert isinstance(explanation, BertScoreExplanation)
    return explanation


def triple(score: Score) -> tuple[float, float, float]:
    explanation = explained(score)
    assert score.value == explanation.f1
    return explanation.precision, explanation.recall, explanation.f1
