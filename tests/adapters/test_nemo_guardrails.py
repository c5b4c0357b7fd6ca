"""The action, alone and in a rail without a language model."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("nemoguardrails")
from nemoguardrails import LLMRails, RailsConfig  # noqa: E402

from groundwire.adapters.nemo_guardrails import make_action  # noqa: E402

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "integrations.md"


def run(engine: Engine, response: str | None, chunks: Any = KNOWLEDGE) -> Any:
    context = {"bot_message": response, "relevant_chunks": chunks, "last_user_message": "What is honey like?"}
    return asyncio.run(make_action(engine)(context=context))  # type: ignore[arg-type]


@pytest.mark.parametrize(("response", "passed"), [(CONSISTENT, True), (INCONSISTENT, False), (GREETING, True)])
def test_the_action_returns_whether_a_message_passes(engine: Engine, response: str, passed: bool) -> None:
    result = run(engine, response)
    assert result.return_value is passed
    assert result.context_updates["groundwire"]["probability"] == PROBABILITY.get(response)


@pytest.mark.parametrize(
    ("response", "chunks"),
    [*((CONSISTENT, chunks) for chunks in (None, [], "", "\n")), (GREETING, None), (None, KNOWLEDGE)],
)
def test_without_chunks_or_a_message_no_statement_passes(engine: Engine, response: str | None, chunks: Any) -> None:
    assert run(engine, response, chunks).return_value is False


@pytest.mark.parametrize("chunks", [[], "", "\n"])
def test_what_states_nothing_passes_where_nothing_was_found(engine: Engine, chunks: Any) -> None:
    """NeMo Guardrails' own retrieval leaves an empty line where it finds nothing."""
    assert run(engine, GREETING, chunks).return_value is True


def test_a_failed_metric_does_not_pass(failing_engine: Engine) -> None:
    result = run(failing_engine, CONSISTENT)
    assert result.return_value is False
    assert FAILURE in result.context_updates["groundwire"]["reason"]


def test_without_a_context_nothing_passes(engine: Engine) -> None:
    result: Any = asyncio.run(make_action(engine)())  # type: ignore[arg-type]
    assert result.return_value is False


@pytest.mark.parametrize(
    ("response", "chunks", "said"),
    [
        (CONSISTENT, KNOWLEDGE, CONSISTENT),
        (INCONSISTENT, KNOWLEDGE, "I am not sure."),
        (CONSISTENT, "", "I am not sure."),
    ],
)
def test_the_flow_of_the_guide_is_an_output_rail(engine: Engine, response: str, chunks: Any, said: str) -> None:
    (flow,) = re.findall(r"^define subflow check knowledge\n.*?(?=^```)", GUIDE.read_text("utf-8"), re.DOTALL | re.M)
    refusal = 'define bot refuse to respond\n  "I am not sure."\n\n'
    rails = LLMRails(RailsConfig.from_content(refusal + flow, "rails: {output: {flows: [check knowledge]}}"))
    rails.register_action(make_action(engine))
    messages = [
        {"role": "context", "content": {"relevant_chunks": chunks}},
        {"role": "user", "content": "What is honey like?"},
        {"role": "assistant", "content": response},
    ]
    answer = rails.generate(messages=messages, options={"rails": ["output"]})
    assert answer.response == [{"role": "assistant", "content": said}]
