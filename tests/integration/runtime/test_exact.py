"""Sessions whose int8 products do not saturate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx_ir import tensor

from groundwire.runtime.ort.exact import open_exact

WIDTH = 64


def make_product(path: str, *, shared: bool) -> NDArray[np.int8]:
    """A graph of one product with the largest int8 numbers, or of two with the same weights."""
    weight = np.full((WIDTH, WIDTH), 127, np.int8)
    value = ir.Value(name="x", type=ir.TensorType(ir.DataType.UINT8), shape=ir.Shape(["B", WIDTH]))
    stored = ir.Value(name="weight", const_value=tensor(weight, name="weight"))
    nodes = [
        ir.Node("", "MatMulInteger", [value, stored], outputs=[ir.Value(name=f"y{number}")])
        for number in range(1 + shared)
    ]
    for node in nodes:
        node.outputs[0].type = ir.TensorType(ir.DataType.INT32)
        node.outputs[0].shape = ir.Shape(["B", WIDTH])
    graph = ir.Graph(
        [value], [node.outputs[0] for node in nodes], nodes=nodes, initializers=[stored], opset_imports={"": 17}
    )
    ir.save(ir.Model(graph, ir_version=8), path)
    return weight


@pytest.mark.parametrize("shared", [False, True])
def test_a_product_of_large_bytes(tmp_path: Path, shared: bool) -> None:
    path = str(tmp_path / "model.onnx")
    weight = make_product(path, shared=shared)
    session = open_exact(
        lambda options: ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]), ort.SessionOptions()
    )
    rows = np.full((3, WIDTH), 255, np.uint8)
    results = session.run(None, {"x": rows})
    assert len(results) == 1 + shared
    if not shared:
        np.testing.assert_array_equal(results[0], rows.astype(np.int32) @ weight)


def test_other_failures_are_not_tried_again() -> None:
    tried = []

    def fail(options: ort.SessionOptions) -> None:
        tried.append(options.get_session_config_entry("session.x64quantprecision"))
        raise ort.capi.onnxruntime_pybind11_state.Fail("no such file")

    with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match="no such file"):
        open_exact(fail, ort.SessionOptions())
    assert tried == ["1"]


def test_shared_weights_are_tried_again() -> None:
    tried = []

    def fail_once(options: ort.SessionOptions) -> str:
        tried.append(options.get_session_config_entry("session.x64quantprecision"))
        if tried[-1] == "1":
            raise ort.capi.onnxruntime_pybind11_state.Fail("Attempt to replace the existing tensor")
        return "opened"

    assert open_exact(fail_once, ort.SessionOptions()) == "opened"
    assert tried == ["1", "0"]
