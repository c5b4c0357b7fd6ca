"""Counts the work of a call, where a measured time would depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_steps(call: Callable[[], object]) -> int:
    """Return the number of bytecode instructions that ``call`` runs, without those inside compiled extensions.

    Python 3.12 reports instructions once a frame has asked for them, and 3.13 those of functions that were traced
    before: ``call`` is called twice, and counted the second time.
    """
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        call()
        steps = 0
        call()
    finally:
        sys.settrace(before)
    return steps


class CountedText(str):
    """A text that counts the characters that are copied out of it by slicing."""

    __slots__ = ("copied",)

    def __new__(cls, text: str) -> CountedText:
        """Return the text, of which nothing is copied yet."""
        counted = super().__new__(cls, text)
        counted.copied = 0
        return counted

    def __getitem__(self, key: Any) -> str:
        """Return the part of the text, and count its characters."""
        part = super().__getitem__(key)
        self.copied += len(part)
        return part
