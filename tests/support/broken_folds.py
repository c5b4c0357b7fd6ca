"""Folds that raise for the responses with a certain word, as a defect of the verdict's code would."""

from __future__ import annotations

from typing import Any

import pytest

from groundwire.engine.core import core
from groundwire.engine.schema.results import Score
from groundwire.engine.verdict.score import build_score, build_sentence_score

BROKEN = "broken"
MESSAGE = "IndexError: list index out of range. This is a defect of the verdict; please report it."
"""What a score without a verdict says."""


def build(request: Any, *others: Any) -> Score:
    """As ``build_score``; a response that is ``BROKEN`` raises IndexError."""
    if BROKEN in request.response:
        return [][0]
    return build_score(request, *others)


def build_sentence(request: Any, *others: Any) -> Score:
    """As ``build_sentence_score``; a sentence that is ``BROKEN`` raises IndexError."""
    if BROKEN in request.response:
        return [][0]
    return build_sentence_score(request, *others)


def break_folds(patch: pytest.MonkeyPatch) -> None:
    """Break the folds of scores, and of the sentences of a stream."""
    patch.setattr(core, "build_score", build)
    patch.setattr(core, "build_sentence_score", build_sentence)
