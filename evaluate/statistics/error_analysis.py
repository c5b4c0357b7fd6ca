"""The examples on which a metric errs most: where to look when it should become better.

An error is an example on the wrong side of the metric's threshold. Errors are ordered without the threshold, by how
many examples of the other class each is on the wrong side of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from groundwire.engine import Score
from groundwire.engine.schema.explanations import Comparison, Q2Explanation
from groundwire.engine.schema.results import Label

from ..datasets.examples import Example
from ..scores.metric_values import MetricValues, select_values
from .estimates import Bools, Floats
from .human_labels import HumanLabels
from .results import ErrorCase

MAX_ERRORS = 40
"""Errors that the results of a set keep."""


def find_errors(
    examples: Sequence[Example],
    scores: Sequence[Score],
    columns: Mapping[str, MetricValues],
    leading: str,
    called: Sequence[Label],
    labels: HumanLabels,
) -> tuple[ErrorCase, ...]:
    """The worst errors of the metric ``leading``, worst first; equally bad ones in the order of the set.

    ``called`` is what the metric calls each example at its threshold. Whatever it does not call inconsistent counts as
    consistent, as in the false negative rate.
    """
    values = columns[leading].values
    indices = np.flatnonzero(labels.select_labelled(values))
    distances = measure_wrong_side(values[indices], labels.consistent[indices])
    wrong = [(called[index] == "inconsistent") == bool(labels.consistent[index]) for index in indices.tolist()]
    indices, distances = indices[wrong], distances[wrong]
    worst = np.argsort(-distances, kind="stable")[:MAX_ERRORS]
    return tuple(
        _describe_error(
            examples[index], scores[index], called[index], float(distance), leading, select_values(columns, index)
        )
        for index, distance in zip(indices[worst].tolist(), distances[worst].tolist(), strict=True)
    )


def measure_wrong_side(values: Floats, consistent: Bools) -> Floats:
    """The share of the other class that each example is on the wrong side of, 0–1; a tie counts one half.

    The mean over either class is 1 − ROC-AUC: what each example takes away from it.

    >>> measure_wrong_side(np.array([0.1, 0.4, 0.4, 0.9]), np.array([True, True, False, False])).tolist()
    [1.0, 0.75, 0.75, 1.0]
    """
    right, wrong = np.sort(values[consistent]), np.sort(values[~consistent])
    higher = len(wrong) - _count_below(wrong, values)
    return np.where(consistent, higher / max(1, len(wrong)), _count_below(right, values) / max(1, len(right)))


def _count_below(others: Floats, values: Floats) -> Floats:
    """How many of the sorted ``others`` are below each value; equal ones count one half."""
    below: Floats = (np.searchsorted(others, values, "left") + np.searchsorted(others, values, "right")) / 2
    return below


def _describe_error(
    example: Example, score: Score, called: Label, distance: float, leading: str, values: dict[str, float]
) -> ErrorCase:
    return ErrorCase(
        example=example.id,
        label=1 if example.label else 0,
        called=called,
        value=values[leading],
        distance=distance,
        response=example.response,
        knowledge=example.knowledge,
        history=example.history,
        system=example.system,
        source=example.source,
        unsupported=score.unsupported,
        values=values,
        questions=tuple(
            (question.question, question.response_answer, question.knowledge_answer or "")
            for question in list_kept_questions(score) or ()
        ),
        citations=score.citations,
    )


def list_kept_questions(score: Score) -> tuple[Comparison, ...] | None:
    """The questions that Q² kept, with or without inference: both ask the same; None when neither was computed."""
    for result in score.metrics.values():
        if isinstance(result.explanation, Q2Explanation):
            return tuple(question for question in result.explanation.questions if question.kept)
    return None
