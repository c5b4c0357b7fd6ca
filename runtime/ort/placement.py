"""Rewrites what would move values between the host and a GPU inside a run, so that the run can be captured.

Three things do in the graphs of ``export/``, and are replaced by what gives the same numbers:

- a size that the graph reads from a shape and computes with (the scale of an attention), although it is a constant;
- Pad of whole numbers, which CUDA has no kernel for: they are padded as float64, which holds every token id exactly;
- GatherND, which looks up rows of a table in blocks and has no kernel for int8: the blocks become one table.

A fourth is the rule of PMI-Decode (``export/roles/generation/contrast.py``), which sorts the whole vocabulary where the
most probable tokens have too little probability: the number of tokens to sort is computed on the device and read on the
host. Here it sorts no more of them, and has three outputs more, from which the host completes such a step
(``runtime/decoding/whole_search.py``).
"""

from __future__ import annotations

from itertools import count

from .nodes import INT64, Node, SerializedGraph, encode_integer, encode_integers, encode_output, encode_type

_FLOAT, _FLOAT64 = 1, 11


def keep_on_device(model: bytes) -> bytes | None:
    """The model with these nodes replaced; None when it has none of them."""
    graph = SerializedGraph(model)
    if not any(node.op in ("Slice", "Pad", "GatherND", "TopK") for node in graph.nodes):
        return None
    rewriter = _Rewriter(graph)
    nodes = rewriter.rewrite()
    return None if nodes == graph.nodes else graph.write(nodes, rewriter.outputs)


class _Rewriter:
    def __init__(self, graph: SerializedGraph) -> None:
        self._nodes = graph.nodes
        self._integers = graph.read_integers()
        self._producer = {output: node for node in graph.nodes for output in node.outputs}
        self._numbers = count()
        self.outputs: dict[str, bytes] = {}
        """Further outputs of the graph."""
        self._search = self._find_second_search()

    def rewrite(self) -> list[Node]:
        """All nodes, in order, with new nodes in place of the replaced nodes."""
        nodes = [new for node in self._nodes for new in self._replace(node)]
        return nodes if self._search is None else [*nodes, *self._end_search(*self._search[1:])]

    def _replace(self, node: Node) -> list[Node]:
        if node.op == "Slice" and (size := self._find_last_size(node)) is not None:
            return [Node.make("Constant", (), node.outputs[0], encode_integers("value_ints", (size,)))]
        if node.op == "Pad" and len(node.inputs) > 2 and node.inputs[2] in self._integers:
            return self._pad_as_floats(node)
        if self._search is not None and node.outputs[0] == self._search[0]:
            return [Node.make("Identity", (self._search[1],), node.outputs[0])]
        if node.op == "GatherND" and (parts := self._find_indices(node.inputs[1])) is not None:
            return self._look_up_in_one_table(node, *parts)
        return [node]

    def _find_last_size(self, node: Node) -> int | None:
        """The size that a Slice takes from the end of a shape; None when it takes another, or the size may change."""
        shape = self._producer.get(node.inputs[0])
        first = self._integers.get(node.inputs[1])
        if shape is None or shape.op != "Shape" or first != (-1,):
            return None
        return self._find_size(shape.inputs[0], -1)

    def _find_size(self, value: str, axis: int) -> int | None:
        """The size of an axis of a value that Reshape gave, perhaps transposed."""
        node = self._producer.get(value)
        if node is None:
            return None
        if node.op == "Transpose" and (order := node.find_integers("perm")):
            return self._find_size(node.inputs[0], order[axis])
        if node.op == "Reshape":
            sizes = self._read_sizes(node.inputs[1])
            size = sizes[axis] if -len(sizes) <= axis < len(sizes) else None
            return size if size is not None and size > 0 else None
        return None

    def _read_sizes(self, value: str) -> list[int | None]:
        """The sizes of a new shape; None for a size that the graph computes."""
        if value in self._integers:
            return list(self._integers[value])
        node = self._producer.get(value)
        if node is None or node.op != "Concat":
            return []
        sizes: list[int | None] = []
        for part in node.inputs:
            inner = self._producer.get(part)
            integers = self._integers.get(inner.inputs[0] if inner is not None and inner.op == "Unsqueeze" else part)
            sizes.append(integers[0] if integers is not None and len(integers) == 1 else None)
        return sizes

    def _find_second_search(self) -> tuple[str, str, str] | None:
        """Of PMI-Decode's rule: the computed number of tokens to sort, the 1 that it is at least, and for which
        beams the first search was enough."""
        for node in self._nodes:
            total = self._producer.get(node.inputs[1]) if node.op == "TopK" else None
            step = total
            while step is not None and step.op in ("Add", "Mul", "Sub", "Reshape"):
                step = next((self._producer[name] for name in step.inputs if name in self._producer), None)
            if total is not None and total.op == "Add" and step is not None and step.op == "ReduceMin":
                return total.outputs[0], total.inputs[1], step.inputs[0]
        return None

    def _end_search(self, single: str, settled: str) -> list[Node]:
        """What the host needs to complete a step whose search ended too early, as outputs."""
        likely, difference = (self._producer[name].inputs[0] for name in ("log_probs", "cpmi"))
        axes = ("contrasted", "beams")
        self.outputs["unsettled"] = encode_output("unsettled", INT64, (*axes, 1))
        self.outputs |= {name: encode_output(name, _FLOAT, (*axes, "vocabulary")) for name in ("likely", "difference")}
        return [
            Node.make("Sub", (single, settled), "unsettled"),
            Node.make("Identity", (likely,), "likely"),
            Node.make("Identity", (difference,), "difference"),
        ]

    def _find_indices(self, value: str) -> tuple[str, str] | None:
        """The block and the row in it, where ``value`` is nothing but these two side by side."""
        parts = self._producer.get(value)
        if parts is None or parts.op != "Concat" or len(parts.inputs) != 2:
            return None
        block, row = (self._producer.get(part) for part in parts.inputs)
        if block is None or row is None or {block.op, row.op} != {"Unsqueeze"}:
            return None
        return block.inputs[0], row.inputs[0]

    def _look_up_in_one_table(self, node: Node, block: str, row: str) -> list[Node]:
        """The shapes belong to a constant, which ONNX Runtime computes once."""
        table = node.inputs[0]
        rows, rest, free, shape, flat, first, index = (f"on_device.{next(self._numbers)}" for _ in range(7))
        one_row = encode_integer("start", 1) + encode_integer("end", 2)
        return [
            Node.make("Shape", (table,), rest, encode_integer("start", 2)),
            Node.make("Constant", (), free, encode_integers("value_ints", (-1,))),
            Node.make("Concat", (free, rest), shape, encode_integer("axis", 0)),
            Node.make("Reshape", (table, shape), flat),
            Node.make("Shape", (table,), rows, one_row),
            Node.make("Mul", (block, rows), first),
            Node.make("Add", (first, row), index),
            Node.make("Gather", (flat, index), node.outputs[0]),
        ]

    def _pad_as_floats(self, node: Node) -> list[Node]:
        values, filler, padded = (f"on_device.{next(self._numbers)}" for _ in range(3))
        return [
            Node.make("Cast", (node.inputs[0],), values, encode_type(_FLOAT64)),
            Node.make("Cast", (node.inputs[2],), filler, encode_type(_FLOAT64)),
            Node.make("Pad", (values, node.inputs[1], filler, *node.inputs[3:]), padded),
            Node.make("Cast", (padded,), node.outputs[0], encode_type(INT64)),
        ]
