"""Memory of a process with models: what is collected while it answers, and what goes back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys


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
