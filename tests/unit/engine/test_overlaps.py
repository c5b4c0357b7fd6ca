"""Ranges that overlap: the pairs that a comparison of each with each finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine.text.words import RangeIndex, find_overlaps, starting_in, within
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


def make_spans(ranges: list[tuple[int, int]]) -> list[TextSpan]:
    """Spans in the order of their starts."""
    bounds = sorted((min(pair), max(pair)) for pair in ranges)
    return [TextSpan(f"{start} {end}", start, end, "") for start, end in bounds]


@given(RANGES, st.integers(0, 20), st.integers(0, 20))
def test_an_index_finds_what_a_look_at_all_ranges_finds(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    spans = make_spans(ranges)
    index = RangeIndex(reversed(spans))
    overlapping = {span for span in spans if span.start < end and start < span.end}
    assert set(index.find_overlapping(start, end)) == overlapping
    assert index.overlaps(TextSpan("", start, end, "")) == bool(overlapping)
    assert {*index.find_from(start, end)} == {span for span in spans if start <= span.start < end}
    assert [span.start for span in index.items] == [span.start for span in spans]


@given(RANGES, st.integers(0, 20), st.integers(0, 20))
def test_items_in_order_are_found_by_place(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    spans = make_spans(ranges)
    assert list(within(spans, start, end)) == [span for span in spans if start <= span.start and span.end <= end]
    assert list(starting_in(spans, start, end)) == [span for span in spans if start <= span.start < end]


def test_the_work_grows_linearly_with_the_number_of_ranges() -> None:
    def count(number: int) -> int:
        bounds = [(start, start + 3) for start in range(0, 4 * number, 4)]
        spans = [TextSpan("", start, start + 6, "") for start in range(0, 4 * number, 4)]
        return count_steps(lambda: list(find_overlaps(bounds, spans)))

    assert count(400) < 2.5 * count(200)
