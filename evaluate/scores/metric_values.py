"""What every metric says of every row: the numbers that all figures are computed from.

They are written beside ``results.json``, without texts and explanations, as ``values/SET.jsonl``: small enough to keep
as the baseline of a regression gate, and all that a comparison of two runs needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from groundwire.engine.schema.base import Record
from groundwire.engine.schema.results import Score
from groundwire.engine.verdict.decision import decide
from groundwire.evaluate.datasets.examples import Row
from groundwire.evaluate.statistics.estimates import Floats
from groundwire.runtime.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest

from .scoring import request_key

FUSED = "fused"
"""The verdict's probability, as a metric of its own."""
VALUES = "values"


class RowValues(Record, frozen=True):
    """A row without its texts, and the metrics that scored on it."""

    id: str
    key: str
    """``scoring.request_key``: which texts these are."""
    label: int | None
    grade: float | None
    context: str
    values: dict[str, float]


class Column(NamedTuple):
    """One metric on all rows of a set."""

    values: Floats
    """[rows]; NaN where the metric did not score, which no figure counts as a number."""
    statuses: dict[str, int]
    """How often each status occurred, the most frequent first."""


def columns(scores: Sequence[Score], calibration: Calibration | None) -> dict[str, Column]:
    """The metrics in the order in which they were asked for; first ``fused``, where there is a calibration.

    A score that is ``invalid`` has no metrics; its status counts for all of them. A verdict without a probability
    counts as ``unknown``.
    """
    found: dict[str, Column] = {}
    if calibration is not None:
        profile = next(iter(calibration.profiles))  # the probability is the same under all of them
        probabilities = [decide(score.metrics, calibration, profile).probability for score in scores]
        found[FUSED] = _column(probabilities, ["unknown" if one is None else "scored" for one in probabilities])
    for name in dict.fromkeys(name for score in scores for name in score.metrics):
        results = [score.metrics.get(name) for score in scores]
        found[name] = _column(
            [result.value if result else None for result in results],
            [result.status if result else score.status for result, score in zip(results, scores, strict=True)],
        )
    return found


def _column(values: Sequence[float | None], statuses: Sequence[str]) -> Column:
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return Column(numbers, dict(Counter(statuses).most_common()))


def tabulate(rows: Sequence[Row], scores: Sequence[Score], calibration: Calibration | None) -> list[RowValues]:
    """One record per row, of the score in the same place."""
    found = columns(scores, calibration)
    return [
        RowValues(row.id, request_key(row), row.label, row.grade, row.context, at(found, place))
        for place, row in enumerate(rows)
    ]


def at(found: Mapping[str, Column], place: int) -> dict[str, float]:
    """The metrics that scored on one row."""
    values = {name: float(column.values[place]) for name, column in found.items()}
    return {name: value for name, value in values.items() if np.isfinite(value)}


def save(path: Path, rows: Sequence[RowValues]) -> None:
    """Write ``values/SET.jsonl``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def load(path: Path) -> list[RowValues]:
    """Read what ``save`` wrote; InvalidRequest when it is missing or something else."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}. Keep it beside the run's results.") from error
    return [RowValues.from_json(line) for line in lines if line]
