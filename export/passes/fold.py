"""Stores weights in the orientation that their products need, each once."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common


def fold_transposes(model: ir.Model) -> None:
    """Transpose constant matrices now instead of at load, under their own names; merge identical initializers.

    A matrix that a Gather reads too, a tied embedding, keeps its one copy and its Transpose: ONNX Runtime folds that at
    load, and the file holds the table once.
    """
    common.DeduplicateHashedInitializersPass()(model)
    graph = model.graph
    for weight in list(graph.initializers.values()):
        users = [node for node, _ in weight.uses()]
        if not users or len(weight.shape or ()) != 2 or any(node.op_type != "Transpose" for node in users):
            continue
        assert weight.const_value is not None
        name = str(weight.name)
        transposed = ir.Value(name=f"{name}.T")
        array = np.ascontiguousarray(weight.const_value.numpy().T)
        transposed.const_value = ir.tensor(array, name=name)
        transposed.dtype, transposed.shape = transposed.const_value.dtype, ir.Shape(array.shape)
        graph.register_initializer(transposed)
        for node in users:
            ir.convenience.replace_all_uses_with(node.outputs[0], transposed)
        graph.remove(users, safe=True)
        del graph.initializers[name]
        transposed.name = name
    common.RemoveUnusedNodesPass()(model)
