"""What an own metric is made of: the record ``Metric``, ``register``, model calls, and a runtime without models.

>>> from groundwire.metrics import Classify, Metric, MetricResult, register
"""

from __future__ import annotations

from groundwire.engine import Engine, MetricResult, Options, Request, UnsupportedSpan
from groundwire.engine.metrics import GROUPS, METRICS, Metric, bind_results, check_names, find, register
from groundwire.engine.metrics.base import Details, MetricNumber, RoleInfos, WordEvidence, without_calls
from groundwire.engine.metrics.detector import is_detector
from groundwire.engine.metrics.requests import ReadKnowledge, ReadRequest
from groundwire.engine.schema.steps import Steps
from groundwire.engine.text.sentences import Sentence, sentences
from groundwire.engine.text.words import Word
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.calls import (
    Answer,
    Answered,
    Classified,
    ClassifiedToken,
    ClassifiedTokens,
    Classify,
    ClassifyTokens,
    CountTokens,
    Embed,
    Embedded,
    FindSpans,
    GeneratedQuestion,
    GenerateQuestions,
    IsPersonal,
    MeasureTexts,
    Read,
    ScoreText,
    TextLengths,
    TextScored,
    TextSpan,
    TokenCounts,
)
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo

__all__ = [
    "GROUPS",
    "METRICS",
    "Answer",
    "Answered",
    "Calibration",
    "Classified",
    "ClassifiedToken",
    "ClassifiedTokens",
    "Classify",
    "ClassifyTokens",
    "CountTokens",
    "Details",
    "Embed",
    "Embedded",
    "Engine",
    "FakeRuntime",
    "FindSpans",
    "GenerateQuestions",
    "GeneratedQuestion",
    "IsPersonal",
    "MeasureTexts",
    "Metric",
    "MetricNumber",
    "MetricResult",
    "Options",
    "Read",
    "ReadKnowledge",
    "ReadRequest",
    "Request",
    "RoleInfo",
    "RoleInfos",
    "ScoreText",
    "Sentence",
    "Steps",
    "TextLengths",
    "TextScored",
    "TextSpan",
    "TokenCounts",
    "UnsupportedSpan",
    "Word",
    "WordEvidence",
    "bind_results",
    "check_names",
    "find",
    "is_detector",
    "register",
    "sentences",
    "without_calls",
]


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
