"""Turns of assistants that call tools: ``TurnChecker(engine).check(text, calls, log=log, history=history)``."""

from __future__ import annotations

from .checker import TurnChecker
from .records import Finding, TurnCheck

__all__ = ["Finding", "TurnCheck", "TurnChecker"]
