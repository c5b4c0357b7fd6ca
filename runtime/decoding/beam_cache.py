"""Which keys and values each beam of a fused step reads: the graph copies none when beams continue other beams.

The buffers of a fused step have a row for each beam of a source, and a position for each token. A beam that continues
another one reads that one's positions where they are; a table says from which row each position is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..ort.session import Array

ALIGNED_BEAMS = 8
"""The attention over a source is one kernel for so many beams, and five for most other numbers."""
FEW_BEAMS = 4
"""Up to so many beams are not padded: their products would take longer than the kernels that are saved."""


def pad_beams(beams: int) -> int:
    """The rows that a source has for so many beams."""
    return beams if beams <= FEW_BEAMS else -(-beams // ALIGNED_BEAMS) * ALIGNED_BEAMS


class BeamCache:
    """The table of a batch of sources, before each of their steps."""

    def __init__(self, sources: int, beams: int, positions: int) -> None:
        self.table = np.zeros((sources, beams, positions), np.int32)
        """[A, K, M] The beam of the source whose keys and values beam k reads at each position."""
        self.length = 0
        """Positions that are filled."""

    def start_step(self, parents: Array) -> None:
        """Let beam k continue beam ``parents[a, k]`` of the step before; beams without a parent continue any."""
        sources, beams, _ = self.table.shape
        if self.length:
            rows = np.zeros((sources, beams), np.int64)
            rows[:, : parents.shape[1]] = parents
            self.table = np.take_along_axis(self.table, rows[:, :, None], axis=1)
            self.table[:, :, self.length - 1] = rows

    def end_step(self) -> None:
        """Count the position that the step has filled."""
        self.length += 1

    def keep(self, rows: NDArray[np.int64], sources: int) -> None:
        """Keep the sources at these positions, as the first of so many."""
        old_table = self.table[rows]
        self.table = np.zeros((sources, *old_table.shape[1:]), np.int32)
        self.table[: len(rows)] = old_table


class StepRecord:
    """The tokens and parents of the steps of a batch of sources, so that they can be taken again elsewhere."""

    def __init__(self, sources: int) -> None:
        self._open = np.arange(sources)
        self._steps: list[tuple[NDArray[np.int64], Array, Array]] = []

    def add(self, tokens: Array, parents: Array) -> None:
        """Record a step of the open sources."""
        self._steps.append((self._open, tokens, parents))

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep the sources at these ascending positions."""
        self._open = self._open[rows]

    def __len__(self) -> int:
        """How many steps were taken."""
        return len(self._steps)

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        """The steps of the sources that are still open."""
        for sources, tokens, parents in self._steps:
            rows = np.searchsorted(sources, self._open)
            yield tokens[rows], parents[rows]
