"""The fixed shapes in which a language model scores texts on a GPU, and how calls are cut to them.

A text goes through the model with its prefix, as one row. Where many texts follow one long prefix, the prefix is read
by itself, and each run of texts reads its keys and values. Only the targets have logits, so a row has a number of
scored positions beside its width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ..decoding.scoring import ScoringInput
from ..ort.blocks import Block, cut_rows
from .shapes import MAX_ROWS, STRICT_TOKENS, BatchShape, list_sizes, list_widths

MAX_TOKENS = 8192
"""The most padded tokens of a run, but for one row."""
SMALL_TOKENS = 2048
"""Padded tokens of a run below which its kernels are too short for padding to matter: as much as a run costs
besides."""
EMPTY = 8
"""Width of a past that nothing is in, in tokens: all of them masked."""
FEWEST_SCORED, MOST_SCORED = 32, 512
"""Scored positions of a row; the numbers between double. A text with more targets is read several times."""
LOGIT_BYTES = 2 << 30
"""Memory of the logits of a run, at most, but for one row."""
BYTES_PER_LOGIT = 8
"""Before and after the log-softmax, in float32."""
MAX_PAIRS = 8192 * 512
"""Pairs of tokens in the attention of a run, but for one row: as many as of the largest run of an encoder."""
SHARED_WIDTH = 128
"""The least padded width of a prefix that is read by itself, in tokens."""
FEWEST_TEXTS, MOST_TEXTS = 4, 256
"""Texts of a run after one prefix; each number between is four times the one before."""

Item = TypeVar("Item")


class TargetRange(NamedTuple):
    """Targets of a call that one row scores."""

    call: int
    """Its index."""
    first: int
    size: int


class SharedPrefix(NamedTuple):
    """A prefix that is read by itself, and the calls whose texts follow it, by the width of their texts."""

    past: tuple[int, ...]
    width: int
    texts: dict[int, list[int]]


@dataclass(frozen=True)
class ScoringShapes:
    """The shapes of one language model."""

    widths: tuple[int, ...]
    """Lengths of a row in tokens, ascending; the last holds the model's window."""
    scored: tuple[int, ...]
    """Scored positions of a row, ascending."""
    positions: int
    """Scored positions of a run, at most, but for one row."""
    shared: tuple[int, ...]
    """Widths of prefixes that are read by themselves."""
    strict: bool

    @classmethod
    def make(cls, max_tokens: int, vocabulary: int, state_tokens: int, *, strict: bool) -> ScoringShapes:
        """The shapes for a window and a vocabulary, where keys and values of ``state_tokens`` tokens may be kept.

        With ``strict`` the shape of a row depends on its call alone, and no prefix is shared.
        """
        widths = list_widths(max_tokens)
        positions = max(FEWEST_SCORED, LOGIT_BYTES // (BYTES_PER_LOGIT * vocabulary))
        scored = [FEWEST_SCORED]
        while 2 * scored[-1] <= min(MOST_SCORED, positions, widths[-1]):
            scored.append(2 * scored[-1])
        shared = () if strict else tuple(width for width in widths if SHARED_WIDTH <= width <= state_tokens)
        return cls(widths, tuple(scored), positions, shared, strict)

    def list_scored(self, width: int) -> tuple[int, ...]:
        """The scored positions that a row of a width may have: never more than its tokens."""
        less = tuple(scored for scored in self.scored if scored < width)
        return (*less, width) if width <= self.scored[-1] else less

    def list_rows(self, width: int, scored: int) -> tuple[int, ...]:
        """The numbers of rows of a run, ascending."""
        most = min(MAX_ROWS, (STRICT_TOKENS if self.strict else MAX_TOKENS) // width, self.positions // scored)
        return list_sizes(max(1, min(most, MAX_PAIRS // width**2)), strict=self.strict)

    def list_texts(self, past: int, width: int) -> tuple[int, ...]:
        """The numbers of texts of a width that a run reads after one prefix of the width ``past``, ascending."""
        most = min(MAX_TOKENS // width, self.positions // width, MAX_PAIRS // (width * (past + width)), MOST_TEXTS)
        counts = [FEWEST_TEXTS]
        while 4 * counts[-1] <= most:
            counts.append(4 * counts[-1])
        return tuple(count for count in counts if count <= most)

    def list_runs(self) -> list[BatchShape]:
        """Every shape, with the most logits first, then by pairs of tokens: in another order the memory that ONNX
        Runtime keeps falls into parts that are too small for later runs, three times as much in all."""
        rows = [
            BatchShape(count, width, EMPTY, scored=count * scored)
            for width in self.widths
            for scored in self.list_scored(width)
            for count in self.list_rows(width, scored)
        ]
        after = [
            BatchShape(1, width, past, count, count * width)
            for past in self.shared
            for width in self.scored
            if past // 2 + width // 2 < self.widths[-1]
            for count in self.list_texts(past, width)
        ]
        prefixes = [BatchShape(1, past, EMPTY) for past in self.shared]
        return sorted((*rows, *after, *prefixes), key=lambda run: (-run.scored, -run.pairs))

    def share_prefixes(self, inputs: Mapping[int, ScoringInput]) -> list[SharedPrefix]:
        """The prefixes that it pays to read by themselves: with every text they would be more than a small run."""
        texts: dict[tuple[int, ...], dict[int, list[int]]] = {}
        for index, scored in inputs.items():
            width = next((width for width in self.scored if width >= len(scored.new)), None)
            if self.shared and SHARED_WIDTH // 2 <= len(scored.past) <= self.shared[-1] and width is not None:
                texts.setdefault(scored.past, {}).setdefault(width, []).append(index)
        prefixes = []
        for past, by_width in texts.items():
            width = next(width for width in self.shared if width >= len(past))
            fits = {size: calls for size, calls in by_width.items() if self.list_texts(width, size)}
            if width * sum(map(len, fits.values())) > SMALL_TOKENS:
                prefixes.append(SharedPrefix(past, width, fits))
        return prefixes

    def cut_texts(self, past: int, width: int, calls: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Runs of texts after one prefix: the number of texts in the shape, and the calls."""
        counts = self.list_texts(past, width)
        for batch in split(calls, counts[-1]):
            for block in cut_rows(len(batch), counts, width, SMALL_TOKENS):
                yield block.rows, take(batch, block)

    def cut_calls(self, inputs: Mapping[int, ScoringInput]) -> Iterator[tuple[BatchShape, Sequence[TargetRange]]]:
        """Runs of texts with their prefixes, all rows padded to one width and number of scored positions."""
        groups: dict[tuple[int, int], list[TargetRange]] = {}
        for index, call in inputs.items():
            width = next(width for width in self.widths if width >= len(call.past) + len(call.new))
            for first in range(0, len(call.targets), self.scored[-1]):
                count = min(self.scored[-1], len(call.targets) - first)
                scored = next(scored for scored in self.list_scored(width) if scored >= count)
                groups.setdefault((width, scored), []).append(TargetRange(index, first, count))
        for (width, scored), ranges in self._join_small(groups):
            rows = self.list_rows(width, scored)
            for batch in split(ranges, rows[-1]):
                for block in cut_rows(len(batch), rows, width, SMALL_TOKENS):
                    yield BatchShape(block.rows, width, EMPTY, scored=block.rows * scored), take(batch, block)

    def _join_small(
        self, groups: Mapping[tuple[int, int], list[TargetRange]]
    ) -> Iterator[tuple[tuple[int, int], list[TargetRange]]]:
        """The groups by width and scored positions, ascending: one joins the next where both are a small run, whose
        kernels are too short for padding to matter."""
        ordered = sorted(groups.items())
        for index, ((width, scored), ranges) in enumerate(ordered):
            if not self.strict and index + 1 < len(ordered):
                (wider, most), more = ordered[index + 1]
                joined = next((size for size in self.list_scored(wider) if size >= max(scored, most)), None)
                count = len(ranges) + len(more)
                if joined and count * wider <= SMALL_TOKENS and count <= self.list_rows(wider, joined)[-1]:
                    ordered[index + 1] = (wider, joined), [*ranges, *more]
                    continue
            yield (width, scored), ranges


def split(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Parts of at most ``size`` items."""
    return (items[start : start + size] for start in range(0, len(items), size))


def take(items: Sequence[Item], block: Block) -> Sequence[Item]:
    """The items of a block."""
    return items[block.first : block.first + block.used]
