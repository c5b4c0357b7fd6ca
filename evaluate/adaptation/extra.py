"""What adapting a bundle needs beside the engine."""

from __future__ import annotations

import importlib.util

_NEEDED = ("sklearn", "scipy", "threadpoolctl", "onnx_ir")


def check_libraries() -> None:
    """Raise ImportError with the install command when a library is missing."""
    missing = [module for module in _NEEDED if importlib.util.find_spec(module) is None]
    if missing:
        raise ImportError(f"groundwire adapt needs {', '.join(missing)}; run: pip install 'groundwire[adapt]'")
