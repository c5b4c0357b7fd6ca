"""Calls every function of the native module with odd arguments: any two of them at a time, the others valid.

    python -m tests.support.abuse_bindings FILE

A program of its own, because what it looks for ends the interpreter; FILE has the last call that was made.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

import tests.support.native_module  # noqa: F401  # before the module it may replace
from groundwire.runtime import _native

ALLOWED = (ValueError, TypeError, OverflowError, MemoryError)
BEAM_SEARCH = (1, 2, 2, 0, [1], 6, 6, 0, 0, 1.0, True)


def odd_arrays(dtype: type) -> Iterator[np.ndarray]:
    """Arrays of every layout, most of them unlike what a function expects."""
    table = np.arange(24).astype(dtype)
    yield table[:3]
    yield table[:0]
    yield table[0].reshape(())
    yield table[:6].reshape(2, 3)
    yield table[:6].reshape(2, 3).T
    yield table[:0].reshape(0, 5)
    yield table[:0].reshape(5, 0)
    yield table.reshape(2, 3, 4)
    yield table.reshape(1, 1, 24)
    yield table[::2]
    yield table[::-1]
    yield np.broadcast_to(table[:1], (2, 3))
    yield np.broadcast_to(table[:1], (1 << 12,))
    yield np.lib.stride_tricks.as_strided(table, (3, 3), (0, 0))
    unaligned = np.frombuffer(b"\1" * (1 + 6 * table.itemsize), dtype=np.uint8)[1:].view(table.dtype)
    yield unaligned
    yield unaligned.reshape(2, 3)


ARRAYS = [array for dtype in (np.int64, np.float32) for array in odd_arrays(dtype)]
ARRAYS += [np.zeros((2, 3), dtype) for dtype in (np.int32, np.uint64, np.float64, np.float16, np.complex64, np.bool_)]
ARRAYS += [
    np.zeros(3, ">i8"),
    np.zeros(3, "M8[s]"),
    np.array(["a", None], object),
    np.zeros(2, "i4,f4"),
    np.zeros(2, "S3"),
]
ARRAYS += [np.full(3, value, np.int64) for value in (-1, 2**63 - 1, -(2**63))]
ARRAYS += [np.full((2, 3), value, np.float32) for value in (np.nan, np.inf)]
NUMBERS = [0, -1, 7, 2**31, 2**40, 2**63 - 1, -(2**63), 2**63, 2**200, 0.5, float("nan"), float("inf"), True]
OTHERS = [None, "", "x\ud800", b"x", [], [1, 1], [2**70], ["x"], (1,), {}, object(), memoryview(b"12345678"), range(3)]
ODD = [*ARRAYS, *NUMBERS, *OTHERS]

LOGITS = np.zeros((2, 3), np.float32)
ROWS = np.ones(2, np.int64)


def advance(*arguments: Any) -> None:
    """A step of a search, and what is read of it afterwards."""
    search = _native.BeamSearch(*BEAM_SEARCH)  # type: ignore[arg-type]
    try:
        search.advance(*arguments)
    finally:
        search.results(), search.tokens(), search.parents(), search.open(), search.wanted()


CALLS: dict[str, tuple[Callable[..., object], tuple[Any, ...]]] = {
    "bucket_width": (_native.bucket_width, (9,)),
    "plan_batches": (_native.plan_batches, (ROWS, 64, 8)),
    "pad_rows": (_native.pad_rows, (np.arange(3), np.array([0, 1, 3]), np.array([1, 0]), 8, 0)),
    "argmax_spans": (_native.argmax_spans, (LOGITS, LOGITS, ROWS)),
    "best_spans": (_native.best_spans, (LOGITS, LOGITS, ROWS, ROWS, 2, 2)),
    "BeamSearch": (_native.BeamSearch, BEAM_SEARCH),
    "BeamSearch.advance": (advance, (np.zeros((1, 1, 4), np.float32), np.arange(4).reshape(1, 1, 4))),
}


def argument_lists(valid: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The valid arguments, with every choice of odd ones for any one or two of them; too few, and too many."""
    yield valid
    yield valid[:-1]
    yield (*valid, None)
    for index, odd in product(range(len(valid)), ODD):
        yield (*valid[:index], odd, *valid[index + 1 :])
    for (first, second), (a, b) in product(combinations(range(len(valid)), 2), product(ODD, ODD)):
        arguments = list(valid)
        arguments[first], arguments[second] = a, b
        yield tuple(arguments)


def main(path: str) -> None:
    """Make the calls; any result and the errors of ``ALLOWED`` are right."""
    faulthandler.enable()
    called = refused = 0
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    for name, (function, valid) in CALLS.items():
        function(*valid)
        for number, arguments in enumerate(argument_lists(valid)):
            os.pwrite(file, f"{name}: argument list {number:<10}\n".encode(), 0)
            called += 1
            try:
                function(*arguments)
            except ALLOWED:
                refused += 1
    print(f"{called} calls, {refused} of them refused")


if __name__ == "__main__":
    main(sys.argv[1])
