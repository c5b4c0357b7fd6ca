"""Rows of values in host memory."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from groundwire.runtime.errors import DeviceError
from groundwire.runtime.ort.device import DeviceKind
from groundwire.runtime.ort.session import DeviceProfile, Session, build_row_graph


@pytest.fixture
def session(tmp_path: Path) -> Session:
    graph = tmp_path / "rows.onnx"
    graph.write_bytes(build_row_graph({"a": "tensor(float)"}))
    return Session.load(graph, DeviceProfile.of("cpu", 1))


@pytest.mark.parametrize("rows", [[1, 2, 3], [3, 1], [2], []])
def test_rows_outlive_the_values_they_were_taken_from(session: Session, rows: list[int]) -> None:
    array = np.arange(5 * 100_000, dtype=np.float32).reshape(5, 100_000)
    expected = array[rows]
    values = session.take_rows({"a": session.value(array)}, np.array(rows, dtype=np.int64))
    values = session.take_rows(values, np.arange(len(rows)))
    del array
    gc.collect()
    filler = [np.full((5, 100_000), -1, dtype=np.float32) for _ in range(8)]  # takes the place of freed memory
    assert np.array_equal(values["a"].numpy(), expected)
    assert len(filler) == 8


@pytest.mark.parametrize(("device", "memory_mb"), [("tensorrt", None), ("cuda", 512)])
def test_strict_is_refused_where_it_cannot_be_kept(device: DeviceKind, memory_mb: int | None) -> None:
    with pytest.raises(DeviceError, match=r"strict=True on .* at one shape"):
        DeviceProfile.of(device, None, memory_mb, strict=True)


def test_strict_is_for_cuda_alone() -> None:
    assert DeviceProfile.of("cuda", None, strict=True).strict
    assert not DeviceProfile.of("cpu", 1, strict=True).strict, "a CPU's results do not depend on the batch anyway"
