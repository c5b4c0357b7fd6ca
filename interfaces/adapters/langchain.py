"""A runnable for LangChain's chains, and an evaluator for LangSmith's runs.

Needs the extra: ``pip install 'groundwire[langchain]'``.

>>> from groundwire.adapters.langchain import make_runnable                                 # doctest: +SKIP
>>> chain = {"response": answer, "knowledge": retriever} | make_runnable()                      # doctest: +SKIP
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from groundwire.engine import Engine, InvalidRequest, Options

from .checking import Checker
from .extras import needs
from .texts import read_text, read_texts

with needs("langchain"):
    from langchain_core.runnables import Runnable, RunnableLambda
    from langsmith.evaluation import EvaluationResult, RunEvaluator

__all__ = ["LangSmithEvaluator", "make_runnable"]


def make_runnable(
    engine: Engine | None = None,
    *,
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> Runnable[Mapping[str, Any], dict[str, Any]]:
    """Return a runnable from ``response``, ``knowledge`` and perhaps ``history`` to ``Checked.to_dict()``.

    Each is a text, a message or a document, or, except for the response, a list of them. A response may go on only if
    ``passed`` is True; it is None without a score.

    Args:
        engine: The engine; None is ``default_engine``.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.

    Returns:
        The runnable. It raises InvalidRequest without a response or knowledge.
    """
    checker = Checker(engine, metrics=metrics, options=options)

    def check(turn: Mapping[str, Any]) -> dict[str, Any]:
        return checker.check(**_read_turn(turn)).to_dict()

    async def acheck(turn: Mapping[str, Any]) -> dict[str, Any]:
        return (await checker.acheck(**_read_turn(turn))).to_dict()

    return RunnableLambda(check, afunc=acheck, name="groundwire")


class LangSmithEvaluator(RunEvaluator):  # type: ignore[misc]  # langsmith is not read by mypy
    """Scores LangSmith runs, in ``langsmith.evaluate`` or ``EvaluatorCallbackHandler``."""

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        response: str = "output",
        knowledge: str = "knowledge",
        key: str = "groundwire",
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Make the evaluator.

        Args:
            engine: The engine; None is ``default_engine``.
            response: A key of a run's outputs.
            knowledge: A key of a run's outputs or inputs, or of the example's.
            key: Name of the feedback.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        self.key = key
        self._response, self._knowledge = response, knowledge
        self._checker = Checker(engine, metrics=metrics, options=options)

    @property
    def feedback_keys(self) -> list[str]:
        """The names of the feedback: one."""
        return [self.key]

    def evaluate_run(
        self, run: Any, example: Any | None = None, evaluator_run_id: uuid.UUID | None = None
    ) -> EvaluationResult:
        """Score a run.

        Args:
            run: The run, whose outputs have the response.
            example: The example of the run; None for none.
            evaluator_run_id: Identifier of this evaluation, which is not used.

        Returns:
            The probability as ``score``, the label as ``value`` and the reason as ``comment``. ``score`` is None if the
            run
            failed, the verdict is ``unknown`` or ``unverifiable``, or a text is missing, as the comment says.
        """
        sources = [run.outputs, run.inputs, *([example.inputs, example.outputs] if example else [])]
        knowledge = next((source[self._knowledge] for source in sources if source and self._knowledge in source), None)
        response = (run.outputs or {}).get(self._response, "")
        checked = self._checker.check(read_text(response), read_texts(knowledge))
        return EvaluationResult(
            key=self.key,
            score=checked.probability,
            value=checked.label,
            comment=checked.reason,
            metadata=checked.to_dict(),
        )


def _read_turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("response", "knowledge"):
        if name not in turn:
            raise InvalidRequest(f"The input has {list(turn)} and no {name!r}; give response and knowledge.")
    return {
        "response": read_text(turn["response"]),
        "knowledge": read_texts(turn["knowledge"]),
        "history": read_texts(turn.get("history", ())),
    }
