"""Converts checkpoints to bundles: load → convert → optimize → quantize → verify → save.

``export_bundle`` and ``export_role`` turn transformers checkpoints into ONNX graphs that the runtime reads without
torch; ``preset`` names the published checkpoints of a paper. The same as a command: ``groundwire export --help``.

Names are imported on first use, so that the command line can list this package's command without the extra ``export``;
the first use without that extra raises ImportError with the install command.
"""

from __future__ import annotations

if __name__ != "groundwire.export":  # a second copy of every class
    raise ImportError("This folder is the source of groundwire.export: import that.")

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .options import (
        ClassifierSettings,
        EmbedderSettings,
        Gate,
        JudgeSettings,
        QuestionGeneratorSettings,
        ReaderSettings,
        ResponseGeneratorSettings,
        RoleOptions,
        SpansSettings,
        TokenClassifierSettings,
    )
    from .pipeline import export_bundle, export_role
    from .presets import PRESETS, override, preset
    from .store import Title

__all__ = [
    "PRESETS",
    "ClassifierSettings",
    "EmbedderSettings",
    "Gate",
    "JudgeSettings",
    "QuestionGeneratorSettings",
    "ReaderSettings",
    "ResponseGeneratorSettings",
    "RoleOptions",
    "SpansSettings",
    "Title",
    "TokenClassifierSettings",
    "export_bundle",
    "export_role",
    "override",
    "preset",
]

_HOMES = {
    "ClassifierSettings": "options",
    "EmbedderSettings": "options",
    "Gate": "options",
    "JudgeSettings": "options",
    "QuestionGeneratorSettings": "options",
    "ReaderSettings": "options",
    "ResponseGeneratorSettings": "options",
    "RoleOptions": "options",
    "SpansSettings": "options",
    "TokenClassifierSettings": "options",
    "export_bundle": "pipeline",
    "export_role": "pipeline",
    "PRESETS": "presets",
    "override": "presets",
    "preset": "presets",
    "Title": "store",
}
_NEEDED = ("torch", "transformers", "onnx", "onnx_ir")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require()
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def require() -> None:
    """Raise ImportError with the install command when a library of the extra ``export`` is missing."""
    missing = [module for module in _NEEDED if importlib.util.find_spec(module) is None]
    if missing:
        raise ImportError(
            f"groundwire.export needs {', '.join(missing)}; run: pip install 'groundwire[export]' "
            "(with torch==2.13.0 for a CPU-only machine)"
        )
