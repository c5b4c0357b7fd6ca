"""The head of a language model: the log-probability of one token per state, without logits of the whole vocabulary.

``attach`` ends a graph with one of two heads. The *plain* one, for GPUs, is a product with the table, a log-softmax and
a gather. The *streamed* one, for CPUs, reads the table block by block: each block's logits stay in the cache, and only
their log-sum and the logits of the target tokens leave it. Measured saving, for 48 positions of BLOOM's table (250,880
× 1024, one busy core): 113 ms instead of 180, and 0.4 MB of logits instead of 48 (times the four or five copies that a
log-softmax goes through).

The table is one initializer [blocks, rows, d] that look-ups and head share: a block is the *left* operand of the
integer product, so nothing is transposed, and since it is not a constant of the product, ONNX Runtime packs no second
copy. It is stored unsigned with zero point 128, because of the four combinations of signs only u8 · s8 has a fast
kernel (relative times: u8 · s8 1, u8 · u8 1.4, s8 · s8 and s8 · u8 4.2).

A streamed head is one node, a model-local function, so that passes replace it as a whole; ``chunked_head.py``
takes the head of a large table out of the graph.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import onnx.parser
import onnx_ir as ir

DOMAIN = "groundwire"
MICROSOFT = "com.microsoft"
ZERO = 128
"""Zero point of a table in int8."""
_BLOCK = 2048
"""Rows of a block aimed at: with 400 positions 3 MB of logits, which still fit a cache."""
_FEW, _MANY = 256, 1 << 16
SHARED = 1 << 26
"""Bytes up to which a table is stored signed, as the look-ups of other graphs store theirs: a bundle whose models share
a backbone then holds its word embeddings once. ONNX Runtime flips the sign bits when it loads the graph, into a copy; a
larger table is stored as it is used, so that it stays mapped from the file."""


class HeadForm(NamedTuple):
    """Which of the functions below a streamed head calls."""

    has_bias: bool = False
    is_int8: bool = False
    is_chunked: bool = False
    """It ends with ``parts`` [blocks, 2, N], for a caller that adds up chunks of the table; else with ``log_probs``."""

    @classmethod
    def of(cls, node: ir.Node) -> HeadForm | None:
        """Return the form of a streamed head; None for any other node."""
        return _FORMS.get(node.op_type) if node.domain == DOMAIN else None

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"{'Biased' * self.has_bias}{'Int8' * self.is_int8}Head{'Parts' * self.is_chunked}"


_FORMS = {form.name: form for form in itertools.starmap(HeadForm, itertools.product((False, True), repeat=3))}


def attach(
    model: ir.Model, table: str | npt.NDArray[np.float32], bias: npt.NDArray[np.float32] | None, streamed: bool
) -> None:
    """Replace the output ``hidden`` [N, d] by ``log_probs`` [N] of the new input ``targets`` [N].

    ``table`` [V, d] is a head's own weight, or the name of the initializer that a tied head shares with a look-up.
    """
    graph = model.graph
    targets = ir.Value(name="targets", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(["scored"]))
    graph.inputs.append(targets)
    weight = graph.initializers[table] if isinstance(table, str) else initializer(graph, "head.weight", table)
    result = (_add_streamed_head if streamed else _add_plain_head)(model, graph.outputs[0], targets, weight, bias)
    result.name, result.type, result.shape = "log_probs", ir.TensorType(ir.DataType.FLOAT), ir.Shape(["scored"])
    graph.outputs[0] = result


def find_heads(graph: ir.Graph) -> list[ir.Node]:
    """Return the float streamed heads of ``graph``; inputs are hidden, targets, table, first, and perhaps bias."""
    forms = ((node, HeadForm.of(node)) for node in graph)
    return [node for node, form in forms if form is not None and not form.is_int8 and not form.is_chunked]


def table_of(head: ir.Node) -> ir.Value:
    """Return the table [blocks, rows, d] of a streamed head."""
    table = head.inputs[2]
    assert table is not None
    return table


def add_unsigned_table(graph: ir.Graph, name: str, integers: npt.NDArray[np.int8]) -> ir.Value:
    """Add the table ``integers`` shifted by ``ZERO``: flipping the highest bit adds 128."""
    raw = integers.view(np.uint8)
    if integers.nbytes > SHARED:
        return initializer(graph, name, raw ^ np.uint8(ZERO))
    flip = initializer(graph, f"{name}.flip", np.array(ZERO, np.uint8))
    flipped = ir.node("BitwiseXor", [initializer(graph, name, raw), flip])
    value = flipped.outputs[0]
    value.type, value.shape = ir.TensorType(ir.DataType.UINT8), ir.Shape(integers.shape)
    graph.insert_before(next(iter(graph)), flipped)
    return value


def call_int8_head(model: ir.Model, head: ir.Node, table: ir.Value, scale: ir.Value) -> ir.Node:
    """Return the integer form of a float head: ``table`` uint8 [blocks, rows, d], ``scale`` float [blocks, rows]."""
    hidden, targets, _, first, *bias = head.inputs
    form = HeadForm(has_bias=bool(bias), is_int8=True)
    return call(model, form, [hidden, targets, table, first, *bias, scale])


def initializer(graph: ir.Graph, name: str, array: npt.NDArray[np.generic]) -> ir.Value:
    """Add an initializer to ``graph``."""
    value = ir.Value(name=name)
    value.const_value = ir.tensor(array, name=name)
    value.dtype, value.shape = value.const_value.dtype, ir.Shape(array.shape)
    graph.register_initializer(value)
    return value


def block_rows(vocabulary: int) -> int:
    """Return the rows of a block: the divisor of ``vocabulary`` that is nearest to 2,048.

    A vocabulary without a useful divisor is one block: correct, but with all its logits in memory at once.
    """
    fits = [rows for rows in range(_FEW, min(vocabulary, _MANY) + 1) if vocabulary % rows == 0]
    return min(fits, key=lambda rows: abs(math.log(rows / _BLOCK)), default=vocabulary)


def _add_plain_head(
    model: ir.Model, hidden: ir.Value, targets: ir.Value, table: ir.Value, bias: npt.NDArray[np.float32] | None
) -> ir.Value:
    graph = model.graph

    def add(op: str, *inputs: ir.Value, **attributes: int | list[int]) -> ir.Value:
        node = ir.node(op, list(inputs), attributes)
        graph.append(node)
        return node.outputs[0]

    last = initializer(graph, "head.last_axis", np.array([-1], np.int64))
    # A pass over prefixes has the target -1; its log-probability is not used, but the index must be valid.
    valid = add("Max", targets, initializer(graph, "head.least", np.array(0, np.int64)))
    logits = add("MatMul", hidden, add("Transpose", table, perm=[1, 0]))
    if bias is not None:
        logits = add("Add", logits, initializer(graph, "head.bias", bias))
    chosen = add("GatherElements", add("LogSoftmax", logits, axis=-1), add("Unsqueeze", valid, last), axis=-1)
    return add("Squeeze", chosen, last)


def _add_streamed_head(
    model: ir.Model, hidden: ir.Value, targets: ir.Value, table: ir.Value, bias: npt.NDArray[np.float32] | None
) -> ir.Value:
    graph = model.graph
    assert table.const_value is not None
    values = table.const_value.numpy()
    rows = block_rows(len(values))
    users = list(table.uses())
    name = str(table.name)
    if all(node.op_type == "Gather" and index == 0 for node, index in users):
        del graph.initializers[name]
    else:  # another node reads the table in its own shape
        name, users = "head.weight", []
    stacked = initializer(graph, name, values.reshape(-1, rows, values.shape[1]))
    for node, _ in users:
        _look_up_in_blocks(graph, node, stacked, rows)
    first = initializer(graph, "head.first", np.arange(0, len(values), rows))
    inputs = [hidden, targets, stacked, first]
    if bias is not None:
        inputs.append(initializer(graph, "head.bias", bias.reshape(-1, rows)))
    node = call(model, HeadForm(has_bias=bias is not None), inputs)
    graph.append(node)
    return node.outputs[0]


def _look_up_in_blocks(graph: ir.Graph, gather: ir.Node, stacked: ir.Value, rows: int) -> None:
    """Replace a look-up in a table by one in its blocks."""
    ids = gather.inputs[1]
    size = initializer(graph, f"{gather.outputs[0].name}.block_rows", np.array(rows, np.int64))
    last = initializer(graph, f"{gather.outputs[0].name}.last_axis", np.array([-1], np.int64))
    parts = [ir.node(op, [ids, size]) for op in ("Div", "Mod")]
    wide = [ir.node("Unsqueeze", [part.outputs[0], last]) for part in parts]
    indices = ir.node("Concat", [part.outputs[0] for part in wide], {"axis": -1})
    lookup = ir.node("GatherND", [stacked, indices.outputs[0]])
    graph.insert_before(gather, [*parts, *wide, indices, lookup])
    former = gather.outputs[0]
    lookup.outputs[0].type, lookup.outputs[0].shape = former.type, former.shape
    ir.convenience.replace_all_uses_with(former, lookup.outputs[0])
    graph.remove(gather, safe=True)


def call(model: ir.Model, form: HeadForm, inputs: Sequence[ir.Value | None]) -> ir.Node:
    """Return a node that calls the function of ``form``, and add that function to ``model``."""
    function = ir.from_proto(onnx.parser.parse_function(_write_function(form)))
    model.functions[function.identifier()] = function
    model.opset_imports[DOMAIN] = 1
    return ir.node(form.name, inputs, domain=DOMAIN)


class _Lines(NamedTuple):
    """The lines, in ONNX's text form, in which a float and an integer head differ."""

    once: str
    """Before the first block."""
    product: str
    """A block's products [rows, N]."""


def _write_function(form: HeadForm) -> str:
    """Return the function of ``form`` in ONNX's text form."""
    lines = _INT8 if form.is_int8 else _FLOAT
    scanned = {
        "table": "uint8[rows, width] part" if form.is_int8 else "float[rows, width] part",
        "first": "int64 start",
    }
    if form.has_bias:
        scanned["bias"] = "float[rows] offset"
    if form.is_int8:
        scanned["scale"] = "float[rows] unit"
    blocks = _BLOCKS.format(
        once=lines.once,
        scanned=", ".join(scanned),
        count=len(scanned),
        block=", ".join(scanned.values()),
        product=lines.product,
        logits="shift = Unsqueeze(offset, last_axis)\n        logits = Add(products, shift)"
        if form.has_bias
        else "logits = Identity(products)",
    )
    whole = _PARTS if form.is_chunked else _FOLDED
    return whole.format(name=form.name, inputs=", ".join(["hidden", "targets", *scanned]), blocks=blocks)


_BLOCKS = """first_axis = Constant<value_ints: ints = [0]>()
      last_axis = Constant<value_ints: ints = [-1]>()
      nowhere = Constant<value_float: float = -inf>()
      {once}
      parts = Scan ({scanned}) <
        num_scan_inputs: int = {count},
        body: graph = block ({block}) => (float[2, positions] both) {{
        {product}
        {logits}
        top = ReduceMax<keepdims: int = 1>(logits, first_axis)
        below = Sub(logits, top)
        grown = Exp(below)
        mass = ReduceSum<keepdims: int = 1>(grown, first_axis)
        log_mass = ReduceLogSum<keepdims: int = 1>(mass, first_axis)
        total = Add(log_mass, top)
        rows_here = Shape<start: int = 0, end: int = 1>(part)
        size = Squeeze(rows_here)
        last = Sub(size, one)
        place = Sub(targets, start)
        near = Clip(place, zero, last)
        inside = Equal(place, near)
        near_wide = Unsqueeze(near, first_axis)
        inside_wide = Unsqueeze(inside, first_axis)
        there = GatherElements<axis: int = 0>(logits, near_wide)
        chosen = Where(inside_wide, there, nowhere)
        both = Concat<axis: int = 0>(total, chosen)
      }}>"""
"""The indirect forms keep a position's number independent of its batch. Logits are [rows, N], because a sum over the
last axis adds up in an order that depends on where in memory a position's logits begin. The sum of the single mass is
there for its logarithm: Log takes values four by four or one by one, depending on their position, and rounds
differently.
"""
_FOLDED = """
<domain: "groundwire", opset_import: ["" : 20, "com.microsoft" : 1]>
{name} ({inputs}) => (log_probs)
{{
  zero = Constant<value_int: int = 0>()
  one = Constant<value_int: int = 1>()
  largest = ReduceMax<keepdims: int = 0>(targets)
  asked = GreaterOrEqual(largest, zero)
  log_probs = If (asked) <
    then_branch: graph = scored () => (float[positions] found) {{
      {blocks}
      totals = Gather<axis: int = 1>(parts, zero)
      chosen_logits = Gather<axis: int = 1>(parts, one)
      normal = ReduceLogSumExp<keepdims: int = 0>(totals, first_axis)
      logit = ReduceMax<keepdims: int = 0>(chosen_logits, first_axis)
      found = Sub(logit, normal)
    }},
    else_branch: graph = unscored () => (float[positions] none) {{
      numbers = Cast<to: int = 1>(targets)
      none = Sub(numbers, numbers)
    }}
  >
}}
"""
"""A pass that only reads a prefix has no target of 0 or above; then it does not read the table."""
_PARTS = """
<domain: "groundwire", opset_import: ["" : 20, "com.microsoft" : 1]>
{name} ({inputs}) => (parts)
{{
      zero = Constant<value_int: int = 0>()
      one = Constant<value_int: int = 1>()
      {blocks}
}}
"""
_FLOAT = _Lines(
    once="",
    product="""turned = Transpose<perm: ints = [1, 0]>(part)
        by_position = MatMul(hidden, turned)
        products = Transpose<perm: ints = [1, 0]>(by_position)""",
)
"""The states are the left side, because the order in which a float product adds up depends on the number of columns."""
_INT8 = _Lines(
    once="""tiny = Constant<value_float: float = 1e-12>()
      level = Constant<value_float: float = 0.007874015748>()
      whole = Constant<value_float: float = 1.0>()
      signed = Constant<value: tensor = int8 signed_zero {0}>()
      middle = Constant<value: tensor = uint8 unsigned_zero {128}>()
      sizes = Abs(hidden)
      widest = ReduceMax<keepdims: int = 1>(sizes, last_axis)
      all = ReduceSum<keepdims: int = 1>(hidden, last_axis)
      nothing = Constant<value_float: float = 0.0>()
      broken = Mul(all, nothing)
      wide = Add(widest, broken)
      peak = Max(wide, tiny)
      shrink = Reciprocal(peak)
      scaled = Mul(hidden, shrink)
      tokens = QuantizeLinear(scaled, level, signed)
      columns = Transpose<perm: ints = [1, 0]>(tokens)
      peaks = Squeeze(peak, last_axis)
      step = Mul(peaks, level)""",
    product="""integers = com.microsoft.MatMulIntegerToFloat(part, columns, whole, step, middle)
        unit_wide = Unsqueeze(unit, last_axis)
        products = Mul(integers, unit_wide)""",
)
"""``broken`` is 0 for a state of numbers, and NaN for another state, which the integers would hide."""
