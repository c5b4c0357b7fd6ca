"""Groundwire's engine: how faithful a dialogue response is to its knowledge.

>>> from groundwire import engine
>>> score = engine.score(                                                                      # doctest: +SKIP
...     "Bob Ross hosted The Joy of Cooking.",
...     "Bob Ross was the creator and host of The Joy of Painting.",
... )
>>> score.verdict.label, [span.text for span in score.unsupported]                             # doctest: +SKIP
('inconsistent', ['Cooking'])

Records of explanations are in ``groundwire.engine.schema.explanations``, settings of single metrics in
``groundwire.engine.schema.options``, and what a metric is made of in ``groundwire.metrics``.
"""

from __future__ import annotations

if __name__ != "groundwire.engine":  # a second copy of every class
    raise ImportError("This folder is the source of groundwire.engine: import that.")

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
from groundwire.runtime.triples import Triple

from .api import Engine, default_engine, score
from .core.pending import Pending
from .core.plan import Plan
from .schema.knowledge import Passage, ToolCall
from .schema.load_options import LoadOptions
from .schema.options import Options
from .schema.results import MetricResult, Ranked, Request, Score, UnsupportedSpan, Verdict
from .schema.statistics import EngineStatistics

__all__ = [
    "BundleError",
    "DeviceError",
    "Engine",
    "EngineClosed",
    "EngineStatistics",
    "GroundwireError",
    "InvalidRequest",
    "LoadOptions",
    "MetricResult",
    "ModelError",
    "Options",
    "Overloaded",
    "Passage",
    "Pending",
    "Plan",
    "Ranked",
    "Request",
    "Score",
    "ServerError",
    "ServerUnavailable",
    "StreamClosed",
    "TooLong",
    "ToolCall",
    "Triple",
    "Unreadable",
    "UnsupportedSpan",
    "Verdict",
    "default_engine",
    "score",
]


def __dir__() -> list[str]:
    """The public names: what is imported here to define them is not a part of the interface."""
    return sorted(__all__)
