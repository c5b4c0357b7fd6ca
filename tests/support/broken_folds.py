"""Folds that raise for the responses with a certain word, as a defect of the verdict's code would."""

from __future__ import annotations

from typing import Any

import pytest

from groundwire.engine.core import core
from groundwire.engine.schema.results import Score
from groundwire.engine.verdict.decision import decide_alone
from groundwire.engine.verdict.score import build_score
from groundwire.guard import checks

BROKEN = "broken"
MESSAGE = "IndexError: list index out of range. This is a defect of the verdict; please report it."
"""What a score without a verdict says."""


def build(request: Any, *others: Any) -> Score:
    """As ``build_score``; a response that is ``BROKEN`` raises IndexError."""
    if BROKEN in request.response:
        return [][0]
    return build_score(request, *others)


def decide(request: Any, *others: Any) -> Any:
    """As ``decide_alone``; a sentence that is ``BROKEN`` raises IndexError."""
    if BROKEN in request.response:
        return [][0]
    return decide_alone(request, *others)


def break_folds(patch: pytest.MonkeyPatch) -> None:
    """Break the folds of scores, and of the sentences of a stream."""
    patch.setattr(core, "build_score", build)
    patch.setattr(checks, "decide_alone", decide)
