from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from groundwire.runtime import _native
from tests.reference import spans as reference

# A coarse grid makes ties; the rest is any float32, as a broken graph may return.
LOGITS = st.one_of(st.integers(-12, 12).map(lambda value: value / 4), st.floats(width=32))
NAN, INF = math.nan, math.inf


def f32(rows: list[list[float]]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def i64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@st.composite
def logits(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(st.tuples(st.integers(0, 3), st.integers(1, 20)))
    return draw(arrays.arrays(np.float32, shape, elements=LOGITS)), draw(
        arrays.arrays(np.float32, shape, elements=LOGITS)
    )


@pytest.mark.parametrize(
    ("start", "end", "length", "expected"),
    [
        ([1, 5, 2], [0, 1, 7], 3, (1, 2, 12.0, 1.0)),
        # Independent: the end may precede the start.
        ([0, 1, 9], [0, 8, 1], 3, (2, 1, 17.0, 0.0)),
        # The first of equal maxima; "no answer" is both at position 0.
        ([4, 4, 4], [4, 4, 4], 3, (0, 0, 8.0, 8.0)),
        # Padding is ignored.
        ([1, 2, 9], [1, 2, 9], 2, (1, 1, 4.0, 2.0)),
        ([NAN, -2, NAN], [-INF, NAN, -3], 3, (1, 2, -5.0, -INF)),
        ([NAN, NAN], [NAN, NAN], 2, (0, 0, -INF, -INF)),
        ([INF, 0], [-INF, -INF], 2, (0, 0, -INF, -INF)),
    ],
)
def test_argmax_spans(
    start: list[float], end: list[float], length: int, expected: tuple[int, int, float, float]
) -> None:
    spans = _native.argmax_spans(f32([start]), f32([end]), i64([length]))
    assert tuple(part[0] for part in spans) == expected


@given(logits(), st.data())
def test_argmax_spans_equals_its_reference_implementation(
    pair: tuple[np.ndarray, np.ndarray], data: st.DataObject
) -> None:
    start, end = pair
    rows, positions = start.shape
    lengths = data.draw(st.lists(st.integers(1, positions), min_size=rows, max_size=rows))
    starts, ends, scores, nulls = _native.argmax_spans(start, end, i64(lengths))
    for b, length in enumerate(lengths):
        assert (starts[b], ends[b], scores[b]) == reference.argmax_span(start[b].tolist(), end[b].tolist(), length)
        assert nulls[b] == reference.null_score(start[b].tolist(), end[b].tolist())


@pytest.mark.parametrize(
    ("first", "last", "max_tokens", "n", "expected"),
    [
        # start 0 1 5 2 0, end 0 3 0 4 1
        (0, 4, 5, 1, [(2, 3, 9.0)]),
        (0, 4, 1, 3, [(3, 3, 6.0), (2, 2, 5.0), (1, 1, 4.0)]),
        (0, 4, 5, 3, [(2, 3, 9.0), (2, 4, 6.0), (3, 3, 6.0)]),
        (0, 1, 5, 2, [(1, 1, 4.0), (0, 1, 3.0)]),
        (4, 4, 5, 3, [(4, 4, 1.0), (-1, -1, -INF), (-1, -1, -INF)]),
        (3, 2, 5, 1, [(-1, -1, -INF)]),
        (5, -1, 5, 1, [(-1, -1, -INF)]),
    ],
)
def test_best_spans(first: int, last: int, max_tokens: int, n: int, expected: list[tuple[int, int, float]]) -> None:
    start, end = f32([[0, 1, 5, 2, 0]]), f32([[0, 3, 0, 4, 1]])
    starts, ends, scores, nulls = _native.best_spans(start, end, i64([first]), i64([last]), max_tokens, n)
    assert list(zip(starts[0].tolist(), ends[0].tolist(), scores[0].tolist(), strict=True)) == expected
    assert nulls.tolist() == [0.0]


def test_equal_scores_come_in_order_of_start_then_end() -> None:
    start, end = np.zeros((1, 3), dtype=np.float32), np.zeros((1, 3), dtype=np.float32)
    starts, ends, _, _ = _native.best_spans(start, end, i64([0]), i64([2]), 3, 6)
    assert list(zip(starts[0].tolist(), ends[0].tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 1),
        (1, 2),
        (2, 2),
    ]


def test_a_nan_logit_is_never_part_of_a_span() -> None:
    start, end = f32([[0, NAN, -INF, 1]]), f32([[0, 1, 1, NAN]])
    starts, ends, scores, _ = _native.best_spans(start, end, i64([1]), i64([3]), 3, 1)
    assert (starts.item(), ends.item(), scores.item()) == (-1, -1, -INF)


@given(logits(), st.integers(1, 24), st.integers(1, 12), st.data())
def test_best_spans_equals_its_reference_implementation(
    pair: tuple[np.ndarray, np.ndarray], max_tokens: int, n: int, data: st.DataObject
) -> None:
    start, end = pair
    rows, positions = start.shape
    limits = st.lists(st.integers(0, positions - 1), min_size=rows, max_size=rows)
    first, last = data.draw(limits), data.draw(limits)
    starts, ends, scores, nulls = _native.best_spans(start, end, i64(first), i64(last), max_tokens, n)
    assert starts.shape == ends.shape == scores.shape == (rows, n)
    for b in range(rows):
        row = start[b].tolist(), end[b].tolist()
        spans = list(zip(starts[b].tolist(), ends[b].tolist(), scores[b].tolist(), strict=True))
        assert spans == reference.best_spans(*row, first[b], last[b], max_tokens, n)
        assert nulls[b] == reference.null_score(*row)


@pytest.mark.parametrize(
    ("first", "last", "max_tokens", "n", "message"),
    [
        ([-1, 0], [4, 4], 3, 1, "row 0 allows positions -1 to 4, which must lie within 0 to 4"),
        ([0, 0], [4, 5], 3, 1, "row 1 allows positions 0 to 5"),
        ([0], [4, 4], 3, 1, "first and last have 1 and 2 entries for 2 rows"),
        ([0, 0], [4, 4], 0, 1, "max_tokens is 0, it must be at least 1"),
        ([0, 0], [4, 4], 3, 0, "n is 0, allowed are 1 to"),
        ([0, 0], [4, 4], 3, 2**62, "n is 4611686018427387904, allowed are 1 to"),
        ([0, 0], [4, 4], 3, 2**23 + 1, "n is 8388609, allowed are 1 to 8388608"),
    ],
)
def test_best_spans_names_what_is_allowed(
    first: list[int], last: list[int], max_tokens: int, n: int, message: str
) -> None:
    start = np.zeros((2, 5), dtype=np.float32)
    with pytest.raises(ValueError, match=message):
        _native.best_spans(start, start, i64(first), i64(last), max_tokens, n)


def test_argmax_spans_names_what_is_allowed() -> None:
    start = np.zeros((2, 5), dtype=np.float32)
    with pytest.raises(ValueError, match="length of row 1 is 6, allowed are 1 to 5"):
        _native.argmax_spans(start, start, i64([5, 6]))
    with pytest.raises(ValueError, match="length of row 0 is 0"):
        _native.argmax_spans(start, start, i64([0, 5]))
    with pytest.raises(ValueError, match="lengths has 1 entries for 2 rows"):
        _native.argmax_spans(start, start, i64([5]))
    with pytest.raises(ValueError, match=r"start has shape \(2, 5\) and end \(2, 4\), they must be equal"):
        _native.argmax_spans(start, start[:, :4].copy(), i64([5, 5]))
    with pytest.raises(ValueError, match="start and end have no positions"):
        _native.argmax_spans(start[:, :0].copy(), start[:, :0].copy(), i64([5, 5]))
    with pytest.raises(ValueError, match="end must be a C-contiguous array of float32 in 2 dimensions, got float16"):
        _native.argmax_spans(start, start.astype(np.float16), i64([5, 5]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"of shape \(5, 2\), not contiguous"):
        _native.argmax_spans(start.T, start.T, i64([1] * 5))
