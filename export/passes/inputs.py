"""Embeddings and masks of encoders in a few operators, for CUDA: the traced graphs compute them in twenty.

Masks are looked up as the values that they add to scores. Vectors of positions are the first rows of a table, to which
the one vector of all token types belongs where there is but one; the norm adds them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from .head import MICROSOFT, initializer
from .matching import Array, find_producer, read_constant


class _LookUp(NamedTuple):
    """``table[ids]``: one of the vectors whose sum is a token's embedding."""

    node: ir.Node
    table: Array
    ids: ir.Value


def fuse_inputs(model: ir.Model) -> int:
    """Fuse in place the masks of fused attentions, and the embeddings with their norm; returns how many of both."""
    common.ShapeInferencePass()(model)
    graph = model.graph
    masks = dict.fromkeys(
        mask
        for node in graph
        if node.op_type == "Attention" and len(node.inputs) > 5
        for mask in _list_operands(node.inputs[5])
    )
    fused = sum(_look_up_mask(graph, mask) for mask in masks)
    fused += sum(_fuse_embeddings(graph, node) for node in list(graph) if node.op_type == "LayerNormalization")
    if fused:
        model.opset_imports.setdefault(MICROSOFT, 1)
        common.RemoveUnusedNodesPass()(model)
    return fused


def _list_operands(value: ir.Value | None) -> tuple[ir.Value, ...]:
    """What a sum is of; another value alone."""
    added = find_producer(value, "Add")
    return tuple(part for part in ((value,) if added is None else added.inputs) if part is not None)


def _look_up_mask(graph: ir.Graph, mask: ir.Value) -> bool:
    """Replace the arithmetic that gives ``mask`` of an input by a look-up; it is expanded afterwards."""
    expanded = find_producer(mask, "Expand")
    product = find_producer(mask if expanded is None else expanded.inputs[0], "Mul")
    chosen = find_producer(mask, "Where")
    if product is not None:
        least, masked, shape = product.inputs[1], _find_masked(product.inputs[0]), None
        replaced = product
    elif chosen is not None:
        # Where(1 - m, least, 1 - m), of the expanded mask m.
        least, masked, shape = chosen.inputs[1], _find_masked(chosen.inputs[2]), None
        condition = chosen.inputs[0]
        while (cast := find_producer(condition, "Cast")) is not None:
            condition = cast.inputs[0]
        expanded = None if masked is None else find_producer(masked, "Expand")
        if expanded is None or condition is not chosen.inputs[2]:
            return False
        masked, shape = expanded.inputs
        replaced = chosen
    else:
        return False
    number, axes = read_constant(least), []
    while (unsqueezed := find_producer(masked, "Unsqueeze")) is not None:
        masked = unsqueezed.inputs[0]
        axes.append(unsqueezed.inputs[1])
    if number is None or number.size != 1 or masked is None or not masked.is_graph_input():
        return False
    table = initializer(graph, "mask.table", np.array([number.item(), 0], np.float32))
    steps = [ir.node("Gather", [table, masked], {"axis": 0})]
    for axis in reversed(axes):
        steps.append(ir.node("Unsqueeze", [steps[-1].outputs[0], axis]))
    if shape is not None:
        steps.append(ir.node("Expand", [steps[-1].outputs[0], shape]))
    _replace(graph, replaced, steps)
    return True


def _find_masked(value: ir.Value | None) -> ir.Value | None:
    """The mask m of 1 - m; None for another value."""
    difference = find_producer(value, "Sub")
    minuend = None if difference is None else read_constant(difference.inputs[0])
    cast = None if difference is None else find_producer(difference.inputs[1], "Cast")
    is_one = minuend is not None and minuend.size == 1 and minuend.item() == 1
    return cast.inputs[0] if cast is not None and is_one else None


def _fuse_embeddings(graph: ir.Graph, norm: ir.Node) -> bool:
    """Replace the norm of a sum of look-ups by one operator that adds the positions itself."""
    looked_up = _list_look_ups(norm.inputs[0])
    if looked_up is None or len(norm.inputs) < 3:
        return False
    from_inputs = [part for part in looked_up if _is_read(part.ids)]
    single = [part.table[0] for part in looked_up if len(part.table) == 1 and part not in from_inputs]
    placed = [part for part in looked_up if len(part.table) > 1 and part not in from_inputs]
    first = _find_first_row(placed[0].ids) if len(placed) == 1 else None
    if first is None or not from_inputs:
        return False
    table = np.ascontiguousarray(sum(single, start=placed[0].table[first:]))[None]
    start, axis = (
        initializer(graph, f"positions.{name}", np.array([value])) for name, value in (("start", 0), ("axis", 1))
    )
    width = ir.node("Shape", [from_inputs[0].ids], {"start": 1, "end": 2})
    width.outputs[0].type = ir.TensorType(ir.DataType.INT64)
    positions = ir.node("Slice", [initializer(graph, "positions.table", table), start, width.outputs[0], axis])
    positions.outputs[0].type = norm.outputs[0].type
    graph.insert_before(norm, [width, positions])
    total = from_inputs[0].node.outputs[0]
    for part in from_inputs[1:]:
        added = ir.node("Add", [total, part.node.outputs[0]])
        added.outputs[0].type, added.outputs[0].shape = total.type, total.shape
        graph.insert_before(norm, added)
        total = added.outputs[0]
    attributes = {"epsilon": norm.attributes["epsilon"].as_float()}
    inputs = [total, positions.outputs[0], norm.inputs[1], norm.inputs[2]]
    _replace(graph, norm, [ir.node("SkipLayerNormalization", inputs, attributes, domain=MICROSOFT)])
    return True


def _list_look_ups(value: ir.Value | None) -> list[_LookUp] | None:
    """The look-ups whose sum ``value`` is; None when anything else is added."""
    added = find_producer(value, "Add")
    if added is not None:
        parts = [_list_look_ups(operand) for operand in added.inputs]
        return None if None in parts else [look_up for part in parts if part is not None for look_up in part]
    node = find_producer(value, "Gather")
    table = None if node is None else read_constant(node.inputs[0])
    if node is None or table is None or table.ndim != 2 or node.inputs[1] is None:
        return None
    return [_LookUp(node, table, node.inputs[1])]


def _find_first_row(ids: ir.Value) -> int | None:
    """The row of the first token, where the rows of the others follow; None for positions of another kind."""
    sliced = find_producer(ids, "Slice")
    if sliced is not None:
        rows = read_constant(sliced.inputs[0])
        start = _read_number(sliced.inputs[1])
        counts = rows is not None and np.array_equal(rows.ravel(), np.arange(rows.size))
        return start if counts and _read_number(sliced.inputs[3]) == 1 else None
    return _find_row_after_padding(ids)


def _find_row_after_padding(ids: ir.Value) -> int | None:
    """The first row of RoBERTa's positions, which count the tokens except padding from the padding token's id on.

    No text becomes a padding token, and padding is on the right, where nothing is read.
    """
    shifted = find_producer(ids, "Add")
    pad = None if shifted is None else _read_number(shifted.inputs[1])
    cast = None if shifted is None else find_producer(shifted.inputs[0], "Cast")
    counted = None if cast is None else find_producer(cast.inputs[0], "Mul")
    summed = None if counted is None else find_producer(counted.inputs[0], "CumSum")
    if counted is None or summed is None or summed.inputs[0] is not counted.inputs[1] or summed.attributes:
        return None
    real = find_producer(summed.inputs[0], "Cast")
    other = None if real is None else find_producer(real.inputs[0], "Not")
    equal = None if other is None else find_producer(other.inputs[0], "Equal")
    if equal is None or pad is None or _read_number(equal.inputs[1]) != pad:
        return None
    tokens = equal.inputs[0]
    return pad + 1 if tokens is not None and _is_read(tokens) else None


def _is_read(ids: ir.Value) -> bool:
    """Whether ids are an input, or the ids of another vocabulary that a table has for it (the reader's)."""
    if ids.is_graph_input():
        return True
    mapped = find_producer(ids, "Gather")
    table = None if mapped is None else read_constant(mapped.inputs[0])
    return mapped is not None and table is not None and table.ndim == 1 and bool(mapped.inputs[1].is_graph_input())  # type: ignore[union-attr]


def _read_number(value: ir.Value | None) -> int | None:
    unsqueezed = find_producer(value, "Unsqueeze")
    constant = read_constant(value if unsqueezed is None else unsqueezed.inputs[0])
    return None if constant is None or constant.size != 1 else int(constant.item())


def _replace(graph: ir.Graph, node: ir.Node, steps: list[ir.Node]) -> None:
    """Put ``steps`` in the place of a node with one output that is read."""
    former = node.outputs[0]
    for step in steps:
        step.outputs[0].type = former.type
    steps[-1].outputs[0].shape = former.shape
    graph.insert_before(node, steps)
    ir.convenience.replace_all_uses_with(former, steps[-1].outputs[0])
