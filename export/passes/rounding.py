"""Makes a float16 graph compute on the CPU what it computes on a GPU: every result rounded to float16.

ONNX Runtime's CPU provider has few float16 operations. It computes the others in float32 and leaves out the casts
between two of them, so nothing is rounded and nothing overflows: a product that is infinite in float16 passes on as
102,400. Here each operation computes in float32, as the GPU's kernels do inside, and its result is cast to float16 and
back, which ONNX Runtime keeps. Fused kernels of a GPU round less often than this.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

_HALF, _SINGLE = ir.DataType.FLOAT16, ir.DataType.FLOAT


def round_to_half(model: ir.Model) -> ir.Model:
    """Return a float32 copy of a float16 ``model`` that rounds where it did; inputs and outputs keep their types."""
    copy = model.clone()
    graph = copy.graph
    for constant in graph.initializers.values():
        if constant.dtype == _HALF and constant.const_value is not None:
            array = constant.const_value.numpy().astype(np.float32)
            constant.const_value = ir.tensor(array, name=str(constant.name))
            constant.type = ir.TensorType(_SINGLE)
    for value in graph.inputs:
        if value.dtype == _HALF:
            uses = list(value.uses())
            single = _cast(value, _SINGLE)
            _replace_inputs(uses, single.outputs[0])
            graph.insert_before(next(iter(graph)), single)
    for node in list(graph):
        if node.op_type == "Cast" and node.outputs[0].dtype == _HALF:
            node.attributes["to"] = ir.AttrInt64("to", int(_SINGLE))
        for value in node.outputs:
            if value.dtype == _HALF:
                _round(graph, node, value)
    return copy


def _round(graph: ir.Graph, node: ir.Node, value: ir.Value) -> None:
    value.type = ir.TensorType(_SINGLE)
    uses = list(value.uses())
    half = _cast(value, _HALF)
    single = _cast(half.outputs[0], _SINGLE)
    _replace_inputs(uses, single.outputs[0])
    graph.insert_after(node, [half, single])
    for index, output in enumerate(graph.outputs):
        if output is value:
            name, value.name = value.name, f"{value.name}.exact"
            graph.outputs[index] = half.outputs[0]
            half.outputs[0].name = name


def _replace_inputs(uses: Iterable[tuple[ir.Node, int]], value: ir.Value) -> None:
    for user, index in uses:
        user.replace_input_with(index, value)


def _cast(value: ir.Value, dtype: ir.DataType) -> ir.Node:
    node = ir.node("Cast", [value], {"to": int(dtype)})
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(dtype), value.shape
    return node
