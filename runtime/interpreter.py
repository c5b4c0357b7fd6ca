"""Refuses Python's subinterpreters, in which the libraries of the models do not run: NumPy's import never ends."""

from __future__ import annotations

from importlib import import_module


def check_interpreter() -> None:
    """Raise ImportError unless this is the main interpreter of the process."""
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
