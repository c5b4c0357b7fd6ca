"""An encoder graph on a GPU at a ladder of fixed shapes, each captured: one replay and one wait for a batch.

All shapes of a graph share its buffers, since they run one after another: ids go up from page-locked memory, outputs
come down into it, and only the rows that are read. Rows of a shape beyond those of the batch have what was there
before; rows do not see each other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..manifest import Plan
from .buffers import Buffer, Sizes, find_shape
from .captured import CapturedGraph
from .cuda import Stream
from .ladder import Piece, cut_rows, list_rows, make_ladder
from .session import Array, DeviceProfile, Session, translate

BUFFER_BYTES = 256 << 20
"""Bytes of the buffers of one graph, at most; graphs with large outputs get a shorter ladder."""


class Rungs:
    """A graph of token inputs [B, T] on a GPU, for the shapes of its plan."""

    def __init__(
        self, graph: CapturedGraph, plan: Plan, profile: DeviceProfile, fixed: Sizes = MappingProxyType({})
    ) -> None:
        """``plan`` is shortened when the buffers would be too large; ``fixed`` are the sizes of further axes. KeyError
        for a graph with other sizes than these, B and T, or other types than whole numbers and floats."""
        self._graph = graph
        self._fixed = dict(fixed)
        self.any_shape = Session(graph.session, graph.name, profile, graph.waited)
        """The same graph for any shapes, launched kernel by kernel."""
        self._device = profile.device
        self._lock = threading.Lock()
        inputs, outputs = graph.session.get_inputs(), graph.session.get_outputs()
        rows, width = self._axes = inputs[0].shape
        self.inputs = tuple(node.name for node in inputs)
        self.outputs = tuple(node.name for node in outputs)
        self.input_types = {node.name: str(node.type) for node in inputs}
        sizes = {**fixed, rows: 0, width: 1}
        self.plan = _shorten(plan, [*inputs, *outputs], sizes, strict=profile.strict)
        most = [(shape.max_rows, shape.width) for shape in self.plan.profiles]
        self.ladder = {count[1]: list_rows(count[0], strict=profile.strict) for count in most}
        largest = [self._sizes(*shape) for shape in most]
        self._sources = [Buffer(node, profile.device, largest) for node in inputs]
        self._results = [Buffer(node, profile.device, largest) for node in outputs]
        self.addresses = {buffer.name: buffer.address for buffer in (*self._sources, *self._results)}
        """Where inputs and outputs are on the device, whatever the shape."""
        for source in self._sources:  # zeros, which are tokens of the vocabulary whatever rows are read
            graph.stream.upload(source.address, source.host_bytes())
        graph.stream.synchronize()

    @classmethod
    def load(cls, path: Path, max_tokens: int, profile: DeviceProfile, fixed: Sizes = MappingProxyType({})) -> Rungs:
        """Open a graph whose window has ``max_tokens``; raises as ``Session.load`` does."""
        graph = CapturedGraph.load(path, profile, Stream(profile.device.index))
        return cls(graph, make_ladder(max_tokens, strict=profile.strict), profile, fixed)

    @property
    def uncaptured(self) -> int:
        """Runs so far that were launched kernel by kernel."""
        return self._graph.uncaptured

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs, as arrays in host memory, for ids of a width of the plan; ModelError when the run fails."""
        count, width = feeds[self.inputs[0]].shape
        pieces, sizes = cut_rows(count, self.ladder[width], width), self._sizes(count, width)
        with self._lock:
            try:
                for source in self._sources:
                    source.host_array(sizes)[:] = feeds[source.name]
                for piece in pieces:
                    self._run_piece(piece, count, width)
                self._graph.stream.synchronize()
            except Exception as error:  # ONNX Runtime's exceptions share no public base
                raise translate(error, self._graph.name, self._device) from error
            return [result.host_array(sizes).copy() for result in self._results]

    def run_on_device(self, feeds: Mapping[str, Array], rows: int) -> None:
        """Queue a run of a batch at a shape of ``rows`` rows, whose outputs stay on the device."""
        count, width = feeds[self.inputs[0]].shape
        for source in self._sources:
            array = source.host_array(self._sizes(count, width))
            array[:] = feeds[source.name]
            self._graph.stream.upload(source.address, array)
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
        rows, sizes = slice(piece.first, piece.first + piece.used), self._sizes(count, width)
        for source in self._sources:
            self._graph.stream.upload(source.address, source.host_array(sizes)[rows])
        self.launch(piece.rows, width)
        for result in self._results:
            self._graph.stream.download(result.host_array(sizes)[rows], result.address)

    def launch(self, rows: int, width: int) -> None:
        """Queue a run at a shape, of what is in the buffers."""
        self._graph.launch_at(self._sizes(rows, width), self.addresses)

    def _sizes(self, rows: int, width: int) -> dict[str, int]:
        """The sizes of a run by the graph's names of its axes."""
        return {**self._fixed, **dict(zip(self._axes, (rows, width), strict=True))}


def _shorten(plan: Plan, nodes: list[Any], sizes: Sizes, *, strict: bool) -> Plan:
    """The plan with batches so small that inputs and outputs fit ``BUFFER_BYTES``, but for one row of a width.

    ``sizes`` are those of a token: its 0 rows are left out of the products.
    """
    if strict:
        return plan
    shapes = [find_shape(node, sizes) for node in nodes]
    by_token = sum(int(np.prod([size for size in shape if size])) for shape in shapes) * 8
    most = max(plan.widths[-1], BUFFER_BYTES // by_token)
    return plan if plan.max_tokens <= most else Plan(plan.widths, most, plan.max_rows, plan.usual_rows)
