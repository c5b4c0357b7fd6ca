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
import os
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
    ServerError,
    ServerUnavailable,
    StreamClosed,
    TooLong,
    Unreadable,
)
from groundwire.runtime.kserve.server import Endpoint
from groundwire.runtime.triples import Triple

from .api import Engine
from .generation.options import GenerationOptions
from .generation.pipeline import GenerationStream
from .generation.records import GeneratedResponse, GeneratedToken, Generation
from .kg import KnowledgeGraph, Linked, Problem, Subgraph
from .metrics import GROUPS, METRICS
from .schema.evidence import Difference, EvidencePacket, RequestDigests, Verification
from .schema.explanations import (
    AnsweredPhrase,
    BertScoreExplanation,
    CitationCandidate,
    CitationsExplanation,
    CitedSentence,
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
    StatedValue,
    TokenClassifierExplanation,
    ValuesExplanation,
    VerifiabilityExplanation,
)
from .schema.options import (
    BertScoreOptions,
    CitationOptions,
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
from .schema.repairs import Alternative, Change, Correction, CorrectionEdit, Critique, Edit, Refinement
from .schema.results import Citation, MetricResult, Ranked, Request, Score, Timings, UnsupportedSpan, Verdict
from .schema.statistics import EngineStatistics, StageStatistics
from .streaming.policies import Correct, Fallback, Policy, Redact, Refine, Regenerate
from .streaming.records import Blocked, EarlyVerdict, FinalEvent, Release, SentenceEvent
from .streaming.stream import ResponseStream

__all__ = [
    "GROUPS",
    "METRICS",
    "Alternative",
    "AnsweredPhrase",
    "BeamSampling",
    "BeamSearch",
    "BertScoreExplanation",
    "BertScoreOptions",
    "Blocked",
    "BundleError",
    "Change",
    "Citation",
    "CitationCandidate",
    "CitationOptions",
    "CitationsExplanation",
    "CitedSentence",
    "ClassifiedSpan",
    "Comparison",
    "ContentWord",
    "Correct",
    "Correction",
    "CorrectionEdit",
    "CriticExplanation",
    "CriticOptions",
    "Critique",
    "DelayedBeamSearch",
    "DetectorExplanation",
    "DetectorOptions",
    "DeviceError",
    "Difference",
    "EarlyVerdict",
    "Edit",
    "Endpoint",
    "Engine",
    "EngineClosed",
    "EngineStatistics",
    "EvidencePacket",
    "Fallback",
    "FeqaExplanation",
    "FeqaOptions",
    "FinalEvent",
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
    "Policy",
    "Problem",
    "Q2Explanation",
    "Q2Options",
    "Ranked",
    "Redact",
    "Refine",
    "Refinement",
    "Regenerate",
    "Release",
    "Request",
    "RequestDigests",
    "ResponseStream",
    "Sampling",
    "Score",
    "SentenceEvent",
    "ServerError",
    "ServerUnavailable",
    "StageStatistics",
    "StatedValue",
    "StreamClosed",
    "Subgraph",
    "TextSpan",
    "Timings",
    "TokenClassifierExplanation",
    "TokenClassifierOptions",
    "TooLong",
    "Triple",
    "Unreadable",
    "UnsupportedSpan",
    "ValuesExplanation",
    "Verdict",
    "VerifiabilityExplanation",
    "Verification",
    "default_engine",
    "score",
]

_lock = threading.Lock()
_default: list[Engine] = []
_inherited: list[Engine] = []
"""The default engines of the processes that this one was forked from: freeing their models would wait for threads that
do not exist here."""


def default_engine() -> Engine:
    """The engine that ``score`` uses, loaded at the first use and closed when the process ends.

    The environment chooses it: ``GROUNDWIRE_BUNDLE`` (default: compact), ``GROUNDWIRE_DEVICE`` (auto) and
    ``GROUNDWIRE_THREADS`` (all usable processors). A forked process loads its own.
    """
    with _lock:
        if not _default:
            _default.append(_load_from_environment())
            atexit.register(_default[0].close)
        return _default[0]


def _load_from_environment() -> Engine:
    """The engine that the environment variables describe; InvalidRequest when one is not usable."""
    threads = os.environ.get("GROUNDWIRE_THREADS") or None
    if threads is not None and not threads.isdecimal():
        raise InvalidRequest(f"GROUNDWIRE_THREADS={threads!r} is not a number; give 1 or more, or leave it unset.")
    return Engine.load(
        os.environ.get("GROUNDWIRE_BUNDLE") or "compact",
        os.environ.get("GROUNDWIRE_DEVICE") or "auto",
        threads=None if threads is None else int(threads),
    )


def _forget_default() -> None:
    """In a forked process: another thread may have held the lock, and the engine's threads do not exist."""
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_default)
    _default.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_default)


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
