"""Groundwire: how faithful a dialogue response is to its knowledge.

>>> import groundwire
>>> score = groundwire.score("Elvis sang.", "Elvis Presley was a singer.")                    # doctest: +SKIP

In a checkout, the packages are the folders at the top level: an editable installation maps ``groundwire.engine`` to
``engine/``, and ``deploy/tree.py`` lays them out for tools.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
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
        Passage,
        Request,
        Score,
        ServerError,
        ServerUnavailable,
        StreamClosed,
        ToolCall,
        TooLong,
        Triple,
        Unreadable,
        score,
    )
    from groundwire.evaluate import calibrate, calibrate_trusted, compare
    from groundwire.guard import Guard
    from groundwire.repair import Corrector, Critic, KnowledgeGraph, Refiner
    from groundwire.turns import TurnChecker

__all__ = [
    "BundleError",
    "Corrector",
    "Critic",
    "DeviceError",
    "Engine",
    "EngineClosed",
    "GroundwireError",
    "Guard",
    "InvalidRequest",
    "KnowledgeGraph",
    "LoadOptions",
    "ModelError",
    "Options",
    "Overloaded",
    "Passage",
    "Refiner",
    "Request",
    "Score",
    "ServerError",
    "ServerUnavailable",
    "StreamClosed",
    "TooLong",
    "ToolCall",
    "Triple",
    "TurnChecker",
    "Unreadable",
    "__version__",
    "calibrate",
    "calibrate_trusted",
    "compare",
    "score",
]

__version__ = VERSION

# ONNX Runtime's packages for Linux measure their use and send it to Microsoft from the moment of their import, unless
# this is set before. Python runs this file before any module of the package, so it holds for all that import it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


_DOORS = ("engine", "repair", "guard", "turns", "evaluate", "generation", "evidence", "monitor", "explanations")
"""Packages that have the names of ``__all__``, and the names that an error is to lead to."""


def __getattr__(name: str) -> Any:
    """Import what ``name`` belongs to with its first use, so that ``groundwire.runtime`` is imported without it."""
    if name in __all__:
        return getattr(next(door for door in _import_doors() if name in door.__all__), name)
    if name in _DOORS:
        return import_module(f"{__name__}.{name}")
    # Python drops what AttributeError says where ``from groundwire import …`` asks.
    if sys._getframe(1).f_code.co_name == "_handle_fromlist" and find_spec(f"{__name__}.{name}") is None:
        raise ImportError(f"cannot import name {name!r} from {__name__!r}{_find_elsewhere(name)}", name=name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_find_elsewhere(name)}")


def _import_doors() -> Iterator[ModuleType]:
    return (import_module(f"{__name__}.{door}") for door in _DOORS)


def _find_elsewhere(name: str) -> str:
    """A part of a sentence that says where ``name`` is, if anything of the kind is there."""
    if name.startswith("_"):
        return ""
    for door in _import_doors():
        if name in door.__all__:
            return f": from {door.__name__} import {name}"
        for owner in vars(door).values():
            if isinstance(owner, type) and owner.__name__ in door.__all__ and hasattr(owner, name):
                return f": {owner.__name__} has it, from {door.__name__} import {owner.__name__}"
    from groundwire.runtime.arguments import suggest

    return suggest(name, __all__)


def __dir__() -> list[str]:
    """The public names: what is imported here to define them is no part of the interface."""
    return sorted(__all__)
