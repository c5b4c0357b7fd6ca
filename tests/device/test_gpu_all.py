"""The measurement of a GPU on the double, where its counts mean something."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.gpu.processes import CONTEXT_GIB
from bench.support.common import ROOT


def test_the_measurement_counts_kernels(tmp_path: Path) -> None:
    out = tmp_path / "gpu_all.json"
    only = "certify,ceilings,export,parity,latency,load,processes,role"
    command = [sys.executable, "-m", "bench.gpu_all", "--tiny", "--device", "cuda", "--roles", "qg,qa,nli"]
    command += ["--minutes", "25"]  # the machine may be busy
    done = subprocess.run(
        [*command, "--only", only, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert not results["computes"]
    stages = {stage["name"]: stage for stage in results["stages"]}
    assert {stages[name]["status"] for name in ("certify", "ceilings", "parity")} == {"skipped"}
    assert stages["export.qa"]["results"]["precision"] == "fp16"
    for role in ("qg", "qa", "nli"):
        for row in stages[f"role.{role}"]["results"]:
            assert row["launches"]["kernels"] + row["launches"]["replays"] > 0
            assert row["launches"]["waits"] > 0
            assert row["errors"] == {"peers": "PyTorch sees no GPU"}
    rows = stages["latency"]["results"]["rows"]
    assert all(row["launches"]["kernels"] + row["launches"]["replays"] > 0 for row in rows)
    warm = stages["latency"]["results"]["warm_up"]
    assert warm["gib"] > 0
    assert all(row["captures"] == warm["captures"] for row in rows), "no response waits for a capture"
    loaded = stages["load"]["results"]
    loads = loaded["rows"]
    assert {row["qa_tokens"] for row in loads} == {0}, "what the double generates has no words, and nothing is asked"
    room = stages["processes"]["results"]["room"]
    warm_up, grown = loaded["warm_up"], loaded["grown_gib"]
    assert room["measured"]
    assert room["process_gib"] == pytest.approx(warm_up["gib"] + max(grown, 0.0) + CONTEXT_GIB)
    assert 8 * room["process_gib"] < room["free_gib"] < 141
    for row in (*rows, *loads, *stages["processes"]["results"]["rows"]):
        assert row["captures"]["captured"] > 0
        assert (row["captures"]["uncaptured"], row["captures"]["failed"]) == (0, 0)
