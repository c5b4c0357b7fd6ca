"""The ``groundwire`` command; ``program`` puts it together.

``app`` and ``main`` are imported on first use: a package above the engine takes its options from ``common``, and must
not have its own commands added while it is imported itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .program import app, main

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import program

    return getattr(program, name)
