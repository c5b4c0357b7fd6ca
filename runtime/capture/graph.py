"""One graph on a GPU, captured once for each shape of its batches, and then launched as a whole.

ONNX Runtime remembers by a number what it captured, after a plain run of its own; here one more comes before, since
libraries may take more memory in their second run, and none can be taken in a capture. A second binding with a number
that is in use would replay the first one's addresses, so numbers are made here and nowhere else, one for each binding.
It captures for each thread, so one thread captures; others run the same bindings kernel by kernel.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias
from weakref import WeakMethod

import onnxruntime as ort

from ..ort.cuda import Stream
from ..ort.gate import GATE
from ..ort.session import DeviceProfile, Session, open_file, translate
from ..protocol import CaptureCounts
from .memory import TYPES, Sizes, find_shape
from .shapes import BatchShape

log = logging.getLogger("groundwire")
MAX_CAPTURED = 4096
"""Shapes that are captured of one graph, at most: each takes memory of the GPU, some hundred bytes for each kernel."""
TRIES = 3
"""Captures of a shape, at most: what fails as often runs kernel by kernel from then on."""
_SKIP = -1
"""The number of runs that are not captured."""
Address: TypeAlias = "int | ort.OrtValue"
"""An address on the device, or a value in host memory."""


class RunLayout(NamedTuple):
    """The sizes of a graph's axes for one shape, and where inputs and outputs are; other outputs are not kept."""

    axes: Sizes
    addresses: Mapping[str, Address]


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
    def load(cls, path: Path, profile: DeviceProfile, stream: Stream | None = None, *, urgent: bool = False) -> Self:
        """Open a graph on ``stream``, or on a new one; raises BundleError or DeviceError as ``Session.load`` does.

        With ``urgent`` the GPU runs the kernels of a new stream before the kernels of other streams.
        """
        stream = stream or Stream(profile.device.index, urgent=urgent)
        # Every shape is captured, so the memory suffices for the largest, and no more of it is needed later.
        options = {"arena_extend_strategy": "kSameAsRequested", "sdpa_kernel": "2"}
        options["user_compute_stream"] = str(stream.handle)
        try:
            session, captures = open_file(path, profile, {**options, "enable_cuda_graph": "1"}), True
        except Exception:  # ONNX Runtime's exceptions share no public base; what is broken fails again
            session, captures = open_file(path, profile, options), False
        return cls(session, profile, path.name, stream, captures)

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
            raise translate(error, self.name, self.profile.device) from error


class CapturedGraph:
    """Runs of one graph by their shapes. Its user holds memory at fixed addresses and runs it in one thread at once."""

    def __init__(self, runnable: Runnable, layout: Callable[[BatchShape], RunLayout]) -> None:
        """``layout`` says for a shape, always in the same way, where the inputs and outputs of a run are."""
        self.runnable = runnable
        self._layout = WeakMethod(layout)  # its user has the graph: without a cycle all memory is freed at once
        self.uncaptured = 0
        """Runs that were launched kernel by kernel."""
        self.failures: Counter[BatchShape] = Counter()
        """Captures that failed."""
        self._bindings: dict[BatchShape, ort.IOBinding] = {}
        self.captured: dict[BatchShape, ort.RunOptions] = {}
        """What captured shapes run with."""
        self._most = MAX_CAPTURED if runnable.captures else 0
        self._numbers = count(1)
        self._owner: int | None = None
        self._eager = _make_options(_SKIP)
        self.replays = True
        """False to launch every run kernel by kernel, for comparisons."""
        runnable.profile.captured.add(self)

    @property
    def counts(self) -> CaptureCounts:
        """How it ran so far."""
        return CaptureCounts(len(self.captured), self.uncaptured, self.failures.total())

    def run(self, shape: BatchShape) -> None:
        """Queue a run of a padded batch of this shape; the first one captures it. Nothing waits for the device."""
        binding = self._bindings.get(shape)
        if binding is None:
            binding = self._bindings[shape] = self._bind(shape)
        options = self.captured.get(shape) if self.replays else self._eager
        if self._owner not in (None, threading.get_ident()):
            options = None
        elif options is None and self._may_capture(shape) and self._capture(shape, binding):
            return
        self.uncaptured += options is None
        with GATE.run():
            self.runnable.session.run_with_iobinding(binding, options or self._eager)

    def prepare(self, shapes: Iterable[BatchShape]) -> None:
        """Capture shapes one after another, so that no request waits for it."""
        for shape in shapes:
            self.run(shape)
            self.runnable.stream.synchronize()

    def _may_capture(self, shape: BatchShape) -> bool:
        return len(self.captured) < self._most and self.failures[shape] < TRIES

    def _bind(self, shape: BatchShape) -> ort.IOBinding:
        layout = self._layout()
        assert layout is not None
        axes, addresses = layout(shape)
        binding: Any = self.runnable.session.io_binding()
        memory = self.runnable.profile.device.memory, self.runnable.profile.device.index
        for name, node in self.runnable.inputs.items():
            address = addresses[name]
            if isinstance(address, int):
                binding.bind_input(name, *memory, TYPES[node.type], find_shape(node, axes), address)
            else:
                binding.bind_ortvalue_input(name, address)
        for name, node in self.runnable.outputs.items():
            if name in addresses:
                binding.bind_output(name, *memory, TYPES[node.type], find_shape(node, axes), addresses[name])
        return binding

    def _capture(self, shape: BatchShape, binding: ort.IOBinding) -> bool:
        """Whether the run was captured; raises what a plain run of the shape raises."""
        session, options = self.runnable.session, _make_options(next(self._numbers))
        with GATE.run():
            session.run_with_iobinding(binding, self._eager)
        with GATE.capture():
            try:
                session.run_with_iobinding(binding, options)
            except Exception as error:  # ONNX Runtime's exceptions share no public base
                self.failures[shape] += 1
                self.runnable.stream.abandon_capture()
                log.warning("capture %d of %s at %s failed: %s", self.failures[shape], self.runnable.name, shape, error)
                return False
        self._owner = threading.get_ident()
        self.captured[shape] = options
        return True


def _make_options(number: int, *, wait: bool = False) -> Any:
    options = ort.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(number))
    options.add_run_config_entry("disable_synchronize_execution_providers", "0" if wait else "1")
    return options
