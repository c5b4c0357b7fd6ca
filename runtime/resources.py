"""What this process may use, and what it gives back: processors, memory, and the limits on both.

The libraries below end a process that takes more memory than it may, without a word that helps.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import NamedTuple

CGROUP = Path("/sys/fs/cgroup")
MEBIBYTE = 1 << 20
RESIDENT_MB, ADDRESS_MB = 700, 1_900
"""Mebibytes of memory and of address space beside the files of bundles: libraries, threads and batches. Measured with
``compact`` on two cores, for texts of 12,000 characters and all metrics: 850 and 2,110 in all."""
_GROUP_FILES = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
"""Limit and usage of a control group, in version 2 and 1."""
_RECLAIMED = "total_inactive_file", "inactive_file"
"""Lines of ``memory.stat``, in version 1 and 2: pages of files, which the kernel takes back first."""
PROCESS_GROUPS = Path("/proc/self/cgroup")


def usable_cores(cgroup: Path = CGROUP, process: Path = PROCESS_GROUPS) -> int:
    """Processors that this process may run on, and not more than its container may use in parallel; at least 1.

    A container's limit (cgroups' ``cpu.max`` or ``cpu.cfs_quota_us``) of 1.5 processors counts as 2.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, min([cores, *_read_limits(cgroup, process)]))


def _read_limits(cgroup: Path, process: Path) -> list[int]:
    """The limits of the process's control groups and of those around them."""
    return [limit for group in _list_groups(cgroup, process, "cpu") for limit in _read_limit(group)]


def _list_groups(cgroup: Path, process: Path, controller: str) -> list[Path]:
    """The directories of the control groups that the process is in, and of those around them.

    Version 2 has one hierarchy; version 1 has one of each controller, in a directory of its name. A container may
    see its own group as the root, whatever the lines ``number:controllers:path`` say.
    """
    try:
        lines = process.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    groups = {cgroup: None, cgroup / controller: None}  # an ordered set
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if not controllers or controller in controllers.split(","):
            group = Path(path)
            for around in (group, *group.parents):
                groups[(cgroup / controllers if controllers else cgroup) / str(around).lstrip("/")] = None
    return list(groups)


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


class MemoryLimit(NamedTuple):
    """How much a process may take yet."""

    mebibytes: int
    needed: int
    """What it needs beside the files of bundles."""
    reason: str
    """Who says so, as a sentence names it."""


def find_memory_limits(groups: Path = CGROUP, process: Path = PROCESS_GROUPS) -> Iterator[MemoryLimit]:
    """Yield the limits on memory that hold for this process.

    Args:
        groups: The directory in which Linux describes control groups.
        process: The file in which it says in which of them this process is.
    """
    if sys.platform != "win32":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            yield MemoryLimit(limit // MEBIBYTE, ADDRESS_MB, "of address space (ulimit -v)")
    left = []
    for group in _list_groups(groups, process, "memory"):
        for maximum, usage in _GROUP_FILES:
            with suppress(OSError, ValueError):
                used = int((group / usage).read_text()) - _count_reclaimed(group)
                left.append(int((group / maximum).read_text()) - used)
    if left:
        yield MemoryLimit(min(left) // MEBIBYTE, RESIDENT_MB, "of memory (its control group)")


def _count_reclaimed(group: Path) -> int:
    """Bytes of a control group's use that are no lack."""
    with suppress(OSError, ValueError):
        numbers = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        return next((int(numbers[name]) for name in _RECLAIMED if name in numbers), 0)
    return 0


def warn_of_limits(file_bytes: int, groups: Path = CGROUP, process: Path = PROCESS_GROUPS) -> None:
    """Warn if models may need more memory than this process may take, before a library ends it.

    Args:
        file_bytes: Bytes of the bundles' files that are loaded.
        groups: As of ``find_memory_limits``.
        process: As of ``find_memory_limits``.
    """
    for limit in find_memory_limits(groups, process):
        needed = limit.needed + file_bytes // MEBIBYTE
        if limit.mebibytes < needed:
            warnings.warn(
                f"This process may take {limit.mebibytes} MiB {limit.reason}; with these models it needs about "
                f"{needed}, and more with many threads. It may end without another message. Raise the limit, or load "
                "fewer bundles or processes.",
                RuntimeWarning,
                stacklevel=3,
            )


def freeze_objects() -> None:
    """Collect garbage, then leave every object that is alive out of all later collections.

    A loaded engine has 250,000 objects. Python looks at all of them about once in a thousand responses, and no thread
    runs meanwhile. Call it only in a process that is Groundwire's own: no object that is alive now is ever collected
    as part of a cycle.
    """
    gc.collect()
    gc.freeze()


def trim_memory() -> None:
    """Give freed memory back, where the C library can: glibc keeps what lies between things that live, up to hundreds
    of megabytes.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
