"""Ranges that overlap: the pairs that a comparison of each with each finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine.text.words import find_overlaps
from groundwire.runtime.calls import TextSpan
from tests.support.work import count_steps

RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12)


@given(RANGES, RANGES)
def test_overlaps_are_those_of_a_comparison_of_each_with_each(
    ranges: list[tuple[int, int]], items: list[tuple[int, int]]
) -> None:
    bounds = sorted(ranges, key=lambda bound: bound[0])
    spans = [TextSpan(str(index), start, end, "") for index, (start, end) in enumerate(items)]
    assert list(find_overlaps(bounds, spans)) == [
        [span for span in spans if span.start < end and start < span.end] for start, end in bounds
    ]


def test_the_work_grows_linearly_with_the_number_of_ranges() -> None:
    def count(number: int) -> int:
        bounds = [(start, start + 3) for start in range(0, 4 * number, 4)]
        spans = [TextSpan("", start, start + 6, "") for start in range(0, 4 * number, 4)]
        return count_steps(lambda: list(find_overlaps(bounds, spans)))

    assert count(400) < 2.5 * count(200)
