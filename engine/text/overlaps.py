"""Which of many ranges of a text overlap which others, without comparing each with each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar


class Range(Protocol):
    """A part of a text, in characters."""

    @property
    def start(self) -> int:
        """Offset of the first character."""
        ...

    @property
    def end(self) -> int:
        """Offset after the last character."""
        ...


Item = TypeVar("Item", bound=Range)


def find_overlaps(bounds: Iterable[tuple[int, int]], items: Sequence[Item]) -> Iterator[list[Item]]:
    """Yield, for each pair of a start and an end, the items that overlap it, in the order of ``items``.

    ``bounds`` must be sorted by start; ``items`` may have any order. The time grows with their number and that of the
    overlaps.

    >>> from groundwire.runtime.calls import TextSpan
    >>> spans = [TextSpan("a b", 0, 3, ""), TextSpan("a", 0, 1, "")]
    >>> [[span.text for span in overlaps] for overlaps in find_overlaps([(0, 1), (2, 3), (4, 5)], spans)]
    [['a b', 'a'], ['a b'], []]
    """
    waiting = sorted(range(len(items)), key=lambda index: items[index].start, reverse=True)
    active: list[int] = []
    for start, end in bounds:
        while waiting and items[waiting[-1]].start < end:
            active.append(waiting.pop())
        active = sorted(index for index in active if start < items[index].end)
        yield [items[index] for index in active if items[index].start < end]
