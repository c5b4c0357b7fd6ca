"""One engine on the GPU, with the interface of a graph that runs on arrays in host memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..bundles.bundle import Bundle, sha256
from ..bundles.manifest import ShapePlan, Target
from ..capture.memory import Transfer, count_aligned
from ..errors import BundleError, DeviceError, ModelError
from ..ort.cuda import Stream
from ..ort.device import Device
from ..ort.gate import GATE
from ..ort.session import Array
from .library import Messages, find_capability, find_title, name_key, start_tensorrt
from .records import choose_rtx_folder, find_engine_record, list_shapes

AXES = ("rows", "width")
"""The axes of inputs and outputs whose sizes differ from batch to batch, in their order."""
_TYPES = {"INT64": "tensor(int64)", "FLOAT": "tensor(float)"}
"""Of inputs and outputs, as TensorRT and ONNX name them."""


class EngineTensor(NamedTuple):
    """An input or output of an engine, described as ONNX Runtime describes one."""

    name: str
    type: str
    shape: tuple[int | str, ...]
    """Sizes, and names of ``AXES``."""


class TensorRTEngine:
    """An engine with a profile for each width of its plan; one batch runs at a time.

    It has a stream of its own: TensorRT synchronizes more on CUDA's default one. A batch goes up in one copy, comes
    down in one, and is waited for once. Inputs and outputs are in device memory that ONNX Runtime allocates
    (``OrtValue``), for the largest batch of the plan. ``device_memory_mb`` bounds neither it nor what the engine takes.
    """

    def __init__(
        self, tensorrt: Any, engine: Any, name: str, plan: ShapePlan, device: Device, messages: Messages
    ) -> None:
        self._engine = engine  # the context needs it
        self._messages = messages  # TensorRT keeps no reference to its logger
        self._name = name
        self._device = device
        self.plan = plan
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        read = [engine.get_tensor_mode(name) == tensorrt.TensorIOMode.INPUT for name in names]
        self.inputs = tuple(name for name, is_input in zip(names, read, strict=True) if is_input)
        self.outputs = tuple(name for name, is_input in zip(names, read, strict=True) if not is_input)
        types = {name: _TYPES.get(engine.get_tensor_dtype(name).name) for name in names}
        self.input_types = {name: str(types[name]) for name in self.inputs}
        if any(kind is None for kind in types.values()) or any(types[name] != "tensor(float)" for name in self.outputs):
            raise DeviceError(f"The engine of {name} has inputs or outputs of other types than its graph: {types}.")
        self._context = engine.create_execution_context()
        if self._context is None:
            raise DeviceError(f"The engine of {name} got no execution context on {device}: {messages.take()}.")
        self._active: int | None = None
        self._lock = threading.Lock()
        self._stream = Stream(device.index)
        shapes = {name: [int(size) for size in engine.get_tensor_shape(name)] for name in names}
        tensors = [
            EngineTensor(
                name, str(types[name]), tuple(AXES[axis] if size < 0 else size for axis, size in enumerate(shape))
            )
            for name, shape in shapes.items()
        ]
        self._sources, self._results = (
            _reserve([tensor for tensor in tensors if tensor.name in chosen], plan, device)
            for chosen in (self.inputs, self.outputs)
        )

    @classmethod
    def load(cls, bundle: Bundle, target: Target, device: Device) -> TensorRTEngine:
        """Load the engine that ``compile_bundle`` built of a target here; none is built.

        Raises DeviceError, which names the command that builds it, when there is none for this version of TensorRT,
        this GPU, or the bundle as it is now; BundleError when the file is damaged.
        """
        tensorrt = start_tensorrt(device)
        if device.kind == "tensorrt-rtx":
            version, capability = str(tensorrt.__version__), find_capability(tensorrt, device)
            folder, gpu = choose_rtx_folder(bundle, target.graph, version, capability), ""
        else:
            folder, gpu = name_key(tensorrt, device)
        record, path = find_engine_record(bundle, target, folder, gpu, device.kind)
        if not path.is_file() or sha256(path) != record.sha256:
            raise BundleError(
                f"{path} is missing or damaged. Build it again: groundwire bundle compile {bundle.directory} --device "
                f"{device.kind}"
            )
        return cls.open(tensorrt, path, target, device)

    @classmethod
    def open(cls, tensorrt: Any, path: Path, target: Target, device: Device) -> TensorRTEngine:
        """Load an engine from a file; DeviceError when TensorRT refuses it or its profiles are not the plan's."""
        assert target.plan is not None
        messages = Messages(tensorrt)
        with GATE.run():
            runtime = tensorrt.Runtime(messages.logger)
            engine = runtime.deserialize_cuda_engine(path.read_bytes())
            if engine is None:
                raise DeviceError(f"{find_title(tensorrt)} refuses {path}: {messages.take()}.")
            loaded = cls(tensorrt, engine, target.graph, target.plan, device, messages)
        built = [
            [tuple(shape) for shape in engine.get_tensor_profile_shape(name, index)]
            for index in range(engine.num_optimization_profiles)
            for name in loaded.inputs
        ]
        if built != [shapes for shapes in list_shapes(target.plan) for _ in loaded.inputs]:
            raise DeviceError(f"{path} has other shape profiles than the plan of {target.graph}.")
        return loaded

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs, as arrays in host memory, for ids of a width of the plan; ModelError when the run fails."""
        shape = feeds[self.inputs[0]].shape
        profile = self._find_profile(shape)
        with self._lock, GATE.run():
            try:
                return self._run(feeds, profile)
            except (ModelError, DeviceError):
                raise
            except Exception as error:  # ONNX Runtime's exceptions, and TensorRT's, share no public base
                raise ModelError(f"The engine of {self._name} failed on {self._device}: {error}") from error

    def _find_profile(self, shape: tuple[int, ...]) -> int:
        for index, profile in enumerate(self.plan.profiles):
            if len(shape) == 2 and shape[1] == profile.width and 1 <= shape[0] <= profile.max_rows:
                return index
        raise ModelError(f"The engine of {self._name} has no profile for the shape {shape}; its plan is {self.plan}.")

    def _run(self, feeds: Mapping[str, Array], profile: int) -> list[Array]:
        context, stream = self._context, self._stream
        if profile != self._active:
            self._active = None
            self._check(context.set_optimization_profile_async(profile, stream.handle), "select a profile")
            self._active = profile
        sizes = dict(zip(AXES, feeds[self.inputs[0]].shape, strict=True))
        for name, array in self._sources.arrays(sizes).items():
            array[:] = feeds[name]
            self._check(context.set_input_shape(name, array.shape), f"take {name} of {array.shape}")
        for name, address in (self._sources.addresses(sizes) | self._results.addresses(sizes)).items():
            self._check(context.set_tensor_address(name, address), f"take an address for {name}")
        self._sources.upload(stream, sizes)
        self._check(context.execute_async_v3(stream.handle), "run")
        self._results.download(stream, sizes)
        stream.synchronize()
        results = self._results.arrays(sizes)
        return [results[name].copy() for name in self.outputs]

    def _check(self, done: bool, what: str) -> None:
        if not done:
            raise ModelError(f"The engine of {self._name} cannot {what} on {self._device}: {self._messages.take()}")


def _reserve(tensors: list[EngineTensor], plan: ShapePlan, device: Device) -> Transfer:
    """Memory for tensors of the batch of the plan that needs most of it."""
    batches = [{"rows": profile.max_rows, "width": profile.width} for profile in plan.profiles]
    return Transfer(tensors, max(batches, key=lambda sizes: count_aligned(tensors, sizes)), device)
