"""Turns of tools as a source of the reader."""

from __future__ import annotations

import random

from ..tools import ToolPairs
from .rows import AnswerRow
from .worlds_source import make_world_answer


def draw_tool_pair(tools: ToolPairs, limit: int, rng: random.Random) -> tuple[AnswerRow, AnswerRow]:
    """Draw the answers of a pair of about ``limit`` tokens at most."""
    pair = tools.draw(limit, rng)
    return make_world_answer(pair.supported), make_world_answer(pair.unsupported)
