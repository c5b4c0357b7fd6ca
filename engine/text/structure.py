"""Markdown line by line: which lines are code or tables, which belong to the line after them, where a list item begins.

The kind of a line depends on the lines before it and on the line itself, never on later lines, so that a stream reads
the same structure as the whole text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["blank", "text", "item", "heading", "fence", "code", "table"]
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•–·]|\d{1,3}[.)]|[a-z]\))[ \t]+(?=\S)")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]+\S|[ \t]*(\*\*|__)[^*_\n]*[^*_\n.!:]\1[ \t]*$")
_UNDECIDED = re.compile(r"[ \t]*(?:`{0,2}|~{0,2}|\d{1,3}[.)]?|[a-z]\)?|(?:\d{1,3}[.)]|[a-z]\))[ \t]+)\Z")
_LEAD_IN = re.compile(r":[ \t*_]*\Z")
_PROSE = re.compile(r"(?:[^\W\d_]|[ ,.'’!?-]|\d(?=[\d\s.,%]))*\Z")
_PROSE_WORDS = 5
"""Words from which a line between fences may be prose."""


class MarkdownLine(NamedTuple):
    """What a line is."""

    kind: Kind
    marker: int = 0
    """Where the text of a list item begins."""
    carries: bool = False
    """Whether it belongs to the sentence that begins in the next line: a heading, a lead-in, the header of a table."""

    @property
    def is_split(self) -> bool:
        """Whether full stops end sentences in it."""
        return self.kind not in ("fence", "code", "table")


class LineReader:
    """The state between two lines of a text."""

    def __init__(self) -> None:
        self._fence = ""
        self._in_table = False
        self._carrying = False

    def is_decided(self, line: str) -> bool:
        """Whether what is there of an unfinished line says where its sentences end."""
        unsplit = self._fence or _FENCE.match(line) or line.lstrip().startswith("|")
        return not unsplit and not _UNDECIDED.match(line)

    def find_marker(self, line: str) -> int:
        """Where the text of an unfinished line begins that ``is_decided``; 0 if it is not a list item."""
        match = _ITEM.match(line)
        return 0 if match is None else match.end()

    def read(self, line: str) -> MarkdownLine:
        """What a complete line is; its line break may be part of it."""
        line = line.rstrip()
        structure = self._find(line)
        self._in_table = structure.kind == "table"
        self._carrying = structure.carries
        return structure

    def _find(self, line: str) -> MarkdownLine:
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence[1] == self._fence:
                self._fence = ""
                return MarkdownLine("fence")
            if not line:
                return MarkdownLine("blank", carries=self._carrying)
            return MarkdownLine("text" if _looks_like_prose(line) else "code")
        if not line:
            return MarkdownLine("blank", carries=self._carrying)
        if fence:
            self._fence = fence[1]
            return MarkdownLine("fence", carries=True)
        if line.lstrip().startswith("|"):
            separator = not any(map(str.isalnum, line))
            return MarkdownLine("table", carries=self._carrying if separator else not self._in_table)
        item = _ITEM.match(line)
        marker = item.end() if item else 0
        if _HEADING.match(line):
            return MarkdownLine("heading", carries=True)
        return MarkdownLine("item" if item else "text", marker, bool(_LEAD_IN.search(line)))


def _looks_like_prose(line: str) -> bool:
    """Whether a line between fences is a sentence rather than code: fences do not hide statements."""
    words = line.split()
    return len(words) >= _PROSE_WORDS and line.lstrip()[0].isupper() and _PROSE.match(line.strip()) is not None
