"""What a process settles before its first heavy import: the interpreter is the main one, and scoring loads no torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType


def check_interpreter() -> None:
    """Raise ImportError unless this is the main interpreter of the process: in another, NumPy's import never ends."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # from Python 3.13, and before
        try:
            interpreters = import_module(name)
        except ImportError:
            continue
        current, main = interpreters.get_current(), interpreters.get_main()
        # From 3.13 each is the id, and how the interpreter came to be.
        if (current[0] != main[0]) if isinstance(current, tuple) else current != main:
            raise ImportError(
                "groundwire does not run in a subinterpreter, as NumPy and ONNX Runtime do not; use threads of the "
                "main interpreter, or a process."
            )
        return


def leave_torch_out() -> None:
    """Let thinc, on which spaCy rests, find no torch when it is imported; other modules that import torch find it.

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
