"""Memory of this process, read with the standard library alone, which needs no memory of its own."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path


class _Hidden(MetaPathFinder):
    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] == self._name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def hide(name: str) -> None:
    """Make later imports of the package ``name`` fail in this process, as if it was not installed."""
    sys.meta_path.insert(0, _Hidden(name))


class _Mallinfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


def in_use_mb() -> float:
    """Memory that was allocated from the C library and not freed, in MB (glibc)."""
    ask = ctypes.CDLL("libc.so.6").mallinfo2
    ask.restype = _Mallinfo
    info = ask()
    return float(info.uordblks + info.hblkhd) / 1e6


def resident_mb() -> float:
    """Memory of this process that is in RAM now, in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def forget_peak() -> None:
    """Reset ``peak_mb`` (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_mb() -> float:
    """The largest resident size since the process began or forgot its peak, in MB (Linux).

    Not ``ru_maxrss``, which begins at the size of the process that started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6
