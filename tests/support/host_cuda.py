"""Host memory in place of a GPU's: captured graphs run on the CPU provider at the shapes and addresses of a GPU.

Nothing is captured there, but what a GPU would read and write is, so the results show whether shapes, addresses and
copies are right.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from groundwire.runtime.capture import graph, memory
from groundwire.runtime.ort import session
from groundwire.runtime.ort.dequantize import dequantize
from groundwire.runtime.ort.placement import keep_on_device
from groundwire.runtime.ort.session import DeviceProfile


class HostStream:
    """A stream on which everything is done at once."""

    handle = 0

    def __init__(self, device: int, *, urgent: bool = False) -> None:
        pass

    def upload(self, target: int, source: NDArray[Any]) -> None:
        ctypes.memmove(target, source.ctypes.data, source.nbytes)

    def download(self, target: NDArray[Any], source: int) -> None:
        ctypes.memmove(target.ctypes.data, source, target.nbytes)

    def move(self, target: int, source: int, size: int) -> None:
        assert target + size <= source or source + size <= target, "CUDA copies no overlapping memory"
        ctypes.memmove(target, source, size)

    def synchronize(self) -> None:
        pass

    def abandon_capture(self) -> None:
        pass


class HostMemory:
    """Memory of the host."""

    def __init__(self, device: int, size: int) -> None:
        self._bytes = np.zeros(max(1, size), np.uint8)

    def array(self, shape: tuple[int, ...], dtype: Any, offset: int = 0) -> NDArray[Any]:
        return np.frombuffer(self._bytes, dtype, int(np.prod(shape)), offset).reshape(shape)


def use_host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let captured graphs use the host's memory until the test ends."""
    monkeypatch.setattr(graph, "Stream", HostStream)
    monkeypatch.setattr(memory, "PinnedMemory", HostMemory)


def rewrite_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open graphs with float32 weights, rewritten as for CUDA, until the test ends."""

    def open_rewritten(graph: str, profile: DeviceProfile, further: object = None) -> ort.InferenceSession:
        content, options = Path(graph).read_bytes(), ort.SessionOptions()
        options.intra_op_num_threads = 1
        folder = str(Path(graph).parent)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        content = dequantize(content) or content
        content = keep_on_device(content) or content
        return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(session, "_open", open_rewritten)
