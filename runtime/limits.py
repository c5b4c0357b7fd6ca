"""Limits on the memory of this process, which the libraries below end it for without a word that helps."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MEBIBYTE = 1 << 20
RESIDENT_MB, ADDRESS_MB = 700, 1_900
"""Mebibytes of memory and of address space beside the files of bundles: libraries, threads and batches. Measured with
``compact`` on two cores, for texts of 12,000 characters and all metrics: 850 and 2,110 in all."""
_GROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
"""Limit and usage of the control group of a container, in version 2 and 1."""


class MemoryLimit(NamedTuple):
    """How much a process may take yet."""

    mebibytes: int
    needed: int
    """What it needs beside the files of bundles."""
    reason: str
    """Who says so, as a sentence names it."""


def find_memory_limits(groups: Path = Path("/sys/fs/cgroup")) -> Iterator[MemoryLimit]:
    """Yield the limits on memory that hold for this process.

    Args:
        groups: The directory in which Linux describes control groups.
    """
    if sys.platform != "win32":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            yield MemoryLimit(limit // MEBIBYTE, ADDRESS_MB, "of address space (ulimit -v)")
    for maximum, usage in _GROUPS:
        with suppress(OSError, ValueError):
            left = int((groups / maximum).read_text()) - int((groups / usage).read_text())
            yield MemoryLimit(left // MEBIBYTE, RESIDENT_MB, "of memory (its control group)")


def warn_of_limits(file_bytes: int, groups: Path = Path("/sys/fs/cgroup")) -> None:
    """Warn if models may need more memory than this process may take, before a library ends it.

    Args:
        file_bytes: Bytes of the bundles' files that are loaded.
        groups: As of ``find_memory_limits``.
    """
    for limit in find_memory_limits(groups):
        needed = limit.needed + file_bytes // MEBIBYTE
        if limit.mebibytes < needed:
            warnings.warn(
                f"This process may take {limit.mebibytes} MiB {limit.reason}; with these models it needs about "
                f"{needed}, and more with many threads. It may end without another message. Raise the limit, or load "
                "fewer bundles or processes.",
                RuntimeWarning,
                stacklevel=3,
            )
