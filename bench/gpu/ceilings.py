"""The speed of the hardware, measured through PyTorch in the same run: products, copies, launches."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import torch

from .setup import Gpu, Setup, find_gpu
from .stages import Save

SECONDS = 0.5


class Ceilings(msgspec.Struct, frozen=True):
    """Rates that nothing on this device exceeds by much."""

    device: str
    gpu: Gpu | None
    half_tflops: float
    """A product of square matrices, float16 on a GPU and float32 on a CPU, accumulated in float32."""
    single_tflops: float
    """The same in float32 without TF32."""
    copy_gbs: float
    """A copy within the device's memory: bytes read and written, in GB/s."""
    upload_gbs: float | None = None
    """From pageable memory of the host, in GB/s, as the engine's inputs go."""
    pinned_upload_gbs: float | None = None
    download_gbs: float | None = None
    launch_us: float | None = None
    """Host time of one kernel that does almost nothing, launched by PyTorch, in microseconds."""
    replay_us: float | None = None
    """Time of one such kernel in a captured graph of many."""


def measure(setup: Setup, save: Save) -> None:
    """Measure every ceiling."""
    device = setup.torch_device
    on_gpu = device != "cpu"
    side = 512 if setup.tiny else 8192 if on_gpu else 2048
    half = torch.float16 if on_gpu else torch.float32
    values = 1 << (18 if setup.tiny else 31 if on_gpu else 26)  # bytes, several times any cache
    result = Ceilings(
        device,
        find_gpu() if on_gpu else None,
        _product(side, half, device),
        _product(side // 2, torch.float32, device),
        _copy(values, device),
    )
    save(result)
    if not on_gpu:
        return
    host = torch.empty(1 << 26, dtype=torch.uint8).random_(0, 255)
    there = host.to(device)
    pinned = host.pin_memory()
    small = torch.zeros(32, device=device)

    def rate(run: Callable[[], object]) -> float:
        return host.numel() / _median_seconds(run, device) / 1e9

    result = msgspec.structs.replace(
        result,
        upload_gbs=rate(lambda: there.copy_(host)),
        pinned_upload_gbs=rate(lambda: there.copy_(pinned)),
        download_gbs=rate(lambda: host.copy_(there)),
        launch_us=1e6 * _median_seconds(lambda: _launch(small), device) / LAUNCHES,
    )
    save(result)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _launch(small)
    save(msgspec.structs.replace(result, replay_us=1e6 * _median_seconds(graph.replay, device) / LAUNCHES))


LAUNCHES = 1000
"""Launches of the small kernel in one sample."""


def _launch(small: torch.Tensor) -> None:
    for _ in range(LAUNCHES):
        small.add_(1.0)


def _copy(values: int, device: str) -> float:
    """GB/s of a copy of so many bytes, read and written."""
    source = torch.empty(values, dtype=torch.uint8, device=device).random_(0, 255)
    target = torch.empty_like(source)
    return 2 * values / _median_seconds(lambda: target.copy_(source), device) / 1e9


def _product(side: int, dtype: torch.dtype, device: str) -> float:
    """TFLOP/s of a product of square matrices of random numbers: zeros are faster."""
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(left)
    return 2 * side**3 / _median_seconds(lambda: torch.mm(left, right, out=out), device) / 1e12


def _median_seconds(run: Callable[[], object], device: str) -> float:
    """The median time of a run in the second half of ``SECONDS``; the device is idle before and after each."""

    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    samples: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(samples) < 10 or time.perf_counter() < end:
        wait()
        started = time.perf_counter()
        run()
        wait()
        samples.append(time.perf_counter() - started)
    late = sorted(samples[len(samples) // 2 :])
    return late[len(late) // 2]
