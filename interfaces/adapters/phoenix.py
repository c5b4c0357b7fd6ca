"""An evaluator for Arize Phoenix.

Needs the extra: ``pip install 'groundwire[phoenix]'``.

>>> from groundwire.adapters.phoenix import PhoenixEvaluator                                # doctest: +SKIP
>>> evaluate_dataframe(frame, [PhoenixEvaluator()])                                             # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checked, Checker
from .extras import needs

with needs("phoenix"):
    from phoenix.evals.evaluators import Evaluator, Score
    from pydantic import BaseModel

__all__ = ["PhoenixEvaluator"]


class PhoenixInput(BaseModel):  # type: ignore[misc]  # pydantic is not read by mypy
    """What is evaluated: the fields of Phoenix's own FaithfulnessEvaluator."""

    output: str
    """The response."""
    context: str | list[str]
    """The text that it should rest on, or several passages."""
    input: str = ""
    """The utterance before the response."""


class PhoenixEvaluator(Evaluator):  # type: ignore[misc]  # phoenix is not read by mypy
    """Scores ``output`` against ``context``, without a language model.

    ``score`` is the probability of being consistent, ``label`` the verdict's and ``explanation`` the reason. ``score``
    is None without a probability.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        name: str = "groundwire",
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Make the evaluator.

        Args:
            engine: The engine; None is ``default_engine``.
            name: Name of the scores.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        super().__init__(name=name, kind="code", input_schema=PhoenixInput, direction="maximize")
        self._checker = Checker(engine, metrics=metrics, options=options)

    def _evaluate(self, eval_input: dict[str, Any]) -> list[Score]:
        return self._make_scores(self._checker.check(*_read_turn(eval_input)))

    async def _async_evaluate(self, eval_input: dict[str, Any]) -> list[Score]:
        return self._make_scores(await self._checker.acheck(*_read_turn(eval_input)))

    def _make_scores(self, checked: Checked) -> list[Score]:
        score = Score(
            name=self.name,
            score=checked.probability,
            label=checked.label,
            explanation=checked.reason,
            metadata=checked.to_dict(),
            kind="code",
        )
        return [score]


def _read_turn(eval_input: dict[str, Any]) -> tuple[str, str | list[str], list[str]]:
    question = eval_input.get("input")
    return eval_input["output"], eval_input["context"], [question] if question else []
