"""Memory of this process, with the standard library alone, so that reading it costs none."""

from __future__ import annotations

import os
import resource
from pathlib import Path


def resident_mb() -> float:
    """Memory of this process that is in RAM now, in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb() -> float:
    """The largest resident size this process had, in MB (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
