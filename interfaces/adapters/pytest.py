"""Fixtures for tests of what a dialogue system says.

Needs pytest. In ``conftest.py``:

>>> pytest_plugins = ["groundwire.adapters.pytest"]

and in a test:

>>> def test_the_answer(assert_consistent):
...     assert_consistent(answer("Who painted it?"), knowledge=DOCUMENT)                        # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from groundwire.engine import Engine, default_engine
from groundwire.engine.extend import Knowledge

from .checking import Checked, Checker
from .extras import needs

with needs("pytest"):
    import pytest

__all__ = ["AssertConsistent", "assert_consistent", "groundwire_engine"]


class AssertConsistent(Protocol):
    """The function that the fixture ``assert_consistent`` is."""

    def __call__(
        self, response: str, knowledge: Knowledge, history: Sequence[str] = (), *, minimum: float | None = None
    ) -> Checked:
        """Fail the test unless the response passes; with ``minimum``, unless its probability is at least that too."""
        ...


@pytest.fixture(scope="session")
def groundwire_engine() -> Engine:
    """The engine of the tests, ``default_engine``; a conftest may have its own fixture of this name."""
    return default_engine()


@pytest.fixture
def assert_consistent(groundwire_engine: Engine) -> AssertConsistent:
    """Return a function that fails the test unless the knowledge supports a response.

    Args:
        groundwire_engine: The fixture of this name.

    Returns:
        The function of a response, its knowledge and its history. With ``minimum`` the probability must reach it, 0–1.
    """
    checker = Checker(groundwire_engine)

    def check(
        response: str, knowledge: Knowledge, history: Sequence[str] = (), *, minimum: float | None = None
    ) -> Checked:
        __tracebackhide__ = True
        checked = checker.check(response, knowledge, history)
        if checked.passed is not True:
            pytest.fail(f"{checked.reason}\nresponse: {response}\nprobability: {checked.probability}")
        if minimum is not None and (checked.probability is None or checked.probability < minimum):
            pytest.fail(f"The probability is {checked.probability}, the test needs {minimum}.\nresponse: {response}")
        return checked

    return check
