"""int8 graphs for a GPU: the weights become float32 when the graph is loaded, and activations are no longer rounded.

The int8 graphs of ``export/passes/int8.py`` have no kernels on a GPU. Their products are replaced, node by node::

    QuantizeLinear(x / peak) -> MatMulIntegerToFloat(…, W int8, …, scale) -> · peak    becomes    x @ (W · scale)

``W · scale`` is a constant expression, which ONNX Runtime computes once while it loads the graph. Everything else stays
as it is, so the result is that of the int8 graph without the rounding of its activations. Nothing is written to disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from ..protobuf import encode_field, encode_message, encode_varint, iterate_fields

FLOAT = 1
_PRODUCTS = frozenset({"MatMulIntegerToFloat", "MatMulInteger", "Int8Head"})
_MODEL_GRAPH, _GRAPH_NODE, _GRAPH_OUTPUT = 7, 1, 12
_INPUT, _OUTPUT, _OP, _ATTRIBUTE, _DOMAIN = 1, 2, 4, 5, 7
_ATTRIBUTE_GRAPHS = (6, 11)
_INT, _INTS = 2, 7
"""ONNX's numbers of attribute types."""


class Node(NamedTuple):
    """A node of a graph, and its bytes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    content: bytes

    @classmethod
    def make(cls, op: str, inputs: tuple[str, ...], output: str, attributes: bytes = b"") -> Node:
        """A node of ONNX's own operators with one output."""
        content = b"".join(encode_message(_INPUT, name.encode()) for name in inputs)
        content += encode_message(_OUTPUT, output.encode()) + encode_message(_OP, op.encode()) + attributes
        return cls(op, inputs, (output,), content)

    @classmethod
    def read(cls, content: bytes) -> Node:
        """The node with these bytes."""
        texts: dict[int, list[str]] = {_INPUT: [], _OUTPUT: [], _OP: []}
        for number, begin, end in iterate_fields(content, 0, len(content)):
            if number in texts:
                texts[number].append(content[begin:end].decode())
        return cls(texts[_OP][0], tuple(texts[_INPUT]), tuple(texts[_OUTPUT]), content)

    @property
    def reads(self) -> frozenset[str]:
        """The values it reads, also those that its inner graphs do."""
        return frozenset(self.inputs).union(*(node.reads for node in self._inner_nodes()))

    def _inner_nodes(self) -> Iterator[Node]:
        for number, begin, end in iterate_fields(self.content, 0, len(self.content)):
            if number == _ATTRIBUTE:
                for part, first, last in iterate_fields(self.content, begin, end):
                    if part in _ATTRIBUTE_GRAPHS:
                        for field, start, stop in iterate_fields(self.content, first, last):
                            if field == _GRAPH_NODE:
                                yield Node.read(self.content[start:stop])


def dequantize(model: bytes) -> bytes | None:
    """The model with float32 products in place of its int8 ones; None when it has none."""
    fields = list(_split(model))
    graphs = [content for number, content in fields if number == _MODEL_GRAPH]
    parts = list(_split(graphs[0])) if graphs else []
    nodes = [Node.read(content) for number, content in parts if number == _GRAPH_NODE]
    if not any(node.op in _PRODUCTS for node in nodes):
        return None
    outputs = [_name_of(content) for number, content in parts if number == _GRAPH_OUTPUT]
    nodes = _drop_unused(_Rewriter(nodes).rewrite(), outputs)
    graph = b"".join(encode_message(_GRAPH_NODE, node.content) for node in nodes)
    graph += b"".join(encode_message(number, content) for number, content in parts if number != _GRAPH_NODE)
    rest = _without(model, _MODEL_GRAPH)
    return rest + encode_message(_MODEL_GRAPH, graph)


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
            elif node.op == "Int8Head":
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
            matrix = self._add("Mul", (self._add("Cast", (weight,), _to(FLOAT)), scale))
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
        matrix = self._add("Cast", (node.inputs[1],), _to(FLOAT))
        self._add("MatMul", (steps, matrix), output=node.outputs[0])

    def _replace_head(self, node: Node) -> None:
        """The log-softmax over the whole vocabulary, of states [N, d] and a table uint8 [blocks, rows, d]."""
        hidden, targets, table, _, scale, *bias = node.inputs
        last = self._constant(-1)
        signed = self._add("Sub", (self._add("Cast", (table,), _to(FLOAT)), self._number(128)))
        rows = self._add("Mul", (signed, self._add("Unsqueeze", (scale, last))))
        width = self._add("Shape", (table,), _integer("start", -1))
        flat = self._add("Reshape", (rows, self._add("Concat", (last, width), _integer("axis", 0))))
        logits = self._add("MatMul", (hidden, self._add("Transpose", (flat,), _integers("perm", (1, 0)))))
        for values in bias:
            logits = self._add("Add", (logits, self._add("Reshape", (values, last))))
        likely = self._add("LogSoftmax", (logits,), _integer("axis", -1))
        column = self._add("Unsqueeze", (targets, last))
        chosen = self._add("GatherElements", (likely, column), _integer("axis", -1))
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
        return self._add("Constant", (), _integers("value_ints", (value,)))

    def _number(self, value: int) -> str:
        """float32 []"""
        return self._add("Cast", (self._add("Constant", (), _integer("value_int", value)),), _to(FLOAT))

    def _add(self, op: str, inputs: tuple[str, ...], attributes: bytes = b"", output: str = "") -> str:
        output = output or f"dequantized.{next(self._numbers)}"
        self._new.append(Node.make(op, inputs, output, attributes))
        return output


def _drop_unused(nodes: list[Node], outputs: list[str]) -> list[Node]:
    """The nodes that ``outputs`` need, in order."""
    needed = set(outputs)
    kept = []
    for node in reversed(nodes):
        if needed.intersection(node.outputs):
            needed |= node.reads
            kept.append(node)
    return kept[::-1]


def _split(message: bytes) -> Iterator[tuple[int, bytes]]:
    return ((number, message[begin:end]) for number, begin, end in iterate_fields(message, 0, len(message)))


def _without(message: bytes, number: int) -> bytes:
    """The message without its fields of that number, all others as they are."""
    out, kept = b"", 0
    for field, begin, end in iterate_fields(message, 0, len(message)):
        if field == number:
            header = len(encode_varint(number << 3 | 2)) + len(encode_varint(end - begin))
            out += message[kept : begin - header]
            kept = end
    return out + message[kept:]


def _name_of(value: bytes) -> str:
    return next(content.decode() for number, content in _split(value) if number == 1)


def _to(element: int) -> bytes:
    return _integer("to", element)


def _integer(name: str, value: int) -> bytes:
    content = encode_message(1, name.encode()) + encode_field(3, value) + encode_field(20, _INT)
    return encode_message(_ATTRIBUTE, content)


def _integers(name: str, values: tuple[int, ...]) -> bytes:
    content = encode_message(1, name.encode()) + b"".join(encode_field(8, value) for value in values)
    return encode_message(_ATTRIBUTE, content + encode_field(20, _INTS))
