"""Streams and page-locked memory of CUDA's runtime library, which ONNX Runtime's provider has loaded.

ONNX Runtime copies between the host and a GPU from ordinary memory, one tensor at a time, and waits for each copy. Here
copies are queued on the stream that the graph runs on, so that a run waits once. Everything passes ``GATE``.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .gate import GATE

_LIBRARY = "cudart64_13.dll" if os.name == "nt" else "libcudart.so.13"
"""Of CUDA 13, which onnxruntime-gpu 1.31 is built for."""
_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_NON_BLOCKING = 1


class CudaError(RuntimeError):
    """A function of CUDA's runtime library failed."""


class Stream:
    """A queue of work on one GPU; it lives as long as the process, because sessions refer to it."""

    def __init__(self, device: int, *, urgent: bool = False) -> None:
        """``urgent`` gives its kernels the GPU before other streams."""
        least, greatest, handle = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        with GATE.run():
            _select(device)
            _call("cudaDeviceGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
            priority = greatest if urgent else least
            _call("cudaStreamCreateWithPriority", ctypes.byref(handle), ctypes.c_uint(_NON_BLOCKING), priority)
        self.handle: int = handle.value or 0

    def upload(self, target: int, source: NDArray[Any]) -> None:
        """Queue a copy of page-locked memory to the device."""
        self._copy(target, source.ctypes.data, source.nbytes, _TO_DEVICE)

    def download(self, target: NDArray[Any], source: int) -> None:
        """Queue a copy from the device into page-locked memory."""
        self._copy(target.ctypes.data, source, target.nbytes, _TO_HOST)

    def move(self, target: int, source: int, size: int) -> None:
        """Queue a copy of ``size`` bytes inside the device."""
        self._copy(target, source, size, _ON_DEVICE)

    def synchronize(self) -> None:
        """Wait for everything that was queued."""
        with GATE.run():
            _call("cudaStreamSynchronize", ctypes.c_void_p(self.handle))

    def abandon_capture(self) -> None:
        """End this thread's capture that failed, which would otherwise swallow all later work; inside the gate."""
        status, graph = ctypes.c_int(), ctypes.c_void_p()
        _call("cudaStreamIsCapturing", ctypes.c_void_p(self.handle), ctypes.byref(status))
        if status.value:  # capturing, or a capture that something else has made invalid
            _library().cudaStreamEndCapture(ctypes.c_void_p(self.handle), ctypes.byref(graph))
        _library().cudaGetLastError()  # else it would be taken for the error of this thread's next kernel

    def _copy(self, target: int, source: int, size: int, kind: int) -> None:
        pointers = ctypes.c_void_p(target), ctypes.c_void_p(source)
        with GATE.run():
            _call("cudaMemcpyAsync", *pointers, ctypes.c_size_t(size), kind, ctypes.c_void_p(self.handle))


class PinnedMemory:
    """Page-locked host memory, zeros at first; arrays in it are valid as long as the object."""

    def __init__(self, device: int, size: int) -> None:
        address = ctypes.c_void_p()
        with GATE.run():
            _select(device)
            _call("cudaMallocHost", ctypes.byref(address), ctypes.c_size_t(max(1, size)))
        self._bytes: Any = (ctypes.c_uint8 * max(1, size)).from_address(address.value or 0)
        release = weakref.finalize(self, GATE.release, partial(_library().cudaFreeHost, address))
        release.atexit = False  # CUDA may be gone by then
        self.array((size,), np.uint8)[:] = 0

    def array(self, shape: tuple[int, ...], dtype: Any, offset: int = 0) -> NDArray[Any]:
        """A view of this memory from byte ``offset`` on."""
        count = int(np.prod(shape))
        view: NDArray[Any] = np.frombuffer(self._bytes, dtype, count, offset).reshape(shape)
        return view


@cache
def _library() -> Any:
    return ctypes.CDLL(_LIBRARY)


def _select(device: int) -> None:
    """Choose the GPU of this thread's calls."""
    _call("cudaSetDevice", device)


def _call(function: str, *arguments: Any) -> None:
    status = getattr(_library(), function)(*arguments)
    if status:
        message = _library().cudaGetErrorString
        message.restype = ctypes.c_char_p
        raise CudaError(f"{function}: {message(status).decode()}")
