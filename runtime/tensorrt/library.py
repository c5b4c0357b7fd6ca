"""The Python modules of TensorRT and TensorRT-RTX, and what an engine depends on besides its graph."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import DeviceError
from ..ort.device import Device, DeviceKind, compute_capability, name_gpu, start_device


class Library(NamedTuple):
    """A library that builds engines and runs them."""

    title: str
    module: str
    series: str
    """The versions that networks are written for: those that begin with these numbers."""


LIBRARIES: Mapping[DeviceKind, Library] = MappingProxyType(
    {
        "tensorrt": Library("TensorRT", "tensorrt", "10"),  # 11 has other flags
        "tensorrt-rtx": Library("TensorRT-RTX", "tensorrt_rtx_bindings", "1.7"),
    }
)
"""By the kind of device; the extra that installs one has the name of its device."""
PORTABLE_FROM = (8, 0)
"""An engine of TensorRT-RTX that is built for no compute capability by name runs on those that it knows from this one
on."""


CAPABILITIES: Mapping[DeviceKind, tuple[tuple[int, int], ...]] = MappingProxyType(
    {
        "cuda": ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0)),
        "tensorrt": ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)),
        "tensorrt-rtx": ((7, 5), (8, 0), (8, 6), (8, 9), (12, 0), (12, 1)),
    }
)
"""Compute capabilities that have code: of ONNX Runtime 1.31's wheel, of TensorRT 10, of TensorRT-RTX 1.7."""


def runs_on(kind: DeviceKind, capability: tuple[int, int]) -> bool:
    """Whether a GPU of this compute capability has code. TensorRT-RTX names them all; else code for 8.6 runs on 8.7."""
    if kind == "tensorrt-rtx":
        return capability in CAPABILITIES[kind]
    return any(major == capability[0] and minor <= capability[1] for major, minor in CAPABILITIES[kind])


def import_library(kind: DeviceKind) -> Any:
    """The module; DeviceError when it is missing, cannot be loaded, or has another version."""
    library = LIBRARIES[kind]
    try:
        module = importlib.import_module(library.module)
        version = str(module.__version__)
    except (ImportError, OSError, AttributeError, RuntimeError) as error:
        raise DeviceError(
            f"device='{kind}' needs the Python package {library.module}: {error}. Run: pip install "
            f"'groundwire[{kind}]', or use device='cuda'."
        ) from error
    if not f"{version}.".startswith(f"{library.series}."):
        raise DeviceError(
            f"{library.title} {version} is installed; this version of Groundwire needs {library.title} "
            f"{library.series}. Run: pip install 'groundwire[{kind}]'."
        )
    return module


def find_title(module: Any) -> str:
    """The name of the library whose module it is."""
    return next(library.title for library in LIBRARIES.values() if library.module == module.__name__)


def list_capabilities(rtx: Any) -> list[tuple[int, int]]:
    """The compute capabilities that TensorRT-RTX builds for, ascending: (8, 6) is 8.6."""
    digits = (name.removeprefix("SM") for name in rtx.ComputeCapability.__members__ if name.startswith("SM"))
    return sorted((int(text[:-1]), int(text[-1])) for text in digits)


def parse_capabilities(rtx: Any, texts: Sequence[str]) -> list[tuple[int, int]]:
    """The compute capabilities of texts such as ``8.9``, ascending; DeviceError for one that TensorRT-RTX lacks."""
    allowed = {f"{major}.{minor}": (major, minor) for major, minor in list_capabilities(rtx)}
    if unknown := [text for text in texts if text not in allowed]:
        raise DeviceError(
            f"TensorRT-RTX {rtx.__version__} builds for compute capability {', '.join(allowed)}, not {unknown[0]}. "
            "Name one of these, or leave it out: a portable engine runs on all of them from "
            f"{'.'.join(map(str, PORTABLE_FROM))} on. Other GPUs take device='cuda'."
        )
    return sorted({allowed[text] for text in texts})


def start_tensorrt(device: Device) -> Any:
    """Start the GPU and import the module; DeviceError when either fails, or for a GPU that is not the first."""
    if device.index:
        raise DeviceError(
            f"device='{device}': engines run on the first GPU that the process sees. Set CUDA_VISIBLE_DEVICES="
            f"{device.index} and use device='{device.kind}'."
        )
    start_device(device)
    return import_library(device.kind)


def name_key(tensorrt: Any, device: Device) -> tuple[str, str]:
    """The folder of TensorRT's engines for this machine, ``sm_90-tensorrt-10.16.1.11``, and the name of the GPU."""
    return f"sm_{compute_capability(device.index) or 'unknown'}-tensorrt-{tensorrt.__version__}", name_gpu(device.index)


def find_capability(rtx: Any, device: Device) -> tuple[int, int]:
    """The compute capability of the GPU; DeviceError when TensorRT-RTX has none of its engines run there."""
    text = compute_capability(device.index)
    capability = (int(text[:-1] or 0), int(text[-1])) if text else (0, 0)
    capabilities = list_capabilities(rtx)
    if capability not in capabilities:
        raise DeviceError(
            f"device='{device}': TensorRT-RTX {rtx.__version__} runs on GPUs of compute capability "
            f"{', '.join(f'{major}.{minor}' for major, minor in capabilities)}; this one has "
            f"{'.'.join(map(str, capability)) if text else 'none that the driver names'}. Use device='cuda'."
        )
    return capability


class Messages:
    """What TensorRT reports as a warning or an error while something is built or loaded."""

    def __init__(self, tensorrt: Any) -> None:
        collected: list[str] = []

        class Collector(tensorrt.ILogger):  # type: ignore[misc]
            """Keeps the messages of TensorRT, which gives no reasons in its results."""

            def __init__(self) -> None:
                tensorrt.ILogger.__init__(self)

            def log(self, severity: Any, message: str) -> None:
                """Called by TensorRT."""
                if severity in (tensorrt.ILogger.INTERNAL_ERROR, tensorrt.ILogger.ERROR):
                    collected.append(message)

        self.logger = Collector()
        self._collected = collected

    def take(self) -> str:
        """The messages since the last call, as one line."""
        text = "; ".join(" ".join(message.split()) for message in self._collected)
        self._collected.clear()
        return text or "no reason was given"
