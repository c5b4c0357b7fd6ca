"""Keeps torch out of a process that only scores: thinc, on which spaCy rests, imports it wherever it is installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


def leave_torch_out() -> None:
    """Let thinc find no torch when it is imported; other modules that import torch find it.

    Importing torch takes over a second of processor time and 180 MB, for wrappers that no bundle may use. Call it only
    in a process that is Groundwire's own: a pipeline of spaCy that is built on torch does not load there.
    """
    if not any(finder is _HideFromThinc for finder in sys.meta_path):
        sys.meta_path.insert(0, _HideFromThinc)


class _HideFromThinc:
    """A finder of modules that says to ``thinc.compat`` alone that there is no torch."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name == "torch":
            compat = sys.modules.get("thinc.compat")
            if compat is not None and not hasattr(compat, "has_torch"):  # it is being imported, and asks
                raise ModuleNotFoundError("torch is left out", name="torch")
