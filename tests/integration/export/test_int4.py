"""4-bit weights: what is stored, and what ONNX Runtime computes with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import pytest

from groundwire.export import ClassifierSettings, RoleOptions, export_role
from groundwire.export.passes import quantize_blocks
from groundwire.export.passes.int4 import BLOCK, ZERO, pack_blocks
from groundwire.export.session import CpuSession
from groundwire.runtime.errors import ExportError
from tests.support import models

DRAW = np.random.default_rng(0)


def unpack(levels: npt.NDArray[np.uint8], scales: npt.NDArray[np.float32], rows: int) -> npt.NDArray[np.float32]:
    """The columns [N, K] that levels and scales stand for, level by level."""
    columns = []
    for blocks, steps in zip(levels, scales, strict=True):
        numbers = []
        for block, step in zip(blocks, steps, strict=True):
            for byte in block:
                numbers += [(int(byte) % 16 - ZERO) * step, (int(byte) // 16 - ZERO) * step]
        columns.append(numbers[:rows])
    return np.array(columns, np.float32)


@pytest.mark.parametrize("rows", [32, 40, 96])
def test_blocks_are_near_their_weights(rows: int) -> None:
    columns = DRAW.normal(size=(5, rows)).astype(np.float32)
    columns[0, :BLOCK] = 0
    levels, scales = pack_blocks(columns)
    assert levels.shape == (5, -(-rows // BLOCK), BLOCK // 2)
    restored = unpack(levels, scales, rows)
    steps = np.abs(np.repeat(scales, BLOCK, axis=1)[:, :rows])
    assert (np.abs(restored - columns) <= steps).all()
    largest = np.abs(columns[1, :BLOCK]).argmax()
    assert restored[1, largest] == pytest.approx(columns[1, largest])
    assert not restored[0, :BLOCK].any()


@pytest.mark.parametrize(("kind", "stored"), [("MatMul", "KN"), ("Gemm", "KN"), ("Gemm", "NK")])
@pytest.mark.parametrize("rows", [32, 40])
def test_a_product_is_one_with_the_blocks(kind: str, stored: str, rows: int) -> None:
    matrix = DRAW.normal(size=(rows, 24)).astype(np.float32)
    weight = ir.Value(name="w", const_value=ir.tensor(matrix if stored == "KN" else np.ascontiguousarray(matrix.T)))
    weight.type, weight.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(weight.const_value.shape)  # type: ignore[union-attr]
    bias = ir.Value(name="b", const_value=ir.tensor(DRAW.normal(size=24).astype(np.float32)))
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["n", rows]))
    inputs = [x, weight, bias] if kind == "Gemm" else [x, weight]
    node = ir.node(kind, inputs, {"transB": int(stored == "NK")} if kind == "Gemm" else {})
    node.outputs[0].name, node.outputs[0].type = "y", ir.TensorType(ir.DataType.FLOAT)
    initializers = [weight, bias] if kind == "Gemm" else [weight]
    graph = ir.Graph([x], node.outputs, nodes=[node], initializers=initializers, opset_imports={"": 20})
    model = ir.Model(graph, ir_version=10)
    quantize_blocks(model)
    assert next(iter(model.graph)).op_type == "MatMulNBits"
    session = CpuSession(model)
    states = DRAW.normal(size=(7, rows)).astype(np.float32)
    expected = states @ unpack(*pack_blocks(matrix.T), rows).T
    if kind == "Gemm":
        expected = expected + bias.const_value.numpy()  # type: ignore[union-attr]
    together = session({"x": states})["y"]
    assert 0 < np.abs(together - expected).max() < 0.03 * np.abs(expected).max()  # activations are int8
    for row in range(7):
        assert np.array_equal(session({"x": states[row : row + 1]})["y"][0], together[row])


def test_int4_is_for_classifiers_and_their_own_graphs(tmp_path: Path) -> None:
    source = models.classifier(tmp_path / "bert", "bert")
    settings = ClassifierSettings(models.LABELS)
    options = RoleOptions(str(source), settings, precision="int4", allow_unverified=True)
    role = export_role("nli", options, tmp_path / "bundle").manifest.roles["nli"]
    assert role.precision == "int4"  # type: ignore[union-attr]
    sizes = []
    for precision in ("fp32", "int4"):
        options = RoleOptions(str(source), settings, precision=precision, allow_unverified=True)  # type: ignore[arg-type]
        sizes.append(export_role("nli", options, tmp_path / precision).manifest.files["weights.bin"].bytes)
    assert sizes[1] < sizes[0] / 2
    for role_name, target in (("qa", None), ("nli", "cuda")):
        with pytest.raises(ExportError, match="int4"):
            export_role(role_name, RoleOptions(str(source), precision="int4", target=target), tmp_path / "other")  # type: ignore[arg-type]
