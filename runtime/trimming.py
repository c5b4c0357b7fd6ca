"""Memory that was freed, back to the system: glibc keeps what lies between things that live, hundreds of megabytes."""

from __future__ import annotations

import ctypes
import sys


def trim_memory() -> None:
    """Give freed memory back, where the C library can (glibc)."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
