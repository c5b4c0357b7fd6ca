"""A Haystack component that scores answers, with the sockets of Haystack's own FaithfulnessEvaluator.

Needs the extra: ``pip install 'groundwire[haystack]'``.

>>> from groundwire.adapters.haystack import HaystackEvaluator                            # doctest: +SKIP
>>> pipeline.add_component("faithfulness", HaystackEvaluator())                               # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from groundwire.engine import Engine, InvalidRequest

from .checking import Checked, Checker
from .extras import needs

with needs("haystack"):
    from haystack import component, default_to_dict

__all__ = ["HaystackEvaluator"]

NAN = float("nan")
"""What Haystack's evaluators have where an answer could not be evaluated."""


@component
class HaystackEvaluator:
    """Scores predicted answers against their contexts, without a language model."""

    def __init__(self, engine: Engine | None = None, *, metrics: Sequence[str] | str | None = None) -> None:
        """Make the component.

        Args:
            engine: The engine; None is ``default_engine``, loaded by ``warm_up``. Only then can the component be saved.
            metrics: As for ``Engine.score``.
        """
        self._engine = engine
        self._metrics = metrics
        self._checker = Checker(engine, metrics=metrics)

    def warm_up(self) -> None:
        """Load the engine."""
        _ = self._checker.engine

    @component.output_types(  # type: ignore[untyped-decorator]  # haystack is not read by mypy
        score=float, individual_scores=list[float], results=list[dict[str, Any]]
    )
    def run(
        self, predicted_answers: list[str], contexts: list[list[str]], questions: list[str] | None = None
    ) -> dict[str, Any]:
        """Score every answer against the contexts in its position.

        Args:
            predicted_answers: The answers.
            contexts: The passages of each answer.
            questions: The utterance before each answer; None for none.

        Returns:
            ``results`` are dictionaries of ``Checked.to_dict()`` with ``score`` and ``status``. Scores are
            probabilities; an
            answer without one has NaN, and status ``error`` or ``nothing_to_verify``. ``score`` is their mean without
            the
            answers that state nothing; it is NaN if one of them has status ``error``, or there is none.

        Raises:
            InvalidRequest: The lists have different lengths.
        """
        if len(predicted_answers) != len(contexts) or (questions and len(questions) != len(contexts)):
            raise InvalidRequest(
                f"There are {len(predicted_answers)} answers, {len(contexts)} contexts and {len(questions or [])} "
                "questions; give as many of each, or no questions."
            )
        turns = [
            {"response": answer, "knowledge": passages, "history": [question] if question else []}
            for answer, passages, question in zip(
                predicted_answers, contexts, questions or [""] * len(contexts), strict=True
            )
        ]
        checks = list(self._checker.check_many(turns))
        is_complete = all(checked.passed is not None for checked in checks)
        scores = [NAN if checked.probability is None else checked.probability for checked in checks]
        counted = [checked.probability for checked in checks if checked.probability is not None]
        results = [
            checked.to_dict() | {"score": score, "status": _status(checked)}
            for checked, score in zip(checks, scores, strict=True)
        ]
        mean = fmean(counted) if counted and is_complete else NAN
        return {"score": mean, "individual_scores": scores, "results": results}

    def to_dict(self) -> dict[str, Any]:
        """Return the component in the form of a saved pipeline.

        Raises:
            InvalidRequest: The component has an engine of its own.
        """
        if self._engine is not None:
            raise InvalidRequest(
                "An engine cannot be saved with a pipeline; leave it out, and set GROUNDWIRE_BUNDLE where it runs."
            )
        saved: dict[str, Any] = default_to_dict(self, metrics=self._metrics)
        return saved


def _status(checked: Checked) -> str:
    if checked.passed is None:
        return "error"
    return "nothing_to_verify" if checked.probability is None else "evaluated"
