"""Attention of encoders as one operator, for CUDA: ``com.microsoft.Attention`` in place of its single steps.

The traced graphs multiply, transpose, scale, mask and normalise in twenty kernels for each layer. The operator has one
product for queries, keys and values and one kernel that never writes the scores down. What is added to the scores, a
mask and perhaps a bias of relative positions (MPNet, T5), is one input, which all layers share.
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
    """Zeros where the graph adds none."""
    factor: float | None
    """What it was multiplied by; None when the graph computes that, which is the root of 1 / √D then."""
    heads: int


class _Shared:
    """Constants and added scores that several layers read."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self._constants: dict[bytes, ir.Value] = {}
        self._added: dict[tuple[ir.Value, ...], ir.Value] = {}

    def add_constant(self, array: Array) -> ir.Value:
        """The constant with this content; layers that share their weights have one."""
        digest = hashlib.sha256(array.tobytes()).digest()
        if digest not in self._constants:
            self._constants[digest] = initializer(self.graph, f"attention.{len(self._constants)}", array)
        return self._constants[digest]

    def add_scores(self, added: tuple[ir.Value, ...], user: ir.Node) -> ir.Value:
        """What is added to the scores as [B or 1, H or 1, T, T], which ``user`` or a node before it computes."""
        if added not in self._added:
            self._added[added] = _expand(self.graph, added[0]) if len(added) == 1 else self._sum(added, user)
        return self._added[added]

    def _sum(self, added: tuple[ir.Value, ...], user: ir.Node) -> ir.Value:
        total = ir.node("Add", list(added))
        total.outputs[0].type = added[0].type
        self.graph.insert_before(user, total)
        return total.outputs[0]


def fuse_attention(model: ir.Model) -> int:
    """Fuse in place the attentions whose queries, keys and values are products of the same states; returns how many."""
    common.ShapeInferencePass()(model)
    graph = model.graph
    shared = _Shared(graph)
    fused = sum(_fuse(shared, node) for node in list(graph) if node.op_type == "Softmax")
    if fused:
        model.opset_imports.setdefault(MICROSOFT, 1)
        common.RemoveUnusedNodesPass()(model)
    return fused


def _fuse(shared: _Shared, softmax: ir.Node) -> bool:
    mixed = find_only_user(softmax.outputs[0], "MatMul")
    scores = _find_scores(softmax.inputs[0])
    moved = None if mixed is None else find_only_user(mixed.outputs[0], "Transpose")
    joined = None if moved is None else find_only_user(moved.outputs[0], "Reshape")
    if scores is None or mixed is None or mixed.inputs[0] is not softmax.outputs[0]:
        return False
    if joined is None or read_order(moved) != (0, 2, 1, 3):
        return False
    query = _find_projection(scores.product.inputs[0], (0, 2, 1, 3))
    key = _find_projection(scores.product.inputs[1], (0, 2, 3, 1))
    value = _find_projection(mixed.inputs[1], (0, 2, 1, 3))
    if query is None or key is None or value is None or not query.source is key.source is value.source:
        return False
    parts = query, key, value
    factor = None if query.factor is None or key.factor is None else query.factor * key.factor * scores.scale
    if not scores.added or any(value.shape is None or len(value.shape) != 4 for value in scores.added):
        return False
    weight = np.ascontiguousarray(np.concatenate([part.weight for part in parts], axis=1))
    bias = np.concatenate([part.bias for part in parts])
    node = ir.node(
        "Attention",
        [
            query.source,
            shared.add_constant(weight),
            shared.add_constant(bias),
            None,
            None,
            shared.add_scores(scores.added, joined),
        ],
        {"num_heads": query.heads, **({} if factor is None else {"scale": float(factor)})},
        domain=MICROSOFT,
    )
    (result,) = node.outputs
    former = joined.outputs[0]
    assert query.source.shape is not None
    result.type, result.shape = former.type, ir.Shape([*query.source.shape[:2], len(bias) // 3])
    shared.graph.insert_before(joined, node)
    ir.convenience.replace_all_uses_with(former, result)
    return True


class _Scores(NamedTuple):
    """A multiple of the product of queries and keys, with what is added to it."""

    product: ir.Node
    scale: float
    added: tuple[ir.Value, ...]
    """Of the heads' relative positions, and of masked tokens."""


def _find_scores(value: ir.Value | None, depth: int = 2) -> _Scores | None:
    """The scores that ``value`` is, with at most ``depth`` sums; None for another value."""
    while (cast := find_producer(value, "Cast")) is not None:  # to float32, which it is
        value = cast.inputs[0]
    if (scaled := _find_product(value)) is not None:
        return _Scores(*scaled, ())
    added = find_producer(value, "Add")
    if added is None or depth == 0:
        return None
    for operand, other in (added.inputs, reversed(tuple(added.inputs))):
        scores = _find_scores(operand, depth - 1)
        if scores is not None and other is not None:
            return scores._replace(added=(*scores.added, other))
    return None


def _find_product(value: ir.Value | None) -> tuple[ir.Node, float] | None:
    """The product of queries and keys that ``value`` is a multiple of, and the factor."""
    product = find_producer(value, "MatMul")
    if product is not None:
        return product, 1.0
    for operator in ("Mul", "Div"):
        scaled = find_producer(value, operator)
        product = None if scaled is None else find_producer(scaled.inputs[0], "MatMul")
        by = None if scaled is None else read_constant(scaled.inputs[1])
        if product is not None and by is not None and by.size == 1:
            return product, float(by.item()) if operator == "Mul" else 1 / float(by.item())
    return None


def _expand(graph: ir.Graph, mask: ir.Value) -> ir.Value:
    """A mask [B, 1, 1, T] as [B, 1, T, T], which the operator takes; another as it is."""
    assert mask.shape is not None
    producer = mask.producer()
    if mask.shape[2] != 1 or producer is None:
        return mask
    single = initializer(graph, "attention.single", np.ones(1, np.int64))
    width = ir.node("Shape", [mask], {"start": 3, "end": 4})
    sizes = ir.node("Concat", [single, single, width.outputs[0], single], {"axis": 0})
    expanded = ir.node("Expand", [mask, sizes.outputs[0]])
    for node in (width, sizes):
        node.outputs[0].type = ir.TensorType(ir.DataType.INT64)
    expanded.outputs[0].type = mask.type
    expanded.outputs[0].shape = ir.Shape([mask.shape[0], 1, mask.shape[3], mask.shape[3]])
    graph.insert_after(producer, [width, sizes, expanded])
    return expanded.outputs[0]


def _find_projection(value: ir.Value | None, order: tuple[int, ...]) -> _Projection | None:
    """The projection that gives ``value``, whose axes [B, T, H, D] are in this order."""
    factor: float | None = 1.0
    scaled = find_producer(value, "Mul")
    if scaled is not None:
        value, by = scaled.inputs
        factor = None if by is None or by.const_value is None else float(by.const_value.numpy())
    moved = find_producer(value, "Transpose")
    split = None if moved is None or read_order(moved) != order else find_producer(moved.inputs[0], "Reshape")
    if split is None:
        return None
    added = find_producer(split.inputs[0], "Add")
    operands = (split.inputs[0], None) if added is None else tuple(added.inputs)
    for operand, other in (operands, operands[::-1]):
        product = find_producer(operand, "MatMul")
        weight = None if product is None else read_constant(product.inputs[1])
        if product is None or product.inputs[0] is None or weight is None:
            continue
        bias = np.zeros(weight.shape[1], weight.dtype) if added is None else read_constant(other)
        heads = _read_heads(split.inputs[1], weight.shape[1])
        return None if heads is None or bias is None else _Projection(product.inputs[0], weight, bias, factor, heads)
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
