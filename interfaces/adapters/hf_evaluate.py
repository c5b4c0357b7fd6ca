"""A metric for Hugging Face's ``evaluate``.

Needs the extra: ``pip install 'groundwire[hf-evaluate]'``.

>>> from groundwire.adapters.hf_evaluate import EvaluateMetric                            # doctest: +SKIP
>>> EvaluateMetric().compute(predictions=answers, references=documents)["score"]              # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checker
from .extras import needs

with needs("hf-evaluate"):
    from datasets import Features, Value

    from evaluate import EvaluationModuleInfo, Metric

__all__ = ["EvaluateMetric"]


class EvaluateMetric(Metric):  # type: ignore[misc]  # evaluate is not read by mypy
    """The mean probability that predictions are consistent with their references, which are the knowledge."""

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
        **settings: Any,
    ) -> None:
        """Make the metric.

        Args:
            engine: The engine; None is ``default_engine``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
            **settings: Settings of ``evaluate.Metric``.
        """
        super().__init__(**settings)
        self._checker = Checker(engine, metrics=metrics, options=options)

    def _info(self) -> EvaluationModuleInfo:
        return EvaluationModuleInfo(
            description="How faithful responses are to their knowledge.",
            citation="",
            inputs_description="predictions: responses; references: the knowledge of each.",
            features=Features({"predictions": Value("string"), "references": Value("string")}),
        )

    def _compute(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        """``score`` is the mean of the probabilities, None if one of the responses has no verdict.

        ``probabilities`` and ``passed`` are lists with None where there is none, ``reasons`` a list of texts.
        """
        checks = list(self._checker.check_many(zip(predictions, references, strict=True)))
        counted = [checked.probability for checked in checks if checked.probability is not None]
        is_complete = all(checked.passed is not None for checked in checks)
        return {
            "score": fmean(counted) if counted and is_complete else None,
            "probabilities": [checked.probability for checked in checks],
            "passed": [checked.passed for checked in checks],
            "reasons": [checked.reason for checked in checks],
        }
