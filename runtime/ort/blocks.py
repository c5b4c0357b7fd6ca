"""Cuts the rows of a batch to blocks of capture sizes at the least cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

RUN_TOKENS = 64
"""What a run of an encoder costs besides its padded tokens, in tokens. ALBERT-xlarge takes 4.5 µs a token, and about
0.6 ms to launch its kernels and read its weights; between 64 and 192 the sum of both hardly changes
(docs/benchmarks.md)."""


class Block(NamedTuple):
    """Consecutive rows of a batch that run together, padded to a capture size."""

    first: int
    used: int
    rows: int
    """The capture size; the first ``used`` rows are from the batch."""


class Cut(NamedTuple):
    """How a number of rows is cut first, at the least cost."""

    cost: int
    """Padded tokens of all its runs, and what each run costs besides."""
    rows: int
    """Capture size of the first run."""


@cache
def plan_cuts(sizes: tuple[int, ...], width: int, run_tokens: int) -> tuple[Cut, ...]:
    """The best cut of each number of rows, from none to the largest size; of equal costs the fewest runs."""
    cuts = [Cut(0, 0)]
    for count in range(1, sizes[-1] + 1):
        costs = (Cut(rows * width + run_tokens + cuts[max(0, count - rows)].cost, -rows) for rows in sizes)
        cost, rows = min(costs)
        cuts.append(Cut(cost, -rows))
    return tuple(cuts)


def count_cost(count: int, cuts: Sequence[Cut]) -> int:
    """What rows cost that may be more than the largest size."""
    full, rest = divmod(count, len(cuts) - 1)
    return full * cuts[-1].cost + cuts[rest].cost


def cut_rows(count: int, sizes: tuple[int, ...], width: int, run_tokens: int = RUN_TOKENS) -> list[Block]:
    """Cut ``count`` rows to blocks of the capture sizes ``sizes``, whose last holds them all, at the least cost.

    A block costs its padded tokens and ``run_tokens`` besides.

    >>> cut_rows(3, (1, 2, 4, 8), 64)
    [Block(first=0, used=3, rows=4)]
    >>> cut_rows(65, (1, 2, 4, 8, 16, 32, 64, 128), 64)
    [Block(first=0, used=64, rows=64), Block(first=64, used=1, rows=1)]
    """
    cuts = plan_cuts(sizes, width, run_tokens)
    blocks: list[Block] = []
    first = 0
    while first < count:
        rows = cuts[count - first].rows
        blocks.append(Block(first, min(rows, count - first), rows))
        first += rows
    return blocks
