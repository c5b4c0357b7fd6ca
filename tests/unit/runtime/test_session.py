"""Sessions: rows of values in host memory, and memory that is short."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.errors import BundleError, DeviceError, ModelError
from groundwire.runtime.models import loading
from groundwire.runtime.ort.device import DeviceKind
from groundwire.runtime.ort.session import ROWS, DeviceProfile, Session, build_row_graph


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


def test_a_run_without_memory_says_so_in_a_sentence(session: Session, capfd: pytest.CaptureFixture[str]) -> None:
    feeds = {"a": np.zeros((1, 4_000_000), dtype=np.float32), ROWS: np.zeros(1_000_000, dtype=np.int64)}
    with pytest.raises(ModelError) as caught:
        session.run(feeds)
    assert str(caught.value) == (
        "rows.onnx failed on cpu: memory is short (16,000,000,000,000 bytes could not be allocated). "
        "Send shorter texts, or give it more memory."
    )
    assert capfd.readouterr() == ("", ""), "a log of JSON has no lines of a library"


def test_a_library_without_memory_is_not_a_damaged_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ImportError("libx.so: failed to map segment from shared object")

    monkeypatch.setattr(loading, "kind_of", fail)
    bundle = Bundle.open("nph")
    with pytest.raises(BundleError, match=r"cannot be loaded: memory is short\. Give the process more memory\.$"):
        loading.load_group(
            ("critic",), {"critic": (bundle.manifest.roles["critic"], bundle)}, DeviceProfile.of("cpu", 1)
        )


@pytest.mark.parametrize(("device", "memory_mb"), [("tensorrt", None), ("cuda", 512)])
def test_strict_is_refused_where_it_cannot_be_kept(device: DeviceKind, memory_mb: int | None) -> None:
    with pytest.raises(DeviceError, match=r"strict=True on .* at one shape"):
        DeviceProfile.of(device, None, memory_mb, strict=True)


def test_strict_is_for_cuda_alone() -> None:
    assert DeviceProfile.of("cuda", None, strict=True).strict
    assert not DeviceProfile.of("cpu", 1, strict=True).strict, "a CPU's results do not depend on the batch anyway"
