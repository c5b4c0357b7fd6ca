"""The measurement of a GPU on the double, where its counts mean something."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.gpu.processes import CONTEXT_GIB
from bench.support.common import ROOT
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import QuestionGeneratorRole
from groundwire.runtime.calls import BeamSearch
from groundwire.runtime.models.question_generator import QuestionGenerator
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.parity.certify import run_plain
from groundwire.runtime.texts.tokenization import Window
from tests.support import cuda_double

DEFAULT_CAPTURES = 284
"""Shapes that the default metrics need, at most: of the reader, and of the joined heads. All models have 1,559."""


def count_own_kernels(bundle: Bundle, steps: int) -> int:
    """Kernels of a search of so many steps by the question generator's own graphs, which no GPU runs."""
    role = bundle.manifest.roles["qg"]
    assert isinstance(role, QuestionGeneratorRole)
    profile = DeviceProfile.of("cuda", None)
    generator = QuestionGenerator.load(bundle, role, profile)
    windows = [Window(list(range(10, 22)), [0] * 12, [0] * 12, [(0, 0)] * 12)] * 2
    generator.generate(windows, BeamSearch(max_new_tokens=steps, min_new_tokens=steps - 1))
    with run_plain(profile), cuda_double.count() as counts:
        generator.generate(windows, BeamSearch(max_new_tokens=steps, min_new_tokens=steps - 1))
    return counts.launches


def test_the_measurement_counts_kernels(tmp_path: Path) -> None:
    out = tmp_path / "gpu_all.json"
    only = "certify,default,ceilings,export,parity,latency,load,processes,role"
    command = [sys.executable, "-m", "bench.gpu_all", "--tiny", "--device", "cuda", "--roles", "qg,qa,nli"]
    command += ["--minutes", "25", "--work", str(tmp_path)]  # the machine may be busy
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
            assert row["graphs"]
            assert all(name.endswith(".cuda.onnx") for name in row["graphs"])
    (bundle,) = tmp_path.glob("tiny-fp16-cuda-*/qg")
    for row in stages["role.qg"]["results"]:
        assert row["kernels"] < count_own_kernels(Bundle.open(bundle), row["steps"])
    default = stages["default"]["results"]
    assert [row["group"] for row in default["latency"]] == ["1 sentence", "8 sentences"]
    assert 0 < default["warm_up"]["captures"]["captured"] <= DEFAULT_CAPTURES
    for row in default["latency"]:
        assert row["captures"] == default["warm_up"]["captures"], "the warm-up captured what the default needs"
    assert [row["processes"] for row in stages["default.processes"]["results"]["rows"]] == [4, 1]
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
