"""int8 weights and per-token int8 activations in plain ONNX.

A product ``x @ W`` becomes integer arithmetic with one scale per row of x (a token) and one per column of W::

    peak = max|x|                                             one float per token
    q = QuantizeLinear(x · (1 / peak), 1/127, zero)           uint8
    y = MatMulIntegerToFloat(q, W8, 1/127, scale, zero)·peak  exact integers inside, so no order of summation matters

Scales per *tensor*, what ONNX Runtime's own dynamic quantization does, would let the loudest token of a batch set the
resolution of every other request in it. Scales per token make a row's result independent of its batch-mates, bit for
bit. The activation is unsigned with a zero point because the signed kernels are many times slower.

Outputs of GELU and ReLU have a known lower bound, so their zero point moves there and the range is spent on values that
occur. Measured on a trained six-layer extractive QA model, errors of its logits in standard deviations (root mean
square, largest) and times of RoBERTa-large layers at 8 × 48 tokens:

=========================================================  ======  =====  ======
zero point 128 everywhere                                  0.0309  0.273  +1 %
16 after GELU (the default)                                0.0273  0.153  0
the same, minimum and maximum of every other row measured  0.0239  0.173  +8 %
=========================================================  ======  =====  ======

Half of the remaining error is the weights'. Fusing attention (MultiHeadAttention) and residual norms
(SkipLayerNormalization) with onnxruntime.transformers made the int8 graph 14-20 % slower on the same CPU, so the graphs
keep single operations, which ONNX Runtime still fuses where it gains at load.

Embedding tables are stored as int8 rows with one scale each; a tied head multiplies by the same table. Quantization
is a function of the float weights alone, so graphs that share a table share its int8 form too. The table of a streamed
head (``head.py``) is unsigned, and its states are the signed side of the product.

On x86 CPUs without VNNI the integer kernel may saturate. ONNX Runtime's own remedy, ``session.x64quantprecision = 1``,
is not for these graphs (ONNX Runtime 1.31): it refuses weights that products share, as ALBERT's layers do, and the
products of streamed heads saturate with it all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnx_ir.passes import common

from . import head
from .head import MICROSOFT

SYMMETRIC = 128
"""Zero point of activations that may have both signs."""
_GELU_FLOOR = 0.17004
"""Minus the minimum of GELU (-0.16997 exact, -0.17004 with tanh)."""
_TINY = 1e-12
"""Added to a row's range, so that a row of zeros divides by something."""


@dataclass(frozen=True)
class Scheme:
    """How activations are quantized, and which matrices are."""

    gelu_zero: int = 16
    """Zero point after a GELU: the 16 levels below it cover [-0.17, 0] for any range above 2.5; 128 is symmetric."""
    relu_zero: int = 0
    """Zero point after a ReLU; 128 is symmetric."""
    min_columns: int = 8
    """Products with fewer output columns stay float: heads of a few labels cost nothing and carry the decision."""
    min_table: int = 1 << 14
    """Embedding tables with fewer elements stay float."""

    def zero_after(self, producer: ir.Node | None) -> int:
        """Return the zero point of the output of ``producer``."""
        kind = "" if producer is None else producer.op_type
        return {"Relu": self.relu_zero, "Gelu": self.gelu_zero}.get(kind, SYMMETRIC)


DEFAULT = Scheme()


@dataclass(frozen=True)
class Product:
    """A MatMul or Gemm with a constant matrix: ``columns`` is its number of outputs."""

    node: ir.Node
    weight: ir.Value
    stored: Literal["KN", "NK"]
    """Orientation in which the weight is stored: as the product needs it, or transposed (and tied to a table)."""
    columns: int


def list_quantizable(model: ir.Model, scheme: Scheme = DEFAULT) -> list[str]:
    """Return the names of the weights that ``quantize`` would turn into int8, in graph order."""
    names = [product.weight.name for product in find_products(model.graph, scheme)]
    names += [head.table_of(node).name for node in head.find_heads(model.graph)]
    names += [table.name for table in find_tables(model.graph, scheme)]
    return [name for name in dict.fromkeys(names) if name is not None]


def quantize(model: ir.Model, keep: frozenset[str] = frozenset(), scheme: Scheme = DEFAULT) -> None:
    """Turn every quantizable weight but those named in ``keep`` into int8, with per-token activations."""
    Quantizer(model, scheme).run(keep)
    common.RemoveUnusedNodesPass()(model)


def token_range(zero: int) -> tuple[int, float]:
    """Return the number of levels above the zero point, and the least peak of a row that they are spread over."""
    if zero == SYMMETRIC:
        return 127, _TINY
    levels = 255 - zero
    # The step must also let the levels under the zero point reach the activation's lower bound.
    return levels, _GELU_FLOOR * levels / zero if zero else _TINY


def rows_to_int8(rows: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return symmetric int8 of each row [N, K] and the scale of each [N]: ``rows ≈ int8 · scale[:, None]``."""
    peak = np.abs(rows).max(axis=1)
    scale = np.where(peak > 0, peak / np.float32(127), np.float32(1)).astype(np.float32)
    return np.clip(np.rint(rows / scale[:, None]), -127, 127).astype(np.int8), scale


def find_products(graph: ir.Graph, scheme: Scheme = DEFAULT) -> Iterator[Product]:
    """Yield the products of ``graph`` that int8 takes, in graph order."""
    for node in graph:
        if node.op_type not in ("MatMul", "Gemm") or node.domain:
            continue
        weight = node.inputs[1]
        assert weight is not None
        transposed = node.op_type == "Gemm" and node.attributes.get_int("transB", 0) == 1
        producer = weight.producer()
        if producer is not None and producer.op_type == "Transpose" and producer.inputs[0] is not None:
            weight, transposed = producer.inputs[0], not transposed
        if not weight.is_initializer() or weight.dtype != ir.DataType.FLOAT or len(weight.shape or ()) != 2:
            continue
        assert weight.shape is not None
        columns = int(weight.shape[0 if transposed else 1])  # type: ignore[arg-type]
        if columns >= scheme.min_columns:
            yield Product(node, weight, "NK" if transposed else "KN", columns)


def find_tables(graph: ir.Graph, scheme: Scheme = DEFAULT) -> Iterator[ir.Value]:
    """Yield the embedding tables of ``graph`` that int8 takes: [V, d], or the blocks of a streamed head."""
    for weight in graph.initializers.values():
        if weight.dtype != ir.DataType.FLOAT or weight.const_value is None:
            continue
        if weight.const_value.size >= scheme.min_table and any(_reads_rows(node, i) for node, i in weight.uses()):
            yield weight


def _reads_rows(node: ir.Node, index: int) -> bool:
    table = node.inputs[0]
    if index != 0 or table is None or table.shape is None:
        return False
    if node.op_type == "GatherND":
        return len(table.shape) == 3
    return node.op_type == "Gather" and len(table.shape) == 2 and node.attributes.get_int("axis", 0) == 0


class _Tokens(NamedTuple):
    """Quantized activations: ``x ≈ (integers - zero) · level · peak``, peak [..., 1] one per token."""

    integers: ir.Value
    zero: ir.Value
    level: ir.Value
    peak: ir.Value


class Quantizer:
    """Rewrites one graph; keeps the matrices and activations already quantized."""

    def __init__(self, model: ir.Model, scheme: Scheme) -> None:
        self._model = model
        self._graph = model.graph
        self._scheme = scheme
        self._matrices: dict[str, tuple[ir.Value, ir.Value]] = {}
        self._rows: dict[ir.Value, _Tokens] = {}
        self._constants: dict[str, ir.Value] = {}

    def run(self, keep: frozenset[str] = frozenset()) -> None:
        """Rewrite the operations of every quantizable weight but those named in ``keep``."""
        graph, scheme = self._graph, self._scheme
        chosen = [product for product in find_products(graph, scheme) if product.weight.name not in keep]
        looked_up = [table for table in find_tables(graph, scheme) if table.name not in keep]
        streamed = [node for node in head.find_heads(graph) if head.table_of(node).name not in keep]
        self._model.opset_imports[MICROSOFT] = 1
        for product in chosen:
            self.quantize_product(product)
        for node in streamed:
            self.quantize_head(node)
        for table in looked_up:
            self.quantize_table(table)

    def quantize_product(self, product: Product) -> None:
        """Replace a product by its integer form."""
        node, x = product.node, product.node.inputs[0]
        assert x is not None
        matrix, scale = self._matrix(product.weight, product.stored)
        if product.stored == "NK":
            matrix = self.insert_before(node, "Transpose", [matrix], perm=[1, 0])
        tokens = self._tokens(x, node)
        operands = [tokens.integers, matrix, tokens.level, scale, tokens.zero]
        integer = self.insert_before(node, "MatMulIntegerToFloat", operands, domain=MICROSOFT)
        result = self.insert_before(node, "Mul", [integer, tokens.peak])
        bias = node.inputs[2] if node.op_type == "Gemm" and len(node.inputs) > 2 else None
        if bias is not None:
            result = self.insert_before(node, "Add", [result, bias])
        self.replace(node, product.weight, result)

    def quantize_head(self, node: ir.Node) -> None:
        """Replace a streamed head by its integer form."""
        table = head.table_of(node)
        integer_head = head.call_int8_head(self._model, node, *self._matrix(table, "NK"))
        self._graph.insert_before(node, integer_head)
        self.replace(node, table, integer_head.outputs[0])

    def quantize_table(self, table: ir.Value) -> None:
        """Replace every look-up in ``table`` by one in its integer rows."""
        matrix, scale = self._matrix(table, "NK")
        last = self.constant("last_axis", np.array([-1], np.int64))
        for node, index in list(table.uses()):
            if not _reads_rows(node, index):
                continue
            ids = node.inputs[1]
            assert ids is not None
            rows = self.insert_before(node, "Cast", [self.insert_before(node, node.op_type, [matrix, ids])], to=1)
            if matrix.dtype == ir.DataType.UINT8:
                rows = self.insert_before(
                    node, "Sub", [rows, self.constant("table_zero", np.array(head.ZERO, np.float32))]
                )
            steps = self.insert_before(node, "Unsqueeze", [self.insert_before(node, node.op_type, [scale, ids]), last])
            self.replace(node, table, self.insert_before(node, "Mul", [rows, steps]))

    def _matrix(self, weight: ir.Value, stored: Literal["KN", "NK"]) -> tuple[ir.Value, ir.Value]:
        """Return the int8 form of a weight, in the orientation it is stored in, and the scale of each of its N outputs.

        Blocks of a streamed head become uint8 around ``head.ZERO``.
        """
        name = str(weight.name)
        if name not in self._matrices:
            assert weight.const_value is not None
            values = weight.const_value.numpy()
            integers, scale = rows_to_int8(values.T if stored == "KN" else values.reshape(-1, values.shape[-1]))
            if values.ndim == 3:
                matrix = head.add_unsigned_table(self._graph, f"{name}.int8", integers.reshape(values.shape))
                scale = scale.reshape(values.shape[:2])
            else:
                transposed = np.ascontiguousarray(integers.T) if stored == "KN" else integers
                matrix = head.initializer(self._graph, f"{name}.int8", transposed)
            self._matrices[name] = matrix, head.initializer(self._graph, f"{name}.scale", scale)
        return self._matrices[name]

    def _tokens(self, x: ir.Value, user: ir.Node) -> _Tokens:
        """Return the uint8 form of ``x``, made once for all products that use it."""
        if x in self._rows:
            return self._rows[x]
        axis = self.constant("last_axis", np.array([-1], np.int64))
        zero = self._scheme.zero_after(x.producer())
        levels, floor = token_range(zero)
        span = self.insert_before(user, "Abs", [x]) if zero == SYMMETRIC else x
        peak = self.insert_before(user, "ReduceMax", [span, axis], keepdims=1)
        peak = self.insert_before(user, "Max", [peak, self.constant(f"floor_{zero}", np.array(floor, np.float32))])
        unit = self.insert_before(user, "Mul", [x, self.insert_before(user, "Reciprocal", [peak])])
        level = self.constant(f"level_{zero}", np.array(1 / levels, np.float32))
        point = self.constant(f"zero_{zero}", np.array(zero, np.uint8))
        self._rows[x] = _Tokens(self.insert_before(user, "QuantizeLinear", [unit, level, point]), point, level, peak)
        return self._rows[x]

    def insert_before(
        self, user: ir.Node, op: str, inputs: list[ir.Value], domain: str = "", **attributes: int | list[int]
    ) -> ir.Value:
        """Insert a node before ``user`` and return its output."""
        node = ir.node(op, inputs, attributes, domain=domain)
        self._graph.insert_before(user, node)
        return node.outputs[0]

    def replace(self, node: ir.Node, weight: ir.Value, result: ir.Value) -> None:
        """Replace the output of ``node``, the float operation with ``weight``, by ``result``."""
        former = node.outputs[0]
        name, visible = former.name, former.is_graph_output()
        result.type, result.shape = former.type, former.shape
        ir.convenience.replace_all_uses_with(former, result, replace_graph_outputs=True)
        self._graph.remove(node, safe=True)
        if visible:
            result.name = name

    def constant(self, name: str, array: npt.NDArray[np.generic]) -> ir.Value:
        """Return a small initializer, made once per name."""
        if name not in self._constants:
            self._constants[name] = head.initializer(self._graph, f"int8.{name}", array)
        return self._constants[name]
