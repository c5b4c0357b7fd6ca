"""An output guardrail for the OpenAI Agents SDK.

Needs the extra: ``pip install 'groundwire[openai-agents]'``.

>>> from groundwire.adapters.openai_agents import make_output_guardrail                     # doctest: +SKIP
>>> guardrail = make_output_guardrail(lambda run: run.context.documents)                        # doctest: +SKIP
>>> Agent(name="guide", output_guardrails=[guardrail])                                          # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groundwire.engine import Engine, Options
from groundwire.engine.extend import Knowledge

from .checking import Checker
from .extras import needs

with needs("openai-agents"):
    from agents import Agent, GuardrailFunctionOutput, OutputGuardrail, RunContextWrapper

__all__ = ["make_output_guardrail"]


def make_output_guardrail(
    knowledge: Callable[[RunContextWrapper[Any]], Knowledge],
    engine: Engine | None = None,
    *,
    response: Callable[[Any], str] = lambda output: output,
    history: Callable[[RunContextWrapper[Any]], Sequence[str]] = lambda run: (),
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> OutputGuardrail[Any]:
    """Return a guardrail that stops an agent's output unless it passes.

    Args:
        knowledge: Reads the knowledge from the run's context.
        engine: The engine; None is ``default_engine``.
        response: Reads the text of an output that is not a text.
        history: Reads the utterances before the output from the run's context.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.

    Returns:
        The guardrail. The tripwire is also triggered without a score; ``output_info`` is ``Checked.to_dict()``.
        An
        error of these functions ends the run.
    """
    checker = Checker(engine, metrics=metrics, options=options)

    async def groundwire(run: RunContextWrapper[Any], agent: Agent[Any], output: Any) -> GuardrailFunctionOutput:
        checked = await checker.acheck(response(output), knowledge(run), history(run))
        return GuardrailFunctionOutput(output_info=checked.to_dict(), tripwire_triggered=checked.passed is not True)

    return OutputGuardrail(guardrail_function=groundwire, name="groundwire")
