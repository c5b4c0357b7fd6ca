"""Numbers that the fusion may read: the metrics' values, and what their explanations add."""

from __future__ import annotations

from collections.abc import Mapping

from ..metrics import Metric, find
from ..schema.results import MetricResult


def features(results: Mapping[str, MetricResult]) -> dict[str, float]:
    """Every number that ``results`` has: a scored metric's value by its name, the others as ``metric.feature``."""
    numbers = {name: result.value for name, result in results.items() if result.value is not None}
    for name, result in results.items():
        metric = find(name)
        if metric is not None and result.value is not None and result.explanation is not None:
            numbers |= {f"{name}.{key}": number for key, number in metric.features(result.explanation).items()}
    return numbers


def features_of_part(results: Mapping[str, MetricResult], start: int, end: int) -> dict[str, float]:
    """Those numbers about the characters ``start`` to ``end`` of the response, a sentence of it.

    Numbers that only a whole response has are left out, F1 with the knowledge for example.
    """
    numbers: dict[str, float] = {}
    for name, result in results.items():
        metric = find(name)
        if metric is not None and result.value is not None:
            of_part = metric.part(result, start, end)
            numbers |= {f"{name}.{key}" if key else name: number for key, number in of_part.items()}
    return numbers


def find_feature(name: str) -> tuple[Metric, str] | None:
    """The metric of a feature and the feature's key in it (``""`` for its value); None for an unknown metric.

    >>> metric, key = find_feature("detector.mine.worst")
    >>> metric.name, key
    ('detector.mine', 'worst')
    """
    prefix, _, key = name.rpartition(".")
    metric = find(prefix)
    # A detector's name has a dot of its own, so only a key that the metric knows is split off.
    if metric is not None and key in (*metric.evidence, *metric.lower_is_better, *metric.uninformative):
        return metric, key
    metric = find(name) or metric
    return None if metric is None else (metric, name.removeprefix(metric.name).lstrip("."))


def rates_verifiability(name: str) -> bool:
    """Whether a metric's value says if there is anything to check (``Metric.rates_verifiability``)."""
    metric = find(name)
    return metric is not None and metric.rates_verifiability


def find_verifiability(numbers: Mapping[str, float]) -> float | None:
    """How verifiable the text of these features is, 0–1; None where no metric says so."""
    return next((number for name, number in numbers.items() if rates_verifiability(name)), None)


def is_probability(feature: str) -> bool:
    """Whether a feature is a model's probability, so that its logit counts."""
    known = find_feature(feature)
    return known is not None and known[1] in known[0].probabilities


def name_metric(feature: str) -> str:
    """The name of the metric that a feature is a number of; the feature's own for an unknown metric."""
    known = find_feature(feature)
    return feature if known is None else known[0].name
