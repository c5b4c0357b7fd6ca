"""What the processor can do, as far as it changes results."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

INT8_KERNELS = ("amx_int8", "avx512_vnni", "avx_vnni", "avx512bw", "avx2", "i8mm", "asimddp", "asimd")
"""Flags of Linux, in the order in which ONNX Runtime prefers their int8 kernels."""
FEATURES = (*INT8_KERNELS, "avx512f", "avx512_bf16")


@cache
def processor_features() -> tuple[str, ...]:
    """Those of ``FEATURES`` that the processor has; empty where the system does not say."""
    try:
        return read_features(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ()


def read_features(cpuinfo: str) -> tuple[str, ...]:
    """Return those of ``FEATURES`` that a text of ``/proc/cpuinfo`` has, under ``flags`` or, on Arm, ``Features``."""
    words = set(cpuinfo.split())
    return tuple(feature for feature in FEATURES if feature in words)


def int8_kernel() -> str:
    """The instruction set of the int8 kernels that ONNX Runtime chooses here; the machine's name where unknown.

    It changes results: AVX2 without VNNI adds pairs of products in 16 bits and saturates. The others do not, nor do
    those of Arm (``i8mm``, the dot product ``asimddp``, and plain NEON, ``asimd``).
    """
    features = processor_features()
    return next((feature for feature in INT8_KERNELS if feature in features), platform.machine())
