"""A scorer for MLflow's evaluation.

Needs the extra: ``pip install 'groundwire[mlflow]'``.

>>> from groundwire.adapters.mlflow import make_scorer                                      # doctest: +SKIP
>>> mlflow.genai.evaluate(data=rows, scorers=[make_scorer()])                                   # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checker, NoScore
from .extras import needs

with needs("mlflow"):
    from mlflow.entities import Feedback
    from mlflow.genai.scorers import Scorer, scorer

__all__ = ["make_scorer"]


def make_scorer(
    engine: Engine | None = None,
    *,
    knowledge: str = "knowledge",
    name: str = "groundwire",
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> Scorer:
    """Return a scorer of ``outputs`` against ``expectations[knowledge]``, or else ``inputs[knowledge]``.

    Args:
        engine: The engine; None is ``default_engine``.
        knowledge: The key of the knowledge.
        name: Name of the feedback.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.

    Returns:
        The scorer. The feedback's value is the probability, its rationale the reason, and its metadata the label. Where
        the probability is missing, it has an error instead.
    """
    checker = Checker(engine, metrics=metrics, options=options)

    @scorer(name=name)  # type: ignore[untyped-decorator]  # mlflow is not read by mypy
    def groundwire(
        inputs: dict[str, Any] | None = None, outputs: Any = None, expectations: dict[str, Any] | None = None
    ) -> Feedback:
        passages = (expectations or {}).get(knowledge, (inputs or {}).get(knowledge))
        checked = checker.check(outputs, passages)
        return Feedback(
            name=name,
            value=checked.probability,
            error=NoScore(checked.reason) if checked.probability is None else None,
            rationale=checked.reason,
            metadata={"label": checked.label},
        )

    return groundwire
