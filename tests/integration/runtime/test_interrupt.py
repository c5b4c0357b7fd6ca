"""Models that are interrupted while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from groundwire.runtime.calls import role_of
from groundwire.runtime.errors import EngineClosed
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.session import DeviceProfile, Session

ARRAY = np.zeros(1, np.float32)
RUNS: dict[str, Callable[[Session], object]] = {
    "arrays": lambda session: session.run({"x": ARRAY}),
    "values": lambda session: session.run_to_values({"x": ARRAY}),
}


def save_endless_graph(path: Path) -> None:
    """A loop whose condition is true for ever."""
    steps = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in ("again", "state")]
    inputs = (("number", TensorProto.INT64, ()), ("again", TensorProto.BOOL, ()), ("state", TensorProto.FLOAT, (1,)))
    body = helper.make_graph(
        steps,
        "body",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(f"{name}_out", *rest) for name, *rest in inputs[1:]],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["", "begin", "x"], ["y"], body=body)],
        "endless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1,))],
        [helper.make_tensor("begin", TensorProto.BOOL, (), [True])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_an_interrupt_ends_a_run_that_would_not_end(run: Callable[[Session], object], tmp_path: Path) -> None:
    save_endless_graph(tmp_path / "endless.onnx")
    profile = DeviceProfile.of("cpu", 1)
    session = Session.load(tmp_path / "endless.onnx", profile.share_threads(0))
    errors = list[Any]()

    def run_until_interrupted() -> None:
        try:
            run(session)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run_until_interrupted, daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    profile.interrupt()
    thread.join(60)
    assert [type(error) for error in errors] == [EngineClosed]


def test_no_graph_of_an_interrupted_runtime_runs() -> None:
    runtime = LocalRuntime.load("compact", "cpu", threads=1)
    calls = [call for call in runtime.warm_calls() if runtime.worker_pool(role_of(call)) == "device"]
    runtime.interrupt()
    assert len(calls) > 3
    for call in calls:
        with pytest.raises(EngineClosed, match="closed while its models ran"):
            runtime.run(role_of(call), [call], 8)
    runtime.close()
