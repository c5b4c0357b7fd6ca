"""Imports the large libraries in the process that stages fork from, and says whether one of them has started CUDA.

A process that forks after CUDA's ``cuInit`` has children that cannot use it. spaCy's library thinc asks CuPy for GPUs,
which is such a call, so CuPy is hidden from it; PyTorch asks NVML, which is none.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from contextlib import suppress

NOT_INITIALIZED = 3
"""CUDA_ERROR_NOT_INITIALIZED."""


def import_libraries() -> None:
    """Import what the stages import, as far as it can be imported; CuPy cannot be afterwards."""
    sys.modules["cupy"] = None  # type: ignore[assignment]
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    for name in ("ceilings", "default", "parity", "prepare", "processes", "roles", "whole"):
        with suppress(Exception):  # the stage that needs it says so
            importlib.import_module(f"bench.gpu.{name}")


def is_cuda_started() -> bool:
    """Whether something in this process has called ``cuInit``."""
    try:
        count = ctypes.CDLL("libcuda.so.1").cuDeviceGetCount
    except (OSError, AttributeError):  # no driver
        return False
    return int(count(ctypes.byref(ctypes.c_int()))) != NOT_INITIALIZED


import_libraries()
CUDA_STARTED = is_cuda_started()
