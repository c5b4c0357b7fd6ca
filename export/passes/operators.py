"""What TensorRT's ONNX parser takes, so that a graph that it refuses is changed or refused where it is exported.

TensorRT itself was not run: a graph that passes may still be refused, and then its engine is not built.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16})
_NUMBERS = _FLOATS | {ir.DataType.INT32, ir.DataType.INT64}
_ALL = _NUMBERS | {ir.DataType.BOOL}
_QUANTIZED = frozenset({ir.DataType.INT8, ir.DataType.FLOAT8E4M3FN})
OPERATORS: dict[str, frozenset[ir.DataType]] = {
    **dict.fromkeys(("Ceil", "Clip", "Cos", "CumSum", "Einsum", "Erf", "Exp", "Floor", "Gemm", "MatMul"), _FLOATS),
    **dict.fromkeys(("LayerNormalization", "Log", "LogSoftmax", "Reciprocal", "Round", "Sigmoid", "Sin"), _FLOATS),
    **dict.fromkeys(("Softmax", "Sqrt", "Tanh"), _FLOATS),
    **dict.fromkeys(("Abs", "Add", "Div", "Equal", "Gelu", "Greater", "GreaterOrEqual", "Less"), _NUMBERS),
    **dict.fromkeys(("LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Pow", "Range", "ReduceMax"), _NUMBERS),
    **dict.fromkeys(("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Sign", "Sub", "Sum"), _NUMBERS),
    **dict.fromkeys(("ScatterElements", "ScatterND"), _NUMBERS),
    **dict.fromkeys(("Cast", "Concat", "ConstantOfShape", "Expand", "Flatten", "Gather", "GatherElements"), _ALL),
    **dict.fromkeys(("GatherND", "Identity", "Reshape", "Shape", "Slice", "Split", "Squeeze", "Tile"), _ALL),
    **dict.fromkeys(("Transpose", "Trilu", "Unsqueeze", "Where"), _ALL),
    **dict.fromkeys(("And", "Not", "Or", "Xor"), frozenset({ir.DataType.BOOL})),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _FLOATS | _QUANTIZED),
}
"""By operator of ONNX's own set: the types of the values that it computes with. From onnx-tensorrt's ``operators.md``
for TensorRT 10.15, as far as encoders need it, without BF16."""
_TYPED = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Shape"}
"""Operators whose output has a type of its own."""
_INDICES = {"Gather": 1, "GatherElements": 1, "GatherND": 1, "Reshape": 1, "Expand": 1, "Tile": 1, "CumSum": 1}
"""Inputs from this on are positions or sizes."""
_CONSTANT = {"Squeeze": 1, "Unsqueeze": 1, "CumSum": 1, "ReduceMax": 1, "ReduceMean": 1, "ReduceMin": 1, "ReduceSum": 1}
"""The input that must be constant: axes."""
MAX_OPSET = 20
"""The newest operator set that every TensorRT 10 reads."""


def adapt_operators(model: ir.Model) -> None:
    """Replace in place what TensorRT does for floats alone and graphs do with whole numbers.

    Positions are counted by a sum along an axis: float32 is exact up to 16,777,216. Distances are cut by Clip: Max and
    Min do the same.
    """
    common.ShapeInferencePass()(model)
    for node in list(model.graph):
        source = node.inputs[0] if node.op_type in ("CumSum", "Clip") else None
        if source is not None and source.dtype in (ir.DataType.INT32, ir.DataType.INT64):
            (_sum_as_float if node.op_type == "CumSum" else _clip_by_two)(model.graph, node, source)


def _sum_as_float(graph: ir.Graph, node: ir.Node, source: ir.Value) -> None:
    total = node.outputs[0]
    before = ir.node("Cast", [source], {"to": int(ir.DataType.FLOAT)})
    after = ir.node("Cast", [total], {"to": int(source.dtype or ir.DataType.INT64)})
    before.outputs[0].type, before.outputs[0].shape = ir.TensorType(ir.DataType.FLOAT), source.shape
    _replace_output(graph, node, [after])
    after.replace_input_with(0, total)
    node.replace_input_with(0, before.outputs[0])
    total.type = ir.TensorType(ir.DataType.FLOAT)
    graph.insert_before(node, before)


def _clip_by_two(graph: ir.Graph, node: ir.Node, source: ir.Value) -> None:
    steps: list[ir.Node] = []
    for op, bound in zip(("Max", "Min"), node.inputs[1:], strict=False):
        if bound is not None:
            steps.append(ir.node(op, [steps[-1].outputs[0] if steps else source, bound]))
    if steps:
        _replace_output(graph, node, steps)
        graph.remove(node, safe=True)


def _replace_output(graph: ir.Graph, node: ir.Node, steps: list[ir.Node]) -> None:
    """Insert nodes after ``node`` whose last output takes the place of its own."""
    former = node.outputs[0]
    for step in steps:
        step.outputs[0].type, step.outputs[0].shape = former.type, former.shape
    ir.convenience.replace_all_uses_with(former, steps[-1].outputs[0])
    graph.insert_after(node, steps)


def find_unsupported(model: ir.Model) -> list[str]:
    """Return in words what TensorRT does not take of a graph; empty when nothing is known to be refused."""
    copy = model.clone()
    common.ShapeInferencePass()(copy)
    findings = []
    opset = copy.opset_imports.get("", 0)
    if opset > MAX_OPSET:
        findings.append(f"operator set {opset} is newer than {MAX_OPSET}")
    for node in copy.graph:
        name = f"{node.op_type} {node.name or node.outputs[0].name}"
        types = OPERATORS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        if types is None:
            findings.append(f"{node.domain or 'ai.onnx'}.{name} is no operator that TensorRT has")
            continue
        computed = [*node.inputs[: _INDICES.get(node.op_type)], *(() if node.op_type in _TYPED else node.outputs)]
        for value in computed:
            if value is None:
                continue
            if value.dtype is None:
                findings.append(f"{name} has a value of unknown type ({value.name})")
            elif value.dtype not in types:
                findings.append(f"{name} does not take {value.dtype}")
        constant = node.inputs[_CONSTANT[node.op_type] :] if node.op_type in _CONSTANT else ()
        if any(value is not None and value.const_value is None for value in constant):
            findings.append(f"{name} needs constant axes")
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            findings += _check_quantization(node, name)
    return findings


def _check_quantization(node: ir.Node, name: str) -> list[str]:
    """TensorRT quantizes around 0, by scales that it knows when it builds."""
    scale, zero = node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
    findings = []
    if scale is None or scale.const_value is None or not (scale.const_value.numpy().astype(float) > 0).all():
        findings.append(f"{name} needs a constant scale above 0")
    if zero is not None and (zero.const_value is None or zero.const_value.numpy().astype(float).any()):
        findings.append(f"{name} needs a zero point of 0")
    return findings
