"""How large the values of a float32 graph become on the fixed texts: what fits float16 and what does not.

The CPU provider computes float16 operations in float32 and never rounds between them, so a float16 graph cannot show
there that it overflows. Its float32 graph can show how large each value is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from ..session import Array, Arrays, CpuSession
from .outcome import ReferenceOutputs

HEADROOM = 8
"""Other texts have larger values than the fixed ones; a value may become this many times as large."""
HALF_LIMIT = float(np.finfo(np.float16).max) / HEADROOM
"""The largest magnitude on the fixed texts with which a value may be float16: 8,188."""
STATES = ("past.", "present.", "cross.")
"""Inputs and outputs of generators that are float16 wherever the graph is."""
_MASK_FROM, _MASK, _MASK_LEAST = 1e4, 1e35, 1e30
"""A number beyond the first is a mask's; it is measured as the second, and what reaches the third does not count."""
_MOVES = frozenset(
    {"Reshape", "Transpose", "Slice", "Concat", "Unsqueeze", "Squeeze", "Expand", "Gather", "GatherND"}
    | {"GatherElements", "Split", "Identity", "Tile", "Flatten", "Relu", "Dropout"}
)
"""Operations whose results are numbers of their inputs."""
_PREFIX = "magnitude."

Magnitudes = dict[str, float]
"""The largest absolute number of each float32 value of a graph, by name; what a mask closes does not count."""


def measure_magnitudes(graphs: Sequence[ir.Model], reference: ReferenceOutputs) -> list[Magnitudes]:
    """Return what the values of float32 ``graphs`` reach on the fixed texts.

    Numbers that masks add (-3.4e38, or -65504 and other single constants beyond 10,000) do not count: they become the
    least float16, and the softmax after them makes them 0.
    """
    measured = [_measure_outputs(graph) for graph in graphs]
    recorders: list[_Recorder] = []

    def open_session(graph: ir.Model) -> CpuSession:
        recorders.append(_Recorder(graph))
        return recorders[-1]

    reference.compare(measured, open_session)
    peaks = [recorder.peaks for recorder in recorders] or [{} for _ in graphs]
    return [_follow_moves(graph, of_graph) for graph, of_graph in zip(graphs, peaks, strict=True)]


class _Recorder(CpuSession):
    """A session that keeps the largest of each measured number, and gives the graph's own outputs."""

    def __init__(self, model: ir.Model) -> None:
        super().__init__(model)
        self._every = self.outputs
        self.outputs = [name for name in self._every if not name.startswith(_PREFIX)]
        self.peaks: Magnitudes = {}

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        feed = {name: inputs[name] for name in self.inputs}
        results = dict(zip(self._every, self._session.run(self._every, feed), strict=True))
        for name in self._every[len(self.outputs) :]:
            value = name.removeprefix(_PREFIX)
            self.peaks[value] = max(self.peaks.get(value, 0.0), float(results[name]))
        return {name: results[name] for name in self.outputs}


def _measure_outputs(graph: ir.Model) -> ir.Model:
    """Return a copy with another output for each value that an operation computes: its largest magnitude."""
    copy = graph.clone()
    common.ShapeInferencePass()(copy)
    for value in copy.graph.initializers.values():
        tensor = value.const_value
        if value.dtype == ir.DataType.FLOAT and tensor is not None and tensor.size == 1:
            number = float(tensor.numpy().reshape(()))
            if _MASK_FROM < abs(number) < _MASK_LEAST:
                masked = np.full(tensor.shape.numpy(), np.copysign(_MASK, number), np.float32)
                value.const_value = ir.tensor(masked, name=str(value.name))
    nodes = [node for node in copy.graph if node.op_type not in _MOVES]
    limit, zero = (_constant(copy.graph, name, number) for name, number in (("limit", _MASK_LEAST), ("zero", 0.0)))
    for node in nodes:
        for value in node.outputs:
            if value.dtype != ir.DataType.FLOAT:
                continue
            absolute = ir.node("Abs", [value])
            counts = ir.node("Less", [absolute.outputs[0], limit])
            chosen = ir.node("Where", [counts.outputs[0], absolute.outputs[0], zero])
            peak = ir.node("ReduceMax", [chosen.outputs[0]], {"keepdims": 0})
            peak.outputs[0].name = f"{_PREFIX}{value.name}"
            peak.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
            peak.outputs[0].shape = ir.Shape(())
            copy.graph.insert_after(node, [absolute, counts, chosen, peak])
            copy.graph.outputs.append(peak.outputs[0])
    return copy


def _constant(graph: ir.Graph, name: str, number: float) -> ir.Value:
    tensor = ir.tensor(np.array(number, np.float32), name=f"{_PREFIX}{name}")
    value = ir.Value(name=tensor.name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(()), const_value=tensor)
    graph.register_initializer(value)
    return value


def _follow_moves(graph: ir.Model, peaks: Magnitudes) -> Magnitudes:
    """Return ``peaks`` with the peaks of constants, and of values that operations only move."""
    largest_of = dict(peaks)
    for value in graph.graph.initializers.values():
        tensor = value.const_value
        if value.dtype == ir.DataType.FLOAT and tensor is not None and tensor.size:
            largest = float(np.abs(tensor.numpy()).max())
            masks = largest >= _MASK_LEAST or (tensor.size == 1 and largest > _MASK_FROM)
            largest_of[str(value.name)] = 0.0 if masks else largest
    for node in graph.graph:
        if node.op_type in _MOVES:
            source = max(
                (largest_of.get(str(value.name), 0.0) for value in node.inputs if value is not None), default=0.0
            )
            largest_of |= {str(value.name): source for value in node.outputs}
    return largest_of
