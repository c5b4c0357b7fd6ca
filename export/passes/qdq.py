"""Quantized products for TensorRT: explicit quantize and dequantize pairs, which it turns into int8 or fp8 kernels.

TensorRT needs one scale for each tensor of activations, known when the engine is built, and zero points of 0::

    x → QuantizeLinear(s) → DequantizeLinear(s) ─┐
    W8 [K, N] → DequantizeLinear(scales [N]) ────┴→ MatMul

s is the largest magnitude on the fixed texts (``export/verify/ranges.py``) through the largest number of the type. The
graphs for the CPU have a scale for each token instead (``int8.py``), which TensorRT cannot take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from .int8 import Product, find_products

QuantizedType: TypeAlias = Literal["int8", "fp8"]
_LARGEST = {"int8": 127.0, "fp8": 448.0}
_LEAST = 2.0**-20
"""The least scale: float16 has five bits of it."""
_DTYPES = {"int8": ir.DataType.INT8, "fp8": ir.DataType.FLOAT8E4M3FN}


def add_quantization(model: ir.Model, kind: QuantizedType, magnitudes: Mapping[str, float], limit: float) -> None:
    """Quantize both sides of every product with a constant matrix, in place.

    ``magnitudes`` are the largest numbers of the activations by name. Products that read or give a value beyond
    ``limit`` are left: they stay float32, which TensorRT does not join with a quantized input.
    """
    adder = _Adder(model.graph, kind)
    for product in list(find_products(model.graph)):
        states = product.node.inputs[0]
        assert states is not None
        peak = magnitudes.get(str(states.name), 0.0)
        largest = max(peak, *(magnitudes.get(str(value.name), 0.0) for value in product.node.outputs))
        # A matrix that a look-up shares is stored once, and read through a Transpose.
        direct = product.node.inputs[1] is product.weight
        if direct and peak > 0 and largest <= limit:
            adder.quantize(product, states, peak)


def _fit_half(scale: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
    """Return scales that are the same in float16, which they are in a float16 graph."""
    fitting: npt.NDArray[np.float32] = np.maximum(scale, _LEAST).astype(np.float16).astype(np.float32)
    return fitting


class _Adder:
    def __init__(self, graph: ir.Graph, kind: QuantizedType) -> None:
        self._graph = graph
        self._kind = kind
        self._dtype = _DTYPES[kind]
        self._largest = _LARGEST[kind]
        self._states: dict[ir.Value, ir.Value] = {}
        self._weights: dict[ir.Value, ir.Value] = {}

    def quantize(self, product: Product, states: ir.Value, peak: float) -> None:
        """Put the pairs in front of a product."""
        node = product.node
        if states not in self._states:
            scale = self._constant(f"{states.name}.scale", _fit_half(np.array(peak / self._largest)))
            zero = self._constant(f"{states.name}.zero", np.zeros((), self._dtype.numpy()))
            rounded = self._insert(node, "QuantizeLinear", [states, scale, zero], self._dtype, states.shape)
            back = self._insert(node, "DequantizeLinear", [rounded, scale, zero], ir.DataType.FLOAT, states.shape)
            self._states[states] = back
        if product.weight not in self._weights:
            self._weights[product.weight] = self._dequantize_weight(node, product)
        node.replace_input_with(0, self._states[states])
        node.replace_input_with(1, self._weights[product.weight])

    def _dequantize_weight(self, node: ir.Node, product: Product) -> ir.Value:
        tensor = product.weight.const_value
        assert tensor is not None
        matrix = tensor.numpy()
        axis = 1 if product.stored == "KN" else 0  # of the outputs
        peak = np.abs(matrix).max(axis=1 - axis, keepdims=True)
        scale = _fit_half(np.where(peak > 0, peak / self._largest, 1))
        numbers = np.clip(matrix / scale, -self._largest, self._largest)
        if self._kind == "int8":
            numbers = np.rint(numbers)
        name = str(product.weight.name)
        weight = self._constant(f"{name}.{self._kind}", numbers.astype(self._dtype.numpy()))
        scales = self._constant(f"{name}.scale", scale.ravel())
        zeros = self._constant(f"{name}.zero", np.zeros(scale.size, self._dtype.numpy()))
        inputs = [weight, scales, zeros]
        return self._insert(node, "DequantizeLinear", inputs, ir.DataType.FLOAT, product.weight.shape, axis=axis)

    def _insert(
        self,
        before: ir.Node,
        op: str,
        inputs: list[ir.Value],
        dtype: ir.DataType,
        shape: ir.Shape | None,
        **attributes: int,
    ) -> ir.Value:
        node = ir.node(op, inputs, attributes)
        output = node.outputs[0]
        output.type, output.shape = ir.TensorType(dtype), shape
        self._graph.insert_before(before, node)
        return output

    def _constant(self, name: str, array: npt.NDArray[Any]) -> ir.Value:
        tensor = ir.tensor(array, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=tensor.shape, const_value=tensor)  # type: ignore[arg-type]
        self._graph.register_initializer(value)
        return value
