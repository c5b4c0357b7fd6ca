"""The processors that a container may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from groundwire.runtime.resources import usable_cores

ALL = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/", {"cpu.max": "max 100000"}, ALL),
        ("0::/", {"cpu.max": "100000 100000"}, 1),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "150000 100000"}, min(2, ALL)),
        ("0::/pod/app", {"pod/app/cpu.max": "max 100000", "pod/cpu.max": "100000 100000"}, 1),
        (
            "4:cpu,x:/app",
            {"cpu,x/app/cpu.cfs_quota_us": "100000", "cpu,x/app/cpu.cfs_period_us": "100000"},
            1,
        ),
        ("4:cpu:/app", {"cpu/app/cpu.cfs_quota_us": "-1", "cpu/app/cpu.cfs_period_us": "100000"}, ALL),
        ("4:memory:/app", {"memory/app/cpu.cfs_quota_us": "1", "memory/app/cpu.cfs_period_us": "1"}, ALL),
        ("0::/", {"cpu.max": "nonsense"}, ALL),
        ("0::/", {"cpu.max": "1 0"}, ALL),
        ("", {}, ALL),
        (None, {}, ALL),
    ],
)
def test_the_limit_of_a_container_counts(
    tmp_path: Path, groups: str | None, files: dict[str, str], expected: int
) -> None:
    process = tmp_path / "process"
    if groups is not None:
        process.write_text(groups + "\n")
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert usable_cores(tmp_path / "cgroup", process) == expected


def test_this_machine_has_at_least_one() -> None:
    assert 1 <= usable_cores() <= ALL
