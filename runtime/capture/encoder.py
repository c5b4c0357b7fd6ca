"""An encoder on a GPU, captured at each shape of its plan: one replay for a block, and one wait for a batch.

All shapes share the graph's buffers, since they run one after another: ids go up from page-locked memory, outputs come
down into it, and only the rows that are read. The padded rows of a block have what was there before; rows do not see
each other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import msgspec
import numpy as np

from ..bundles.manifest import ShapePlan
from ..ort.blocks import Block, cut_rows
from ..ort.session import Array, DeviceProfile
from .graph import CapturedGraph, RunLayout, Runnable
from .memory import Buffer, Sizes, find_shape
from .shapes import BatchShape, list_rows, plan_encoder

BUFFER_BYTES = 256 << 20
"""Bytes of the buffers of one graph, at most; graphs with large outputs get smaller capture sizes."""


class CapturedEncoder:
    """A graph of token inputs [B, T] on a GPU, for the shapes of its plan."""

    def __init__(self, runnable: Runnable, plan: ShapePlan, fixed: Sizes = MappingProxyType({})) -> None:
        """``plan`` is shortened when the buffers would be too large; ``fixed`` are the sizes of further axes. KeyError
        for a graph with other sizes than these, B and T, or other types than whole numbers and floats."""
        self.runnable = runnable
        self.graph = CapturedGraph(runnable, self._layout)
        self._fixed = dict(fixed)
        self._lock = threading.Lock()
        inputs, outputs = list(runnable.inputs.values()), list(runnable.outputs.values())
        rows, width = self._axes = inputs[0].shape
        self.inputs, self.outputs = tuple(runnable.inputs), tuple(runnable.outputs)
        self.input_types = {node.name: str(node.type) for node in inputs}
        strict = runnable.profile.strict
        self.plan = plan if strict else _shorten(plan, [*inputs, *outputs], {**fixed, rows: 0, width: 1})
        most = [(shape.max_rows, shape.width) for shape in self.plan.profiles]
        self.sizes = {width: list_rows(rows, strict=strict) for rows, width in most}
        """Its capture sizes by width."""
        largest = [self._name_axes(*shape) for shape in most]
        self._sources = [Buffer(node, runnable.profile.device, largest) for node in inputs]
        self._results = [Buffer(node, runnable.profile.device, largest) for node in outputs]
        self.addresses = {buffer.name: buffer.address for buffer in (*self._sources, *self._results)}
        """Where inputs and outputs are on the device, whatever the shape."""
        for source in self._sources:  # zeros, which are tokens of the vocabulary whatever rows are read
            runnable.stream.upload(source.address, source.host_bytes())
        runnable.stream.synchronize()

    @classmethod
    def load(cls, path: Path, max_tokens: int, profile: DeviceProfile, fixed: Sizes = MappingProxyType({})) -> Self:
        """Open a graph whose window has ``max_tokens``; raises as ``Session.load`` does."""
        return cls(Runnable.load(path, profile), plan_encoder(max_tokens, strict=profile.strict), fixed)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs, as arrays in host memory, for ids of a width of the plan; ModelError when the run fails."""
        count, width = feeds[self.inputs[0]].shape
        axes = self._name_axes(count, width)
        with self._lock, self.runnable.translating():
            for source in self._sources:
                source.host_array(axes)[:] = feeds[source.name]
            for block in cut_rows(count, self.sizes[width], width):
                self._run_block(block, axes, width)
            self.runnable.stream.synchronize()
            return [result.host_array(axes).copy() for result in self._results]

    def run_on_device(self, feeds: Mapping[str, Array], rows: int) -> None:
        """Queue a run of a batch, padded to ``rows`` rows, whose outputs stay on the device."""
        count, width = feeds[self.inputs[0]].shape
        for source in self._sources:
            array = source.host_array(self._name_axes(count, width))
            array[:] = feeds[source.name]
            self.runnable.stream.upload(source.address, array)
        self.graph.run(BatchShape(rows, width))

    def prepare(self) -> None:
        """Capture every shape, so that no request waits for it; the largest first, which need the most memory."""
        shapes = [BatchShape(rows, width) for width, sizes in self.sizes.items() for rows in sizes]
        with self._lock, self.runnable.translating():
            self.graph.prepare(sorted(shapes, key=lambda shape: -shape.rows * shape.tokens))

    def _run_block(self, block: Block, axes: Sizes, width: int) -> None:
        rows = slice(block.first, block.first + block.used)
        for source in self._sources:
            self.runnable.stream.upload(source.address, source.host_array(axes)[rows])
        self.graph.run(BatchShape(block.rows, width))
        for result in self._results:
            self.runnable.stream.download(result.host_array(axes)[rows], result.address)

    def _layout(self, shape: BatchShape) -> RunLayout:
        return RunLayout(self._name_axes(shape.rows, shape.tokens), self.addresses)

    def _name_axes(self, rows: int, width: int) -> dict[str, int]:
        """The sizes of a run by the graph's names of its axes."""
        return {**self._fixed, **dict(zip(self._axes, (rows, width), strict=True))}


def _shorten(plan: ShapePlan, nodes: list[Any], sizes: Sizes) -> ShapePlan:
    """The plan with batches so small that inputs and outputs fit ``BUFFER_BYTES``, but for one row of a width.

    ``sizes`` are a token's: its 0 rows are left out of the products.
    """
    by_token = 8 * sum(int(np.prod([size for size in find_shape(node, sizes) if size])) for node in nodes)
    most = max(plan.widths[-1], BUFFER_BYTES // by_token)
    return plan if plan.max_tokens <= most else msgspec.structs.replace(plan, max_tokens=most)
