"""Lean inference: bundles, ONNX Runtime sessions, and the models that answer calls. No torch, no transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if __name__ != "groundwire.runtime":  # a second copy of every class
    raise ImportError("This folder is the source of groundwire.runtime: import that.")

if TYPE_CHECKING:
    from .kserve.endpoint import Endpoint

__all__ = ["Endpoint"]


def __getattr__(name: str) -> Any:
    """Import ``Endpoint`` with its first use: few engines need it, and every import of the package runs this file."""
    if name == "Endpoint":
        from .kserve.endpoint import Endpoint

        return Endpoint
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
