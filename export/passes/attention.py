"""Attention of encoders as one operator, for CUDA: ``com.microsoft.Attention`` in place of its single steps.

The traced graphs multiply, transpose, scale, mask and normalise in twenty kernels for each layer. The operator has one
product for queries, keys and values and one kernel that never writes the scores down.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from .head import MICROSOFT, initializer
from .matching import Array, find_only_user, find_producer, read_constant, read_order


class _Projection(NamedTuple):
    """``source @ weight + bias``, which was brought to [B, H, T, D]."""

    source: ir.Value
    weight: Array
    """[d, H · D]"""
    bias: Array
    factor: float | None
    """What it was multiplied by; None when the graph computes that, which is the root of 1 / √D then."""
    heads: int


def fuse_attention(model: ir.Model) -> int:
    """Fuse in place the attentions whose queries, keys and values are products of the same states; returns how many."""
    common.ShapeInferencePass()(model)
    graph = model.graph
    constants: dict[bytes, ir.Value] = {}
    masks: dict[ir.Value, ir.Value] = {}
    fused = sum(_fuse(graph, node, constants, masks) for node in list(graph) if node.op_type == "Softmax")
    if fused:
        model.opset_imports.setdefault(MICROSOFT, 1)
        common.RemoveUnusedNodesPass()(model)
    return fused


def _fuse(graph: ir.Graph, softmax: ir.Node, constants: dict[bytes, ir.Value], masks: dict[ir.Value, ir.Value]) -> bool:
    scores = find_producer(softmax.inputs[0], "Add")
    mixed = find_only_user(softmax.outputs[0], "MatMul")
    if scores is None or mixed is None or mixed.inputs[0] is not softmax.outputs[0]:
        return False
    matched = next((match for value in scores.inputs if (match := _find_product(value))), None)
    moved = find_only_user(mixed.outputs[0], "Transpose")
    joined = None if moved is None else find_only_user(moved.outputs[0], "Reshape")
    if matched is None or joined is None or read_order(moved) != (0, 2, 1, 3):
        return False
    product, scale, scaled = matched
    query = _find_projection(product.inputs[0], (0, 2, 1, 3))
    key = _find_projection(product.inputs[1], (0, 2, 3, 1))
    value = _find_projection(mixed.inputs[1], (0, 2, 1, 3))
    if query is None or key is None or value is None or not query.source is key.source is value.source:
        return False
    parts = query, key, value
    factor = None if query.factor is None or key.factor is None else query.factor * key.factor * scale
    mask = next(operand for operand in scores.inputs if operand is not scaled)
    if mask is None or mask.shape is None or len(mask.shape) != 4:
        return False
    weight = np.ascontiguousarray(np.concatenate([part.weight for part in parts], axis=1))
    bias = np.concatenate([part.bias for part in parts])
    node = ir.node(
        "Attention",
        [
            query.source,
            _add_constant(graph, weight, constants),
            _add_constant(graph, bias, constants),
            None,
            None,
            _expand(graph, mask, masks),
        ],
        {"num_heads": query.heads, **({} if factor is None else {"scale": float(factor)})},
        domain=MICROSOFT,
    )
    (result,) = node.outputs
    former = joined.outputs[0]
    result.type, result.shape = former.type, query.source.shape
    graph.insert_before(joined, node)
    ir.convenience.replace_all_uses_with(former, result)
    return True


def _find_product(value: ir.Value | None) -> tuple[ir.Node, float, ir.Value] | None:
    """The product of queries and keys that ``value`` is a multiple of, the factor, and ``value``."""
    product = find_producer(value, "MatMul")
    if product is not None and value is not None:
        return product, 1.0, value
    for operator in ("Mul", "Div"):
        scaled = find_producer(value, operator)
        product = None if scaled is None else find_producer(scaled.inputs[0], "MatMul")
        by = None if scaled is None else read_constant(scaled.inputs[1])
        if product is not None and by is not None and by.size == 1 and value is not None:
            return product, float(by.item()) if operator == "Mul" else 1 / float(by.item()), value
    return None


def _expand(graph: ir.Graph, mask: ir.Value, masks: dict[ir.Value, ir.Value]) -> ir.Value:
    """A mask [B, 1, 1, T] as [B, 1, T, T], which the operator takes; another as it is."""
    assert mask.shape is not None
    producer = mask.producer()
    if mask.shape[2] != 1 or producer is None:
        return mask
    if mask not in masks:
        single = initializer(graph, "attention.single", np.ones(1, np.int64))
        width = ir.node("Shape", [mask], {"start": 3, "end": 4})
        sizes = ir.node("Concat", [single, single, width.outputs[0], single], {"axis": 0})
        expanded = ir.node("Expand", [mask, sizes.outputs[0]])
        for node in (width, sizes):
            node.outputs[0].type = ir.TensorType(ir.DataType.INT64)
        expanded.outputs[0].type = mask.type
        expanded.outputs[0].shape = ir.Shape([mask.shape[0], 1, mask.shape[3], mask.shape[3]])
        graph.insert_after(producer, [width, sizes, expanded])
        masks[mask] = expanded.outputs[0]
    return masks[mask]


def _add_constant(graph: ir.Graph, array: Array, constants: dict[bytes, ir.Value]) -> ir.Value:
    """The constant with this content; layers that share their weights have one."""
    digest = hashlib.sha256(array.tobytes()).digest()
    if digest not in constants:
        constants[digest] = initializer(graph, f"attention.{len(constants)}", array)
    return constants[digest]


def _find_projection(value: ir.Value | None, order: tuple[int, ...]) -> _Projection | None:
    """The projection that gives ``value``, whose axes [B, T, H, D] are in this order."""
    factor: float | None = 1.0
    scaled = find_producer(value, "Mul")
    if scaled is not None:
        value, by = scaled.inputs
        factor = None if by is None or by.const_value is None else float(by.const_value.numpy())
    moved = find_producer(value, "Transpose")
    split = None if moved is None or read_order(moved) != order else find_producer(moved.inputs[0], "Reshape")
    added = None if split is None else find_producer(split.inputs[0], "Add")
    if split is None or added is None:
        return None
    for operand, other in (added.inputs, reversed(tuple(added.inputs))):
        product = find_producer(operand, "MatMul")
        bias = read_constant(other)
        weight = None if product is None else read_constant(product.inputs[1])
        if product is None or product.inputs[0] is None or bias is None or weight is None:
            continue
        heads = _read_heads(split.inputs[1], weight.shape[1])
        return None if heads is None else _Projection(product.inputs[0], weight, bias, factor, heads)
    return None


def _read_heads(shape: ir.Value | None, width: int) -> int | None:
    """The third of the sizes [B, T, H, D] of a new shape; it or the last one may be -1, for H · D = ``width``."""
    sizes = read_constant(shape)
    if sizes is not None:
        read = [int(size) for size in sizes[2:]] if len(sizes) == 4 else []
    else:
        parts = find_producer(shape, "Concat")
        read = [] if parts is None or len(parts.inputs) != 4 else [_read_size(part) for part in parts.inputs[2:]]
    match read:
        case [heads, _] if heads > 0:
            return heads
        case [_, size] if size > 0:
            return width // size
        case _:
            return None


def _read_size(part: ir.Value | None) -> int:
    """A size that is constant; -1 for another one."""
    unsqueezed = find_producer(part, "Unsqueeze")
    size = read_constant(part if unsqueezed is None else unsqueezed.inputs[0])
    return -1 if size is None else int(size.item())
