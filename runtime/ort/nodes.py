"""The nodes of a serialized ONNX graph, read and written on the protobuf fields, without the package ``onnx``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..bundles.protobuf import encode_field, encode_message, encode_varint, iterate_fields, read_integers

MODEL_GRAPH, GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_OUTPUT = 7, 1, 5, 12
INPUT, OUTPUT, OP, ATTRIBUTE = 1, 2, 4, 5
ATTRIBUTE_GRAPHS = (6, 11)
INT, INTS = 2, 7
"""ONNX's numbers of attribute types."""
INT64 = 7
"""ONNX's number of an element type."""
_ATTRIBUTE_INTS = 8
_DIMS, _DATA_TYPE, _TENSOR_NAME, _RAW_DATA = 1, 2, 8, 9


class Node(NamedTuple):
    """A node of a graph, and its bytes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    content: bytes

    @classmethod
    def make(cls, op: str, inputs: tuple[str, ...], output: str, attributes: bytes = b"") -> Node:
        """A node of ONNX's own operators with one output."""
        content = b"".join(encode_message(INPUT, name.encode()) for name in inputs)
        content += encode_message(OUTPUT, output.encode()) + encode_message(OP, op.encode()) + attributes
        return cls(op, inputs, (output,), content)

    @classmethod
    def read(cls, content: bytes) -> Node:
        """The node with these bytes."""
        texts: dict[int, list[str]] = {INPUT: [], OUTPUT: [], OP: []}
        for number, begin, end in iterate_fields(content, 0, len(content)):
            if number in texts:
                texts[number].append(content[begin:end].decode())
        return cls(texts[OP][0], tuple(texts[INPUT]), tuple(texts[OUTPUT]), content)

    @property
    def reads(self) -> frozenset[str]:
        """The values that it and its inner graphs read."""
        return frozenset(self.inputs).union(*(node.reads for node in self._inner_nodes()))

    def find_integers(self, attribute: str) -> tuple[int, ...] | None:
        """The numbers of an attribute; None when the node does not have it."""
        for number, begin, end in iterate_fields(self.content, 0, len(self.content)):
            content = self.content[begin:end]
            if number == ATTRIBUTE and _name_of(content) == attribute:
                return tuple(read_integers(content).get(_ATTRIBUTE_INTS, []))
        return None

    def _inner_nodes(self) -> Iterator[Node]:
        for number, begin, end in iterate_fields(self.content, 0, len(self.content)):
            if number == ATTRIBUTE:
                for part, first, last in iterate_fields(self.content, begin, end):
                    if part in ATTRIBUTE_GRAPHS:
                        for field, start, stop in iterate_fields(self.content, first, last):
                            if field == GRAPH_NODE:
                                yield Node.read(self.content[start:stop])


def _drop_unused(nodes: list[Node], outputs: list[str]) -> list[Node]:
    """The nodes that ``outputs`` need, in order."""
    needed = set(outputs)
    used = []
    for node in reversed(nodes):
        if needed.intersection(node.outputs):
            needed |= node.reads
            used.append(node)
    return used[::-1]


class SerializedGraph:
    """A model's bytes, and the nodes of its graph."""

    def __init__(self, model: bytes) -> None:
        self._model = model
        graphs = [content for number, content in _split_fields(model) if number == MODEL_GRAPH]
        self._parts = list(_split_fields(graphs[0])) if graphs else []
        self.nodes = [Node.read(content) for number, content in self._parts if number == GRAPH_NODE]
        self.outputs = [_name_of(content) for number, content in self._parts if number == GRAPH_OUTPUT]

    def read_integers(self) -> dict[str, tuple[int, ...]]:
        """The int64 constants of one axis or none that are stored in the graph, by name."""
        return {
            _name_of(content, _TENSOR_NAME): values
            for number, content in self._parts
            if number == GRAPH_INITIALIZER and (values := _read_int64(content)) is not None
        }

    def write(self, nodes: list[Node], outputs: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
        """The model with other nodes, without nodes that no output needs, and with further outputs, which
        ``encode_output`` describes."""
        used = _drop_unused(nodes, [*self.outputs, *outputs])
        graph = b"".join(encode_message(GRAPH_NODE, node.content) for node in used)
        graph += b"".join(encode_message(GRAPH_OUTPUT, content) for content in outputs.values())
        graph += b"".join(encode_message(number, content) for number, content in self._parts if number != GRAPH_NODE)
        return _without_field(self._model, MODEL_GRAPH) + encode_message(MODEL_GRAPH, graph)


def _split_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    return ((number, message[begin:end]) for number, begin, end in iterate_fields(message, 0, len(message)))


def _without_field(message: bytes, number: int) -> bytes:
    """The message without its fields of that number, all others as they are."""
    out, copied_to = b"", 0
    for field, begin, end in iterate_fields(message, 0, len(message)):
        if field == number:
            header = len(encode_varint(number << 3 | 2)) + len(encode_varint(end - begin))
            out += message[copied_to : begin - header]
            copied_to = end
    return out + message[copied_to:]


def _name_of(value: bytes, field: int = 1) -> str:
    """The name of a value or an attribute; a tensor has its name in another field."""
    return next((content.decode() for number, content in _split_fields(value) if number == field), "")


def _read_int64(tensor: bytes) -> tuple[int, ...] | None:
    """The numbers of a tensor of int64 in its raw data; None for any other tensor."""
    values = read_integers(tensor)
    raw = [content for number, content in _split_fields(tensor) if number == _RAW_DATA]
    if values.get(_DATA_TYPE) != [INT64] or len(values.get(_DIMS, [])) > 1 or not raw or len(raw[0]) % 8:
        return None
    return tuple(
        int.from_bytes(raw[0][offset : offset + 8], "little", signed=True) for offset in range(0, len(raw[0]), 8)
    )


def encode_output(name: str, element: int, axes: tuple[str | int, ...]) -> bytes:
    """An output of a graph, its axes by name or size."""
    sizes = b"".join(
        encode_message(1, encode_message(2, axis.encode()) if isinstance(axis, str) else encode_field(1, axis))
        for axis in axes
    )
    tensor = encode_field(1, element) + encode_message(2, sizes)
    return encode_message(1, name.encode()) + encode_message(2, encode_message(1, tensor))


def encode_type(element: int) -> bytes:
    """The attribute ``to`` of a Cast."""
    return encode_integer("to", element)


def encode_integer(name: str, value: int) -> bytes:
    """An attribute that is a number."""
    content = encode_message(1, name.encode()) + encode_field(3, value) + encode_field(20, INT)
    return encode_message(ATTRIBUTE, content)


def encode_integers(name: str, values: tuple[int, ...]) -> bytes:
    """An attribute that is a list of numbers."""
    content = encode_message(1, name.encode()) + b"".join(encode_field(8, value) for value in values)
    return encode_message(ATTRIBUTE, content + encode_field(20, INTS))
