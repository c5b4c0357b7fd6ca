"""The capture sizes of graphs on a GPU, and how a batch is padded to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise, repeat
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..bundles.manifest import ShapePlan
from ..ort.blocks import RUN_TOKENS, count_cost, plan_cuts

WIDTHS = (32, 64, 96, 128, 192, 256, 384, 512)
"""Padded widths, in tokens; longer windows double them."""
SHORT_WIDTHS = (16, 24, 40, 48, 56)
"""Further widths of encoders, whose texts are mostly short: in steps of 8 up to 64."""
MAX_TOKENS, MAX_ROWS, USUAL_ROWS = 4096, 256, 16
"""The most padded tokens and rows in a captured batch of an encoder, and the usual number of rows."""
STRICT_TOKENS = 4096
"""Padded tokens of the only shape of a strict graph."""
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


def list_widths(max_tokens: int) -> tuple[int, ...]:
    """The padded widths of a model whose window has ``max_tokens``; the last holds the window."""
    last = _native.bucket_width(max_tokens)
    widths = [width for width in WIDTHS if width < last]
    while widths and widths[-1] >= WIDTHS[-1] and 2 * widths[-1] < last:
        widths.append(2 * widths[-1])
    return (*widths, last)


class EncoderPlan(ShapePlan, frozen=True, forbid_unknown_fields=True):
    """The shapes of an encoder: few rows of one width are padded to a wider one's where that saves a run."""

    def fit(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """The width of each row, so that all runs together cost least."""
        indices, counts = np.unique(np.searchsorted(self.widths, lengths), return_counts=True)
        wider = np.array(self.widths)
        widths = [self.widths[index] for index in indices.tolist()]
        for first, last in join_widths(widths, counts.tolist(), self):
            wider[indices[first : last + 1]] = widths[last]
        return np.asarray(wider[np.searchsorted(self.widths, lengths)])


def join_widths(widths: Sequence[int], counts: Sequence[int], plan: ShapePlan) -> list[tuple[int, int]]:
    """Which neighbours of the ascending ``widths``, with so many rows each, run together: their first and last index.

    The rows of all are padded to the last one's width. The runs cost least: their padded tokens, and ``RUN_TOKENS``
    for each.
    """
    sizes = _list_rows_by_width(plan)
    ends = [0, *accumulate(counts)]
    costs, firsts = [0], [0]
    for last, width in enumerate(widths):
        cuts = plan_cuts(sizes[width], width, RUN_TOKENS)
        cost, first = min(
            (costs[first] + count_cost(ends[last + 1] - ends[first], cuts), first) for first in range(last + 1)
        )
        costs.append(cost)
        firsts.append(first)
    groups, end = [], len(widths)
    while end:
        groups.append((firsts[end], end - 1))
        end = firsts[end]
    return groups[::-1]


def plan_encoder(max_tokens: int, *, strict: bool) -> ShapePlan:
    """The shapes of an encoder whose window has ``max_tokens``.

    A strict plan has one shape, so that every text goes through the same kernels.
    """
    widths = list_widths(max_tokens)
    if strict:
        return plan_strict(widths[-1])
    short = (width for width in SHORT_WIDTHS if width < widths[-1])
    return EncoderPlan(tuple(sorted({*short, *widths})), max(MAX_TOKENS, widths[-1]), MAX_ROWS, USUAL_ROWS)


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


def list_rows(most: int, *, strict: bool = False) -> tuple[int, ...]:
    """The capture sizes of encoders up to ``most`` rows, ascending: powers of two, three quarters of each from 4
    on, and ``most``; a strict plan has only ``most``."""
    sizes = list_sizes(most, strict=strict)
    between = (smaller + smaller // 2 for smaller, size in pairwise(sizes) if smaller > 1)
    return tuple(sorted({*sizes, *(rows for rows in between if rows < most)}))


@cache
def _list_rows_by_width(plan: ShapePlan) -> dict[int, tuple[int, ...]]:
    return {profile.width: list_rows(profile.max_rows) for profile in plan.profiles}
