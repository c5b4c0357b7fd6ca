"""The records in which metrics explain their values, for ``Score.explain``.

>>> from groundwire.explanations import Q2Explanation
"""

from __future__ import annotations

from groundwire.engine.schema.explanations import (
    BertScoreExplanation,
    CitationsExplanation,
    CriticExplanation,
    DetectorExplanation,
    FeqaExplanation,
    NliExplanation,
    OverlapExplanation,
    PmiExplanation,
    Q2Explanation,
    QuotationsExplanation,
    ReaderExplanation,
    TokenClassifierExplanation,
    ValuesExplanation,
    VerifiabilityExplanation,
)

__all__ = [
    "BertScoreExplanation",
    "CitationsExplanation",
    "CriticExplanation",
    "DetectorExplanation",
    "FeqaExplanation",
    "NliExplanation",
    "OverlapExplanation",
    "PmiExplanation",
    "Q2Explanation",
    "QuotationsExplanation",
    "ReaderExplanation",
    "TokenClassifierExplanation",
    "ValuesExplanation",
    "VerifiabilityExplanation",
]
