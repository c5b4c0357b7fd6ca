"""Where a value becomes a decision: one rule for scores, evaluation and the papers' tables.

A fixed threshold has to be exceeded: of a value of 0.5 at the threshold 0.5 the Q² paper says inconsistent, and so does
this. A fitted threshold is itself the value of a development example that counts as consistent, so values from it on do
(PMI-Faith, table 9: best F1 on the development set).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundwire.runtime.calibration import Calibration, Scale

from ..metrics import find
from ..schema.results import MetricResult

HALF = 0.5
"""The fixed threshold of values from 0 to 1."""


def is_consistent(value: float, threshold: float, *, fitted: bool) -> bool:
    """Whether a value counts as consistent.

    >>> is_consistent(0.5, 0.5, fitted=False), is_consistent(0.5, 0.5, fitted=True)
    (False, True)
    """
    return bool(are_consistent(np.float64(value), threshold, fitted=fitted))


def are_consistent(values: np.float64 | NDArray[np.float64], threshold: float, *, fitted: bool) -> NDArray[np.bool_]:
    """Which values count as consistent; none that is NaN."""
    return np.asarray(values >= threshold if fitted else values > threshold)


def normalized(value: float, scale: Scale) -> float:
    """Min-max form with the development set's bounds, 0–1 (PMI-Faith, §4)."""
    if scale.high <= scale.low:
        return 0.0
    return min(1.0, max(0.0, (value - scale.low) / (scale.high - scale.low)))


def decide_metrics(results: Iterable[MetricResult], calibration: Calibration | None) -> list[MetricResult]:
    """The results, with ``decision`` where the calibration has a threshold for the metric.

    Metrics that do not say whether the response is supported (verifiability) get none.
    """
    return [_decide(result, calibration.scales.get(result.name) if calibration else None) for result in results]


def _decide(result: MetricResult, scale: Scale | None) -> MetricResult:
    metric = find(result.name)
    if result.value is None or scale is None or metric is None or "" in metric.uninformative:
        return result
    consistent = is_consistent(normalized(result.value, scale), scale.threshold, fitted=True)
    return msgspec.structs.replace(result, decision="consistent" if consistent else "inconsistent")
