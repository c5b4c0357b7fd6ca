"""Groups the sentences of a long text into windows that a model can read, and cuts a sentence that is too long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

WINDOW_SIZE = 128
"""Size of a window in units (``count_pieces``): about 100 words, half of what the embedded models read at once."""
LEAST_SIZE = 8
"""The smallest window that is tried when a model cannot read a larger one."""
_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_LETTERS, _DIGITS = 6, 3
"""Letters and digits that count as one unit, at most: vocabularies have few longer tokens."""
_CLAUSE = re.compile(r"(?<=[,;:.!?)\]—–])\s+|\s+(?=[(\[—–])")
_SPACE = re.compile(r"\s+")


class TextWindow(NamedTuple):
    """Some of a sequence of texts: those from ``start`` to ``end`` are reported on, those from ``context`` on read."""

    context: int
    start: int
    end: int


def count_pieces(text: str) -> int:
    """Estimate the tokens of a text from its letters, digits and signs, for any vocabulary.

    >>> count_pieces("It opens at 19:00.")
    7
    """
    return sum(_count(match[0]) for match in _PIECE.finditer(text))


def _count(piece: str) -> int:
    return -(-len(piece) // (_DIGITS if piece[0].isdigit() else _LETTERS))


def group_texts(texts: Sequence[str], size: int = WINDOW_SIZE, context: int = 0) -> list[TextWindow]:
    """Group texts, the sentences of a response, into windows; the time grows with their length.

    Args:
        texts: Texts in order.
        size: Pieces of a window at most; a longer text is a window of its own.
        context: Texts before a window that are read with it, as far as they leave it half of ``size``.

    >>> group_texts(["It is old.", "It is long.", "It ends here."], size=8, context=1)
    [TextWindow(context=0, start=0, end=2), TextWindow(context=1, start=2, end=3)]
    """
    sizes = [count_pieces(text) for text in texts]
    windows: list[TextWindow] = []
    start = 0
    while start < len(texts):
        first, read = start, 0
        while first > max(0, start - context) and read + sizes[first - 1] <= size // 2:
            first -= 1
            read += sizes[first]
        end = start
        while end < len(texts) and (end == start or read + sizes[end] <= size):
            read += sizes[end]
            end += 1
        windows.append(TextWindow(first, start, end))
        start = end
    return windows


def cut_text(text: str, size: int = WINDOW_SIZE) -> list[tuple[int, int]]:
    """Cut a text at the ends of clauses, else of words, else anywhere: ranges of ``size`` units at most, in order.

    >>> text = "It opens at nine, and it closes at five."
    >>> [text[start:end] for start, end in cut_text(text, 6)]
    ['It opens at nine,', 'and it closes at five.']
    """
    ranges: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end = _find_end(text, start, size)
        if end < len(text):
            end = _find_boundary(text, start, end)
        part = text[start:end]
        if part.strip():
            begin = start + len(part) - len(part.lstrip())
            ranges.append((begin, start + len(part.rstrip())))
        start = end
    return ranges


def _find_end(text: str, start: int, size: int) -> int:
    """Where a part from ``start`` on must end: the end of its last unit that fits."""
    read, end = 0, start
    for match in _PIECE.finditer(text, start):
        count = _count(match[0])
        if read + count > size:
            if end == start:  # a single run of letters or digits
                end = match.start() + max(1, size) * (_DIGITS if match[0][0].isdigit() else _LETTERS)
            return end
        read, end = read + count, match.end()
    return len(text)


def _find_boundary(text: str, start: int, end: int) -> int:
    """The last end of a clause in the second half of a part, else the last end of a word, else the part's end."""
    if text[end].isspace():
        return end if _CLAUSE.match(text, end) else _last(_CLAUSE, text, (start + end) // 2, end) or end
    return _last(_CLAUSE, text, (start + end) // 2, end) or _last(_SPACE, text, start + 1, end) or end


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    last = None
    for match in pattern.finditer(text, start, end):
        last = match.start()
    return last
