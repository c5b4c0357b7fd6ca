"""int8 graphs in float32, as a GPU runs them, on the CPU provider."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime as ort
import pytest

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.calls import role_of
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.dequantize import dequantize
from tests.support.host_cuda import rewrite_graphs
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
    rewrite_graphs(monkeypatch)
    runtime = LocalRuntime.load(name, device="cpu", threads=1)
    calls = runtime.warm_calls()
    for call in calls:
        (outcome,) = runtime.run(role_of(call), [call], 8)
        assert not isinstance(outcome, GroundwireError), outcome
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


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("int8", [False, True])
def test_a_head_in_blocks_is_one_product(int8: bool, biased: bool) -> None:
    """Three blocks of two rows."""
    rng = np.random.default_rng(1)
    table, scale = rng.integers(0, 256, (3, 2, 4)).astype(np.uint8), rng.random((3, 2), np.float32) / 100
    weights = ((table.astype(np.float32) - 128) * scale[..., None]).reshape(6, 4)
    bias = rng.random((3, 2), np.float32) / 100
    constants = {"table": table if int8 else weights.reshape(3, 2, 4), "first": np.arange(0, 6, 2)}
    constants |= {"bias": bias} if biased else {}
    constants |= {"scale": scale} if int8 else {}
    name = f"{'Biased' if biased else ''}{'Int8' if int8 else ''}Head"
    node = onnx.helper.make_node(name, ["hidden", "targets", *constants], ["log_probs"], domain="groundwire")
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [node],
            "head",
            [
                onnx.helper.make_tensor_value_info("hidden", onnx.TensorProto.FLOAT, ["n", 4]),
                onnx.helper.make_tensor_value_info("targets", onnx.TensorProto.INT64, ["n"]),
            ],
            [onnx.helper.make_tensor_value_info("log_probs", onnx.TensorProto.FLOAT, ["n"])],
            [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
        ),
        ir_version=8,
        opset_imports=[onnx.helper.make_opsetid("", 20)],
    )
    content = dequantize(model.SerializeToString())
    assert content is not None
    hidden, targets = rng.normal(size=(5, 4)).astype(np.float32), np.array([0, 5, 3, 1, 4])
    (log_probs,) = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(
        None, {"hidden": hidden, "targets": targets}
    )
    logits = hidden @ weights.T + (bias.reshape(-1) if biased else 0)
    expected = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    np.testing.assert_allclose(log_probs, expected[np.arange(5), targets], atol=1e-4)
