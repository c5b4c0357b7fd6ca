"""The rows on which a metric is most wrong: where to look when it should become better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from groundwire.engine.schema.explanations import Comparison, Q2Explanation
from groundwire.engine.schema.results import Score
from groundwire.evaluate.datasets.examples import Row
from groundwire.evaluate.scores.metric_values import Column, at

from .estimates import Bools, Floats
from .human_labels import People
from .results import Mistake

SHOWN = 40
"""Of a set, at most."""


def mistakes(
    rows: Sequence[Row], scores: Sequence[Score], columns: Mapping[str, Column], leading: str, people: People
) -> tuple[Mistake, ...]:
    """The worst mistakes of the metric ``leading``, worst first; equally bad ones in the order of the set."""
    values = columns[leading].values
    places = np.flatnonzero(people.known(values))
    distances = wrong_side(values[places], people.consistent[places])
    worst = np.argsort(-distances, kind="stable")[:SHOWN]
    return tuple(
        _mistake(rows[place], scores[place], float(distance), leading, at(columns, place))
        for place, distance in zip(places[worst].tolist(), distances[worst].tolist(), strict=True)
        if distance > 0
    )


def wrong_side(values: Floats, consistent: Bools) -> Floats:
    """How much of the other class each row is on the wrong side of, 0–1; a tie counts one half.

    The mean over either class is 1 − ROC-AUC: what each row takes away from it.

    >>> wrong_side(np.array([0.1, 0.4, 0.4, 0.9]), np.array([True, True, False, False])).tolist()
    [1.0, 0.75, 0.75, 1.0]
    """
    right, wrong = np.sort(values[consistent]), np.sort(values[~consistent])
    higher = len(wrong) - _rank(wrong, values)
    return np.where(consistent, higher / max(1, len(wrong)), _rank(right, values) / max(1, len(right)))


def _rank(others: Floats, values: Floats) -> Floats:
    """How many of the sorted ``others`` are below each value; equal ones count one half."""
    below: Floats = (np.searchsorted(others, values, "left") + np.searchsorted(others, values, "right")) / 2
    return below


def _mistake(row: Row, score: Score, distance: float, leading: str, values: dict[str, float]) -> Mistake:
    return Mistake(
        row=row.id,
        label=1 if row.label else 0,
        value=values[leading],
        distance=distance,
        response=row.response,
        knowledge=row.knowledge,
        history=row.history,
        system=row.system,
        source=row.source,
        unsupported=score.unsupported,
        values=values,
        questions=tuple(
            (one.question, one.response_answer, one.knowledge_answer or "") for one in asked_by_q2(score) or ()
        ),
    )


def asked_by_q2(score: Score) -> tuple[Comparison, ...] | None:
    """The questions that Q² kept, with or without inference: both ask the same; None when neither was computed."""
    for result in score.metrics.values():
        if isinstance(result.explanation, Q2Explanation):
            return tuple(one for one in result.explanation.questions if one.kept)
    return None
