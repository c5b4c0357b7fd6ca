"""The fixed shapes in which graphs run on a GPU, and how batches are cut to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, repeat
from operator import mul
from typing import NamedTuple

from .. import _native
from ..manifest import Plan

WIDTHS = (32, 64, 96, 128, 192, 256, 384, 512)
"""Padded widths, in tokens; longer windows double them."""
MAX_TOKENS, MAX_ROWS, USUAL_ROWS = 8192, 256, 16
"""Of a batch that is captured."""
STRICT_TOKENS = 4096
"""Padded tokens of the only shape of a strict graph."""
SMALL_TOKENS = 2048
"""Padded tokens of a run below which its kernels are too short for padding to matter."""
_WASTE = 1.25
"""Rows of a larger run, at most, for each row that is read."""


class Piece(NamedTuple):
    """Rows of a batch that run together."""

    first: int
    used: int
    rows: int
    """Those of the shape, of which ``used`` are of the batch."""


def list_widths(max_tokens: int) -> tuple[int, ...]:
    """The padded widths of a model whose window has ``max_tokens``; the last holds the window."""
    last = _native.bucket_width(max_tokens)
    widths = [width for width in WIDTHS if width < last]
    while widths and widths[-1] >= WIDTHS[-1] and 2 * widths[-1] < last:
        widths.append(2 * widths[-1])
    return (*widths, last)


def make_ladder(max_tokens: int, *, strict: bool, most: int = MAX_TOKENS) -> Plan:
    """The shapes of an encoder whose window has ``max_tokens``: batches of at most ``most`` padded tokens.

    A strict plan has one shape, so that every text goes through the same kernels.
    """
    widths = list_widths(max_tokens)
    if strict:
        rows = max(1, min(most, STRICT_TOKENS) // widths[-1])
        return Plan(widths[-1:], rows * widths[-1], rows, rows)
    return Plan(widths, max(most, widths[-1]), MAX_ROWS, USUAL_ROWS)


def list_rows(most: int, *, strict: bool = False) -> tuple[int, ...]:
    """The numbers of rows of one width, ascending: powers of two, and ``most``; that alone of a strict plan."""
    if strict:
        return (most,)
    doubled = accumulate(repeat(2, (most - 1).bit_length()), mul, initial=1)
    return (*(rows for rows in doubled if rows < most), most)


def cut_rows(count: int, ladder: Sequence[int], width: int) -> list[Piece]:
    """Cut ``count`` rows to the shapes of ``ladder``, whose last holds them all.

    Few rows are padded to the next shape. Many are cut to the largest shape that they fill, and then again, unless
    padding costs little.

    >>> cut_rows(3, (1, 2, 4, 8), 64)
    [Piece(first=0, used=3, rows=4)]
    >>> cut_rows(65, (1, 2, 4, 8, 16, 32, 64, 128), 64)
    [Piece(first=0, used=64, rows=64), Piece(first=64, used=1, rows=1)]
    """
    pieces: list[Piece] = []
    first = 0
    while first < count:
        left = count - first
        above = next(rows for rows in ladder if rows >= left)
        below = max((rows for rows in ladder if rows <= left), default=above)
        rows = above if above * width <= SMALL_TOKENS or above <= _WASTE * left else below
        pieces.append(Piece(first, min(rows, left), rows))
        first += rows
    return pieces
