"""int8 graphs in float32, as a GPU runs them, on the CPU provider."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime as ort
import pytest

from groundwire.runtime.bundle import Bundle
from groundwire.runtime.calls import role_of
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort import session as module
from groundwire.runtime.ort.dequantize import dequantize
from groundwire.runtime.ort.placement import keep_on_device
from groundwire.runtime.ort.session import DeviceProfile
from tests.support.packaging import IN_CHECKOUT

INT8 = {"QuantizeLinear", "MatMulIntegerToFloat", "MatMulInteger", "Int8Head"}


def list_graphs(name: str) -> list[Path]:
    bundle = Bundle.open(name)
    return sorted(bundle.file(file) for file in bundle.manifest.files if file.endswith(".onnx"))


@pytest.mark.parametrize("name", IN_CHECKOUT)
def test_no_int8_product_is_left(name: str) -> None:
    for graph in list_graphs(name):
        before = onnx.load(graph, load_external_data=False)
        after = onnx.load_from_string(dequantize(graph.read_bytes()))  # type: ignore[arg-type]
        assert not INT8 & {node.op_type for node in after.graph.node}
        assert len(after.graph.node) < len(before.graph.node)
        assert [value.name for value in after.graph.output] == [value.name for value in before.graph.output]
        assert after.graph.initializer == before.graph.initializer


@pytest.mark.parametrize("name", IN_CHECKOUT)
def test_the_roles_give_the_results_that_int8_gave(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored results of the warm-up calls are those of int8 on the CPU."""
    opened = []

    def open_dequantized(graph: str, profile: DeviceProfile, further: object = None) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        folder = str(Path(graph).parent)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        content = dequantize(Path(graph).read_bytes())
        assert content is not None
        opened.append(graph)
        content = keep_on_device(content) or content
        return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(module, "_open", open_dequantized)
    runtime = LocalRuntime.load(name, device="cpu", threads=1)
    calls = runtime.warm_calls()
    for call in calls:
        (outcome,) = runtime.run(role_of(call), [call], 8)
        assert not isinstance(outcome, GroundwireError), outcome
    assert len(opened) == len(list_graphs(name))
    runtime.close()


def make_product(peaks: bool) -> bytes:
    """y = x @ W in int8, with or without a scale for each row of x."""
    scaled, result = ("scaled", "y8") if peaks else ("x", "y")
    graph = f"""
    <ir_version: 8, opset_import: ["": 20, "com.microsoft": 1]>
    product (float[rows, 4] x) => (float[rows, 3] y)
    <int8[4, 3] w = {{1, -2, 3, 4, -5, 6, 7, -8, 9, 10, -11, 127}}, float[3] scale = {{0.5, 0.25, 2.0}},
     float level = {{0.007874016}}, uint8 zero = {{128}}, int64[1] last = {{-1}}, float tiny = {{0.000000000001}}>
    {{
        sizes = Abs (x)
        widest = ReduceMax <keepdims: int = 1> (sizes, last)
        peak = Max (widest, tiny)
        shrink = Reciprocal (peak)
        scaled = Mul (shrink, x)
        q = QuantizeLinear ({scaled}, level, zero)
        {result} = com.microsoft.MatMulIntegerToFloat (q, w, level, scale, zero)
        {"y = Mul (peak, y8)" if peaks else ""}
    }}"""
    content: bytes = onnx.parser.parse_model(graph).SerializeToString()
    return content


@pytest.mark.parametrize("peaks", [True, False])
def test_a_product_is_that_of_the_dequantized_weights(peaks: bool) -> None:
    content = dequantize(make_product(peaks))
    assert content is not None
    x = np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype(np.float32)
    (y,) = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    weights = np.array([1, -2, 3, 4, -5, 6, 7, -8, 9, 10, -11, 127], np.float32).reshape(4, 3)
    assert np.allclose(y, x @ (weights * np.array([0.5, 0.25, 2.0], np.float32)), rtol=1e-5)
    kinds = [node.op_type for node in onnx.load_from_string(content).graph.node]
    assert kinds == ["Cast", "Mul", "MatMul"]


def test_a_float_graph_is_left_alone() -> None:
    graph = '<ir_version: 8, opset_import: ["": 20]> g (float[1] x) => (float[1] y) {y = Abs (x)}'
    model = onnx.parser.parse_model(graph)
    assert dequantize(model.SerializeToString()) is None
