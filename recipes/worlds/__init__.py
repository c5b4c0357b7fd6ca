"""Worlds: training pairs of knowledge and answers that are labelled by construction.

A record of a domain (a shop, a clinic, a plan, a person) is written as knowledge and as answers. The false answer of a
pair differs from the true one in one change, whose characters are known.
"""

from .rows import WorldPair, WorldRow, WorldSentence, WorldSpan
from .worlds import Worlds

__all__ = ["WorldPair", "WorldRow", "WorldSentence", "WorldSpan", "Worlds"]
