"""One graph on a GPU, captured once for each shape of its batches, and then launched as a whole.

ONNX Runtime remembers by a number what it captured, after a plain run of its own. A second binding with a number that
is in use would replay the first one's addresses, so numbers are made here and nowhere else, one for each binding. It
captures for each thread, so one thread captures; others run the same bindings kernel by kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import onnxruntime as ort

from ..ort.cuda import Stream
from ..ort.device import Device
from ..ort.gate import GATE
from ..ort.session import DeviceProfile, Session, open_file, translate
from .memory import TYPES, Sizes, find_shape
from .shapes import BatchShape

MAX_CAPTURED = 4096
"""Shapes that are captured of one graph, at most: each takes memory of the GPU, some hundred bytes for each kernel."""
_SKIP = -1
"""The number of runs that are not captured."""
Place: TypeAlias = "int | ort.OrtValue"
"""An address on the device, or a value in host memory."""


class Layout(NamedTuple):
    """The sizes of a graph's axes for one shape, and where its inputs and outputs are; outputs without a place are not
    kept."""

    axes: Sizes
    places: Mapping[str, Place]


@dataclass(frozen=True)
class Runnable:
    """A graph that was opened for capture on one stream."""

    session: ort.InferenceSession
    profile: DeviceProfile
    name: str
    stream: Stream
    captures: bool
    """Whether ONNX Runtime captures it: not when it leaves a part of the graph to the CPU."""

    @classmethod
    def load(
        cls, path: Path, profile: DeviceProfile, stream: Stream | None = None, *, urgent: bool = False
    ) -> Runnable:
        """Open a graph on ``stream``, or on a new one; raises BundleError or DeviceError as ``Session.load`` does.

        ``urgent`` gives the kernels of a new stream the GPU before those of others.
        """
        stream = stream or Stream(profile.device.index, urgent=urgent)
        # Every shape is captured, so the memory is that of the largest, and no more of it is needed later.
        options = {
            "user_compute_stream": str(stream.handle),
            "arena_extend_strategy": "kSameAsRequested",
            "sdpa_kernel": "2",
        }
        try:
            session, captures = open_file(path, profile, {**options, "enable_cuda_graph": "1"}), True
        except Exception:  # ONNX Runtime's exceptions share no public base; what is broken fails again
            session, captures = open_file(path, profile, options), False
        return cls(session, profile, path.name, stream, captures)

    @property
    def device(self) -> Device:
        """The GPU that it is on."""
        return self.profile.device

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """Its inputs by name."""
        return {node.name: node for node in self.session.get_inputs()}

    @cached_property
    def outputs(self) -> dict[str, Any]:
        """Its outputs by name."""
        return {node.name: node for node in self.session.get_outputs()}

    @cached_property
    def any_shape(self) -> Session:
        """The same graph for batches of any shape, launched kernel by kernel; a run ends when the device has."""
        return Session(self.session, self.name, self.profile, _make_options(_SKIP, wait=True))

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Inside the block, what goes wrong is a ModelError or a DeviceError."""
        try:
            yield
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise translate(error, self.name, self.device) from error


class CapturedGraph:
    """Runs of one graph by their shapes. Its user holds memory at fixed addresses, and lets one thread at a time run
    it."""

    def __init__(self, runnable: Runnable, layout: Callable[[BatchShape], Layout]) -> None:
        """``layout`` says for a shape, always in the same way, where the inputs and outputs of a run are."""
        self.runnable = runnable
        self._layout = layout
        self._captures = runnable.captures
        self.uncaptured = self.failed = 0
        """Runs that were launched kernel by kernel, and captures that failed."""
        self._bindings: dict[BatchShape, ort.IOBinding] = {}
        self._captured: dict[BatchShape, ort.RunOptions] = {}
        self._owner: int | None = None
        self._eager = _make_options(_SKIP)

    @property
    def captured(self) -> int:
        """Shapes that are captured."""
        return len(self._captured)

    def run(self, shape: BatchShape) -> None:
        """Queue a run of a padded batch of this shape; the first one captures it. Nothing waits for the device."""
        binding = self._bindings.get(shape)
        if binding is None:
            binding = self._bindings[shape] = self._bind(shape)
        options, mine = self._captured.get(shape), self._owner in (None, threading.get_ident())
        if options is None and self._captures and mine and len(self._captured) < MAX_CAPTURED:
            self._capture(shape, binding)
            return
        if options is None or not mine:
            self.uncaptured += 1
            options = self._eager
        with GATE.run():
            self.runnable.session.run_with_iobinding(binding, options)

    def _bind(self, shape: BatchShape) -> ort.IOBinding:
        binding, (axes, places) = self.runnable.session.io_binding(), self._layout(shape)
        memory = self.runnable.device.memory, self.runnable.device.index
        for name, node in self.runnable.inputs.items():
            place = places[name]
            if isinstance(place, int):
                binding.bind_input(name, *memory, TYPES[node.type], find_shape(node, axes), place)
            else:
                binding.bind_ortvalue_input(name, place)
        for name, node in self.runnable.outputs.items():
            if name in places:
                binding.bind_output(name, *memory, TYPES[node.type], find_shape(node, axes), places[name])
        return binding

    def _capture(self, shape: BatchShape, binding: ort.IOBinding) -> None:
        options = _make_options(len(self._captured) + 1)
        with GATE.capture():
            try:
                self.runnable.session.run_with_iobinding(binding, options)
            except Exception:
                self._captures = False
                self.failed += 1
                self.runnable.stream.abandon_capture()
                raise
        self._owner = threading.get_ident()
        self._captured[shape] = options


def _make_options(number: int, *, wait: bool = False) -> Any:
    options = ort.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(number))
    options.add_run_config_entry("disable_synchronize_execution_providers", "0" if wait else "1")
    return options
