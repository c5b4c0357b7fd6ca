"""Which weights int8 hurts most: the order in which mixed precision gives them back their floats.

One run of the float graph with the inputs of all its products as extra outputs; each product is then quantized alone,
in numpy, and its own relative error measured. That costs one session instead of one per weight. A weight that several
layers share, or that is both embedding and head, counts with its worst use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..passes.int8 import DEFAULT, Product, Scheme, products, rows_to_int8, tables, through_int8
from ..session import Arrays, Session

_TOKENS = 128
"""Tokens looked at per product: enough to meet a layer's outliers, little enough for a 250k-word head."""


def by_sensitivity(graph: ir.Model, feeds: Sequence[Arrays], scheme: Scheme = DEFAULT) -> list[tuple[float, str]]:
    """(relative error, weight name) of every weight of the float ``graph`` that int8 takes, worst first."""
    tapped = graph.clone()
    found = list(products(tapped.graph, scheme))
    inputs = dict.fromkeys(product.node.inputs[0] for product in found)
    for value in inputs:
        assert value is not None
        value.type = ir.TensorType(ir.DataType.FLOAT)
        if not value.is_graph_output():
            tapped.graph.outputs.append(value)
    session = Session(tapped)
    seen: dict[str, list[npt.NDArray[np.float32]]] = {}
    for feed in feeds:
        for name, values in session(feed).items():
            seen.setdefault(name, []).append(values.reshape(-1, values.shape[-1]))
    errors: dict[str, float] = {}
    for product in found:
        tokens = np.concatenate(seen[str(product.node.inputs[0].name)])  # type: ignore[union-attr]
        error = _error(product, tokens[:: max(1, len(tokens) // _TOKENS)], scheme)
        name = str(product.weight.name)
        errors[name] = max(errors.get(name, 0.0), error)
    for table in tables(tapped.graph, scheme):
        rows = _array(table)
        integers, scale = rows_to_int8(rows)
        name = str(table.name)
        errors[name] = max(errors.get(name, 0.0), _ratio(integers * scale[:, None] - rows, rows))
    return sorted(((error, name) for name, error in errors.items()), reverse=True)


def _error(product: Product, tokens: npt.NDArray[np.float32], scheme: Scheme) -> float:
    weight = _array(product.weight)
    rows = weight if product.stored == "NK" else weight.T
    integers, scale = rows_to_int8(np.ascontiguousarray(rows))
    x = product.node.inputs[0]
    assert x is not None
    exact = tokens @ rows.T
    return _ratio(through_int8(tokens, scheme.zero_behind(x.producer())) @ (integers * scale[:, None]).T - exact, exact)


def _ratio(error: npt.NDArray[Any], exact: npt.NDArray[Any]) -> float:
    return float(np.sqrt(np.square(error).mean() / max(float(np.square(exact).mean()), 1e-30)))


def _array(value: ir.Value) -> npt.NDArray[np.float32]:
    assert value.const_value is not None
    return value.const_value.numpy()
