"""Turns of people who speak for a tool, beside its results: right answers, and the same with one value exchanged."""

from .pairs import ToolPairs
from .turns import read_turns

__all__ = ["ToolPairs", "read_turns"]
