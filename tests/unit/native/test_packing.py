from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.runtime import _native
from tests.reference import packing as reference

LENGTHS = st.lists(st.integers(0, 600), max_size=40)
NO_ROWS = np.zeros(0, dtype=np.int64)


def i64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("length", "width"),
    [(0, 8), (1, 8), (8, 8), (9, 16), (64, 64), (65, 80), (80, 80), (256, 256), (257, 288), (512, 512), (2**30, 2**30)],
)
def test_bucket_width(length: int, width: int) -> None:
    assert _native.bucket_width(length) == width


@given(st.integers(0, 5000))
def test_bucket_width_equals_its_reference_implementation(length: int) -> None:
    assert _native.bucket_width(length) == reference.bucket_width(length)


@pytest.mark.parametrize("length", [-1, 2**30 + 1, 2**63 - 1])
def test_bucket_width_names_what_is_allowed(length: int) -> None:
    with pytest.raises(ValueError, match=f"length is {length}, allowed are 0 to 1073741824"):
        _native.bucket_width(length)


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "max_rows", "expected"),
    [
        ([], 64, 8, ([], [0], [])),
        ([5], 64, 8, ([0], [0, 1], [8])),
        # One width per batch, even where the budget would hold more.
        ([5, 70, 3, 8, 9], 640, 8, ([0, 2, 3, 4, 1], [0, 3, 4, 5], [8, 16, 80])),
        # Rows of one width keep their order; the budget of padded tokens cuts.
        ([8, 7, 6, 5], 24, 8, ([0, 1, 2, 3], [0, 3, 4], [8, 8])),
        ([8, 7, 6, 5], 1000, 2, ([0, 1, 2, 3], [0, 2, 4], [8, 8])),
        # A row wider than the budget still gets its batch.
        ([300, 2], 16, 8, ([1, 0], [0, 1, 2], [8, 320])),
    ],
)
def test_plan_batches(
    lengths: list[int], max_tokens: int, max_rows: int, expected: tuple[list[int], list[int], list[int]]
) -> None:
    plan = _native.plan_batches(i64(lengths), max_tokens, max_rows)
    assert tuple(part.tolist() for part in plan) == expected
    assert all(part.dtype.type is np.int64 for part in plan)


@given(LENGTHS, st.integers(1, 2000), st.integers(1, 12))
def test_plan_batches_equals_its_reference_implementation(lengths: list[int], max_tokens: int, max_rows: int) -> None:
    order, bounds, widths = _native.plan_batches(i64(lengths), max_tokens, max_rows)
    expected = reference.plan_batches(lengths, max_tokens, max_rows)
    assert (order.tolist(), bounds.tolist(), widths.tolist()) == expected


@given(LENGTHS.filter(bool), st.data())
def test_pad_rows_equals_its_reference_implementation_over_all_batches(lengths: list[int], data: st.DataObject) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    flat = np.arange(offsets[-1], dtype=np.int64)
    order, bounds, widths = _native.plan_batches(i64(lengths), data.draw(st.integers(1, 2000)), 5)
    for batch, width in enumerate(widths.tolist()):
        rows = order[bounds[batch] : bounds[batch + 1]]
        ids, mask = _native.pad_rows(flat, offsets, rows, width, -7)
        expected = reference.pad_rows(flat.tolist(), offsets.tolist(), rows.tolist(), width, -7)
        assert (ids.tolist(), mask.tolist()) == expected


def test_returned_arrays_own_their_memory() -> None:
    ids, mask = _native.pad_rows(i64([1, 2]), i64([0, 2]), i64([0]), 8, 0)
    ids[0, 0] = 9
    assert ids.tolist() == [[9, 2, 0, 0, 0, 0, 0, 0]]
    assert mask.tolist() == [[1, 1, 0, 0, 0, 0, 0, 0]]


def test_read_only_arrays_are_read() -> None:
    lengths = i64([3, 4])
    lengths.flags.writeable = False
    assert _native.plan_batches(lengths, 8, 1)[2].tolist() == [8, 8]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (
            np.zeros(3, dtype=np.int32),
            r"lengths must be a C-contiguous array of int64 in 1 dimension, got int32 .*\(3,\)",
        ),
        (np.zeros(3, dtype=np.float64), "got float64"),
        (np.zeros(3, dtype=np.bool_), "got bool8"),
        (np.zeros((2, 3), dtype=np.int64), r"got int64 of shape \(2, 3\)"),
        (np.zeros(6, dtype=np.int64)[::2], r"of shape \(3,\), not contiguous"),
        (np.zeros(25, dtype=np.uint8)[1:].view(np.int64), "not contiguous"),
        (np.array(3), r"of shape \(\)"),
        (i64([4, -1]), "length is -1"),
    ],
)
def test_plan_batches_refuses_other_arrays(lengths: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _native.plan_batches(lengths, 64, 8)


@pytest.mark.parametrize("lengths", [[1, 2], None, "12", np.array([1, 2], dtype=object), np.array([1], dtype=">i8")])
def test_what_is_no_array_is_a_type_error(lengths: object) -> None:
    with pytest.raises(TypeError):
        _native.plan_batches(lengths, 64, 8)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("max_tokens", "max_rows", "message"),
    [(0, 8, "max_tokens is 0, it must be at least 1"), (64, -3, "max_rows is -3, it must be at least 1")],
)
def test_plan_batches_refuses_an_empty_budget(max_tokens: int, max_rows: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _native.plan_batches(i64([3]), max_tokens, max_rows)


@pytest.mark.parametrize(
    ("offsets", "rows", "width", "message"),
    [
        ([0, 3, 10], [2], 8, "rows names row 2, but offsets describe 2 rows"),
        ([0, 3, 10], [-1], 8, "rows names row -1"),
        ([], [0], 8, "offsets describe 0 rows"),
        ([0, 3, 10], [1], 6, "row 1 has 7 values, more than the width 6"),
        ([0, 3, 11], [1], 8, "offsets put row 1 at 3 to 11, which is not a part of the 10 values"),
        ([-1, 3, 10], [0], 8, "offsets put row 0 at -1 to 3"),
        ([4, 3, 10], [0], 8, "offsets put row 0 at 4 to 3"),
        ([0, 3, 10], [0], 0, "width is 0, allowed are 1 to 1073741824"),
        ([0, 3, 10], [0, 1], 2**27, "2 rows of width 134217728, allowed are up to 134217728 values in a batch"),
    ],
)
def test_pad_rows_refuses_what_lies_outside(offsets: list[int], rows: list[int], width: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _native.pad_rows(np.arange(10), i64(offsets), i64(rows), width, 0)


def test_no_rows() -> None:
    ids, mask = _native.pad_rows(NO_ROWS, i64([0]), NO_ROWS, 8, 0)
    assert ids.shape == mask.shape == (0, 8)
