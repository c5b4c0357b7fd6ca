"""The capture sizes of graphs on a GPU, and how a batch is padded to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, repeat
from operator import mul
from typing import NamedTuple

from .. import _native
from ..manifest import ShapePlan

WIDTHS = (32, 64, 96, 128, 192, 256, 384, 512)
"""Padded widths, in tokens; longer windows double them."""
MAX_TOKENS, MAX_ROWS, USUAL_ROWS = 8192, 256, 16
"""The most padded tokens and rows in a captured batch, and the usual number of rows."""
STRICT_TOKENS = 4096
"""Padded tokens of the only shape of a strict graph."""
SMALL_TOKENS = 2048
"""Padded tokens of a run below which its kernels are too short for padding to matter."""
_WASTE = 1.25
"""Rows of a larger run, at most, for each row that is read."""
SOURCE_TOKENS = 4096
"""Padded tokens of the sources that decode together."""
BEAM_ROWS = 160
"""Sources times beams that decode together."""


class BatchShape(NamedTuple):
    """The padded batch of one run. Runs of equal shapes have equal addresses, so it is the key of what is captured."""

    rows: int
    """Texts or sources, in each context."""
    tokens: int
    """Padded width of a row."""
    past: int = 0
    """Tokens whose keys and values are read."""
    texts: int = 1
    """Texts after the past of each row (language models)."""
    scored: int = 0
    """Positions of all rows with a log-probability; 0 for a prefix, whose keys and values are kept."""
    contexts: int = 1
    """Prompts of each source (decoders)."""
    beams: int = 1
    """Beams of each source after the step (decoders)."""
    before: int = 1
    """Beams of each source before the step (decoders)."""
    candidates: int = 0
    """Candidates of each beam (decoders)."""

    @property
    def pairs(self) -> int:
        """Pairs of tokens in its attention."""
        return self.rows * self.texts * self.tokens * (self.past + self.tokens)


class Block(NamedTuple):
    """Consecutive rows of a batch that run together, padded to a capture size."""

    first: int
    used: int
    rows: int
    """The capture size; the first ``used`` rows are from the batch."""


def list_widths(max_tokens: int) -> tuple[int, ...]:
    """The padded widths of a model whose window has ``max_tokens``; the last holds the window."""
    last = _native.bucket_width(max_tokens)
    widths = [width for width in WIDTHS if width < last]
    while widths and widths[-1] >= WIDTHS[-1] and 2 * widths[-1] < last:
        widths.append(2 * widths[-1])
    return (*widths, last)


def plan_encoder(max_tokens: int, *, strict: bool) -> ShapePlan:
    """The shapes of an encoder whose window has ``max_tokens``.

    A strict plan has one shape, so that every text goes through the same kernels.
    """
    widths = list_widths(max_tokens)
    if strict:
        return plan_strict(widths[-1])
    return ShapePlan(widths, max(MAX_TOKENS, widths[-1]), MAX_ROWS, USUAL_ROWS)


def plan_strict(width: int, most: int = STRICT_TOKENS) -> ShapePlan:
    """One shape of a width, with at most ``most`` rows."""
    rows = min(most, max(1, STRICT_TOKENS // width))
    return ShapePlan((width,), rows * width, rows, rows)


def plan_sources(max_tokens: int) -> ShapePlan:
    """The shapes of a generator's sources: widths that double from the least one up to the model's window."""
    widths = [WIDTHS[0]]
    while widths[-1] < max_tokens:
        widths.append(2 * widths[-1])
    return ShapePlan(tuple(widths), max(SOURCE_TOKENS, widths[-1]), BEAM_ROWS, BEAM_ROWS)


def list_sizes(most: int, *, strict: bool = False) -> tuple[int, ...]:
    """The capture sizes up to ``most`` rows, ascending: powers of two and ``most``; a strict plan has only ``most``."""
    if strict:
        return (most,)
    doubled = accumulate(repeat(2, (most - 1).bit_length()), mul, initial=1)
    return (*(rows for rows in doubled if rows < most), most)


def cut_rows(count: int, sizes: Sequence[int], width: int) -> list[Block]:
    """Cut ``count`` rows to blocks of the capture sizes ``sizes``, whose last holds them all.

    Few rows are padded to the next size. Many are cut to the largest size that they fill, and then again, unless
    padding costs little.

    >>> cut_rows(3, (1, 2, 4, 8), 64)
    [Block(first=0, used=3, rows=4)]
    >>> cut_rows(65, (1, 2, 4, 8, 16, 32, 64, 128), 64)
    [Block(first=0, used=64, rows=64), Block(first=64, used=1, rows=1)]
    """
    blocks: list[Block] = []
    first = 0
    while first < count:
        left = count - first
        above = next(rows for rows in sizes if rows >= left)
        below = max((rows for rows in sizes if rows <= left), default=above)
        rows = above if above * width <= SMALL_TOKENS or above <= _WASTE * left else below
        blocks.append(Block(first, min(rows, left), rows))
        first += rows
    return blocks
