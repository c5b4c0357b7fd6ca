"""Memory of this process and of its GPU, read without a library that needs memory of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def resident_mb() -> float:
    """Memory of this process that is in RAM now, in MB (Linux; OSError elsewhere)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb() -> float:
    """The largest resident size since the process began, in MB (Linux; OSError elsewhere).

    Not ``ru_maxrss``, which begins at the size of the process that started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def used_gpu_mb(index: int) -> float | None:
    """Memory in use on a GPU, by all processes, in MB; None where nvidia-smi does not say."""
    command = ["nvidia-smi", f"--id={index}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
        return float(done.stdout) * 2**20 / 1e6
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
