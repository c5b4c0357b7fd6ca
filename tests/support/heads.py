"""The head of a language model by itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.export.passes import head

Array = npt.NDArray[Any]


class Head(NamedTuple):
    """States, targets, table and bias of a head without a model."""

    states: Array
    targets: Array
    table: Array
    bias: Array | None

    def expected(self) -> Array:
        logits = self.states.astype(np.float64) @ self.table.T.astype(np.float64)
        logits += 0 if self.bias is None else self.bias
        top = logits.max(axis=1)
        normal = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        return logits[np.arange(len(self.targets)), self.targets] - normal

    def graph(self, *, streamed: bool) -> ir.Model:
        states = ir.Value(name="hidden", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["n", 16]))
        graph = ir.Graph([states], [states], nodes=[], opset_imports={"": 20}, name="head")
        model = ir.Model(graph, ir_version=9)
        # A graph may not put out its input.
        middle = ir.node("Neg", [states])
        back = ir.node("Neg", [middle.outputs[0]])
        graph.extend([middle, back])
        graph.outputs[0] = back.outputs[0]
        head.attach(model, self.table, self.bias, streamed)
        return model


def lone(vocabulary: int, *, bias: bool, loud: float = 1.0) -> Head:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(640, 16)).astype(np.float32) * loud
    table = rng.normal(size=(vocabulary, 16)).astype(np.float32)
    targets = np.concatenate([[0, vocabulary - 1], rng.integers(0, vocabulary, 638)])
    return Head(states, targets, table, rng.normal(size=vocabulary).astype(np.float32) * 3 if bias else None)
