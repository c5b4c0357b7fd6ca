"""What ``groundwire doctor`` calls a problem of an installation."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.cli import app

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
