"""The fixtures, in a run of pytest on files that use them."""

from __future__ import annotations

import pytest

from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from tests.support.adapters import fail, open_engine

pytest_plugins = ["groundwire.adapters.pytest"]

@pytest.fixture(scope="session")
def groundwire_engine():
    with open_engine({roles}) as engine:
        yield engine
"""
TEST = """
def test_it(assert_consistent):
    checked = assert_consistent({response!r}, {knowledge!r}, ["So?"]{more})
    assert checked.passed is True
"""


def run(pytester: pytest.Pytester, response: str, roles: str = "", more: str = "") -> pytest.RunResult:
    pytester.makeconftest(CONFTEST.format(roles=roles))
    pytester.makepyfile(TEST.format(response=response, knowledge=KNOWLEDGE, more=more))
    return pytester.runpytest_inprocess("-p", "no:cacheprovider")


@pytest.mark.parametrize("response", [CONSISTENT, GREETING])
def test_a_response_that_passes(pytester: pytest.Pytester, response: str) -> None:
    run(pytester, response).assert_outcomes(passed=1)


def test_a_response_that_does_not_pass_fails_the_test_with_the_reason(pytester: pytest.Pytester) -> None:
    result = run(pytester, INCONSISTENT)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*The knowledge does not support*", f"*response: {INCONSISTENT}*"])


@pytest.mark.parametrize(("response", "message"), [(CONSISTENT, "*is 0.88*the test needs 0.9*"), (GREETING, "*None*")])
def test_a_minimum_needs_a_probability(pytester: pytest.Pytester, response: str, message: str) -> None:
    result = run(pytester, response, more=", minimum=0.9")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])


def test_without_a_score_the_test_fails(pytester: pytest.Pytester) -> None:
    result = run(pytester, CONSISTENT, roles="nli=fail")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*There is no score.*{FAILURE}*"])
