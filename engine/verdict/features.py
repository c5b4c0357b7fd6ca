"""Numbers that the fusion may read: the metrics' values, and what their explanations add."""

from __future__ import annotations

from collections.abc import Mapping

from ..metrics import find
from ..schema.results import MetricResult


def features(results: Mapping[str, MetricResult]) -> dict[str, float]:
    """Every number that ``results`` has: a scored metric's value by its name, the others as ``metric.feature``."""
    numbers = {name: result.value for name, result in results.items() if result.value is not None}
    for name, result in results.items():
        metric = find(name)
        if metric is not None and result.value is not None and result.explanation is not None:
            numbers |= {f"{name}.{key}": number for key, number in metric.features(result.explanation).items()}
    return numbers
