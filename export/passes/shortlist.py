"""A decoder that chooses among few tokens: a fixed list of frequent ones, and the tokens of its source.

The product with the whole vocabulary is the largest of a small decoder's step, and the words of a question are nearly
always frequent words or words of its source (L'Hostis, Grangier and Auli 2016; "lexical shortlists" in machine
translation). The frequent tokens are columns of the head, a constant that ONNX Runtime packs once; the columns of a
source are looked up by the encoder graph, once for all steps, and travel like its cross-attention keys. Both are the
integer products of the whole head, so their logits equal the whole head's; probabilities are normalised over these
tokens only. A source adds only its own tokens, so a sequence does not depend on its batch.

Only int8 heads are shortened: on a GPU the product costs nothing that matters. This is the last pass: the parity
report describes the whole head.
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
    """Whether a token is a row of the table, which is then tied to the embeddings."""
    peak: ir.Value
    bias: ir.Value | None


def shorten_head(encoder: ir.Model, decoder: ir.Model, frequent: Sequence[int], uncopied: Sequence[int]) -> None:
    """Let the step ``decoder`` choose among the tokens ``frequent`` and its source's tokens that are not ``uncopied``.

    ``frequent`` must contain the end tokens. ``encoder`` gains the outputs ``copied.rows`` [B, d, T], ``copied.scale``,
    ``copied.bias`` (both [B, 1, T]; the latter -inf for padding, frequent tokens and all but a token's first position)
    and ``copied.ids`` [B, T]; ``decoder`` gains inputs of these names. Candidates that do not exist have the
    score -inf. ExportError for a token outside the vocabulary, and for a decoder whose head is not int8.
    """
    head = _find_head(decoder.graph)
    vocabulary = _count_tokens(head)
    usual = np.unique(np.asarray(frequent, dtype=np.int64))
    if not len(usual) or usual[0] < 0 or usual[-1] >= vocabulary:
        raise ExportError(f"A shortlist needs token ids from 0 to {vocabulary - 1}, and at least one.")
    copied = _add_copied_outputs(encoder.graph, head, usual, np.asarray(uncopied, dtype=np.int64), vocabulary)
    _replace_candidates(decoder.graph, head, usual, copied)
    for model in (encoder, decoder):
        common.RemoveUnusedNodesPass()(model)


def _find_head(graph: ir.Graph) -> _Head:
    best = graph.outputs[0].producer()
    softmax = _producer(best, 0, "TopK", "LogSoftmax")
    last = _producer(softmax, 0, "LogSoftmax", "Add", "Mul")
    bias = None
    if last is not None and last.op_type == "Add":
        bias = next((value for value in last.inputs if value is not None and value.is_initializer()), None)
        other = next((index for index, value in enumerate(last.inputs) if value is not bias), 0)
        last = _producer(last, other, "Add", "Mul")
    product = _producer(last, 0, "Mul", "MatMulIntegerToFloat")
    if last is None or product is None or last.inputs[1] is None:
        raise ExportError("Only a decoder whose head is int8 can choose among few tokens; export it with int8.")
    table = product.inputs[1]
    assert table is not None
    transposed = table.producer()
    if transposed is not None and transposed.op_type == "Transpose":
        table = transposed.inputs[0]
    assert table is not None
    return _Head(product, table, transposed is not None, last.inputs[1], bias)


def _producer(node: ir.Node | None, index: int, op: str, *wanted: str) -> ir.Node | None:
    """Return the producer of the input ``index`` of ``node``, an ``op``, if it is one of the ``wanted``."""
    if node is None or node.op_type != op or node.inputs[index] is None:
        return None
    value = node.inputs[index]
    producer = None if value is None else value.producer()
    return producer if producer is not None and producer.op_type in wanted else None


def _count_tokens(head: _Head) -> int:
    assert head.table.const_value is not None
    return int(head.table.const_value.shape.numpy()[0 if head.by_rows else 1])


def _add_copied_outputs(
    graph: ir.Graph, head: _Head, frequent: Ints, uncopied: Ints, vocabulary: int
) -> list[ir.Value]:
    """Add the outputs ``copied.*`` to an encoder's ``graph``; return inputs of the same names and types for a step."""
    add, ids, mask = _Adder(graph), graph.inputs[0], graph.inputs[1]
    scale, level = head.product.inputs[3], head.product.inputs[2]
    rows = add("Gather", add.copy_constant(head.table), ids, axis=0 if head.by_rows else 1)
    rows = add("Transpose", rows, perm=[0, 2, 1] if head.by_rows else [1, 0, 2])
    steps = add("Mul", add("Gather", add.copy_constant(scale), ids), add.copy_constant(level))

    left_out = np.zeros(vocabulary, dtype=bool)
    left_out[frequent] = left_out[uncopied] = True
    width = add("Gather", add("Shape", ids), add.constant("second", np.array(1)), axis=0)
    positions = add("Range", add.constant("none", np.array(0)), width, add.constant("one", np.array(1)))
    first, second = add.constant("axis.1", np.array([1])), add.constant("axis.2", np.array([2]))
    equal = add("Equal", add("Unsqueeze", ids, second), add("Unsqueeze", ids, first))
    before = add("Less", positions, add("Unsqueeze", positions, first))
    repeated = add("Cast", add("And", equal, before), to=int(ir.DataType.INT32))
    ruled_out = add("Cast", add("ReduceMax", repeated, second, keepdims=0), to=int(ir.DataType.BOOL))
    ruled_out = add("Or", ruled_out, add("Gather", add.constant("known", left_out), ids))
    ruled_out = add("Or", ruled_out, add("Equal", mask, add.constant("none", np.array(0))))
    bias = add.constant("nothing", np.array(0, np.float32))
    if head.bias is not None:
        bias = add("Gather", add.copy_constant(head.bias), ids)
    bias = add("Where", ruled_out, add.constant("impossible", np.array(-np.inf, np.float32)), bias)

    copied = {"rows": rows, "scale": add("Unsqueeze", steps, first), "bias": add("Unsqueeze", bias, first)}
    copied["ids"] = add("Identity", ids)
    assert head.table.shape is not None
    size = head.table.shape[1 if head.by_rows else 0]
    shapes = {"rows": (size, "width"), "scale": (1, "width"), "bias": (1, "width"), "ids": ("width",)}
    types = {"rows": ir.DataType.INT8, "ids": ir.DataType.INT64}
    inputs = []
    for name, value in copied.items():
        kind = ir.TensorType(types.get(name, ir.DataType.FLOAT))
        value.name, value.type = f"copied.{name}", kind
        value.shape = ir.Shape(["batch", *("tokens" if axis == "width" else axis for axis in shapes[name])])
        graph.outputs.append(value)
        inputs.append(ir.Value(name=value.name, type=kind, shape=ir.Shape(["sources", *shapes[name]])))
    return inputs


def _replace_candidates(graph: ir.Graph, head: _Head, frequent: Ints, copied: list[ir.Value]) -> None:
    """Replace the candidates of a step's ``graph`` by the shortlist's and the source's."""
    add = _Adder(graph)
    graph.inputs.extend(copied)
    rows, steps, bias, ids = copied
    states, _, level, scale, zero = head.product.inputs[:5]
    usual = add.constant("usual", frequent)
    columns = add("Gather", head.table, usual, axis=0 if head.by_rows else 1)
    if head.by_rows:
        columns = add("Transpose", columns, perm=[1, 0])
    scales = add("Gather", scale, usual)
    logits = add("MatMulIntegerToFloat", states, columns, level, scales, zero, domain=MICROSOFT)
    logits = add("Mul", logits, head.peak)
    if head.bias is not None:
        logits = add("Add", logits, add("Gather", head.bias, usual))
    copied_logits = add("Cast", add("MatMulInteger", states, rows, zero), to=int(ir.DataType.FLOAT))
    copied_logits = add("Add", add("Mul", add("Mul", copied_logits, steps), head.peak), bias)

    scores = add("LogSoftmax", add("Concat", logits, copied_logits, axis=-1), axis=-1)
    count = next(value for value in graph.inputs if value.name == "count")
    available = add("Min", count, add("Shape", scores, start=-1))
    best = ir.node("TopK", [scores, available], {"axis": -1, "largest": 1, "sorted": 1}, num_outputs=2)
    graph.append(best)
    values, chosen = best.outputs
    copied_index = add("Sub", chosen, add.constant("size", np.array(len(frequent))))
    copied_index = add("Max", copied_index, add.constant("zero", np.array(0)))
    of_source = add("GatherND", ids, add("Unsqueeze", copied_index, add.constant("axis", np.array([-1]))), batch_dims=1)
    last = add.constant("last", np.array(len(frequent) - 1))
    of_list = add("Gather", usual, add("Min", chosen, last))
    tokens = add("Where", add("Greater", chosen, last), of_source, of_list)

    missing = add("Concat", add.constant("front", np.zeros(5, np.int64)), add("Sub", count, available), axis=0)
    padded = [
        add("Pad", values, missing, add.constant("impossible", np.array(-np.inf, np.float32))),
        add("Pad", tokens, missing, add.constant("filler", np.array(0))),
    ]
    for index, value in enumerate(padded):
        former = graph.outputs[index]
        name, former.name = former.name, None
        value.name, value.type, value.shape = name, former.type, former.shape
        graph.outputs[index] = value


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

    def copy_constant(self, value: ir.Value | None) -> ir.Value:
        """Return an initializer of this graph with the content of another graph's ``value``, a new one if needed."""
        assert value is not None
        assert value.const_value is not None
        wanted = value.const_value
        for initial in self._graph.initializers.values():
            if initial.const_value is not None and _equal(initial.const_value, wanted):
                return initial
        return self.constant(str(value.name), wanted.numpy())


def _equal(left: ir.TensorProtocol, right: ir.TensorProtocol) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
