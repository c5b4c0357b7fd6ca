"""The guardrail in runs of agents whose model is a script."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

agents = load("agents")
from agents import Agent, Model, ModelResponse, OutputGuardrailTripwireTriggered, RunConfig, Runner  # noqa: E402
from agents.usage import Usage  # noqa: E402
from openai.types.responses import ResponseOutputMessage, ResponseOutputText  # noqa: E402

from groundwire.adapters.openai_agents import make_output_guardrail  # noqa: E402


@dataclass
class Script(Model):  # type: ignore[misc]  # agents is not read by mypy
    """A model that always says the same."""

    text: str

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        content = [ResponseOutputText(text=self.text, type="output_text", annotations=[])]
        message = ResponseOutputMessage(id="1", content=content, role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def run(engine: Engine, text: str, knowledge: str = KNOWLEDGE, **settings: Any) -> Any:
    guardrail = make_output_guardrail(
        lambda run: run.context["documents"], engine, history=lambda run: ["What is honey like?"], **settings
    )
    agent = Agent(name="guide", model=Script(text), output_guardrails=[guardrail])
    return asyncio.run(
        Runner.run(agent, "What is honey like?", context={"documents": knowledge},
                   run_config=RunConfig(tracing_disabled=True))
    )  # fmt: skip


@pytest.mark.parametrize("text", [CONSISTENT, GREETING])
def test_an_output_that_passes_is_the_result(engine: Engine, text: str) -> None:
    result = run(engine, text)
    assert result.final_output == text
    (outcome,) = result.output_guardrail_results
    assert outcome.guardrail.get_name() == "groundwire"
    assert outcome.output.output_info["probability"] == PROBABILITY.get(text)


@pytest.mark.parametrize(("text", "knowledge", "passed"), [(INCONSISTENT, KNOWLEDGE, False), (CONSISTENT, "", None)])
def test_other_outputs_trip_the_wire(engine: Engine, text: str, knowledge: str, passed: bool | None) -> None:
    with pytest.raises(OutputGuardrailTripwireTriggered) as caught:
        run(engine, text, knowledge)
    assert caught.value.guardrail_result.output.output_info["passed"] is passed


def test_a_failed_metric_trips_the_wire(failing_engine: Engine) -> None:
    with pytest.raises(OutputGuardrailTripwireTriggered) as caught:
        run(failing_engine, CONSISTENT)
    assert FAILURE in caught.value.guardrail_result.output.output_info["reason"]


def test_an_output_that_is_no_text_is_read_or_stopped(engine: Engine) -> None:
    assert run(engine, "sweet", response=lambda output: f"Honey is {output}.").final_output == "sweet"
    with pytest.raises(OutputGuardrailTripwireTriggered):
        run(engine, CONSISTENT, response=lambda output: {"answer": output})
