"""The validator in Guardrails' own guard, whole and in a stream."""

from __future__ import annotations

from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, load
from tests.support.streams import METRICS

guardrails = load("guardrails")
from guardrails.errors import ValidationError  # noqa: E402

from groundwire.adapters.guardrails_ai import GroundwireValidator  # noqa: E402

ASKED = [{"role": "user", "content": "What is honey like?"}]


def check(engine: Engine, text: str, metadata: dict[str, Any], on_fail: str = "noop") -> Any:
    guard = guardrails.Guard().use(GroundwireValidator(engine, on_fail=on_fail, metrics=METRICS))
    return guard.validate(text, metadata=metadata)


@pytest.mark.parametrize(("text", "passed"), [(CONSISTENT, True), (GREETING, True), (INCONSISTENT, False)])
def test_a_text_passes_if_the_knowledge_supports_it(engine: Engine, text: str, passed: bool) -> None:
    outcome = check(engine, text, {"knowledge": [KNOWLEDGE]})
    assert outcome.validation_passed is passed
    if not passed:
        (summary,) = outcome.validation_summaries
        assert "does not support" in summary.failure_reason
        assert [(span.start, span.end) for span in summary.error_spans] == [(9, 13)]


def test_a_text_that_fails_is_an_exception_unless_something_else_is_named(engine: Engine) -> None:
    with pytest.raises(ValidationError, match="does not support"):
        guardrails.Guard().use(GroundwireValidator(engine)).validate(INCONSISTENT, metadata={"knowledge": KNOWLEDGE})
    outcome = check(engine, INCONSISTENT, {"knowledge": KNOWLEDGE}, "filter")
    assert (outcome.validation_passed, outcome.validated_output) == (False, None)


def test_fix_corrects_a_text_or_lets_nothing_through() -> None:
    known = "Express delivery costs £4.95 and takes one working day."
    with Engine.load("compact", device="cpu") as engine:
        guard = guardrails.Guard().use(GroundwireValidator(engine, on_fail="fix"))
        fixed = guard.validate("Express delivery costs £5.95.", metadata={"knowledge": known})
        refused = guard.validate("The moon is made of cheese.", metadata={"knowledge": known})
    assert fixed.validated_output == "Express delivery costs £4.95."
    assert refused.validated_output is None


def test_without_a_score_nothing_passes(engine: Engine, failing_engine: Engine) -> None:
    outcome = check(failing_engine, CONSISTENT, {"knowledge": KNOWLEDGE})
    assert outcome.validation_passed is False
    assert FAILURE in outcome.validation_summaries[0].failure_reason
    assert check(engine, CONSISTENT, {"knowledge": []}).validation_passed is False
    with pytest.raises(ValueError, match="knowledge"):
        check(engine, CONSISTENT, {})


def test_a_stream_is_checked_by_sentences(engine: Engine) -> None:
    def ask(*args: Any, **kwargs: Any) -> Any:
        return iter([f"{CONSISTENT} Honey ", f"is blue. {CONSISTENT}"])

    guard = guardrails.Guard().use(GroundwireValidator(engine, on_fail="noop"))
    outcomes = list(guard(ask, messages=ASKED, metadata={"knowledge": KNOWLEDGE}, stream=True))
    assert False in [outcome.validation_passed for outcome in outcomes]
