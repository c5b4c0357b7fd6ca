"""Every role by itself: its graph against batched PyTorch, on the same inputs, in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import numpy as np
import torch

from groundwire.runtime.ort.session import Array
from groundwire.runtime.parity.certify import run_plain

from ..support import common, models
from ..support.common import Timing
from .setup import Launches, Setup, count_launches, is_double
from .sides import STEPS, Sides, Tensors, load_model, make_sides
from .stages import Save, Skipped, noted
from .work import Work, count_work


class Comparison(msgspec.Struct):
    """One batch, by the engine's graph and by PyTorch."""

    role: str
    model: str
    input: str
    full: bool
    """Whether the batch is full; else it has one response's rows."""
    steps: int
    """Runs of a decoder one after another; 1 for other graphs."""
    timings: dict[str, Timing]
    """engine, by itself; eager, graph (captured once), compile, or static (a generator's cache): PyTorch."""
    graphs: tuple[str, ...] = ()
    """Files of the graphs that the engine's side runs."""
    work: Work | None = None
    ratios: dict[str, float] = {}
    """Median of a way of PyTorch over the engine's in the same turns."""
    logit_error: dict[str, float] = {}
    """Largest difference from PyTorch in float32, in standard deviations, by side. Reported: weights are random."""
    alone_error: float | None = None
    """Largest difference of a row alone from the same row in the batch, in the same unit."""
    launches: Launches | None = None
    """Launches in one run of the engine's side."""
    kernels: int | None = None
    """Kernels of one run of the engine's side that is launched kernel by kernel."""
    errors: dict[str, str] = {}
    """What could not be measured, and why."""


def measure(setup: Setup, save: Save, role: str, *ways: str) -> None:
    """Measure the batch of one response and a full one, against PyTorch in these ways."""
    folder = models.checkpoint(setup.work, setup.size, role)
    batches = make_sides(setup, role, folder)
    steps = STEPS if role == "qg" else 1
    rows = [
        Comparison(role, models.NAMES[role], sides.input, bool(index), steps, {}, sides.graphs)
        for index, sides in enumerate(batches)
    ]
    measure_engine(setup, batches, rows, lambda: save(rows))
    reason = ""
    try:
        device = setup.torch_device
    except Skipped as skipped:
        device, reason = "cpu", str(skipped)
    dtype = torch.float32 if device == "cpu" else torch.float16
    reference = load_model(role, folder, device, torch.float32)
    for sides, row in zip(batches, rows, strict=True):
        with noted(row.errors, "work"):
            run = partial(sides.forward_once or sides.forward, reference, upload(sides.inputs, device))
            row.work = count_work(reference, run, sides.repeats, 2 if setup.precision == "fp16" else 4)
        if reason:
            row.errors["peers"] = reason
    save(rows)
    if reason:
        return
    expected = [run_eager(reference, sides, device) for sides in batches]
    del reference
    model = load_model(role, folder, device, dtype)
    for way in ways:
        for sides, row, truth in zip(batches, rows, expected, strict=True):
            if way in sides.ways:
                with noted(row.errors, way):
                    compare(setup, sides, row, truth, way, WAYS[way](model, sides, device))
                save(rows)


def measure_engine(setup: Setup, batches: tuple[Sides, ...], rows: list[Comparison], save: Callable[[], None]) -> None:
    """Time the engine's side by itself, count what it launches, and compare a row with itself alone."""
    for sides, row in zip(batches, rows, strict=True):
        subject = {"engine": partial(sides.ours, sides.rows)}
        row.timings = common.interleaved_for(subject, setup.seconds / 4)
        if not is_double():
            whole, alone = sides.ours(sides.rows), sides.ours(1)
            row.alone_error = find_error([part[:1] for part in whole], alone, whole)
        save()
        with noted(row.errors, "launches"):
            row.launches = count_launches(setup, subject["engine"])
            with run_plain(sides.profile):
                row.kernels = count_launches(setup, subject["engine"]).kernels
        save()


def compare(
    setup: Setup, sides: Sides, row: Comparison, expected: list[Array], way: str, peer: Callable[[], list[Array]]
) -> None:
    """Time one way of PyTorch in turns with the engine, after a look at both results."""
    row.logit_error[way] = find_error(expected, peer(), expected)
    row.logit_error.setdefault("engine", find_error(expected, sides.ours(sides.rows), expected))
    subjects: dict[str, Callable[[], Any]] = {"engine": partial(sides.ours, sides.rows), way: peer}
    timings = common.interleaved_for(subjects, setup.seconds, *((1, 0) if setup.tiny else ()))
    row.timings[way] = timings[way]
    row.ratios[way] = timings[way].p50_ms / timings["engine"].p50_ms


def run_eager(model: Any, sides: Sides, device: str) -> list[Array]:
    """PyTorch's outputs, from arrays to arrays."""
    with torch.inference_mode():
        return download(sides.forward(model, upload(sides.inputs, device)))


def make_graph(model: Any, sides: Sides, device: str) -> Callable[[], list[Array]]:
    """Capture a run as a CUDA graph: inputs are copied into its buffers, and it is launched as a whole."""
    if device == "cpu":
        raise Skipped("a CPU has no CUDA graphs")
    static = upload(sides.inputs, device)
    with torch.inference_mode():
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                sides.forward(model, static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = sides.forward(model, static)

    def run() -> list[Array]:
        with torch.inference_mode():
            for name, array in sides.inputs.items():
                static[name].copy_(torch.from_numpy(array))
            graph.replay()
            return download(outputs)

    return run


def make_compiled(model: Any, sides: Sides, device: str) -> Callable[[], list[Array]]:
    """``torch.compile`` for these shapes, with CUDA graphs of its own."""

    def forward(tensors: Tensors) -> list[torch.Tensor]:
        return sides.forward(model, tensors)

    compiled = torch.compile(forward, dynamic=False, mode="reduce-overhead")

    def run() -> list[Array]:
        with torch.inference_mode():
            return download(compiled(upload(sides.inputs, device)))

    return run


def make_static(model: Any, sides: Sides, device: str) -> Callable[[], list[Array]]:
    """``generate`` with keys and values in buffers of fixed size, for which transformers compiles the step."""

    def run() -> list[Array]:
        with torch.inference_mode():
            tensors = upload(sides.inputs, device)
            return download(sides.forward(model, tensors, cache_implementation="static"))  # type: ignore[call-arg]

    return run


WAYS: Mapping[str, Callable[[Any, Sides, str], Callable[[], list[Array]]]] = {
    "eager": lambda model, sides, device: partial(run_eager, model, sides, device),
    "graph": make_graph,
    "compile": make_compiled,
    "static": make_static,
}


def upload(arrays: Mapping[str, Array], device: str) -> Tensors:
    """The arrays as tensors on the device."""
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def download(tensors: list[torch.Tensor]) -> list[Array]:
    """The tensors as arrays of float32."""
    return [tensor.float().cpu().numpy() for tensor in tensors]


def find_error(expected: list[Array], actual: list[Array], scale: list[Array]) -> float:
    """The largest difference, in standard deviations of ``scale``; infinite where a value is NaN."""
    spread = float(np.concatenate([part.ravel() for part in scale]).std())
    pairs = zip(expected, actual, strict=True)
    # NumPy's max, unlike Python's, keeps NaN.
    largest = float(np.max([np.abs(left.astype(np.float32) - right.astype(np.float32)).max() for left, right in pairs]))
    return largest / spread if np.isfinite(largest) and spread > 0 else float("inf")
