"""A decoder that chooses among few tokens: the most usual ones, and those of its source.

The product with the whole vocabulary is the largest of a small decoder's step, and what a question says is nearly
always a usual word or one of its source (L'Hostis, Grangier and Auli 2016; "lexical shortlists" in machine
translation). The usual tokens are columns of the head, a constant that ONNX Runtime packs once; those of a source are
looked up by the encoder graph, once for all steps, and travel like its cross-attention keys. Both are the integer
products that the whole head would make, so their logits are those of the whole head; probabilities are shares of what
is there. A source brings its own tokens alone, so a sequence does not depend on its batch-mates.

Only int8 heads are shortened: on a GPU the product costs nothing that matters. It is the last pass: what is certified
is the whole head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnx_ir.passes import common

from groundwire.runtime.errors import ExportError

from .head import MICROSOFT, initializer

Ints = npt.NDArray[np.int64]


class _Head(NamedTuple):
    """The end of a decoder step: ``logits = q · table · scales · peak (+ bias)``, their log-softmax, the best."""

    product: ir.Node
    table: ir.Value
    """int8 [V, d], or [d, V]."""
    by_rows: bool
    """Whether a token is a row of the table: it is tied to the embeddings then."""
    peak: ir.Value
    bias: ir.Value | None


def shorten(encoder: ir.Model, decoder: ir.Model, usual: Sequence[int], unread: Sequence[int]) -> None:
    """Let the step ``decoder`` choose among the tokens ``usual`` and those of its source, but those in ``unread``.

    ``usual`` must hold what ends a target. ``encoder`` gains the outputs ``copied.rows`` [B, d, T], ``copied.scale``,
    ``copied.bias`` (both [B, 1, T]; the latter -inf for padding, usual tokens and all but a token's first place)
    and ``copied.ids`` [B, T]; ``decoder`` gains inputs of these names. Wanted candidates beyond those that there are
    have the score -inf. ExportError for a token outside the vocabulary, and for a decoder whose head is not int8.
    """
    head = _find(decoder.graph)
    vocabulary = _length(head)
    kept = np.unique(np.asarray(usual, dtype=np.int64))
    if not len(kept) or kept[0] < 0 or kept[-1] >= vocabulary:
        raise ExportError(f"A shortlist needs tokens from 0 to {vocabulary - 1}.")
    copied = _look_up(encoder.graph, head, kept, np.asarray(unread, dtype=np.int64), vocabulary)
    _choose(decoder.graph, head, kept, copied)
    for model in (encoder, decoder):
        common.RemoveUnusedNodesPass()(model)


def _find(graph: ir.Graph) -> _Head:
    best = graph.outputs[0].producer()
    softmax = _producer(best, 0, "TopK", "LogSoftmax")
    last = _producer(softmax, 0, "LogSoftmax", "Add", "Mul")
    bias = None
    if last is not None and last.op_type == "Add":
        bias = next((value for value in last.inputs if value is not None and value.is_initializer()), None)
        other = next((place for place, value in enumerate(last.inputs) if value is not bias), 0)
        last = _producer(last, other, "Add", "Mul")
    product = _producer(last, 0, "Mul", "MatMulIntegerToFloat")
    if last is None or product is None or last.inputs[1] is None:
        raise ExportError("Only a decoder whose head is int8 can choose among few tokens; export it with int8.")
    table = product.inputs[1]
    assert table is not None
    turned = table.producer()
    if turned is not None and turned.op_type == "Transpose":
        table = turned.inputs[0]
    assert table is not None
    return _Head(product, table, turned is not None, last.inputs[1], bias)


def _producer(node: ir.Node | None, place: int, op: str, *wanted: str) -> ir.Node | None:
    """What makes the input ``place`` of ``node``, an ``op``, if it is one of the ``wanted``."""
    if node is None or node.op_type != op or node.inputs[place] is None:
        return None
    value = node.inputs[place]
    producer = None if value is None else value.producer()
    return producer if producer is not None and producer.op_type in wanted else None


def _length(head: _Head) -> int:
    assert head.table.const_value is not None
    return int(head.table.const_value.shape.numpy()[0 if head.by_rows else 1])


def _look_up(graph: ir.Graph, head: _Head, usual: Ints, unread: Ints, vocabulary: int) -> list[ir.Value]:
    """Add the outputs ``copied.*`` to an encoder's ``graph``; inputs of the same names, types and shapes for a step."""
    add, ids, mask = _Adder(graph), graph.inputs[0], graph.inputs[1]
    scale, level = head.product.inputs[3], head.product.inputs[2]
    rows = add("Gather", add.same(head.table), ids, axis=0 if head.by_rows else 1)
    rows = add("Transpose", rows, perm=[0, 2, 1] if head.by_rows else [1, 0, 2])
    steps = add("Mul", add("Gather", add.same(scale), ids), add.same(level))

    known = np.zeros(vocabulary, dtype=bool)
    known[usual] = known[unread] = True
    width = add("Gather", add("Shape", ids), add.constant("second", np.array(1)), axis=0)
    places = add("Range", add.constant("none", np.array(0)), width, add.constant("one", np.array(1)))
    first, second = add.constant("axis.1", np.array([1])), add.constant("axis.2", np.array([2]))
    equal = add("Equal", add("Unsqueeze", ids, second), add("Unsqueeze", ids, first))
    before = add("Less", places, add("Unsqueeze", places, first))
    repeated = add("Cast", add("And", equal, before), to=int(ir.DataType.INT32))
    out = add("Cast", add("ReduceMax", repeated, second, keepdims=0), to=int(ir.DataType.BOOL))
    out = add("Or", out, add("Gather", add.constant("known", known), ids))
    out = add("Or", out, add("Equal", mask, add.constant("none", np.array(0))))
    bias = add.constant("nothing", np.array(0, np.float32))
    if head.bias is not None:
        bias = add("Gather", add.same(head.bias), ids)
    bias = add("Where", out, add.constant("impossible", np.array(-np.inf, np.float32)), bias)

    found = {"rows": rows, "scale": add("Unsqueeze", steps, first), "bias": add("Unsqueeze", bias, first)}
    found["ids"] = add("Identity", ids)
    assert head.table.shape is not None
    size = head.table.shape[1 if head.by_rows else 0]
    shapes = {"rows": (size, "width"), "scale": (1, "width"), "bias": (1, "width"), "ids": ("width",)}
    types = {"rows": ir.DataType.INT8, "ids": ir.DataType.INT64}
    inputs = []
    for name, value in found.items():
        kind = ir.TensorType(types.get(name, ir.DataType.FLOAT))
        value.name, value.type = f"copied.{name}", kind
        value.shape = ir.Shape(["batch", *("tokens" if one == "width" else one for one in shapes[name])])
        graph.outputs.append(value)
        inputs.append(ir.Value(name=value.name, type=kind, shape=ir.Shape(["sources", *shapes[name]])))
    return inputs


def _choose(graph: ir.Graph, head: _Head, usual: Ints, copied: list[ir.Value]) -> None:
    """Replace the candidates of a step's ``graph`` by those of the shortlist."""
    add = _Adder(graph)
    graph.inputs.extend(copied)
    rows, steps, bias, ids = copied
    states, _, level, scale, zero = head.product.inputs[:5]
    kept = add.constant("usual", usual)
    columns = add("Gather", head.table, kept, axis=0 if head.by_rows else 1)
    if head.by_rows:
        columns = add("Transpose", columns, perm=[1, 0])
    scales = add("Gather", scale, kept)
    own = add("MatMulIntegerToFloat", states, columns, level, scales, zero, domain=MICROSOFT)
    own = add("Mul", own, head.peak)
    if head.bias is not None:
        own = add("Add", own, add("Gather", head.bias, kept))
    theirs = add("Cast", add("MatMulInteger", states, rows, zero), to=int(ir.DataType.FLOAT))
    theirs = add("Add", add("Mul", add("Mul", theirs, steps), head.peak), bias)

    scores = add("LogSoftmax", add("Concat", own, theirs, axis=-1), axis=-1)
    count = next(value for value in graph.inputs if value.name == "count")
    there = add("Min", count, add("Shape", scores, start=-1))
    best = ir.node("TopK", [scores, there], {"axis": -1, "largest": 1, "sorted": 1}, num_outputs=2)
    graph.append(best)
    values, places = best.outputs
    behind = add("Sub", places, add.constant("size", np.array(len(usual))))
    behind = add("Max", behind, add.constant("zero", np.array(0)))
    of_source = add("GatherND", ids, add("Unsqueeze", behind, add.constant("axis", np.array([-1]))), batch_dims=1)
    last = add.constant("last", np.array(len(usual) - 1))
    of_usual = add("Gather", kept, add("Min", places, last))
    tokens = add("Where", add("Greater", places, last), of_source, of_usual)

    missing = add("Concat", add.constant("front", np.zeros(5, np.int64)), add("Sub", count, there), axis=0)
    found = [
        add("Pad", values, missing, add.constant("impossible", np.array(-np.inf, np.float32))),
        add("Pad", tokens, missing, add.constant("filler", np.array(0))),
    ]
    for place, value in enumerate(found):
        former = graph.outputs[place]
        name, former.name = former.name, None
        value.name, value.type, value.shape = name, former.type, former.shape
        graph.outputs[place] = value


class _Adder:
    """Appends nodes to a graph, and its small constants, once each."""

    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._constants: dict[str, ir.Value] = {}

    def __call__(self, op: str, *inputs: ir.Value | None, domain: str = "", **attributes: int | list[int]) -> ir.Value:
        node = ir.node(op, list(inputs), attributes, domain=domain)
        self._graph.append(node)
        return node.outputs[0]

    def constant(self, name: str, array: npt.NDArray[np.generic]) -> ir.Value:
        if name not in self._constants:
            self._constants[name] = initializer(self._graph, f"shortlist.{name}", array)
        return self._constants[name]

    def same(self, value: ir.Value | None) -> ir.Value:
        """What another graph's initializer ``value`` holds: an initializer of this graph, a new one if need be."""
        assert value is not None
        assert value.const_value is not None
        wanted = value.const_value
        for own in self._graph.initializers.values():
            if own.const_value is not None and _equal(own.const_value, wanted):
                return own
        return self.constant(str(value.name), wanted.numpy())


def _equal(one: ir.TensorProtocol, other: ir.TensorProtocol) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
