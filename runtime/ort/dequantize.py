"""int8 graphs for a GPU: the weights become float32 when the graph is loaded, and activations are no longer rounded.

The int8 graphs of ``export/passes/int8.py`` have no kernels on a GPU. Their products are replaced, node by node::

    QuantizeLinear(x / peak) -> MatMulIntegerToFloat(…, W int8, …, scale) -> · peak    becomes    x @ (W · scale)

``W · scale`` is a constant expression, which ONNX Runtime computes once while it loads the graph. Everything else stays
as it is, so the result equals the int8 graph's without the rounding of its activations. Nothing is written to disk.

A language model's head that reads the vocabulary block by block, int8 or float32, becomes one product too: its loop
over the blocks is control flow, which CUDA does not capture.
"""

from __future__ import annotations

from itertools import count

from .nodes import Node, SerializedGraph, encode_integer, encode_integers, encode_type

FLOAT = 1
_HEADS = frozenset({"Head", "BiasedHead", "Int8Head", "BiasedInt8Head"})
_REPLACED = _HEADS | {"MatMulIntegerToFloat", "MatMulInteger"}


def dequantize(model: bytes) -> bytes | None:
    """The model with float32 products in place of its int8 ones and of a head in blocks; None when it has none."""
    graph = SerializedGraph(model)
    if not any(node.op in _REPLACED for node in graph.nodes):
        return None
    return graph.write(_Rewriter(graph.nodes).rewrite())


class _Rewriter:
    """Replaces the int8 products of a graph's nodes."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._producer = {output: node for node in nodes for output in node.outputs}
        self._readers: dict[str, list[Node]] = {}
        for node in nodes:
            for name in node.reads:
                self._readers.setdefault(name, []).append(node)
        self._numbers = count()
        self._weights: dict[tuple[str, str], str] = {}
        self._new: list[Node] = []

    def rewrite(self) -> list[Node]:
        """All nodes, the products replaced; what only they needed is still there."""
        replaced: set[str] = set()
        for node in self._nodes:
            if node.op == "MatMulIntegerToFloat":
                replaced.add(self._replace_product(node))
            elif node.op == "MatMulInteger":
                self._replace_integer_product(node)
            elif node.op in _HEADS:
                self._replace_head(node)
            elif node.outputs[0] not in replaced:
                self._new.append(node)
        return self._new

    def _replace_product(self, node: Node) -> str:
        """x @ (W · scale); returns the output that has it: of the product by the peaks, where that is what reads it."""
        quantized, weight, _, scale = node.inputs[:4]
        scaled = self._producer[quantized].inputs[0]
        matrix = self._weights.get((weight, scale))
        if matrix is None:
            matrix = self._add("Mul", (self._add("Cast", (weight,), encode_type(FLOAT)), scale))
            self._weights[weight, scale] = matrix
        readers = self._readers.get(node.outputs[0], [])
        states, peak = self._unscale(scaled)
        bias = tuple(name for name in node.inputs[6:7] if name)
        if not bias and len(readers) == 1 and readers[0].op == "Mul" and peak in readers[0].inputs:
            return self._add("MatMul", (states, matrix), output=readers[0].outputs[0])
        if not bias:
            return self._add("MatMul", (scaled, matrix), output=node.outputs[0])
        return self._add("Add", (self._add("MatMul", (scaled, matrix)), *bias), output=node.outputs[0])

    def _replace_integer_product(self, node: Node) -> None:
        """(x / level) @ W in float32, whose reader brings it to float32 anyway."""
        quantizer = self._producer[node.inputs[0]]
        steps = self._add("Div", quantizer.inputs[:2])
        matrix = self._add("Cast", (node.inputs[1],), encode_type(FLOAT))
        self._add("MatMul", (steps, matrix), output=node.outputs[0])

    def _replace_head(self, node: Node) -> None:
        """The log-softmax over the whole vocabulary, of states [N, d] and a table [blocks, rows, d]: float32, or uint8
        with the scale of each row."""
        hidden, targets, table, _, *rest = node.inputs
        last, rows = self._constant(-1), table
        if "Int8" in node.op:
            signed = self._add("Sub", (self._add("Cast", (table,), encode_type(FLOAT)), self._number(128)))
            rows = self._add("Mul", (signed, self._add("Unsqueeze", (rest.pop(), last))))
        width = self._add("Shape", (table,), encode_integer("start", -1))
        flat = self._add("Reshape", (rows, self._add("Concat", (last, width), encode_integer("axis", 0))))
        logits = self._add("MatMul", (hidden, self._add("Transpose", (flat,), encode_integers("perm", (1, 0)))))
        for values in rest:
            logits = self._add("Add", (logits, self._add("Reshape", (values, last))))
        likely = self._add("LogSoftmax", (logits,), encode_integer("axis", -1))
        column = self._add("Unsqueeze", (targets, last))
        chosen = self._add("GatherElements", (likely, column), encode_integer("axis", -1))
        self._add("Squeeze", (chosen, last), output=node.outputs[0])

    def _unscale(self, scaled: str) -> tuple[str, str]:
        """x and the name of its peaks, where ``scaled`` is x · Reciprocal(peaks); else "" for the peaks."""
        product = self._producer.get(scaled)
        if product is not None and product.op == "Mul":
            for states, factor in (product.inputs, product.inputs[::-1]):
                reciprocal = self._producer.get(factor)
                if reciprocal is not None and reciprocal.op == "Reciprocal":
                    return states, reciprocal.inputs[0]
        return scaled, ""

    def _constant(self, value: int) -> str:
        """int64 [1]"""
        return self._add("Constant", (), encode_integers("value_ints", (value,)))

    def _number(self, value: int) -> str:
        """float32 []"""
        return self._add("Cast", (self._add("Constant", (), encode_integer("value_int", value)),), encode_type(FLOAT))

    def _add(self, op: str, inputs: tuple[str, ...], attributes: bytes = b"", output: str = "") -> str:
        output = output or f"dequantized.{next(self._numbers)}"
        self._new.append(Node.make(op, inputs, output, attributes))
        return output
