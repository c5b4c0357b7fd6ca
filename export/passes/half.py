"""float16 graphs for GPUs.

Matrix products and the operations that move their results run in float16. Operations that lose accuracy there stay
float32: norms made of single operations (T5's), the residual stream that such norms read, the softmax over the
vocabulary, the products that a family must keep (T5's second feed-forward matrix overflows float16, which turns its
encoder's output into NaN), and whatever reads or gives values that the fixed texts show to be too large
(``export/verify/ranges.py``). LayerNormalization and Softmax take float16: they are computed in float32 inside.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

_SINGLE = frozenset(
    {"Pow", "ReduceMean", "Sqrt", "Reciprocal", "LogSoftmax", "TopK", "Range", "Cast", "ConstantOfShape", "CumSum"}
    | {"Log"}
)
"""Operations that stay float32, or whose attributes fix the type of their output."""
_ELEMENTWISE = frozenset(
    {"Add", "Sub", "Mul", "Div", "Neg", "Min", "Max", "Where", "Clip", "Unsqueeze", "Expand"}
    | {"GatherElements", "Squeeze", "ScatterElements", "Exp", "ReduceMin", "Less", "GreaterOrEqual"}
)
_STATES = ("past.", "present.", "cross.")
_LARGEST = float(np.finfo(np.float16).max)
_MASK = 1e30
"""A constant with a larger number is a mask."""


def to_half(model: ir.Model, keep: tuple[str, ...] = (), large: Collection[str] = ()) -> None:
    """Convert a float32 ``model`` in place; products with weights of modules named in ``keep`` stay float32, and so do
    operations that read or give one of the values ``large``, which do not fit float16.

    Inputs and outputs named past, present or cross become float16; other inputs, logits and scores stay float32.
    """
    common.ShapeInferencePass()(model)
    _Halver(model.graph, keep, frozenset(large)).run()
    common.RemoveUnusedNodesPass()(model)


class _Halver:
    def __init__(self, graph: ir.Graph, keep: tuple[str, ...], large: frozenset[str]) -> None:
        self._graph = graph
        self._keep = frozenset(keep)
        self._large = large
        self._single: set[ir.Node | None] = set()
        self._given: set[ir.Value] = set()
        self._cast: dict[tuple[ir.Value, ir.DataType], ir.Value] = {}

    def run(self) -> None:
        graph = self._graph
        # Sizes (a batch, a width) may be values too; only floats change type.
        floats = {value for node in graph for value in node.outputs if value.dtype == ir.DataType.FLOAT}
        floats |= {value for value in graph.inputs if value.dtype == ir.DataType.FLOAT}
        self._given = {value for value in graph.inputs if not str(value.name).startswith(_STATES)}
        constants = {value for value in graph.initializers.values() if value.dtype == ir.DataType.FLOAT}
        for node in graph:
            if self._stays(node, floats):
                self._single.add(node)
        for constant in constants:
            self._clip(constant)
        for value in floats:
            if not self._exact(value):
                # A new type: clones of a model share the type objects of their values.
                value.type = ir.TensorType(ir.DataType.FLOAT16)
        for node in list(graph):
            wanted = ir.DataType.FLOAT if node in self._single else ir.DataType.FLOAT16
            for index, source in enumerate(node.inputs):
                if source is not None and (source in floats or source in constants) and source.dtype != wanted:
                    node.replace_input_with(index, self._as(source, wanted, node))
        for index, output in enumerate(graph.outputs):
            wanted = ir.DataType.FLOAT16 if str(output.name).startswith(_STATES) else ir.DataType.FLOAT
            if output in floats and output.dtype != wanted:
                self._output(index, output, wanted)

    def _stays(self, node: ir.Node, floats: set[ir.Value]) -> bool:
        """Return whether ``node`` computes in float32; earlier nodes in graph order are already decided."""
        if node.op_type in _SINGLE:
            return True
        if any(value is not None and value.name in self._large for value in (*node.inputs, *node.outputs)):
            return True
        if node.op_type in ("MatMul", "Gemm"):
            return any(not self._keep.isdisjoint(name.split(".")) for name in _weights(node))
        if node.op_type == "Add" and any(user.op_type == "Pow" for user, _ in node.outputs[0].uses()):
            return True
        sources = [value for value in node.inputs if value is not None and value in floats]
        return node.op_type in _ELEMENTWISE and bool(sources) and all(self._exact(source) for source in sources)

    def _exact(self, value: ir.Value) -> bool:
        return value in self._given or value.producer() in self._single

    def _clip(self, value: ir.Value) -> None:
        """Clip a mask's constant to float16: the least float32 would become -inf, and 0 · -inf is NaN.

        Weights that do not fit are left: they are among the values that stay float32.
        """
        assert value.const_value is not None
        array = value.const_value.numpy()
        if array.size == 1 or (array.size and np.abs(array).max() >= _MASK):
            value.const_value = ir.tensor(np.clip(array, -_LARGEST, _LARGEST), name=str(value.name))

    def _as(self, value: ir.Value, dtype: ir.DataType, user: ir.Node) -> ir.Value:
        if (value, dtype) not in self._cast:
            if value.is_initializer():
                self._cast[value, dtype] = self._constant(value)
            else:
                cast = ir.node("Cast", [value], {"to": int(dtype)})
                cast.outputs[0].type = ir.TensorType(dtype)
                self._graph.insert_before(user, cast)
                self._cast[value, dtype] = cast.outputs[0]
        return self._cast[value, dtype]

    def _constant(self, value: ir.Value) -> ir.Value:
        assert value.const_value is not None
        array = value.const_value.numpy().astype(np.float16)
        half = ir.Value(name=f"{value.name}.half", type=ir.TensorType(ir.DataType.FLOAT16), shape=ir.Shape(array.shape))
        half.const_value = ir.tensor(array, name=str(half.name))
        self._graph.register_initializer(half)
        return half

    def _output(self, index: int, value: ir.Value, dtype: ir.DataType) -> None:
        cast = ir.node("Cast", [value], {"to": int(dtype)})
        self._graph.append(cast)
        result = cast.outputs[0]
        result.type, result.shape = ir.TensorType(dtype), value.shape
        self._graph.outputs[index] = result
        name, value.name = value.name, f"{value.name}.half"
        result.name = name


def _weights(node: ir.Node) -> list[str]:
    """Return the names of the initializers that a product reads, looking through a Transpose."""
    names = []
    for value in node.inputs:
        producer = None if value is None else value.producer()
        if producer is not None and producer.op_type == "Transpose":
            value = producer.inputs[0]
        if value is not None and value.is_initializer():
            names.append(str(value.name))
    return names
