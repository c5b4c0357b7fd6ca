"""The guide's table of devices changes with the files of results."""

from __future__ import annotations

from typing import Any

import pytest

from docs.site.devices import NEVER, describe_agreement, list_devices

AGREEMENT = {
    "emulated": True,
    "models": "0a",
    "rows": 116,
    "max_difference": 0.0331,
    "mean_difference": 0.0031,
    "other_marks": 1,
    "differences": [],
}


def make_report(flags: list[str], device: str | None = None, stages: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    settings = {"device": device, "gpu": "a GPU"}
    return {"machine": {"cpu_flags": flags}, "settings": settings, "results": {"stages": stages}}


def make_row(title: str, **reports: dict[str, Any]) -> list[str]:
    table = list_devices({f"{name}.json": report for name, report in reports.items()}, AGREEMENT)
    (row,) = (row for row in table if row[0] == title)
    return row[3:]


@pytest.mark.parametrize("title", ["CUDA", "TensorRT-RTX", "TensorRT"])
def test_a_device_without_results_was_not_run(title: str) -> None:
    assert make_row(title, host=make_report(["avx2", "avx512_vnni"])) == [NEVER] * 3


def test_times_count_for_the_int8_kernels_of_their_processor() -> None:
    reports = {
        "a": make_report(["avx2"]),
        "b": make_report(["avx2", "avx_vnni"]),
        "c": make_report(["asimd", "i8mm"]),
        "d": make_report(["avx2", "amx_int8", "avx512_vnni"], "cuda:1"),
    }
    assert make_row("CPU with AVX2, without VNNI", **reports)[1:] == ["yes", "`a.json`"]
    assert make_row("CPU with VNNI", **reports)[1:] == ["yes", "`b.json`"]
    assert make_row("CPU on Arm", **reports) == ["`make test-arm64`, emulated", "yes", "`c.json`"]
    assert make_row("CPU on Arm")[1:] == [NEVER, NEVER]


def test_a_visit_counts_for_its_device_with_what_passed_and_was_timed() -> None:
    certified = [
        {"bundle": "compact", "role": "qa", "failures": []},
        {"bundle": "reader", "role": "reader", "failures": ["too far"]},
    ]
    stages = (
        {"name": "certify", "results": certified},
        {"name": "default", "results": {"latency": []}},
        {"name": "latency", "results": None},
        {"name": "ceilings", "results": {}},
    )
    visit = make_report(["avx512_vnni"], "tensorrt-rtx", stages)
    assert make_row("TensorRT-RTX", visit=visit) == ["`compact`, a GPU", "yes", "`default` (`visit.json`)"]
    assert make_row("TensorRT", visit=visit) == [NEVER] * 3


def test_arm_that_differs_is_not_called_equal() -> None:
    words = describe_agreement(AGREEMENT, "0a")
    assert words.startswith("All 116 labels are those of x86-64, and so are the marks of 115; ")
    assert describe_agreement(AGREEMENT, "0b") == f"{words} The models have changed since."
    with pytest.raises(ValueError, match="has differences"):
        describe_agreement({**AGREEMENT, "differences": ["coffee: another label"]}, "0a")
