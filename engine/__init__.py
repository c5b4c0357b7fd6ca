"""Groundwire: how faithful a dialogue response is to its knowledge.

>>> from groundwire import engine
>>> score = engine.score(                                                                      # doctest: +SKIP
...     "Bob Ross hosted The Joy of Cooking.",
...     "Bob Ross was the creator and host of The Joy of Painting.",
... )
>>> score.value, [span.text for span in score.unsupported]                                     # doctest: +SKIP
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence

from groundwire.runtime.calls import BeamSampling, BeamSearch, DelayedBeamSearch, Greedy, Sampling, TextSpan
from groundwire.runtime.errors import (
    BundleError,
    DeviceError,
    EngineClosed,
    GroundwireError,
    InvalidRequest,
    ModelError,
    Overloaded,
    TooLong,
)
from groundwire.runtime.triples import Triple

from .api import Engine
from .generation.options import GenerationOptions
from .generation.pipeline import GenerationStream
from .generation.records import GeneratedResponse, GeneratedToken, Generation
from .kg import KnowledgeGraph, Linked, Problem, Subgraph
from .metrics import GROUPS, METRICS
from .nph.records import Alternative, Change, Critique, Refinement
from .schema.explanations import (
    AnsweredPhrase,
    BertScoreExplanation,
    ClassifiedSpan,
    Comparison,
    ContentWord,
    CriticExplanation,
    DetectorExplanation,
    FeqaExplanation,
    FlaggedMention,
    FlaggedToken,
    MatchedWord,
    NliExplanation,
    OverlapExplanation,
    PassageRange,
    PmiExplanation,
    PmiToken,
    Q2Explanation,
    TokenClassifierExplanation,
    VerifiabilityExplanation,
)
from .schema.options import (
    BertScoreOptions,
    CriticOptions,
    DetectorOptions,
    FeqaOptions,
    LexicalOptions,
    NliOptions,
    Options,
    PmiOptions,
    Q2Options,
    TokenClassifierOptions,
)
from .schema.results import MetricResult, Ranked, Request, Score, Timings, UnsupportedSpan, Verdict

__all__ = [
    "GROUPS",
    "METRICS",
    "Alternative",
    "AnsweredPhrase",
    "BeamSampling",
    "BeamSearch",
    "BertScoreExplanation",
    "BertScoreOptions",
    "BundleError",
    "Change",
    "ClassifiedSpan",
    "Comparison",
    "ContentWord",
    "CriticExplanation",
    "CriticOptions",
    "Critique",
    "DelayedBeamSearch",
    "DetectorExplanation",
    "DetectorOptions",
    "DeviceError",
    "Engine",
    "EngineClosed",
    "FeqaExplanation",
    "FeqaOptions",
    "FlaggedMention",
    "FlaggedToken",
    "GeneratedResponse",
    "GeneratedToken",
    "Generation",
    "GenerationOptions",
    "GenerationStream",
    "Greedy",
    "GroundwireError",
    "InvalidRequest",
    "KnowledgeGraph",
    "LexicalOptions",
    "Linked",
    "MatchedWord",
    "MetricResult",
    "ModelError",
    "NliExplanation",
    "NliOptions",
    "Options",
    "OverlapExplanation",
    "Overloaded",
    "PassageRange",
    "PmiExplanation",
    "PmiOptions",
    "PmiToken",
    "Problem",
    "Q2Explanation",
    "Q2Options",
    "Ranked",
    "Refinement",
    "Request",
    "Sampling",
    "Score",
    "Subgraph",
    "TextSpan",
    "Timings",
    "TokenClassifierExplanation",
    "TokenClassifierOptions",
    "TooLong",
    "Triple",
    "UnsupportedSpan",
    "Verdict",
    "VerifiabilityExplanation",
    "default_engine",
    "score",
]

_lock = threading.Lock()
_default: list[Engine] = []


def default_engine() -> Engine:
    """The engine that ``score`` uses: the compact bundle, loaded at the first use and closed when the process ends."""
    with _lock:
        if not _default:
            _default.append(Engine.load())
            atexit.register(_default[0].close)
        return _default[0]


def score(
    response: str,
    knowledge: str | Sequence[str] = (),
    *,
    history: Sequence[str] = (),
    triples: Sequence[Triple | tuple[str, str, str]] = (),
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> Score:
    """Score one response on the default engine; see ``Engine.score``."""
    return default_engine().score(
        response, knowledge, history=history, triples=triples, metrics=metrics, options=options
    )
