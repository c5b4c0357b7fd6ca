"""4-bit weights in blocks: ONNX Runtime's ``MatMulNBits``, for large models whose weights decide their speed.

Each column of a product's matrix is cut into blocks of 32 rows, each with a scale: the number of the largest magnitude
becomes level 0 of 16, and zero is level 8. Activations become int8, block by block of each row (``accuracy_level`` 4):
with float32 activations ONNX Runtime adds up one row in another order than several, so a result would depend on its
batch. Tables of embeddings become int8, as in ``int8.py``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnx_ir.passes import common

from .head import MICROSOFT, initializer
from .int8 import DEFAULT, Product, Quantizer, find_products, find_tables

BLOCK = 32
"""Rows of a block; ONNX Runtime takes powers of two from 16 on."""
ZERO = 8
"""The level of zero."""


def quantize_blocks(model: ir.Model) -> None:
    """Turn the matrices of all products into 4-bit blocks, and tables of embeddings into int8, in place."""
    quantizer = Quantizer(model, DEFAULT)
    model.opset_imports[MICROSOFT] = 1
    packed: dict[str, tuple[ir.Value, ir.Value, int, int]] = {}
    for product in list(find_products(model.graph)):
        name = str(product.weight.name)
        if name not in packed:
            packed[name] = _store(model.graph, product)
        matrix, scales, rows, columns = packed[name]
        node = product.node
        states = node.inputs[0]
        assert states is not None
        sizes = {"K": rows, "N": columns, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
        result = quantizer.insert_before(node, "MatMulNBits", [states, matrix, scales], domain=MICROSOFT, **sizes)
        bias = node.inputs[2] if node.op_type == "Gemm" and len(node.inputs) > 2 else None
        if bias is not None:
            result = quantizer.insert_before(node, "Add", [result, bias])
        quantizer.replace(node, product.weight, result)
    for table in list(find_tables(model.graph)):
        quantizer.quantize_table(table)
    common.RemoveUnusedNodesPass()(model)


def pack_blocks(columns: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Return the levels of columns [N, K], two in a byte [N, K / 32, 16], and the scale of each block [N, K / 32].

    ``columns ≈ (levels - 8) · scale``; the last block is filled up with zeros.
    """
    count, length = columns.shape
    blocks = np.zeros((count, -(-length // BLOCK) * BLOCK), np.float32)
    blocks[:, :length] = columns
    blocks = blocks.reshape(count, -1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=2)[..., None], axis=2)[..., 0]
    scales = (largest / np.float32(-ZERO)).astype(np.float32)
    steps = np.where(scales == 0, np.float32(1), scales)[..., None]
    levels = np.clip(np.rint(blocks / steps) + ZERO, 0, 15).astype(np.uint8)
    return levels[..., 0::2] | (levels[..., 1::2] << 4), scales


def _store(graph: ir.Graph, product: Product) -> tuple[ir.Value, ir.Value, int, int]:
    """Add a product's blocks and scales to the graph; return them with K and N."""
    assert product.weight.const_value is not None
    values = product.weight.const_value.numpy()
    columns = values if product.stored == "NK" else values.T
    levels, scales = pack_blocks(columns)
    name = f"{product.weight.name}"
    matrix = initializer(graph, f"{name}.int4", levels)
    return matrix, initializer(graph, f"{name}.scales", scales), columns.shape[1], columns.shape[0]
