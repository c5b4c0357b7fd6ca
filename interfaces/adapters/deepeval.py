"""A metric for DeepEval.

Needs the extra: ``pip install 'groundwire[deepeval]'``.

>>> from groundwire.adapters.deepeval import DeepEvalMetric                               # doctest: +SKIP
>>> assert_test(test_case, [DeepEvalMetric()])                                                # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checked, Checker, NoScore
from .extras import needs

with needs("deepeval"):
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

__all__ = ["DeepEvalMetric"]


class DeepEvalMetric(BaseMetric):  # type: ignore[misc]  # deepeval is not read by mypy
    """Scores ``actual_output`` against ``retrieval_context``, or ``context``, without a language model.

    ``score`` is the probability of being consistent, ``threshold`` the verdict's, which ``Options.profile`` and
    ``max_false_positive_rate`` choose, and ``success`` its decision.
    """

    threshold = 0.5  # until the first measurement: DeepEval refuses metrics without one
    evaluation_model = "groundwire"
    include_reason = True

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Make the metric.

        Args:
            engine: The engine; None is ``default_engine``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        # DeepEval makes copies of a metric from the attributes that are named like its arguments.
        self.engine, self.metrics, self.options = engine, metrics, options
        self._checker = Checker(engine, metrics=metrics, options=options)

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float | None:
        """Score a test case.

        Args:
            test_case: The output and its contexts.
            *args: Further arguments of DeepEval, which are not used.
            **kwargs: Further arguments of DeepEval, which are not used.

        Returns:
            The probability, 0–1; None for an output that states nothing to verify.

        Raises:
            NoScore: The verdict is ``unknown``.
        """
        return self._keep(self._checker.check(*self._read(test_case)))

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float | None:
        """Score a test case in asyncio, as ``measure``."""
        return self._keep(await self._checker.acheck(*self._read(test_case)))

    def is_successful(self) -> bool:
        """Whether the output passed; False after an error."""
        return self.error is None and self.success is True

    @property
    def __name__(self) -> str:
        return "Groundwire"

    def _read(self, test_case: LLMTestCase) -> tuple[str, list[str] | None, list[str]]:
        self.score: float | None = None
        self.reason: str | None = None
        self.error: str | None = None
        self.success = False
        passages = test_case.context if test_case.retrieval_context is None else test_case.retrieval_context
        knowledge = None
        if passages is not None:
            knowledge = [passage if isinstance(passage, str) else passage.context for passage in passages]
        return test_case.actual_output or "", knowledge, [test_case.input] if test_case.input else []

    def _keep(self, checked: Checked) -> float | None:
        self.reason = checked.reason
        if checked.passed is None:
            self.error = checked.reason
            raise NoScore(checked.reason)
        self.score, self.success = checked.probability, checked.passed
        self.threshold = self.threshold if checked.threshold is None else checked.threshold
        return checked.probability
