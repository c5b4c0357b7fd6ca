"""Captures beside other threads: CUDA refuses much while a graph is captured, and the refusal ends the capture."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EncoderRole
from groundwire.runtime.capture.encoder import CapturedEncoder
from groundwire.runtime.capture.graph import TRIES
from groundwire.runtime.errors import ModelError
from groundwire.runtime.ort.cuda import PinnedMemory, Stream
from groundwire.runtime.ort.session import DeviceProfile
from tests.support import cuda_double

RUNS = int(os.environ.get("GROUNDWIRE_CAPTURE_RUNS", "3"))
"""Of the last test; each takes five seconds of processor time."""
UNSUPPORTED, INVALIDATED = 900, 901
ACTIVE, ENDED = 1, 2
GLOBAL, RELAXED = 0, 2
REFUSED = {
    "cudaMalloc": lambda cuda, stream, memory: cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(256)),
    "cudaMallocHost": lambda cuda, stream, memory: cuda.cudaMallocHost(
        ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(256)
    ),
    "cudaFree": lambda cuda, stream, memory: cuda.cudaFree(ctypes.c_void_p(memory)),
    "cudaFreeHost": lambda cuda, stream, memory: cuda.cudaFreeHost(ctypes.c_void_p(memory)),
    "cudaMemcpy": lambda cuda, stream, memory: cuda.cudaMemcpy(
        ctypes.c_void_p(memory), ctypes.create_string_buffer(8), ctypes.c_size_t(8), 1
    ),
    "cudaMemcpyAsync of pageable memory": lambda cuda, stream, memory: cuda.cudaMemcpyAsync(
        ctypes.c_void_p(memory), ctypes.create_string_buffer(8), ctypes.c_size_t(8), 1, stream
    ),
    "cudaMemset": lambda cuda, stream, memory: cuda.cudaMemset(ctypes.c_void_p(memory), 0, ctypes.c_size_t(8)),
    "cudaDeviceSynchronize": lambda cuda, stream, memory: cuda.cudaDeviceSynchronize(),
    "cudaStreamSynchronize": lambda cuda, stream, memory: cuda.cudaStreamSynchronize(stream),
}


@pytest.fixture
def cuda() -> ctypes.CDLL:
    return ctypes.CDLL("libcudart.so.13")


def read_status(cuda: ctypes.CDLL, stream: ctypes.c_void_p) -> int:
    status = ctypes.c_int()
    assert cuda.cudaStreamIsCapturing(stream, ctypes.byref(status)) == 0
    return status.value


@pytest.mark.parametrize("call", REFUSED)
@pytest.mark.parametrize("by_another_thread", [False, True])
def test_the_double_refuses_what_cuda_refuses(cuda: ctypes.CDLL, call: str, by_another_thread: bool) -> None:
    stream, graph = ctypes.c_void_p(Stream(0).handle), ctypes.c_void_p()
    memory = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(256)) == 0
    assert cuda.cudaStreamBeginCapture(stream, GLOBAL) == 0
    assert read_status(cuda, stream) == ACTIVE
    arguments = cuda, stream, memory.value
    if by_another_thread:
        with ThreadPoolExecutor(1) as other:
            assert other.submit(REFUSED[call], *arguments).result() == UNSUPPORTED
    else:
        assert REFUSED[call](*arguments) == UNSUPPORTED
    assert read_status(cuda, stream) == ENDED
    assert cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)) == INVALIDATED
    assert read_status(cuda, stream) == 0
    assert cuda.cudaFree(memory) == 0
    cuda.cudaGetLastError()


def test_a_relaxed_capture_lets_others_allocate(cuda: ctypes.CDLL) -> None:
    stream, graph = ctypes.c_void_p(Stream(0).handle), ctypes.c_void_p()
    assert cuda.cudaStreamBeginCapture(stream, RELAXED) == 0
    PinnedMemory(0, 256)
    assert cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)) == 0


def load_encoder(bundle: Path) -> CapturedEncoder:
    opened = Bundle.open(bundle)
    record = opened.manifest.roles["qa"]
    assert isinstance(record, EncoderRole)
    return CapturedEncoder.load(opened.file(record.graph), record.max_tokens, DeviceProfile.of("cuda", None))


@pytest.mark.parametrize("spoiled", [1, TRIES - 1, TRIES])
def test_a_capture_that_something_ends_is_tried_again(bundle: Path, spoiled: int) -> None:
    encoder = load_encoder(bundle)
    feeds = {name: np.zeros((3, 32), np.int64) for name in encoder.inputs}
    cuda_double.spoil_captures(spoiled)
    for _ in range(TRIES + 1):
        encoder.run(feeds)  # no run fails
    assert encoder.graph.failures.total() == spoiled
    assert len(encoder.graph.captured) == (spoiled < TRIES)
    assert encoder.graph.uncaptured == (spoiled if spoiled < TRIES else TRIES + 1)
    encoder.run({name: np.zeros((3, 64), np.int64) for name in encoder.inputs})  # another shape
    assert len(encoder.graph.captured) == (spoiled < TRIES) + 1


def score(engine: Engine, text: str) -> None:
    engine.score(f"Groundwire was warmed up in {text}.", "It was warmed up in 2026.", history=("When?",), metrics="all")


def warm_up(engine: Engine) -> None:
    """Capture everything; the results are zeros, as the double computes nothing."""
    with pytest.raises(ModelError, match="answers its stored input otherwise"):
        engine.warmup()


def test_an_engine_warms_up_while_another_one_loads_and_both_score(bundle: Path) -> None:
    with cuda_double.count() as counts:
        for run in range(RUNS):
            with ThreadPoolExecutor(4) as threads, Engine.load(bundle, device="cuda") as warming:
                beside = [threads.submit(warm_up, warming), threads.submit(score, warming, "2025")]
                with Engine.load(bundle, device="cuda") as loading:
                    beside += [threads.submit(score, engine, str(run)) for engine in (warming, loading)]
                    for work in beside:
                        work.result()
                    captures = [engine.statistics().captures for engine in (warming, loading)]
            assert all(counted.captured > 0 for counted in captures)
            assert [(counted.uncaptured, counted.failed) for counted in captures] == [(0, 0)] * 2
    assert counts.refused == 0
