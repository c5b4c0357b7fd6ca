"""One captured graph: its key is the shape of a padded batch."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from groundwire.runtime.capture.graph import CapturedGraph, RunLayout, Runnable
from groundwire.runtime.capture.shapes import BatchShape
from groundwire.runtime.ort.session import DeviceProfile

SMALL, LARGE = BatchShape(2, 32), BatchShape(4, 64)
EAGER = "-1"


class FakeSession:
    """What ONNX Runtime is asked for: the bound shapes, and the number of each run."""

    def __init__(self) -> None:
        self.bound: list[tuple[int, ...]] = []
        self.numbers: list[str] = []
        self.fails: list[str] = []
        """The next runs that fail, by what their number begins with."""

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="ids", shape=["B", "T"], type="tensor(int64)")]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name=name, shape=["B", 3], type="tensor(float)") for name in ("logits", "states")]

    def io_binding(self) -> FakeSession:
        return self

    def bind_input(self, name: str, memory: str, index: int, dtype: Any, shape: tuple[int, ...], address: int) -> None:
        self.bound.append(shape)

    def bind_output(self, name: str, memory: str, index: int, dtype: Any, shape: tuple[int, ...], address: int) -> None:
        assert name == "logits", "an output without an address is not kept"

    def run_with_iobinding(self, binding: object, options: Any) -> None:
        number = options.get_run_config_entry("gpu_graph_id")
        self.numbers.append(number)
        if self.fails and (self.fails[0] == EAGER) == (number == EAGER):
            self.fails.pop(0)
            raise RuntimeError("out of memory")


class FixedAddresses:
    """The layout of a graph at fixed addresses."""

    def layout(self, shape: BatchShape) -> RunLayout:
        axes: Mapping[str, int] = {"B": shape.rows, "T": shape.tokens}
        return RunLayout(axes, {"ids": 256, "logits": 512})


@pytest.fixture
def addresses() -> FixedAddresses:
    return FixedAddresses()


def make_graph(addresses: FixedAddresses, *, captures: bool = True) -> tuple[FakeSession, CapturedGraph]:
    session, stream = FakeSession(), SimpleNamespace(abandon_capture=lambda: None)
    runnable = Runnable(session, DeviceProfile.of("cuda", None), "g.onnx", stream, captures)  # type: ignore[arg-type]
    return session, CapturedGraph(runnable, addresses.layout)


def test_each_shape_is_bound_and_captured_once(addresses: FixedAddresses) -> None:
    session, graph = make_graph(addresses)
    for shape in (SMALL, LARGE, SMALL, BatchShape(2, 32), LARGE):
        graph.run(shape)
    assert session.bound == [(2, 32), (4, 64)]
    assert session.numbers == [EAGER, "1", EAGER, "2", "1", "1", "2"]
    assert (len(graph.captured), graph.uncaptured, graph.failures.total()) == (2, 0, 0)


def test_a_failed_capture_is_tried_again(addresses: FixedAddresses) -> None:
    session, graph = make_graph(addresses)
    session.fails = ["1"]
    for shape in (SMALL, SMALL, SMALL):
        graph.run(shape)
    assert session.numbers == [EAGER, "1", EAGER, EAGER, "2", "2"]
    assert (len(graph.captured), graph.uncaptured, graph.failures.total()) == (1, 1, 1)


def test_captures_that_fail_end_the_captures_of_their_shape_alone(addresses: FixedAddresses) -> None:
    session, graph = make_graph(addresses)
    session.fails = ["1", "2", "3"]
    for shape in (SMALL, SMALL, SMALL, SMALL, LARGE):
        graph.run(shape)
    assert session.numbers == [*(EAGER, "1", EAGER), *(EAGER, "2", EAGER), *(EAGER, "3", EAGER), EAGER, EAGER, "4"]
    assert (list(graph.captured), graph.uncaptured, graph.failures) == ([LARGE], 4, {SMALL: 3})


def test_a_run_without_memory_fails_and_counts_as_no_capture(addresses: FixedAddresses) -> None:
    session, graph = make_graph(addresses)
    session.fails = [EAGER]
    with pytest.raises(RuntimeError, match="out of memory"):
        graph.run(SMALL)
    graph.run(SMALL)
    assert (len(graph.captured), graph.uncaptured, graph.failures.total()) == (1, 0, 0)


def test_another_thread_runs_what_is_captured_kernel_by_kernel(addresses: FixedAddresses) -> None:
    session, graph = make_graph(addresses)
    graph.run(SMALL)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(graph.run, SMALL).result()
        thread.submit(graph.run, LARGE).result()
    assert session.numbers == [EAGER, "1", EAGER, EAGER]
    assert (len(graph.captured), graph.uncaptured) == (1, 2)


def test_a_graph_with_a_part_on_the_cpu_is_not_captured(addresses: FixedAddresses) -> None:
    session, graph = make_graph(addresses, captures=False)
    graph.run(SMALL)
    assert session.numbers == [EAGER]


def test_the_capture_code_is_small() -> None:
    """All that captures, but for the rewriting of graphs: until a run on a device, at most 1,650 lines."""
    runtime = Path(__file__).parents[3] / "runtime"
    files = [*(runtime / "capture").glob("*.py"), runtime / "ort" / "gate.py", runtime / "ort" / "cuda.py"]
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= 1650
