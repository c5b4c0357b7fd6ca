"""The guardrail and its result."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load
from tests.support.streams import METRICS

load("any_guardrail")
from any_guardrail import Guardrail  # noqa: E402

from groundwire.adapters.any_guardrail import GroundwireGuardrail  # noqa: E402


@pytest.mark.parametrize(
    ("response", "valid", "triggered"),
    [(CONSISTENT, True, False), (INCONSISTENT, False, True), (GREETING, True, False)],
)
def test_the_score_is_the_risk(engine: Engine, response: str, valid: bool, triggered: bool) -> None:
    guardrail: Guardrail = GroundwireGuardrail(engine)
    output = guardrail.validate(response, context=[KNOWLEDGE], question="What is honey like?")
    assert output.valid is valid
    assert (None if output.score is None else 1 - output.score) == PROBABILITY.get(response)
    assert [category.triggered for category in output.categories] == [triggered]


def test_spans_are_the_words_that_are_not_supported(engine: Engine) -> None:
    output = GroundwireGuardrail(engine, metrics=METRICS).validate(INCONSISTENT, KNOWLEDGE)
    assert output.spans is not None
    assert [(span.start, span.end, span.text) for span in output.spans] == [(9, 13, "blue")]
    assert "“blue”" in str(output.explanation)


@pytest.mark.parametrize(("response", "context"), [("", KNOWLEDGE), (CONSISTENT, None)])
def test_what_cannot_be_checked_is_not_valid(engine: Engine, response: str, context: str | None) -> None:
    output = GroundwireGuardrail(engine).validate(response, context)
    assert (output.valid, output.score, output.categories[0].triggered) == (False, None, None)


def test_a_failed_metric_is_not_valid(failing_engine: Engine) -> None:
    output = GroundwireGuardrail(failing_engine).validate(CONSISTENT, KNOWLEDGE)
    assert (output.valid, output.score, output.categories[0].triggered) == (False, None, None)
    assert FAILURE in str(output.explanation)
