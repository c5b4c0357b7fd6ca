"""An encoder graph on a GPU at a ladder of fixed shapes, each captured: one replay and one wait for a batch.

All shapes of a graph share its buffers, since they run one after another: ids go up from page-locked memory, outputs
come down into it, and only the rows that are read. Rows of a shape beyond those of the batch have what was there
before; rows do not see each other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from ..manifest import Plan
from .captured import CapturedGraph
from .cuda import PinnedMemory, Stream
from .device import Device
from .ladder import Piece, cut_rows, list_rows, make_ladder
from .session import Array, DeviceProfile, translate

BUFFER_BYTES = 256 << 20
"""Bytes of the buffers of one graph, at most; graphs with large outputs get a shorter ladder."""
TYPES: Mapping[str, Any] = {
    "tensor(int64)": np.int64,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}
"""NumPy's types by ONNX Runtime's names."""


class Buffer:
    """An input or an output of a graph: memory on the device for its largest shape, and page-locked memory."""

    def __init__(self, node: Any, rows: str, width: str, device: Device, most: list[tuple[int, int]]) -> None:
        """``rows`` and ``width`` are the graph's names of the two sizes; ``most`` are its largest shapes."""
        self.name = str(node.name)
        self.dtype: Any = TYPES[node.type]
        self._shape = tuple(node.shape)
        self._symbols = rows, width
        size = max(self.count_bytes(*shape) for shape in most)
        self.value = ort.OrtValue.ortvalue_from_shape_and_type([size], np.uint8, device.memory, device.index)
        self.address: int = self.value.data_ptr()
        self._device = device

    @cached_property
    def host(self) -> PinnedMemory:
        """Page-locked memory of the same size."""
        return PinnedMemory(self._device.index, self.value.shape()[0])

    def shape(self, rows: int, width: int) -> tuple[int, ...]:
        """Its shape for a batch."""
        sizes = dict(zip(self._symbols, (rows, width), strict=True))
        return tuple(size if isinstance(size, int) else sizes[size] for size in self._shape)

    def count_bytes(self, rows: int, width: int) -> int:
        """Bytes of a batch."""
        return int(np.prod(self.shape(rows, width))) * int(np.dtype(self.dtype).itemsize)

    def host_array(self, rows: int, width: int) -> Array:
        """The page-locked memory as a batch."""
        return self.host.array(self.shape(rows, width), self.dtype)


class Rungs:
    """A graph of token inputs [B, T] on a GPU, for the shapes of its plan."""

    def __init__(self, graph: CapturedGraph, plan: Plan, profile: DeviceProfile) -> None:
        """``plan`` is shortened when the buffers would be too large. KeyError for a graph with other sizes than B and
        T, or other types than whole numbers and floats."""
        self._graph = graph
        self._device = profile.device
        self._lock = threading.Lock()
        inputs, outputs = graph.session.get_inputs(), graph.session.get_outputs()
        rows, width = inputs[0].shape
        self.inputs = tuple(node.name for node in inputs)
        self.outputs = tuple(node.name for node in outputs)
        self.input_types = {node.name: str(node.type) for node in inputs}
        self.plan = _shorten(plan, [*inputs, *outputs], rows, width, strict=profile.strict)
        most = [(shape.max_rows, shape.width) for shape in self.plan.profiles]
        self.ladder = {count[1]: list_rows(count[0], strict=profile.strict) for count in most}
        make = (rows, width, profile.device, most)
        self._sources = [Buffer(node, *make) for node in inputs]
        self._results = [Buffer(node, *make) for node in outputs]
        self.addresses = {buffer.name: buffer.address for buffer in (*self._sources, *self._results)}
        """Where inputs and outputs are on the device, whatever the shape."""
        for source in self._sources:  # zeros, which are tokens of the vocabulary whatever rows are read
            graph.stream.upload(source.address, source.host.array(tuple(source.value.shape()), np.uint8))
        graph.stream.synchronize()

    @classmethod
    def load(cls, path: Path, max_tokens: int, profile: DeviceProfile) -> Rungs:
        """Open a graph whose window has ``max_tokens``; raises as ``Session.load`` does."""
        graph = CapturedGraph.load(path, profile, Stream(profile.device.index))
        return cls(graph, make_ladder(max_tokens, strict=profile.strict), profile)

    @property
    def uncaptured(self) -> int:
        """Runs so far that were launched kernel by kernel."""
        return self._graph.uncaptured

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs, as arrays in host memory, for ids of a width of the plan; ModelError when the run fails."""
        count, width = feeds[self.inputs[0]].shape
        pieces = cut_rows(count, self.ladder[width], width)
        with self._lock:
            try:
                for source in self._sources:
                    source.host_array(count, width)[:] = feeds[source.name]
                for piece in pieces:
                    self._run_piece(piece, count, width)
                self._graph.stream.synchronize()
            except Exception as error:  # ONNX Runtime's exceptions share no public base
                raise translate(error, self._graph.name, self._device) from error
            return [result.host_array(count, width).copy() for result in self._results]

    def run_on_device(self, feeds: Mapping[str, Array], rows: int) -> None:
        """Queue a run of a batch at a shape of ``rows`` rows, whose outputs stay on the device."""
        count, width = feeds[self.inputs[0]].shape
        for source in self._sources:
            source.host_array(count, width)[:] = feeds[source.name]
            self._graph.stream.upload(source.address, source.host_array(count, width))
        self.launch(rows, width)

    def prepare(self) -> None:
        """Capture every shape, so that no request waits for it; the largest first, which need the most memory."""
        shapes = [(rows, width) for width, ladder in self.ladder.items() for rows in ladder]
        with self._lock:
            try:
                for rows, width in sorted(shapes, key=lambda shape: -shape[0] * shape[1]):
                    self.launch(rows, width)
                    self._graph.stream.synchronize()
            except Exception as error:  # ONNX Runtime's exceptions share no public base
                raise translate(error, self._graph.name, self._device) from error

    def _run_piece(self, piece: Piece, count: int, width: int) -> None:
        rows = slice(piece.first, piece.first + piece.used)
        for source in self._sources:
            self._graph.stream.upload(source.address, source.host_array(count, width)[rows])
        self.launch(piece.rows, width)
        for result in self._results:
            self._graph.stream.download(result.host_array(count, width)[rows], result.address)

    def launch(self, rows: int, width: int) -> None:
        """Queue a run at a shape, of what is in the buffers."""

        def bind(binding: ort.IOBinding) -> None:
            memory = self._device.memory, self._device.index
            for bind_buffer, buffers in ((binding.bind_input, self._sources), (binding.bind_output, self._results)):
                for buffer in buffers:
                    bind_buffer(buffer.name, *memory, buffer.dtype, buffer.shape(rows, width), buffer.address)

        self._graph.launch((rows, width), bind)


def _shorten(plan: Plan, nodes: list[Any], rows: str, width: str, *, strict: bool) -> Plan:
    """The plan with batches so small that inputs and outputs fit ``BUFFER_BYTES``, but for one row of a width."""
    if strict:
        return plan
    sizes = [[size if isinstance(size, int) else {rows: 0, width: 1}[size] for size in node.shape] for node in nodes]
    by_token = sum(int(np.prod([size for size in shape if size])) for shape in sizes) * 8
    most = max(plan.widths[-1], BUFFER_BYTES // by_token)
    return plan if plan.max_tokens <= most else Plan(plan.widths, most, plan.max_rows, plan.usual_rows)
