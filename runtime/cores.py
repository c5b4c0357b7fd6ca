"""How many processors this process may use."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = CGROUP, process: Path = Path("/proc/self/cgroup")) -> int:
    """Processors that this process may run on, and not more than its container may use in parallel; at least 1.

    A container's limit (cgroups' ``cpu.max`` or ``cpu.cfs_quota_us``) of 1.5 processors counts as 2.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, min([cores, *_read_limits(cgroup, process)]))


def _read_limits(cgroup: Path, process: Path) -> list[int]:
    """The limits of the process's control groups and of those around them."""
    limits = []
    for name, directory in _list_groups(process):
        root = cgroup / name if name else cgroup
        for group in (directory, *directory.parents):
            limits += _read_limit(root / str(group).lstrip("/"))
    return limits + _read_limit(cgroup)


def _list_groups(process: Path) -> list[tuple[str, Path]]:
    """The folder of the hierarchy (empty in version 2) and the path in the lines ``number:controllers:path``."""
    try:
        lines = process.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    parts = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    return [
        (controllers, Path(path))
        for _, controllers, path in parts
        if not controllers or "cpu" in controllers.split(",")
    ]


def _read_limit(group: Path) -> list[int]:
    """The limit of one control group, if it has one."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (group / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        return [] if quota in ("max", "-1") else [max(1, ceil(int(quota) / int(period)))]
    except (OSError, ValueError, ZeroDivisionError):
        return []
