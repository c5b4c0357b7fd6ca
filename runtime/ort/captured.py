"""A graph whose runs of known shapes are captured once on a GPU, and then launched as a whole.

ONNX Runtime remembers by a number what it captured. A second binding with a number that is in use would replay the
first one's addresses, so numbers are made here and nowhere else, one for each binding. It captures for each thread, so
one thread captures; others run the same bindings without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort

from .buffers import TYPES, Sizes, find_shape
from .cuda import Stream
from .device import Device
from .gate import GATE
from .session import DeviceProfile, open_file

Bind = Callable[[ort.IOBinding], None]
MAX_CAPTURED = 4096
"""Runs that are captured of one graph, at most: each takes memory of the GPU, some hundred bytes for each kernel."""
_SKIP = -1
"""The number of runs that are not captured."""


class CapturedGraph:
    """One graph on one stream. Its user holds memory at fixed addresses, and lets one thread at a time run it."""

    def __init__(
        self, session: ort.InferenceSession, name: str, stream: Stream, device: Device, *, captures: bool
    ) -> None:
        self.session = session
        self.name = name
        self.stream = stream
        self.device = device
        self.captures = captures
        """Whether ONNX Runtime captures it: not when it leaves a part of the graph to the CPU."""
        self.uncaptured = 0
        """Runs that were launched kernel by kernel."""
        self._bindings: dict[Hashable, ort.IOBinding] = {}
        self._captured: dict[Hashable, ort.RunOptions] = {}
        self._owner: int | None = None
        self.eager = _make_options(_SKIP)
        """The options of runs that are not captured."""
        self.waited = _make_options(_SKIP, wait=True)
        """The options of such runs that end when the device has."""

    @classmethod
    def load(cls, path: Path, profile: DeviceProfile, stream: Stream) -> CapturedGraph:
        """Open a graph for a GPU; BundleError or DeviceError, as ``Session.load`` raises them."""
        # Every shape is captured, so the memory is that of the largest, and no more of it is needed later.
        options = {
            "user_compute_stream": str(stream.handle),
            "arena_extend_strategy": "kSameAsRequested",
            "sdpa_kernel": "2",
        }
        try:
            session = open_file(path, profile, {**options, "enable_cuda_graph": "1"})
            return cls(session, path.name, stream, profile.device, captures=True)
        except Exception:  # ONNX Runtime's exceptions share no public base; what is broken fails again
            return cls(open_file(path, profile, options), path.name, stream, profile.device, captures=False)

    def launch_at(self, sizes: Sizes, addresses: Mapping[str, int]) -> None:
        """Queue a run whose axes have these sizes, with its inputs and outputs at these addresses of the device.

        An output without an address is not kept.
        """

        def bind(binding: ort.IOBinding) -> None:
            memory = self.device.memory, self.device.index
            for node in self.session.get_inputs():
                shape = find_shape(node, sizes)
                binding.bind_input(node.name, *memory, TYPES[node.type], shape, addresses[node.name])
            for node in self.session.get_outputs():
                if node.name in addresses:
                    shape = find_shape(node, sizes)
                    binding.bind_output(node.name, *memory, TYPES[node.type], shape, addresses[node.name])

        self.launch((tuple(sizes.items()), tuple(addresses.items())), bind)

    def launch(self, key: Hashable, bind: Bind) -> None:
        """Queue a run of the shapes and addresses that ``bind`` binds, which are the same whenever ``key`` is.

        The first run with a key captures it. Nothing waits for the device.
        """
        binding = self._bindings.get(key)
        if binding is None:
            binding = self.session.io_binding()
            bind(binding)
            self._bindings[key] = binding
        options = self._captured.get(key)
        new = options is None and len(self._captured) < MAX_CAPTURED
        if options is not None and self._owner == threading.get_ident():
            with GATE.run():
                self.session.run_with_iobinding(binding, options)
        elif self.captures and new and self._owner in (None, threading.get_ident()):
            self._capture(key, binding)
        else:
            self.uncaptured += 1
            with GATE.run():
                self.session.run_with_iobinding(binding, self.eager)

    def _capture(self, key: Hashable, binding: ort.IOBinding) -> None:
        options = _make_options(len(self._captured) + 1)
        with GATE.capture():
            try:
                self.session.run_with_iobinding(binding, options)
            except Exception:
                self.captures = False
                self.stream.abandon_capture()
                raise
        self._owner = threading.get_ident()
        self._captured[key] = options


def _make_options(number: int, *, wait: bool = False) -> Any:
    options = ort.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(number))
    options.add_run_config_entry("disable_synchronize_execution_providers", "0" if wait else "1")
    return options
