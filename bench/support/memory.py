"""Memory of this process, read with the standard library alone, which needs no memory of its own."""

from __future__ import annotations

import ctypes
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

from groundwire.evaluate.speed.memory import peak_mb as peak_mb
from groundwire.evaluate.speed.memory import resident_mb as resident_mb


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


def forget_peak() -> None:
    """Reset ``peak_mb`` (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
