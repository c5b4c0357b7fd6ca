"""Edits of a text as lists of replacements, so that the edited characters are known exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Replacement: TypeAlias = tuple[int, int, str]
"""First character, one past the last, and the new text."""


@dataclass(frozen=True, slots=True)
class EditedSpan:
    """Characters of a response that its knowledge does not support, and why."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class ClaimEdit:
    """An edit of a claim."""

    kind: str
    """How it was made; finer than the reason."""
    reason: str
    replacements: tuple[Replacement, ...]
    """In order, disjoint."""
    source: str = ""
    """The sentence that supports an addition."""

    def apply(self, claim: str) -> str:
        """The edited claim."""
        out, done = "", 0
        for start, end, new in self.replacements:
            out += claim[done:start] + new
            done = end
        return out + claim[done:]

    def find_spans(self) -> tuple[EditedSpan, ...]:
        """What the edit wrote, in the edited claim."""
        shift, spans = 0, []
        for start, end, new in self.replacements:
            text = new.strip(" ,;")
            begin = start + shift + new.find(text)
            spans.append(EditedSpan(begin, begin + len(text), self.reason))
            shift += len(new) - (end - start)
        return tuple(spans)

    def find_replaced_spans(self) -> tuple[EditedSpan, ...]:
        """What the edit took away, in the claim before."""
        return tuple(EditedSpan(start, end, self.reason) for start, end, _ in self.replacements if end > start)
