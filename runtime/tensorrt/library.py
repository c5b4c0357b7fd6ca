"""The Python module ``tensorrt``, and what an engine depends on besides its graph."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import DeviceError
from ..ort.device import Device, compute_capability, name_gpu, start_device

MAJOR = "10"
"""The version of TensorRT that networks are written for; 11 has other flags."""


def import_tensorrt() -> Any:
    """The module; DeviceError when it is missing, cannot be loaded, or has another major version."""
    try:
        module = importlib.import_module("tensorrt")
        version = str(module.__version__)
    except (ImportError, OSError, AttributeError, RuntimeError) as error:
        raise DeviceError(
            f"device='tensorrt' needs the Python package tensorrt: {error}. Run: pip install 'groundwire[tensorrt]', "
            "or use device='cuda'."
        ) from error
    if version.partition(".")[0] != MAJOR:
        raise DeviceError(
            f"TensorRT {version} is installed; this version of Groundwire needs TensorRT {MAJOR}. "
            "Run: pip install 'groundwire[tensorrt]'."
        )
    return module


def start_tensorrt(device: Device) -> Any:
    """Start the GPU and import the module; DeviceError when either fails, or for a GPU that is not the first."""
    if device.index:
        raise DeviceError(
            f"device='{device}': engines run on the first GPU that the process sees. Set CUDA_VISIBLE_DEVICES="
            f"{device.index} and use device='tensorrt'."
        )
    start_device(device)
    return import_tensorrt()


def name_key(tensorrt: Any, device: Device) -> tuple[str, str]:
    """The folder of this machine's engines, ``sm_90-tensorrt-10.16.1.11``, and the name of the GPU."""
    return f"sm_{compute_capability(device.index) or 'unknown'}-tensorrt-{tensorrt.__version__}", name_gpu(device.index)


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
