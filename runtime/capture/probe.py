"""Whether a GPU captures graphs here, tried on the graph of one node."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..ort.device import PROBE, Device
from ..ort.session import DeviceProfile
from ..protocol import CaptureCounts
from .graph import CapturedGraph, RunLayout, Runnable
from .memory import Buffer
from .shapes import BatchShape


class CaptureProbe:
    """The graph of one node, captured."""

    def __init__(self, runnable: Runnable) -> None:
        self.graph = CapturedGraph(runnable, self._layout)
        nodes = (*runnable.inputs.values(), *runnable.outputs.values())
        self._buffers = {node.name: Buffer(node, runnable.profile.device, [{}]) for node in nodes}

    def _layout(self, shape: BatchShape) -> RunLayout:
        return RunLayout({}, {name: buffer.address for name, buffer in self._buffers.items()})


def probe_captures(device: Device) -> CaptureCounts:
    """Capture a graph, and run it once more; raises as ``Session.load`` and ``Session.run`` do."""
    with tempfile.TemporaryDirectory(prefix="groundwire-") as folder:
        path = Path(folder, "probe.onnx")
        path.write_bytes(PROBE)
        runnable = Runnable.load(path, DeviceProfile.of(device, None))
    probe = CaptureProbe(runnable)
    with runnable.translating():
        probe.graph.prepare([BatchShape(1, 1)] * 2)
    return probe.graph.counts
