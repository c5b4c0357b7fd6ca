"""Model calls of a runtime whose results are of one type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from groundwire.runtime.calls import Call
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.protocol import Runtime

Result = TypeVar("Result")


def run_calls(
    runtime: Runtime, role: str, calls: Sequence[Call], result: type[Result], max_windows: int
) -> list[Result]:
    """The results of ``calls`` to a role, in order; raises the first error among them.

    TypeError when a result is not of the type ``result``.
    """
    results: list[Result] = []
    for outcome in runtime.run(role, calls, max_windows):
        if isinstance(outcome, GroundwireError):
            raise outcome
        if not isinstance(outcome, result):
            raise TypeError(f"The role {role!r} gave {type(outcome).__name__}; expected {result.__name__}.")
        results.append(outcome)
    return results
