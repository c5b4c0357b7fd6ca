"""How ONNX Runtime's providers are set up: precision and memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import onnxruntime as ort

from ..errors import DeviceError
from .device import PROVIDERS, Device

_SAME_AS_REQUESTED = 1
_arenas: dict[int, int] = {}
"""By GPU, the limit in MiB of the arena that this process's sessions share; it cannot be changed."""
_host_arena = False
"""Whether this process has an arena in host memory that its sessions share."""
_lock = threading.Lock()


def list_providers(device: Device, further: Mapping[str, str] | None = None) -> list[Any]:
    """The providers of a session on a device, with their options, and ``further`` ones for a GPU.

    A product of float32 is computed in float32 (no TF32): a float32 role, and the parts that an fp16 role keeps in
    float32, were compared with their checkpoint that way.
    """
    if device.kind == "cpu":
        return [device.provider]
    return [(device.provider, {"device_id": str(device.index), "use_tf32": "0", **(further or {})})]


def share_host_arena() -> None:
    """Give all sessions of this process that ask for it one arena in host memory, instead of one each.

    An arena keeps what its largest runs took, so several together keep more than the runs at any one time need.
    """
    global _host_arena
    with _lock:
        if not _host_arena:
            memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
            ort.create_and_register_allocator(memory, None)
            _host_arena = True


def share_arena(device: Device, memory_mb: int) -> None:
    """Give all sessions of this process that ask for it one arena on the GPU, of ``memory_mb`` MiB at most.

    It grows by what is requested and not by powers of two. DeviceError when it has another limit already.
    """
    with _lock:
        present = _arenas.get(device.index)
        if present not in (None, memory_mb):
            raise DeviceError(
                f"device_memory_mb={memory_mb}: this process has already limited {device} to {present} MiB, which "
                "cannot be changed. Use the same limit, or another process."
            )
        if present is None:
            memory = ort.OrtMemoryInfo(
                "Cuda", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, device.index, ort.OrtMemType.DEFAULT
            )
            arena = ort.OrtArenaCfg({"max_mem": memory_mb << 20, "arena_extend_strategy": _SAME_AS_REQUESTED})
            options = {"device_id": str(device.index)}
            ort.create_and_register_allocator_v2(PROVIDERS["cuda"], memory, options, arena)
            _arenas[device.index] = memory_mb
