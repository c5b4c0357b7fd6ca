"""The value of every metric on every example: the numbers that all figures are computed from.

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
from numpy.typing import NDArray

from groundwire.engine import Options, Score, Verdict
from groundwire.engine.schema.base import Record
from groundwire.engine.verdict import decide_again
from groundwire.runtime.bundles.calibration import Calibration, ProfileName
from groundwire.runtime.errors import InvalidRequest

from ..datasets.examples import Example
from .scoring import request_key

VERDICT = "verdict"
"""The verdict's probability, as a metric of its own."""
NOT_GIVEN = "not_given"
"""Status of an example without a number in a score column."""
DEFAULT_PROFILE = Options().profile
VALUES = "values"
"""Folder of a run with the files of ``save_values``."""


class ExampleValues(Record, frozen=True):
    """An example without its texts, and the values of the metrics that scored it."""

    id: str
    key: str
    """``scoring.request_key``: a digest of the texts."""
    label: int | None
    grade: float | None
    context: str
    values: dict[str, float]
    group: str = ""
    """``Example.group``; empty in files of older versions."""
    called: str = ""
    """The verdict under the default profile; empty without a calibration, and in files of older versions."""


class MetricValues(NamedTuple):
    """One metric on all examples of a set."""

    values: NDArray[np.float64]
    """[examples]; NaN where the metric did not score, which no figure counts as a number."""
    statuses: dict[str, int]
    """How often each status occurred, the most frequent first."""


def collect_metric_values(
    examples: Sequence[Example], scores: Sequence[Score], calibration: Calibration | None
) -> dict[str, MetricValues]:
    """The values of each metric, in the order of the request; first ``verdict``, where a verdict has a probability, and
    last the score columns of the examples.

    A score that is ``invalid`` has no metrics; its status counts for all of them. A verdict without a probability
    counts as ``unknown``.
    """
    columns: dict[str, MetricValues] = {}
    if calibration is not None:
        profile = next(iter(calibration.fusions[0].profiles))  # the probability is the same under all of them
        probabilities = [verdict.probability for verdict in decide_examples(examples, scores, calibration, profile)]
        statuses = ["unknown" if probability is None else "scored" for probability in probabilities]
        if "scored" in statuses:
            columns[VERDICT] = _build_column(probabilities, statuses)
    for name in dict.fromkeys(name for score in scores for name in score.metrics):
        results = [score.metrics.get(name) for score in scores]
        columns[name] = _build_column(
            [result.value if result else None for result in results],
            [result.status if result else score.status for result, score in zip(results, scores, strict=True)],
        )
    for name in dict.fromkeys(name for example in examples for name, _ in example.scores):
        values = [dict(example.scores).get(name) for example in examples]
        columns[name] = _build_column(values, [NOT_GIVEN if value is None else "scored" for value in values])
    return columns


def decide_examples(
    examples: Sequence[Example],
    scores: Sequence[Score],
    calibration: Calibration,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> list[Verdict]:
    """The verdict that a calibration draws on each example, from the score with the same index.

    ``max_false_positive_rate`` takes the profile's place.
    """
    return [
        decide_again(example.request, score.metrics, calibration, profile, max_false_positive_rate)[0]
        for example, score in zip(examples, scores, strict=True)
    ]


def _build_column(values: Sequence[float | None], statuses: Sequence[str]) -> MetricValues:
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return MetricValues(numbers, dict(Counter(statuses).most_common()))


def build_example_values(
    examples: Sequence[Example], scores: Sequence[Score], calibration: Calibration | None
) -> list[ExampleValues]:
    """One record per example, from the score with the same index."""
    columns = collect_metric_values(examples, scores, calibration)
    called = [""] * len(examples)
    if calibration is not None and DEFAULT_PROFILE in calibration.fusions[0].profiles:
        called = [verdict.label for verdict in decide_examples(examples, scores, calibration, DEFAULT_PROFILE)]
    return [
        ExampleValues(
            example.id,
            request_key(example),
            example.label,
            example.grade,
            example.context,
            select_values(columns, index),
            example.group,
            called[index],
        )
        for index, example in enumerate(examples)
    ]


def select_values(columns: Mapping[str, MetricValues], index: int) -> dict[str, float]:
    """The values of the metrics that scored the example at ``index``."""
    values = {name: float(column.values[index]) for name, column in columns.items()}
    return {name: value for name, value in values.items() if np.isfinite(value)}


def save_values(path: Path, examples: Sequence[ExampleValues]) -> None:
    """Write ``values/SET.jsonl``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(example) + b"\n" for example in examples))


def load_values(path: Path) -> list[ExampleValues]:
    """Read what ``save_values`` wrote; InvalidRequest when it is missing or something else."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}. Keep it beside the run's results.") from error
    return [ExampleValues.from_json(line) for line in lines if line]
