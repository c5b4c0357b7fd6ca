"""Opens sessions whose int8 products are exact on every x86 processor, where ONNX Runtime can."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import onnxruntime as ort

_WIDEN = "session.x64quantprecision"
"""ONNX Runtime's remedy for AVX2 and AVX-512 without VNNI, which add two products of bytes in 16 bits and saturate:
weights become unsigned, and their products are added in 32 bits. It changes nothing on other processors."""
_SHARED = "replace the existing tensor"
"""What ONNX Runtime 1.31 says when products share a weight, as ALBERT's layers do: it would widen it twice."""
Session = TypeVar("Session")


def open_exact(opened: Callable[[ort.SessionOptions], Session], options: ort.SessionOptions) -> Session:
    """The session that ``opened`` makes of ``options``.

    Graphs whose products share weights saturate as before on the processors without VNNI.
    """
    options.add_session_config_entry(_WIDEN, "1")
    try:
        return opened(options)
    except ort.capi.onnxruntime_pybind11_state.Fail as error:
        if _SHARED not in str(error):
            raise
    options.add_session_config_entry(_WIDEN, "0")
    return opened(options)
