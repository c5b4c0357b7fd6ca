"""Turns the doctests of docstrings into code blocks, as an extension of griffe for the documentation site."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?m)^[ ]*>>> .*(?:\n[ ]*\S.*)*")
_DIRECTIVE = re.compile(r"\s*# doctest: .*")


def fence_examples(text: str) -> str:
    """Return ``text`` with each doctest as a fenced code block, without its directives."""

    def fence(example: re.Match[str]) -> str:
        lines = [_DIRECTIVE.sub("", line) for line in example[0].splitlines()]
        return "\n".join(["```pycon", *lines, "```"])

    return _EXAMPLE.sub(fence, text)


class FenceDoctests(griffe.Extension):
    """Rewrites every docstring that is loaded."""

    def on_instance(self, *, obj: griffe.Object, **context: Any) -> None:
        """Fence the doctests of one object."""
        if obj.docstring:
            obj.docstring.value = fence_examples(obj.docstring.value)
