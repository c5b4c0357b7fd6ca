"""What a rate costs besides time: tokens that extractive QA reads, processor time, memory of the GPU."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from groundwire.runtime.capture.encoder import CapturedEncoder
from groundwire.runtime.capture.graph import CapturedGraph
from groundwire.runtime.ort.device import Device, parse_device, start_device

from .setup import Setup


class QATokens:
    """Tokens of the graph of extractive QA, while ``count_qa_tokens`` is open."""

    def __init__(self) -> None:
        self.real = 0
        """Of texts."""
        self.padded = 0
        """That the graph ran over."""


@contextmanager
def count_qa_tokens() -> Iterator[QATokens]:
    """Count tokens inside the block, where graphs are captured; zeros elsewhere."""
    tokens, run, launch = QATokens(), CapturedEncoder.run, CapturedGraph.run

    def count_real(encoder: CapturedEncoder, feeds: Any) -> Any:
        if encoder.runnable.name.startswith("qa."):
            tokens.real += int(feeds["attention_mask"].sum())
        return run(encoder, feeds)

    def count_padded(graph: CapturedGraph, shape: Any) -> None:
        if graph.runnable.name.startswith("qa."):
            tokens.padded += shape.rows * shape.tokens
        launch(graph, shape)

    with mock.patch.object(CapturedEncoder, "run", count_real), mock.patch.object(CapturedGraph, "run", count_padded):
        yield tokens


def count_token_gflop(setup: Setup) -> float:
    """GFLOP of a token in the products of extractive QA with its weights."""
    size = setup.size.albert
    hidden, inner = size["hidden_size"], size["intermediate_size"]
    return size["num_hidden_layers"] * 2 * (4 * hidden * hidden + 2 * hidden * inner) / 1e9


def read_thread_seconds() -> float:
    """Processor time of the Python threads of this process, which is at least their time in the interpreter."""
    total = 0.0
    for thread in threading.enumerate():
        if thread.ident is not None and thread.is_alive():
            total += time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    return total


def read_children_seconds() -> float:
    """Processor time of the processes that this process has started and that still run, all threads."""
    total = 0.0
    for path in Path("/proc/self/task").glob("*/children"):
        for child in path.read_text(encoding="ascii").split():
            with suppress(OSError):  # it has ended
                fields = Path("/proc", child, "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2]
                user, system = fields.split()[11:13]
                total += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return total


class GpuMemory(NamedTuple):
    """Memory of a GPU in GiB, whichever process takes it."""

    free: float
    total: float

    @property
    def used(self) -> float:
        """What is taken."""
        return self.total - self.free


def read_gpu_memory(setup: Setup) -> GpuMemory | None:
    """The memory of the engine's GPU; None on a CPU. Starts the device, whose own memory is taken from then on."""
    device = parse_device(setup.device) or Device("cpu")
    if device.kind == "cpu":
        return None
    start_device(device)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    runtime = ctypes.CDLL("libcudart.so.13")
    if runtime.cudaSetDevice(device.index) or runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)):
        return None
    return GpuMemory(free.value / 2**30, total.value / 2**30)
