"""Numbers that the fusion may read: the metrics' values, and what their explanations add."""

from __future__ import annotations

from collections.abc import Mapping

from groundwire.engine.schema.explanations import (
    BertScoreExplanation,
    DetectorExplanation,
    NliExplanation,
    OverlapExplanation,
    Q2Explanation,
)
from groundwire.engine.schema.results import MetricResult

Results = Mapping[str, MetricResult]


def features(results: Results) -> dict[str, float]:
    """Every number that ``results`` has, by name: scored metrics under their own, the others as ``metric.what``."""
    found = {name: result.value for name, result in results.items() if result.value is not None}
    for name, result in results.items():
        if result.value is not None and result.explanation is not None:
            found |= {f"{name}.{what}": number for what, number in _explained(result).items()}
    return found


def _explained(result: MetricResult) -> dict[str, float]:
    """What an explanation adds to its metric's value; a metric without an entry adds nothing."""
    explanation = result.explanation
    match explanation:
        case Q2Explanation():
            kept = [one for one in explanation.questions if one.kept]
            if not kept:
                return {"asked": 0.0}
            return {
                "asked": 1.0,
                "worst": min(one.value or 0.0 for one in kept),
                "no_answer": sum(one.knowledge_answer is None for one in kept) / len(kept),
            }
        case NliExplanation():
            each = explanation.sentences or (explanation.response,)
            return {
                "expected": explanation.response.supported,
                "entailment": explanation.response.probabilities["entailment"],
                "contradiction": explanation.response.probabilities["contradiction"],
                "worst": min(one.supported for one in each),
            }
        case DetectorExplanation(sentences=each) if each:
            return {"worst": min(one.supported for one in each)}
        case OverlapExplanation():
            return {"missing": float(sum(not word.in_knowledge for word in explanation.words))}
        case BertScoreExplanation():
            return {
                "precision": explanation.precision,
                "recall": explanation.recall,
                "worst": min((word.similarity for word in explanation.words), default=0.0),
            }
    return {}
