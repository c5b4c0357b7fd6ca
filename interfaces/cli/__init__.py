"""The ``groundwire`` command; ``program`` assembles it.

``app`` and ``main`` are imported on first use: packages above the engine import option types from here, and must not
have their own commands loaded while they are being imported themselves.
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
