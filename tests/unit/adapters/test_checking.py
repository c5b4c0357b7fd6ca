"""What other tools read of a score."""

from __future__ import annotations

import asyncio
import importlib

import pytest

from groundwire.adapters.checking import Checked, Checker, NoScore, read_score
from groundwire.adapters.extras import needs
from groundwire.engine import Engine, InvalidRequest, Options
from groundwire.engine.verdict.adjustments import NO_KNOWLEDGE
from tests.support.adapters import (
    CONSISTENT,
    FAILURE,
    GREETING,
    INCONSISTENT,
    KNOWLEDGE,
    PROBABILITY,
    fail,
    open_engine,
)
from tests.support.streams import METRICS, world

NOTHING = "The response states nothing that knowledge could confirm."


@pytest.mark.parametrize(
    ("response", "label", "passed"),
    [(CONSISTENT, "consistent", True), (INCONSISTENT, "inconsistent", False), (GREETING, "unverifiable", True)],
)
def test_a_verdict_decides_whether_a_response_passes(response: str, label: str, passed: bool) -> None:
    with open_engine() as engine:
        checked = Checker(engine).check(response, KNOWLEDGE)
        assert checked == asyncio.run(Checker(engine).acheck(response, KNOWLEDGE))
        assert [checked] == list(Checker(engine).check_many([(response, KNOWLEDGE)]))
    assert (checked.label, checked.passed) == (label, passed)
    assert checked.probability == PROBABILITY.get(response)
    assert checked.threshold == (0.5 if response in PROBABILITY else None)


def test_the_words_that_are_not_supported_are_the_reason() -> None:
    with open_engine() as engine:
        checked = Checker(engine, metrics=METRICS).check(INCONSISTENT, KNOWLEDGE)
    assert [(span.start, span.end) for span in checked.spans] == [(9, 13)]
    assert checked.reason == "The knowledge does not support “blue” (detected)."
    assert checked.to_dict()["spans"][0]["text"] == "blue"
    assert Checked.from_json(checked.to_json()) == checked


@pytest.mark.parametrize("role", ["nli", "detector.verifiability", "token_classifier"])
def test_a_metric_that_fails_leaves_no_score(role: str) -> None:
    """Also one that the verdict does not need: without the token classifier, the label would be ``consistent``."""
    with open_engine(**{role: fail}) as engine:
        score = engine.score(CONSISTENT, KNOWLEDGE, metrics=METRICS)
        checked = Checker(engine, metrics=METRICS).check(CONSISTENT, KNOWLEDGE)
    if role == "token_classifier":
        assert score.verdict.label == "consistent"
    assert checked == read_score(score)
    assert (checked.label, checked.passed, checked.probability) == ("unknown", None, None)
    assert FAILURE in checked.reason
    with pytest.raises(NoScore, match=FAILURE):
        checked.require_probability()


def test_without_a_calibration_there_is_no_score() -> None:
    with Engine(world(None)) as engine:
        checked = Checker(engine, metrics=("nli",)).check(CONSISTENT, KNOWLEDGE)
    assert (checked.passed, checked.probability) == (None, None)
    assert "calibration" in checked.reason


def test_a_deadline_leaves_no_score() -> None:
    with open_engine() as engine:
        checked = Checker(engine, options=Options(deadline_ms=1e-6)).check(CONSISTENT, KNOWLEDGE)
    assert (checked.passed, checked.probability) == (None, None)


@pytest.mark.parametrize(
    ("response", "knowledge", "reason"),
    [("", KNOWLEDGE, "response is empty"), (CONSISTENT, "\0", "knowledge"), (None, KNOWLEDGE, "response is")],
)
def test_unusable_input_leaves_no_score(response: str, knowledge: str, reason: str) -> None:
    with open_engine() as engine:
        checker = Checker(engine)
        checks = [
            checker.check(response, knowledge),
            asyncio.run(checker.acheck(response, knowledge)),
            *checker.check_many([{"response": response, "knowledge": knowledge}]),
        ]
    for checked in checks:
        assert (checked.label, checked.passed, checked.probability) == ("unknown", None, None)
        assert reason in checked.reason


def test_without_knowledge_a_statement_has_no_score_and_a_greeting_passes() -> None:
    with open_engine() as engine:
        checker = Checker(engine)
        for checked in (checker.check(GREETING, None), asyncio.run(checker.acheck(GREETING, None))):
            assert (checked.label, checked.passed, checked.probability) == ("unknown", None, None)
            assert "knowledge is missing" in checked.reason
        checked = checker.check(CONSISTENT, [])
        assert (checked.label, checked.passed, checked.probability) == ("unknown", None, None)
        assert NO_KNOWLEDGE in checked.reason
        assert checker.check(GREETING, []).passed is True


def test_a_closed_engine_leaves_no_score() -> None:
    engine = open_engine()
    checker = Checker(engine)
    engine.close()
    assert checker.check(CONSISTENT, KNOWLEDGE).passed is None
    assert asyncio.run(checker.acheck(CONSISTENT, KNOWLEDGE)).passed is None


def test_a_metric_that_the_engine_lacks_is_an_error_of_the_caller() -> None:
    with open_engine() as engine, pytest.raises(InvalidRequest, match="q2"):
        Checker(engine, metrics=("q2",)).check(CONSISTENT, KNOWLEDGE)


def test_a_greeting_has_no_number() -> None:
    with open_engine() as engine:
        checked = Checker(engine).check(GREETING, KNOWLEDGE)
    assert checked == Checked("unverifiable", True, None, NOTHING)
    with pytest.raises(NoScore, match="nothing"):
        checked.require_probability()


def test_a_package_that_is_absent_is_named_with_its_extra() -> None:
    reason = r"adapters\.llama_index .*pip install 'groundwire\[llama-index\]'"
    with pytest.raises(ImportError, match=reason), needs("llama-index"):
        importlib.import_module("a_package_that_does_not_exist")
