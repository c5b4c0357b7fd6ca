"""ONNX Runtime sessions: devices, threads, and the translation of ONNX Runtime's errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..cores import usable_cores
from ..errors import BundleError, DeviceError, ModelError
from ..manifest import Precision

Device: TypeAlias = Literal["cpu", "cuda", "tensorrt"]
DeviceChoice: TypeAlias = Literal["auto", "cpu", "cuda", "tensorrt"]
Array: TypeAlias = NDArray[Any]

PROVIDERS: dict[Device, str] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}


MAX_CONCURRENT_BATCHES = 4
"""Most batches that run at the same time on the CPU: each holds the GIL for about a fifth of its time."""
SMALL_BUNDLE_BYTES = 128_000_000
"""Bytes of a bundle below which its graphs run on their pool's share of the threads."""


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """Where graphs run, and how much one batch may hold."""

    device: Device
    threads: int
    """Threads of one graph run on the CPU, at most (``share_threads``); 0 leaves ONNX Runtime's default: one per
    physical core."""
    max_tokens: int
    """Padded tokens in one batch of an encoder."""
    max_rows: int
    """Rows in one batch."""
    max_beams: int
    """Sources times beams that decode together."""
    concurrent_batches: int = 1
    """Batches that run at the same time."""

    @classmethod
    def of(cls, device: Device, threads: int | None) -> DeviceProfile:
        """The measured defaults of a device (docs/adr, nr 63 and 66)."""
        if device == "cpu":
            count = usable_cores() if threads is None else threads
            return cls(device, count, 1536, 64, 80, min(count, MAX_CONCURRENT_BATCHES))
        return cls(device, 0 if threads is None else threads, 32768, 512, 640)

    def share_threads(self, size: int) -> DeviceProfile:
        """The profile of graphs from a bundle of ``size`` bytes.

        The operations of a small model are too short to split over threads, so its concurrent batches share the
        threads; a run of a large model may use all of them.
        """
        if self.device != "cpu" or size >= SMALL_BUNDLE_BYTES:
            return self
        return replace(self, threads=max(1, self.threads // self.concurrent_batches))


def choose_device(choice: DeviceChoice, precisions: Sequence[Precision]) -> Device:
    """The device for ``choice``; ``auto`` takes CUDA when it is available and the bundle's graphs can use it.

    Raises DeviceError when the choice is unknown, is not installed, or cannot run the bundle's precision.
    """
    available = ort.get_available_providers()
    quantized = any(p in ("int8", "mixed") for p in precisions)
    if choice == "auto":
        return "cuda" if PROVIDERS["cuda"] in available and not quantized else "cpu"
    if not isinstance(choice, str) or choice not in PROVIDERS:
        raise DeviceError(f"device={choice!r} is unknown; use one of auto, {', '.join(PROVIDERS)}.")
    if PROVIDERS[choice] not in available:
        raise DeviceError(
            f"device={choice!r} needs ONNX Runtime's {PROVIDERS[choice]}, which this installation lacks "
            f"(it has {', '.join(available)}). Install onnxruntime-gpu instead of onnxruntime, or use device='cpu'."
        )
    if choice != "cpu" and quantized:
        raise DeviceError(
            f"device={choice!r} cannot run the bundle's int8 graphs, which are made for the CPU. "
            "Export the bundle with --precision fp16, or use device='cpu'."
        )
    return choice


class Graph(Protocol):
    """The interface of a graph that runs on arrays in host memory, whatever library runs it."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        ...

    @property
    def input_types(self) -> dict[str, str]:
        """Their types as ONNX writes them, ``tensor(float16)`` say."""
        ...

    @property
    def run(self) -> Callable[[Mapping[str, Array]], list[Array]]:
        """All outputs, as arrays in host memory."""
        ...


class Session:
    """One graph on one device."""

    def __init__(self, session: ort.InferenceSession, path: Path, device: Device) -> None:
        self._session = session
        self._path = path
        self._device = device
        self.inputs = tuple(node.name for node in session.get_inputs())
        self.outputs = tuple(node.name for node in session.get_outputs())
        self.input_types = {node.name: str(node.type) for node in session.get_inputs()}

    @classmethod
    def load(cls, path: Path, profile: DeviceProfile) -> Session:
        """Build the session; BundleError for a graph that cannot be read, DeviceError for a device that cannot
        start."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = profile.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Several graphs share the cores; a pool that spins while another graph runs takes its time away.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Addition and Gelu as one operator take longer than as two: 4.5 % of a BERT's time (ONNX Runtime 1.31).
        slow = ["BiasGeluFusion"] if profile.device == "cpu" else []
        wanted = PROVIDERS[profile.device]
        providers: list[Any] = [wanted]
        if profile.device == "tensorrt":
            providers = [(wanted, _tensorrt_options(path)), PROVIDERS["cuda"]]
        if profile.device != "cpu":
            ort.preload_dlls()
        try:
            session = ort.InferenceSession(str(path), options, providers=providers, disabled_optimizers=slow)
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise BundleError(
                f"{path} cannot be loaded: {error}. Run `groundwire bundle verify {path.parent}`; "
                "if it is intact, export the bundle with this version of ONNX Runtime."
            ) from error
        session.disable_fallback()
        if session.get_providers()[0] != wanted:
            raise DeviceError(
                f"{wanted} did not start (ONNX Runtime offers {', '.join(session.get_providers())}); the usual reason "
                "is a missing CUDA, cuDNN or TensorRT library. Run `groundwire doctor`, or use device='cpu'."
            )
        return cls(session, path, profile.device)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs, as arrays in host memory; ModelError when the run fails."""
        try:
            outputs: list[Array] = self._session.run(None, dict(feeds))
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise self._translate(error) from error
        return outputs

    def run_values(self, feeds: Mapping[str, ort.OrtValue], host: Sequence[str] = ()) -> dict[str, ort.OrtValue]:
        """All outputs by name, left on the device; those named in ``host`` come to host memory."""
        try:
            if self._device == "cpu":
                values = self._session.run_with_ort_values(list(self.outputs), dict(feeds))
                return dict(zip(self.outputs, values, strict=True))
            binding = self._session.io_binding()
            for name, value in feeds.items():
                binding.bind_ortvalue_input(name, value)
            for name in self.outputs:
                binding.bind_output(name, "cpu" if name in host else "cuda")
            self._session.run_with_iobinding(binding)
            return dict(zip(self.outputs, binding.get_outputs(), strict=True))
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise self._translate(error) from error

    def value(self, array: Array) -> ort.OrtValue:
        """An array as a value on this session's device."""
        return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array), "cpu" if self._device == "cpu" else "cuda")

    def _translate(self, error: Exception) -> ModelError:
        return ModelError(f"{self._path.name} failed on {self._device}: {error}")


def _tensorrt_options(path: Path) -> dict[str, str]:
    cache = path.parent / "tensorrt"
    return {
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(cache),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(cache),
        "trt_fp16_enable": "1",
        "trt_dump_ep_context_model": "1",
        "trt_ep_context_file_path": str(cache),
    }
