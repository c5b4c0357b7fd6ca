"""The head of a large table as a graph of its own, to which the runtime passes the table chunk by chunk.

Inside the model's graph the head would keep the whole table in memory (runtime/ort/chunked_head.py). Only int8 heads
are taken out, and only with tables that are stored as they are used (``head.SHARED``). This is the last pass: the
parity report describes the single graph, and both forms compute the same numbers of a block.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from . import head

TABLE = "table"
"""The input of a head's graph whose default is the whole table."""
WORDS = "words"
"""The input of a model's graph with the table rows of its tokens."""


def split_head(model: ir.Model) -> ir.Model | None:
    """Take the head out of ``model``, which then has the output ``hidden`` [N, d] and no input ``targets``.

    A look-up in the same table is taken out as well: the model gets the input ``words`` [..., d], the uint8 rows of its
    first input [...]. A row that is read from a mapped file brings up to 2 MB of its neighbours into memory.

    The head becomes a graph from ``hidden`` and ``targets`` [N] to ``parts`` [B, 2, N]: the log-sum of a block's
    logits, and the target's logit or -inf where the target is in another block. Its inputs ``table`` [B, rows, d] and
    ``blocks`` [B], the indices of these blocks, default to the whole vocabulary. Returns None and changes nothing where
    the head has to stay.
    """
    graph = model.graph
    node = graph.outputs[0].producer()
    form = None if node is None else head.HeadForm.of(node)
    if node is None or form is None or not form.is_int8 or form.is_chunked:
        return None
    hidden, targets, table = node.inputs[:3]
    # The signs of a small table are flipped by a node between the table and the head.
    if hidden is None or targets is None or table is None or table.const_value is None:
        return None
    head_model = _build_head_model(model, node, form, table.const_value)
    states = head_model.graph.inputs[0]
    hidden.name, hidden.type, hidden.shape = states.name, states.type, states.shape
    graph.outputs[0] = hidden
    graph.remove(node, safe=True)
    graph.inputs.remove(targets)
    _feed_words(graph, table)
    del model.functions[node.op_identifier()]
    common.RemoveUnusedNodesPass()(model)
    return head_model


def _feed_words(graph: ir.Graph, table: ir.Value) -> None:
    """Replace a look-up in the blocks of ``table`` by the input ``words``, if it reads the rows of the first input."""
    ids = graph.inputs[0]
    uses = [node for node, _ in table.uses() if node.op_type == "GatherND" and _find_ids(node) is ids]
    if not uses or ids.shape is None or table.shape is None:
        return
    words = _value(WORDS, ir.DataType.UINT8, *ids.shape, table.shape[-1])
    graph.inputs.append(words)
    for node in uses:
        ir.convenience.replace_all_uses_with(node.outputs[0], words)
        graph.remove(node, safe=True)


def _find_ids(node: ir.Node) -> ir.Value | None:
    """Return the ids whose Div and Mod, unsqueezed and concatenated, are the block and row indices of ``node``."""
    value = node.inputs[1]
    for op in ("Concat", "Unsqueeze", "Div"):
        producer = None if value is None else value.producer()
        if producer is None or producer.op_type != op:
            return None
        value = producer.inputs[0]
    return value


def _build_head_model(model: ir.Model, node: ir.Node, form: head.HeadForm, table: ir.TensorProtocol) -> ir.Model:
    """Return the head ``node`` of ``model`` as a model of its own."""
    blocks, rows, width = table.shape.numpy()
    inputs = [
        _value("hidden", ir.DataType.FLOAT, "scored", width),
        _value("targets", ir.DataType.INT64, "scored"),
        _value(TABLE, ir.DataType.UINT8, "blocks", rows, width),
        _value("blocks", ir.DataType.INT64, "blocks"),
    ]
    inputs[2].const_value, inputs[3].const_value = table, ir.tensor(np.arange(blocks), name="blocks")
    opsets = dict(model.opset_imports)
    graph = ir.Graph(inputs, [], nodes=[], initializers=inputs[2:], opset_imports=opsets, name="head")
    head_model = ir.Model(graph, ir_version=model.ir_version)
    pieces = []
    # The first token of each block, perhaps the bias, and the scales: all small, so they stay whole in the graph.
    for value in node.inputs[3:]:
        assert value is not None
        assert value.const_value is not None
        whole = head.initializer(graph, str(value.name), value.const_value.numpy())
        pieces.append(ir.node("Gather", [whole, inputs[3]]))
    chunked = form._replace(is_chunked=True)
    parts = head.call(head_model, chunked, [*inputs[:3], *(piece.outputs[0] for piece in pieces)])
    graph.extend([*pieces, parts])
    output, declared = parts.outputs[0], _value("parts", ir.DataType.FLOAT, "blocks", 2, "scored")
    output.name, output.type, output.shape = declared.name, declared.type, declared.shape
    graph.outputs.append(output)
    return head_model


def _value(name: str, kind: ir.DataType, *shape: int | str | ir.SymbolicDim) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(kind), shape=ir.Shape(shape))
