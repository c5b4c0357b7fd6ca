"""Writes the table of devices: what was done on each, from the files of results, so that a new file changes the table.

What a test does is named by the test's file, which must be there; the rest is read from ``bench/results``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
BUNDLES = ("compact", "reader")
"""Those of the default verdict."""
NEVER, NOT_NEEDED = "not run anywhere yet", "not needed"
HEADER = ["", "exported", "compiled", "certified", "run", "measured"]
TIMED = re.compile(r"default|latency|load|processes|q2|role\.")
"""The beginnings of the stages of ``bench.gpu_all`` that measure the engine."""
SHOWN = 3
"""Files of results that a cell names."""

Report = Mapping[str, Any]


def read_reports() -> dict[str, Report]:
    """Return the reports in ``bench/results`` that name their machine, by the name of their file."""
    contents = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))}
    return {name: content for name, content in contents.items() if "machine" in content}


def list_devices(reports: Mapping[str, Report], agreement: Report) -> list[list[str]]:
    """Return the rows of the table, as ``HEADER`` names their cells.

    Args:
        reports: Reports by the name of their file.
        agreement: What ``make test-arm64`` found.
    """
    exported = _by_test("yes", "tests/integration/export/test_pipeline.py")
    target = _by_test("yes", "tests/integration/export/test_targets.py")
    compiled = _by_test("`make test`, without a GPU", "tests/integration/runtime/test_tensorrt_rtx.py")
    exact = _by_test("`make test`", "tests/integration/test_compact.py")
    saturating = _by_test("`make test`", "tests/integration/runtime/test_avx2.py")
    arm = f"`make test-arm64`{', emulated' * agreement['emulated']}"
    return [
        ["CPU with VNNI", exported, NOT_NEEDED, exact, *_read_cpu(reports, "vnni")],
        ["CPU with AVX2, without VNNI", exported, NOT_NEEDED, saturating, *_read_cpu(reports, "avx2")],
        ["CPU on Arm", exported, NOT_NEEDED, arm, *_read_cpu(reports, "asimd")],
        ["CUDA", target, NOT_NEEDED, *_read_gpu(reports, "cuda")],
        ["TensorRT-RTX", target, compiled, *_read_gpu(reports, "tensorrt-rtx")],
        ["TensorRT", target, NEVER, *_read_gpu(reports, "tensorrt")],
    ]


def _by_test(words: str, path: str) -> str:
    """``words``, if the test that does it is there."""
    if not (ROOT / path).is_file():
        raise FileNotFoundError(f"The table of devices names {path}, which is not there: name the test that does it.")
    return words


def digest_models() -> str:
    """Return twelve digits that change with the models of the default verdict."""
    files = [
        json.loads((ROOT / "bundles" / name / "bundle.json").read_text(encoding="utf-8"))["files"] for name in BUNDLES
    ]
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:12]


def describe_agreement(agreement: Report, models: str) -> str:
    """Return how far Arm and x86-64 agree, and whether the models have changed since.

    Args:
        agreement: What ``make test-arm64`` found.
        models: The digest of the models that are there now.

    Raises:
        ValueError: They do not.
    """
    if agreement["differences"]:
        raise ValueError("bench/results/arm64.json has differences; run make test-arm64 and repair what it finds.")
    rows, other_marks = agreement["rows"], agreement["other_marks"]
    changed = "" if agreement["models"] == models else " The models have changed since."
    return (
        f"All {rows} labels are those of x86-64, and so are the marks of {rows - other_marks}; probabilities are "
        f"within {agreement['max_difference']:.3f}, {agreement['mean_difference']:.3f} on average.{changed}"
    )


def _read_cpu(reports: Mapping[str, Report], kernel: str) -> list[str]:
    """Whether a CPU with these int8 kernels ran anything, and which files have its times."""
    files = [
        name
        for name, report in reports.items()
        if _find_device(report) == "cpu" and _find_kernel(report["machine"]["cpu_flags"]) == kernel
    ]
    return ["yes", _name_files(files)] if files else [NEVER, NEVER]


def _read_gpu(reports: Mapping[str, Report], device: str) -> list[str]:
    """What was certified, run and measured on a device, from the reports of visits to machines that have it."""
    certified: list[str] = []
    measured: list[str] = []
    for name, report in reports.items():
        if _find_device(report) != device:
            continue
        gpu = report["settings"]["gpu"]
        stages = {stage["name"]: stage["results"] for stage in report["results"]["stages"] if stage["results"]}
        certified += [f"`{bundle}`, {gpu}" for bundle in _list_certified(report, stages)]
        times = [f"`{stage}`" for stage in stages if TIMED.match(stage)]
        measured += [f"{', '.join(times)} ({_name_files([name])})"] if times else []
    run = "yes" if certified or measured else NEVER
    return ["; ".join(certified) or NEVER, run, "; ".join(measured) or NEVER]


def _list_certified(report: Report, stages: Mapping[str, Any]) -> list[str]:
    """The bundles of which every role passed ``groundwire bundle certify``."""
    if recorded := report["results"].get("certificate"):  # terms: literal
        return [recorded["command"].split()[3]]
    rows = stages.get("certify", ())
    failed = {row["bundle"] for row in rows if row["failures"]}
    return sorted({row["bundle"] for row in rows} - failed)


def _find_device(report: Report) -> str:
    """The kind of device of a report."""
    return str((report.get("settings") or {}).get("device") or "cpu").partition(":")[0]


def _find_kernel(flags: list[str]) -> str:
    """The kind of int8 kernels of a processor."""
    return next((kernel for kernel in ("vnni", "avx2", "asimd") if kernel in " ".join(flags)), "")


def _name_files(files: list[str]) -> str:
    more = [f"{len(files) - SHOWN} more"] if len(files) > SHOWN else []
    return ", ".join([*(f"`{name}`" for name in files[:SHOWN]), *more])
