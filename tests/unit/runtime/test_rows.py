"""The graph that takes rows, which no exporter writes, on the CPU provider."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort

from groundwire.runtime.ort.session import ROWS, build_row_graph


def test_rows_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    values = {
        "past.key.0": rng.standard_normal((5, 2, 3)).astype(np.float16),
        "cross.value.11": rng.standard_normal((5, 4)).astype(np.float32),
        "copied.rows": rng.integers(-128, 127, (5, 2), dtype=np.int8),
        "cross_mask": rng.integers(0, 2, (5, 7)),
    }
    types = {"float16": "float16", "float32": "float", "int8": "int8", "int64": "int64"}
    graph = build_row_graph({name: f"tensor({types[str(array.dtype)]})" for name, array in values.items()})
    session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])
    assert [output.name for output in session.get_outputs()] == [f"taken.{name}" for name in values]
    for rows in ([4, 0, 2], [1], []):
        taken = session.run(None, {**values, ROWS: np.array(rows, np.int64)})
        for array, result in zip(values.values(), taken, strict=True):
            assert np.array_equal(array[rows], result)
            assert result.dtype == array.dtype


def test_a_past_without_positions_has_rows() -> None:
    session = ort.InferenceSession(build_row_graph({"past": "tensor(float)"}), providers=["CPUExecutionProvider"])
    (taken,) = session.run(None, {"past": np.zeros((4, 1, 2, 0, 3), np.float32), ROWS: np.array([1, 2])})
    assert taken.shape == (2, 1, 2, 0, 3)
