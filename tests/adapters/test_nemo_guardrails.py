"""The action, alone and in a rail without a language model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("nemoguardrails")
from groundwire.adapters.nemo_guardrails import make_action  # noqa: E402


def run(engine: Engine, response: str | None, chunks: Any = KNOWLEDGE) -> Any:
    context = {"bot_message": response, "relevant_chunks": chunks, "last_user_message": "What is honey like?"}
    return asyncio.run(make_action(engine)(context=context))  # type: ignore[arg-type]


@pytest.mark.parametrize(("response", "passed"), [(CONSISTENT, True), (INCONSISTENT, False), (GREETING, True)])
def test_the_action_returns_whether_a_message_passes(engine: Engine, response: str, passed: bool) -> None:
    result = run(engine, response)
    assert result.return_value is passed
    assert result.context_updates["groundwire"]["probability"] == PROBABILITY.get(response)


@pytest.mark.parametrize(("response", "chunks"), [(CONSISTENT, None), (CONSISTENT, []), (None, KNOWLEDGE)])
def test_without_chunks_or_a_message_nothing_passes(engine: Engine, response: str | None, chunks: Any) -> None:
    assert run(engine, response, chunks).return_value is False


def test_a_failed_metric_does_not_pass(failing_engine: Engine) -> None:
    result = run(failing_engine, CONSISTENT)
    assert result.return_value is False
    assert FAILURE in result.context_updates["groundwire"]["reason"]


def test_without_a_context_nothing_passes(engine: Engine) -> None:
    result: Any = asyncio.run(make_action(engine)())  # type: ignore[arg-type]
    assert result.return_value is False
