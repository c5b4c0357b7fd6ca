"""Verdicts: the features of results, the fusions and thresholds that decide by them, and what changes a verdict after.

The door for the evaluation, streams and corrections; an import contract names its users.
"""

from __future__ import annotations

from ..metrics.claims import VERIFIABLE
from .adjustments import REFUTING, find_refutation, is_contradicted
from .decision import decide_again
from .fusion import SentenceWeights, choose_fusion, features, features_of_part, find_feature, reads_in_response
from .marks import LIGHT
from .operating_point import find_threshold, smallest_level
from .score import rank_verdict

__all__ = [
    "LIGHT",
    "REFUTING",
    "VERIFIABLE",
    "SentenceWeights",
    "choose_fusion",
    "decide_again",
    "features",
    "features_of_part",
    "find_feature",
    "find_refutation",
    "find_threshold",
    "is_contradicted",
    "rank_verdict",
    "reads_in_response",
    "smallest_level",
]
