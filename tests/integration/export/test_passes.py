"""Graph passes on graphs small enough to read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from groundwire.export.passes import Scheme, fold_transposes, list_quantizable, quantize
from groundwire.export.passes.int8 import rows_to_int8
from groundwire.export.session import CpuSession
from groundwire.export.trace import tidy
from tests.reference import int8 as reference
from tests.support.processor import exact_products

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)


def model(
    nodes: list[onnx.NodeProto], weights: dict[str, Array], width: int | None = 16, columns: int = 24
) -> ir.Model:
    """A graph from x, float [rows, width] or int64 ids [rows], to y."""
    source = ("x", onnx.TensorProto.FLOAT, ["rows", width]) if width else ("x", onnx.TensorProto.INT64, ["rows"])
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(*source)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows", columns])],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def ops(graph: ir.Model) -> Counter[str]:
    return Counter(each.op_type for each in graph.graph)


def random(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def test_weights_after_identity_are_quantized() -> None:
    """ALBERT: every layer but the first reaches the shared weights through an Identity node."""
    nodes = [
        node("MatMul", "x w", "a"),
        node("Identity", "w", "again"),
        node("MatMul", "a again", "b"),
        node("Identity", "again", "once_more"),
        node("MatMul", "b once_more", "y"),
    ]
    graph = tidy(model(nodes, {"w": random(16, 16)}, columns=16))
    assert "Identity" not in ops(graph)
    quantize(graph)
    assert ops(graph)["MatMulIntegerToFloat"] == 3
    assert "MatMul" not in ops(graph)
    assert [name for name in graph.graph.initializers if name.endswith(".int8")] == ["w.int8"]


def test_equal_initializers_become_one() -> None:
    weight = random(16, 16)
    nodes = [node("MatMul", "x w", "a"), node("MatMul", "a v", "y")]
    graph = model(nodes, {"w": weight, "v": weight.copy()}, columns=16)
    fold_transposes(graph)
    assert len(graph.graph.initializers) == 1


def test_transposes_fold_under_the_same_name() -> None:
    weight = random(24, 16)
    graph = model([node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "x t", "y")], {"w": weight})
    fold_transposes(graph)
    assert ops(graph) == {"MatMul": 1}
    folded = graph.graph.initializers["w"].const_value
    assert folded is not None
    assert np.array_equal(folded.numpy(), weight.T)


def tied() -> ir.Model:
    """Embedding and head with one table, as in T5 v1.0."""
    nodes = [
        node("Gather", "table x", "rows"),
        node("Transpose", "table", "t", perm=[1, 0]),
        node("MatMul", "rows t", "y"),
    ]
    return model(nodes, {"table": random(40, 16)}, width=0, columns=40)


@exact_products
def test_a_tied_table_is_stored_once() -> None:
    graph = tied()
    before = CpuSession(graph)({"x": np.arange(5)})["y"]
    fold_transposes(graph)
    assert list(graph.graph.initializers) == ["table"]
    quantize(graph, scheme=Scheme(min_table=1))
    integers = [value for value in graph.graph.initializers.values() if value.dtype == ir.DataType.INT8]
    assert [value.name for value in integers] == ["table.int8"]
    assert "table" not in graph.graph.initializers
    after = CpuSession(graph)({"x": np.arange(5)})["y"]
    assert np.abs(after - before).max() < 0.03 * np.abs(before).max()


def test_a_kept_table_stays_float_in_both_places() -> None:
    graph = tied()
    quantize(graph, frozenset({"table"}), Scheme(min_table=1))
    assert ops(graph) == {"Gather": 1, "Transpose": 1, "MatMul": 1}


def test_int8_rows_of_equal_tables_are_equal() -> None:
    """Graphs that share an embedding share its int8 form: it depends on the table alone."""
    table = random(50, 16)
    (first, scale), (second, again) = rows_to_int8(table), rows_to_int8(table.copy(order="F"))
    assert np.array_equal(first, second)
    assert np.array_equal(scale, again)
    np.testing.assert_allclose(first * scale[:, None], table, atol=scale.max() / 2 * 1.001)
    assert first.min() >= -127


def test_an_input_is_quantized_once_for_all_its_products() -> None:
    nodes = [node("MatMul", f"x w{i}", f"y{i}") for i in range(3)]
    nodes += [node("Add", "y0 y1", "s"), node("Add", "s y2", "y")]
    graph = model(nodes, {f"w{i}": random(16, 24) for i in range(3)})
    quantize(graph)
    assert ops(graph)["QuantizeLinear"] == 1
    assert ops(graph)["MatMulIntegerToFloat"] == 3


@exact_products
@pytest.mark.parametrize(("activation", "zero"), [(None, 128), ("Relu", 0), ("Gelu", 16)])
@pytest.mark.parametrize("form", ["MatMul", "Gemm"])
def test_products_equal_the_reference_implementation(activation: str | None, zero: int, form: str) -> None:
    weight, bias = random(16, 24), random(24)
    inputs = "a" if activation else "x"
    nodes = [node(activation, "x", "a")] if activation else []
    if form == "Gemm":
        nodes.append(node("Gemm", f"{inputs} w bias", "y", transB=1))
        graph = model(nodes, {"w": np.ascontiguousarray(weight.T), "bias": bias})
    else:
        nodes.append(node("MatMul", f"{inputs} w", "y"))
        graph = model(nodes, {"w": weight})
    x = random(7, 16) * np.array([[0.01], [1], [100], [1e-3], [3], [0], [1e4]], np.float32)
    middle = x
    if activation:
        tap = model([node(activation, "x", "y")], {}, columns=16)
        middle = CpuSession(tap)({"x": x})["y"]
    quantize(graph)
    outputs = CpuSession(graph)({"x": x})["y"]
    expected = np.array([reference.product(row, weight.T.tolist(), zero) for row in middle.tolist()])
    expected += bias if form == "Gemm" else 0
    # A value on the edge of two levels may fall either way in float32: allow one level of one token.
    edge = np.maximum(np.abs(middle).max(axis=1, keepdims=True), 3.0) / 127 * np.abs(weight).max()
    assert (
        np.abs(outputs - expected) <= 1e-5 * np.abs(expected) + 1e-6 + edge * (np.abs(outputs - expected) > 1e-3)
    ).all()
    assert np.median(np.abs(outputs - expected)) < 1e-4


def test_a_row_of_zeros_gives_zero() -> None:
    graph = model([node("MatMul", "x w", "y")], {"w": random(16, 24)})
    quantize(graph)
    outputs = CpuSession(graph)({"x": np.zeros((2, 16), np.float32)})["y"]
    assert np.array_equal(outputs, np.zeros((2, 24)))


def test_heads_and_activations_stay_float() -> None:
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h head", "y")]
    graph = model(nodes, {"w": random(16, 24), "head": random(24, 2)}, columns=2)
    assert list_quantizable(graph) == ["w"]
    quantize(graph)
    assert ops(graph)["MatMul"] == 1


def test_zero_points_spend_the_range_on_values_that_occur() -> None:
    """After a GELU the asymmetric zero point halves the error of the symmetric one."""
    weight, x = random(64, 24), random(200, 64)
    exact = CpuSession(model([node("Gelu", "x", "a"), node("MatMul", "a w", "y")], {"w": weight}, width=64))({"x": x})[
        "y"
    ]

    def error(scheme: Scheme) -> float:
        graph = model([node("Gelu", "x", "a"), node("MatMul", "a w", "y")], {"w": weight}, width=64)
        quantize(graph, scheme=scheme)
        return float(np.square(CpuSession(graph)({"x": x})["y"] - exact).mean() ** 0.5)

    assert error(Scheme()) < 0.8 * error(Scheme(gelu_zero=128))
