"""Groundwire: how faithful a dialogue response is to its knowledge.

>>> import groundwire
>>> score = groundwire.score("Elvis sang.", "Elvis Presley was a singer.")                    # doctest: +SKIP

In a checkout, the packages are the folders at the top level: an editable installation maps ``groundwire.engine`` to
``engine/``, and ``deploy/tree.py`` lays them out for tools.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from groundwire.runtime.interpreter import check_interpreter
from groundwire.runtime.version import VERSION

check_interpreter()

if TYPE_CHECKING:
    from groundwire.engine import (
        BundleError,
        DeviceError,
        Engine,
        EngineClosed,
        GroundwireError,
        InvalidRequest,
        LoadOptions,
        ModelError,
        Options,
        Overloaded,
        Request,
        Score,
        ServerError,
        ServerUnavailable,
        StreamClosed,
        TooLong,
        Triple,
        Unreadable,
        score,
    )

__all__ = [
    "BundleError",
    "DeviceError",
    "Engine",
    "EngineClosed",
    "GroundwireError",
    "InvalidRequest",
    "LoadOptions",
    "ModelError",
    "Options",
    "Overloaded",
    "Request",
    "Score",
    "ServerError",
    "ServerUnavailable",
    "StreamClosed",
    "TooLong",
    "Triple",
    "Unreadable",
    "__version__",
    "score",
]

__version__ = VERSION

# ONNX Runtime's packages for Linux measure their use and send it to Microsoft from the moment of their import, unless
# this is set before. Python runs this file before any module of the package, so it holds for all that import it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def __getattr__(name: str) -> Any:
    """Import the engine with its first use, so that ``groundwire.runtime`` can be imported without it."""
    if name in __all__:
        from groundwire import engine

        return getattr(engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_find_elsewhere(name)}")


_ELSEWHERE = {
    **{name: f"from groundwire.evaluate import {name}" for name in ("calibrate", "compare", "evaluate")},
    **{name: f"from groundwire.engine import {name}" for name in ("Passage", "ToolCall")},
    **{name: f"from groundwire.repair import {name}" for name in ("KnowledgeGraph",)},
    **{name: f"from groundwire.turns import {name}" for name in ("TurnCheck", "TurnChecker")},
    "load": "Engine.load()",
}
"""What is not in this module, and where it is."""


def _find_elsewhere(name: str) -> str:
    """A part of a sentence that says where ``name`` is, if anything of the kind is there."""
    if name in _ELSEWHERE:
        return f": {_ELSEWHERE[name]}"
    if name.startswith("_"):
        return ""
    from groundwire.engine import Engine
    from groundwire.runtime.arguments import suggest

    if hasattr(Engine, name):
        return f": it is a method, with Engine.load() as engine: engine.{name}(…)"
    return suggest(name, __all__)


def __dir__() -> list[str]:
    """The public names: what is imported here to define them is no part of the interface."""
    return sorted(__all__)
