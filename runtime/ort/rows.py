"""A graph that takes rows of values where they are, so that they need not leave a GPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..protobuf import encode_field, encode_message

ROWS = "rows"
"""The input with the positions, int64 [N]; every other input is a value [B, ...] whose rows are taken."""
_TYPES = {"tensor(float)": 1, "tensor(int8)": 3, "tensor(int64)": 7, "tensor(float16)": 10}
"""ONNX's numbers of element types (onnx.proto)."""
_IR_VERSION, _OPSET = 8, 13


def build_row_graph(types: Mapping[str, str]) -> bytes:
    """An ONNX graph with an input and an output of each name, ``taken.NAME``: the rows ``ROWS`` of the input.

    ``types`` are the inputs' types as ONNX Runtime names them.
    """
    graph = encode_message(2, b"rows") + _describe(11, ROWS, _TYPES["tensor(int64)"])
    for name, kind in types.items():
        node = encode_message(1, name.encode()) + encode_message(1, ROWS.encode())
        node += encode_message(2, f"taken.{name}".encode()) + encode_message(4, b"Gather")
        graph += encode_message(1, node)
        graph += _describe(11, name, _TYPES[kind]) + _describe(12, f"taken.{name}", _TYPES[kind])
    return encode_field(1, _IR_VERSION) + encode_message(8, encode_field(2, _OPSET)) + encode_message(7, graph)


def take_host_rows(
    values: Mapping[str, ort.OrtValue], rows: NDArray[np.int64], *, share: bool = False
) -> dict[str, ort.OrtValue]:
    """The rows of values in host memory; with ``share``, consecutive ones are views of ``values``."""
    consecutive = share and bool((np.diff(rows) == 1).all())
    index = slice(rows[0], rows[0] + len(rows)) if consecutive else rows
    return {
        name: ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value.numpy()[index]), "cpu")
        for name, value in values.items()
    }


def _describe(field: int, name: str, element: int) -> bytes:
    """An input (11) or output (12) of the graph, of any shape."""
    kind = encode_message(2, encode_message(1, encode_field(1, element)))
    return encode_message(field, encode_message(1, name.encode()) + kind)
