"""An assertion for promptfoo. It needs no extra: promptfoo starts the Python in which ``groundwire`` is installed.

promptfoo reads a file, so write one, ``consistent.py``, of one line::

    from groundwire.adapters.promptfoo import get_assert

and name it in ``promptfooconfig.yaml``::

    assert:
      - type: python
        value: file://consistent.py

Each test has its knowledge in the variable ``knowledge``, or in the variable that ``config.knowledge`` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundwire.engine import InvalidRequest, Options

from .checking import Checked, Checker

__all__ = ["get_assert", "make_result"]


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Check an output against the knowledge of its test.

    Args:
        output: The output of the provider, a text.
        context: The context of promptfoo: ``vars`` of the test, and ``config`` of the assertion, which may have
            ``knowledge`` and ``history`` (names of variables), ``metrics`` and ``profile``.

    Returns:
        A result of promptfoo, as from ``make_result``.

    Raises:
        InvalidRequest: The test lacks the variable of the knowledge, or the engine cannot compute the metrics.
    """
    config, variables = context.get("config") or {}, context.get("vars") or {}
    name = config.get("knowledge", "knowledge")
    if name not in variables:
        raise InvalidRequest(f"The test has the variables {list(variables)} and no {name!r}; set config.knowledge.")
    history = variables.get(config.get("history", "history")) or ()
    checker = Checker(metrics=config.get("metrics"), options=Options(profile=config.get("profile", "balanced")))
    return make_result(checker.check(output, variables[name], [history] if isinstance(history, str) else list(history)))


def make_result(checked: Checked) -> dict[str, Any]:
    """Return promptfoo's result of an assertion.

    Args:
        checked: The decision.

    Returns:
        ``pass`` is whether the response passed. ``score`` is the probability; promptfoo asks for a number in every
        result, so without a probability it is the number that promptfoo makes of ``pass``: 1 or 0. ``namedScores`` has
        the probability alone, and is empty without it.
    """
    is_passed = checked.passed is True
    named = {} if checked.probability is None else {"groundwire": checked.probability}
    score = float(is_passed) if checked.probability is None else checked.probability
    return {"pass": is_passed, "score": score, "reason": checked.reason, "namedScores": named}
