"""What a verdict is drawn from: the numbers of metrics by name, the fusion that reads them, and its thresholds.

A fixed threshold has to be exceeded: of a value of 0.5 at the threshold 0.5 the Q² paper says inconsistent, and so does
this. A fitted threshold is itself the value of a development example that counts as consistent, so values from it on do
(PMI-Faith, table 9: best F1 on the development set).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from groundwire.runtime.bundles.calibration import Calibration, Fusion, Scale

from ..metrics import Metric, find, stand_in
from ..metrics.base import BoundResult, MetricNumber


def features(results: Iterable[BoundResult]) -> dict[str, float]:
    """Return every number of results: a scored metric's value by its name, the others as ``metric.key``."""
    scored = [bound for bound in results if bound.result.value is not None]
    numbers = {metric.name: result.value for metric, result in scored if result.value is not None}
    for metric, result in scored:
        if result.explanation is not None:
            for key, number in metric.features(result.explanation).items():
                numbers[f"{metric.name}.{key}"] = number
    return numbers


def features_of_part(
    results: Iterable[BoundResult], start: int, end: int, *, in_response: bool = False
) -> dict[str, float]:
    """Return the numbers of results about a sentence of the response, which is a part of it.

    Args:
        results: The results of metrics about the response.
        start: Start of the sentence in the response, in characters.
        end: End of the sentence.
        in_response: Whether numbers of a model that reads the sentence apart from the response are left out.

    Returns:
        The numbers by name. Numbers that only a whole response has are left out, F1 with the knowledge for example.
    """
    numbers: dict[str, float] = {}
    for metric, result in results:
        if result.value is not None and not (in_response and metric.reads_sentences == "apart"):
            for key, number in metric.part(result, start, end).items():
                numbers[f"{metric.name}.{key}" if key else metric.name] = number
    return numbers


class BoundNumber(NamedTuple):
    """A metric, and one of its numbers."""

    metric: Metric
    number: MetricNumber


def find_feature(name: str) -> BoundNumber:
    """Return the metric of a feature and what the feature says.

    >>> metric, number = find_feature("detector.mine.worst")
    >>> metric.name, number.key
    ('detector.mine', 'worst')

    Args:
        name: Name of a metric for its value, or ``metric.key``.

    Returns:
        The metric and its number. A feature of an unknown metric is the value of a metric of its own name, which says
        nothing special.
    """
    prefix, _, key = name.rpartition(".")
    metric = find(prefix)
    # A detector's name has a dot of its own, so only a key that the metric knows is split off.
    if metric is None or all(number.key != key for number in metric.numbers):
        metric = find(name) or metric or stand_in(name)
    return BoundNumber(metric, metric.number(name.removeprefix(metric.name).lstrip(".")))


def reads_in_response(names: Iterable[str]) -> bool:
    """Whether a model reads sentences in their response for one of the features (``Metric.reads_sentences``).

    A fusion of them scores responses as a whole, and no model reads a sentence apart from its response.
    """
    return any(find_feature(name).metric.reads_sentences == "in_response" for name in names)


class SentenceWeights(NamedTuple):
    """How much each feature of a fusion counts of a sentence.

    Where a model reads the sentence in its response, features of the sentence apart from it do not count, and a feature
    that counts what speaks against a text is 0 where there is nothing to count.
    """

    weights: Mapping[str, float]
    """Weights of features that a sentence can have, from 0."""
    uncounted: frozenset[str]
    """Features that every sentence has, as 0 if as nothing else."""
    reads_in_response: bool = False
    """Whether a model reads sentences in their response for one of the features."""

    @classmethod
    def of(cls, features: Mapping[str, tuple[float, float]]) -> SentenceWeights:
        """Build them from the weight and the mean of each feature of a fusion."""
        in_response = reads_in_response(features)
        weights = {
            name: abs(weight)
            for name, (weight, _) in features.items()
            if not (in_response and find_feature(name).metric.reads_sentences == "apart")
        }
        uncounted = [name for name, (_, mean) in features.items() if in_response and mean == 0]
        return cls(weights, frozenset(uncounted), in_response)

    def suffice(self, names: Collection[str]) -> bool:
        """Return whether the features ``names`` have half of the weight that a sentence can have."""
        have = sum(weight for name, weight in self.weights.items() if name in names or name in self.uncounted)
        return 2 * have >= sum(self.weights.values())


def choose_fusion(calibration: Calibration, metrics: Collection[str]) -> Fusion:
    """The fusion for a request that asks for ``metrics``.

    A fusion fits if its needed features are numbers of these metrics. The first fusion, whose metrics are the default,
    is taken where it misses nothing: more metrics do not change the default verdict. Else the fitting fusion that reads
    most of them is taken, and among equals the fusion that misses least; if none fits, the fusion that lacks the fewest
    metrics.
    """

    def rank(fusion: Fusion) -> tuple[int, bool, int, int]:
        lacking = {find_feature(item.name).metric.name for item in fusion.features if item.needed}.difference(metrics)
        read = sum(find_feature(item.name).metric.name in metrics for item in fusion.features)
        missing = len(fusion.features) - read
        return len(lacking), missing > 0 or fusion is not calibration.fusions[0], -read, missing

    return min(calibration.fusions, key=rank)


def is_consistent(value: float, threshold: float, *, fitted: bool) -> bool:
    """Whether a value counts as consistent.

    >>> is_consistent(0.5, 0.5, fitted=False), is_consistent(0.5, 0.5, fitted=True)
    (False, True)
    """
    return bool(value >= threshold if fitted else value > threshold)


def find_scale(metric: Metric, calibration: Calibration) -> Scale | None:
    """Return the scale by which a metric decides; None where there is none.

    A metric whose value does not say whether the response is supported (verifiability) decides nothing.
    """
    return calibration.scales.get(metric.name) if metric.number("").about == "support" else None


def decide_metrics(results: Iterable[BoundResult], scales: Sequence[Scale | None]) -> tuple[BoundResult, ...]:
    """Return the results, with ``decision`` where there is a scale for the metric.

    Args:
        results: The results of metrics.
        scales: The scale of each, as ``find_scale`` returns it.

    Returns:
        The results in their order.
    """
    return tuple(
        bound if scale is None or bound.result.value is None else _decide(bound, bound.result.value, scale)
        for bound, scale in zip(results, scales, strict=True)
    )


def _decide(bound: BoundResult, value: float, scale: Scale) -> BoundResult:
    consistent = is_consistent(scale.normalize(value), scale.threshold, fitted=True)
    decision = "consistent" if consistent else "inconsistent"
    return BoundResult(bound.metric, msgspec.structs.replace(bound.result, decision=decision))


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(−logit)), without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1 + odds)


def logit(probability: float) -> float:
    """The inverse of ``sigmoid``, finite for every probability."""
    bounded = min(max(probability, 1e-12), 1 - 1e-12)
    return math.log(bounded / (1 - bounded))
