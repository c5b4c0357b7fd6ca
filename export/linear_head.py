"""Changes the linear head of a classifier's graph and leaves its encoder as it is.

The head of an encoder reads its state of the first token, and the output of a dense layer on that state. Both are
features that a head tuned to other labels can read: a linear function of them, added to the logits, needs no other
encoder. So a graph keeps its weights, and shares them with other graphs as before; the added matrices are a few
kilobytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.runtime.errors import ExportError

LINEAR = ("Gemm", "MatMul", "MatMulIntegerToFloat")
"""Operators of a linear layer."""


def expose_features(graph: Path, output: str | None, to: Path) -> tuple[str, ...]:
    """Write a copy of ``graph`` that also returns what the head of ``output`` reads; the names of these outputs.

    Each is [B, width], float32. ``to`` is in the graph's directory, where its weights are. ExportError when the graph
    has no such head.
    """
    model = ir.load(graph)
    features = find_features(model, output)
    for value in features:
        value.type = ir.TensorType(ir.DataType.FLOAT)
        model.graph.outputs.append(value)
    ir.save(model, to)
    return tuple(str(value.name) for value in features)


def add_to_head(
    graph: Path, output: str | None, weights: Mapping[str, npt.NDArray[np.float32]], bias: npt.NDArray[np.float32]
) -> None:
    """Add a linear function of features to the logits of ``output``, in place.

    ``weights`` [width, labels] by the names that ``expose_features`` gives; ``bias`` [labels].
    """
    model = ir.load(graph)
    logits = find_output(model, output)
    features = {str(value.name): value for value in find_features(model, output)}
    prefix = next(
        f"adapted.{n}." for n in count() if not any(name.startswith(f"adapted.{n}.") for name in _names(model))
    )
    name, index = str(logits.name), list(model.graph.outputs).index(logits)
    logits.name = f"{prefix}given"
    value = logits
    for number, (feature, weight) in enumerate(weights.items()):
        node = ir.node("Gemm", [features[feature], _add_weight(model, f"{prefix}weight.{number}", weight), value])
        node.name = f"{prefix}node.{number}"
        model.graph.append(node)
        value = node.outputs[0]
        value.name = f"{prefix}value.{number}"
    node = ir.node("Add", [value, _add_weight(model, f"{prefix}bias", bias)])
    node.name = f"{prefix}add"
    model.graph.append(node)
    node.outputs[0].name = name
    node.outputs[0].type, node.outputs[0].shape = logits.type, logits.shape
    model.graph.outputs[index] = node.outputs[0]
    ir.save(model, graph)


def find_output(model: ir.Model, name: str | None) -> ir.Value:
    """The output ``name``, or the only one; ExportError when there is none."""
    outputs = [value for value in model.graph.outputs if name in (None, value.name)]
    if len(outputs) != 1:
        names = ", ".join(str(value.name) for value in model.graph.outputs)
        raise ExportError(f"The graph has the outputs {names}, not {name or 'a single one'}.")
    return outputs[0]


def find_features(model: ir.Model, output: str | None) -> list[ir.Value]:
    """What the head reads, from the logits back: the inputs of its last layer, and the encoder's state of one token.

    ExportError when a linear layer on one state of the encoder does not give the logits: a graph without a linear
    head.
    """
    logits = find_output(model, output)
    features = [value] if (value := _find_hidden(logits)) is not None else []
    features += [value for value in (_find_state(logits),) if value is not None and value not in features]
    if not features:
        raise ExportError(
            f"The logits {logits.name!r} are not those of a linear layer on one state of the encoder, so there is no "
            "head that can be tuned alone; tune another role."
        )
    return features


def _find_hidden(logits: ir.Value) -> ir.Value | None:
    """The input of the last linear layer, where its weights are float; the tuned layers of an earlier run are passed.

    An int8 layer reads what is scaled and rounded, which is not a feature of its own.
    """
    node = logits.producer()
    while node is not None and node.op_type in ("Add", *LINEAR):
        if node.op_type == "Gemm" and len(node.inputs) > 2 and not _is_weight(node.inputs[2]):
            node = _produce(node.inputs[2])
        elif node.op_type == "Add":
            node = next((_produce(value) for value in node.inputs if not _is_weight(value)), None)
        else:
            return node.inputs[0] if node.op_type in ("Gemm", "MatMul") else None
    return None


def _find_state(logits: ir.Value) -> ir.Value | None:
    """The nearest value that picks one token of the encoder's states by a fixed index."""
    queue, seen = deque([logits]), {logits}
    while queue:
        node = queue.popleft().producer()
        if node is None:
            continue
        # Of a shape, numbers are picked from axis 0.
        if node.op_type == "Gather" and node.attributes.get_int("axis", 0) == 1 and _is_weight(node.inputs[1]):
            return node.outputs[0]
        for value in node.inputs:
            if value is not None and value not in seen:
                seen.add(value)
                queue.append(value)
    return None


def _produce(value: ir.Value | None) -> ir.Node | None:
    return None if value is None else value.producer()


def _is_weight(value: ir.Value | None) -> bool:
    """Whether a value is the same for all inputs."""
    if value is None or value.const_value is not None:
        return True
    node = value.producer()
    return node is not None and all(map(_is_weight, node.inputs))


def _add_weight(model: ir.Model, name: str, array: npt.NDArray[np.float32]) -> ir.Value:
    value = ir.Value(name=name, const_value=ir.tensor(np.asarray(array, np.float32), name=name))
    model.graph.register_initializer(value)
    return value


def _names(model: ir.Model) -> list[str]:
    return [*model.graph.initializers, *(str(node.name) for node in model.graph)]
