"""What ``groundwire doctor`` calls a problem of an installation."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.cli import app, doctor

BUILDS = ("onnxruntime", "onnxruntime-gpu")


@pytest.mark.parametrize("together", [True, False])
def test_two_builds_of_onnx_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool) -> None:
    for name in BUILDS:
        folder = tmp_path / ("site" if together else name)
        info = folder / f"{name.replace('-', '_')}-9.9.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n", encoding="utf-8")
        monkeypatch.syspath_prepend(folder)
    result = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert ("overwrite each other" in result.output) == together
    assert result.exit_code == int(together)


@pytest.mark.parametrize(
    ("digits", "devices"),
    [
        ("90", "cuda, tensorrt"),
        ("89", "cuda, tensorrt, tensorrt-rtx"),
        ("87", "cuda, tensorrt"),
        ("61", "none of the devices"),
    ],
)
def test_the_gpu_is_named_with_what_it_can_use(monkeypatch: pytest.MonkeyPatch, digits: str, devices: str) -> None:
    monkeypatch.setattr(doctor, "compute_capability", lambda index: digits)
    monkeypatch.setattr(doctor, "name_gpu", lambda index: "NVIDIA L4")
    monkeypatch.setattr(doctor, "find_driver", lambda: "13.0")
    output = " ".join(CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "250"}).output.split())
    capability = f"{digits[0]}.{digits[1]}"
    assert f"gpu NVIDIA L4, compute capability {capability}, driver for CUDA 13.0; can use {devices} " in output
