"""Devices: their names, whether they start and still work, and what they compute with."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import re
import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import onnxruntime as ort

from ..bundles.manifest import Precision
from ..bundles.protobuf import encode_field, encode_message
from ..errors import DeviceError
from ..texts.characters import is_digits
from .gate import GATE, GpuSession

DeviceKind: TypeAlias = Literal["cpu", "cuda", "tensorrt", "tensorrt-rtx"]
DeviceChoice: TypeAlias = str
"""``auto``, ``cpu``, ``cuda``, ``tensorrt`` or ``tensorrt-rtx``; ``cuda:1`` is the second GPU."""

PROVIDERS: dict[DeviceKind, str] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    # Engines run beside it: it has the memory, and the graphs that TensorRT does not run.
    "tensorrt": "CUDAExecutionProvider",
    "tensorrt-rtx": "CUDAExecutionProvider",
}
_MAJOR, _MINOR = 75, 76
"""The driver's numbers for the two parts of the compute capability."""
_lock = threading.Lock()


@dataclass(frozen=True)
class Device:
    """Where graphs run."""

    kind: DeviceKind = "cpu"
    index: int = 0
    """Which GPU, in the driver's order."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}" if self.index else self.kind

    @property
    def provider(self) -> str:
        """The name of ONNX Runtime's provider, which for TensorRT is CUDA's."""
        return PROVIDERS[self.kind]

    @property
    def runs_engines(self) -> bool:
        """Whether it runs engines that were built of targets."""
        return self.kind in ("tensorrt", "tensorrt-rtx")

    @property
    def memory(self) -> str:
        """The name of its memory in ONNX Runtime."""
        return "cpu" if self.kind == "cpu" else "cuda"


def parse_device(choice: DeviceChoice) -> Device | None:
    """The device of that name; None for ``auto``. DeviceError for an unknown one."""
    kind, colon, index = choice.partition(":") if isinstance(choice, str) else ("", "", "")
    if choice == "auto":
        return None
    if kind not in PROVIDERS or (colon and (kind == "cpu" or not is_digits(index))):
        raise DeviceError(
            f"device={choice!r} is unknown; use one of auto, {', '.join(PROVIDERS)}; cuda:1 is the second GPU."
        )
    return Device(kind, int(index or 0))


def choose_device(choice: DeviceChoice, precisions: Sequence[Precision]) -> Device:
    """The device for ``choice``, started; ``auto`` takes CUDA when it starts and no graph is int8 or int4.

    ``precisions`` are the precisions of the graphs that CUDA would run. Raises DeviceError when the choice is unknown
    or cannot start. ``auto`` warns when ONNX Runtime has CUDA and it does not start.
    """
    device = parse_device(choice)
    quantized = any(precision in ("int8", "int4", "mixed") for precision in precisions)
    if device is None:
        if quantized or PROVIDERS["cuda"] not in ort.get_available_providers():
            return Device("cpu")
        try:
            start_device(Device("cuda"))
        except DeviceError as error:
            warnings.warn(f"device='auto' takes the CPU: {error}", RuntimeWarning, stacklevel=2)
            return Device("cpu")
        return Device("cuda")
    if device.kind != "cpu":
        start_device(device)
    return device


def start_device(device: Device) -> None:
    """Start the provider on a graph of one node, once in a process; DeviceError with the reason when it cannot."""
    with _lock:  # what is cached is not computed twice
        _start(device)


def find_failure(device: Device) -> str | None:
    """Run the graph of one node again: the error of a device that is lost, None for a device that works."""
    try:
        _run_probe(_start(device))
    except Exception as error:  # ONNX Runtime's exceptions share no public base
        return str(error)
    return None


def name_kernels(device: Device) -> str:
    """What determines a GPU's results besides the graphs: ``onnxruntime-1.31.1+6af1a932e/sm_90``, with the commit that
    ONNX Runtime was built from; "" for the CPU."""
    if device.kind == "cpu":
        return ""
    capability = compute_capability(device.index)
    commit = re.search(r"git-commit-id=(\w+)", ort.get_build_info())
    build = f"onnxruntime-{ort.__version__}{f'+{commit[1]}' if commit else ''}"
    return "/".join([build, *([f"sm_{capability}"] if capability else [])])


@cache
def _start(device: Device) -> ort.InferenceSession:
    available = ort.get_available_providers()
    if device.provider not in available:
        raise DeviceError(
            f"device='{device}' needs ONNX Runtime's {device.provider}, which this installation lacks "
            f"(it has {', '.join(available)}). Install onnxruntime-gpu instead of onnxruntime, or use device='cpu'."
        )
    messages = _preload_libraries()
    options = ort.SessionOptions()
    options.log_severity_level = 4  # the reason is in the error
    try:
        providers: Any = [(device.provider, {"device_id": str(device.index)})]
        session = GpuSession(PROBE, options, providers=providers, enable_fallback=0)
        if session.get_providers()[0] != device.provider:
            raise RuntimeError(messages or "a library is missing")
        _run_probe(session)
    except Exception as error:  # ONNX Runtime's exceptions share no public base
        reason = _find_missing_library() or " ".join(str(error).split())
        raise DeviceError(
            f"device='{device}': {device.provider} did not start: {reason}. Install its libraries "
            "(docs/guides/gpu.md), check the driver with nvidia-smi, or use device='cpu'."
        ) from error
    return session


def _run_probe(session: ort.InferenceSession) -> None:
    with GATE.run():
        session.run(None, {"x": np.zeros(2, np.float32)})


def _preload_libraries() -> str:
    """Load the CUDA libraries of pip packages; what ONNX Runtime would print about missing ones.

    ONNX Runtime looks beside itself; the libraries that came with PyTorch may be in another folder of packages.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        for folder in list_library_folders():
            ort.preload_dlls(directory=folder)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ort.preload_dlls()
    return "; ".join(line for line in printed.getvalue().splitlines() if line.startswith("Failed"))


def list_library_folders() -> list[str]:
    """The folders of the libraries of CUDA 13 and cuDNN 9, as pip installs them, wherever Python imports from."""
    folders = (Path(path, "nvidia", name, "lib") for path in sys.path for name in ("cu13", "cudnn"))
    return [str(folder.resolve()) for folder in folders if folder.is_dir()]


def _find_missing_library() -> str:
    """Why the provider's library cannot be loaded, in the system's words; "" when it can."""
    path = Path(ort.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"
    try:
        ctypes.CDLL(str(path), getattr(os, "RTLD_LAZY", 0))
    except OSError as error:
        return str(error)
    return ""


def compute_capability(index: int) -> str:
    """``90`` for 9.0, from the driver; "" without one."""
    driver, gpu = _find_gpu(index)
    value, digits = ctypes.c_int(), ""
    if driver is None:
        return ""
    for attribute in (_MAJOR, _MINOR):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, gpu):
            return ""
        digits += str(value.value)
    return digits


def name_gpu(index: int) -> str:
    """The GPU's name, as the driver gives it: ``NVIDIA H200``; "" without one."""
    driver, gpu = _find_gpu(index)
    name = ctypes.create_string_buffer(256)
    if driver is None or driver.cuDeviceGetName(name, len(name), gpu):
        return ""
    return name.value.decode(errors="replace")


def find_driver() -> str:
    """The newest CUDA that the driver runs, ``13.0``; "" without a driver."""
    driver, _ = _find_gpu(0)
    version = ctypes.c_int()
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(version)):
        return ""
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def _find_gpu(index: int) -> tuple[ctypes.CDLL | None, ctypes.c_int]:
    """The driver and its handle of a GPU; no driver when either is missing."""
    gpu = ctypes.c_int()
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return None, gpu
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(gpu), index):
        return None, gpu
    return driver, gpu


def _make_probe() -> bytes:
    """A graph of one node, ReduceMin of ``x`` float32 [2]: on a GPU it needs CUDA and cuDNN, as the decoders do."""
    dimension = encode_message(1, encode_field(1, 2))
    tensor = encode_message(2, encode_message(1, encode_field(1, 1) + encode_message(2, dimension)))
    scalar = encode_message(2, encode_message(1, encode_field(1, 1) + encode_message(2, b"")))
    node = encode_message(1, b"x") + encode_message(2, b"y") + encode_message(4, b"ReduceMin")
    node += encode_message(5, encode_message(1, b"keepdims") + encode_field(3, 0) + encode_field(20, 2))
    graph = encode_message(1, node) + encode_message(2, b"probe")
    graph += encode_message(11, encode_message(1, b"x") + tensor) + encode_message(12, encode_message(1, b"y") + scalar)
    return encode_field(1, 8) + encode_message(8, encode_field(2, 13)) + encode_message(7, graph)


PROBE = _make_probe()
