"""What can be left out of a sentence so that it remains one, by its punctuation and its small words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from groundwire.engine.extend import WORD

LEFT = 4
"""Words of a sentence that must remain."""
MAX_CHARS = 1_000
"""Characters of a sentence, at most."""
_RELATIVE = (
    r"(?:which|who|whom|whose|where|when|known|based|founded|located|born|including|such as|like|an?|the|one of)"
)
_PREPOSITION = r"(?:in|at|on|near|during|since|until|after|before|with|from|for|by|alongside)"
_PARENTHESIS = re.compile(r"\s+\([^()]*\)")
_BETWEEN_COMMAS = re.compile(rf",\s+{_RELATIVE}\b[^,;.:!?()]*,", re.IGNORECASE)
_AT_THE_END = re.compile(rf"(?:,\s+{_RELATIVE}\b|,?\s+and\s)[^;:!?()]*?(?=[.!?]*$)", re.IGNORECASE)
_ADJUNCT = re.compile(rf"\s+{_PREPOSITION}\s+[^,;:!?()]*?(?=,|[.!?]*$)", re.IGNORECASE)
_NEEDS_MORE = re.compile(
    r"\b(?:is|was|are|were|be|been|being|am|'s|'re|located|situated|based|known|consists?|composed|lives?|lived|belongs?"
    r"|comes?|came|stars?|plays?|played|depends?|works?|worked|of|than|as|and|or|between)$|[,;:]$",
    re.IGNORECASE,
)

_AGENT = re.compile(r"\s+by\s", re.IGNORECASE)
_BARE_PASSIVE = re.compile(r"\b(?:is|was|are|were|be|been|being)\s+(?:\w+ly\s+)?\w+$", re.IGNORECASE)
"""A clause that says of something that it was done, and without an agent nothing more: "was hosted"."""


class Removal(NamedTuple):
    """Characters ``start`` to ``end`` of a sentence that may be left out."""

    start: int
    end: int


def find_removals(sentence: str, start: int, end: int) -> Iterator[Removal]:
    """Parts of a sentence that contain its characters ``start`` to ``end`` and may be left out, shortest first.

    >>> text = "Ann, a singer from Oslo, met Bob in Rome (Italy)."
    >>> [text[part.start : part.end] for part in find_removals(text, 19, 23)]
    [' from Oslo', ', a singer from Oslo,']
    >>> [text[part.start : part.end] for part in find_removals(text, 42, 47)]
    [' (Italy)']
    >>> list(find_removals("The old song was sung by Bob.", 25, 28))
    []
    """
    if len(sentence) > MAX_CHARS:
        return
    parts = set()
    for pattern in (_PARENTHESIS, _BETWEEN_COMMAS, _AT_THE_END, _ADJUNCT):
        search_start = 0
        while (match := pattern.search(sentence, search_start)) is not None:
            if match.start() <= start and end <= match.end():
                parts.add(match.span())
            search_start = match.start() + 1
    for part in sorted(parts, key=lambda part: (part[1] - part[0], part)):
        before, after = sentence[: part[0]], sentence[part[1] :]
        needs_agent = _AGENT.match(sentence, part[0]) and _BARE_PASSIVE.search(before) and not WORD.search(after)
        if len(WORD.findall(before + after)) >= LEFT and not (_NEEDS_MORE.search(before) or needs_agent):
            yield Removal(*part)
