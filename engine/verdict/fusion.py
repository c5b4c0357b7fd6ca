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
import numpy as np
from numpy.typing import NDArray

from groundwire.runtime.bundles.calibration import Calibration, Fusion, Scale

from ..metrics import Metric, find
from ..metrics.base import BoundResult


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


def find_feature(name: str) -> tuple[Metric, str] | None:
    """The metric of a feature and the feature's key in it (``""`` for its value); None for an unknown metric.

    >>> metric, key = find_feature("detector.mine.worst")
    >>> metric.name, key
    ('detector.mine', 'worst')
    """
    prefix, _, key = name.rpartition(".")
    metric = find(prefix)
    # A detector's name has a dot of its own, so only a key that the metric knows is split off.
    if metric is not None and any(number.key == key for number in metric.numbers):
        return metric, key
    metric = find(name) or metric
    return None if metric is None else (metric, name.removeprefix(metric.name).lstrip("."))


def is_apart(feature: str) -> bool:
    """Whether a model reads a sentence apart from its response for a feature (``Metric.reads_sentences``)."""
    metric_feature = find_feature(feature)
    return metric_feature is not None and metric_feature[0].reads_sentences == "apart"


def reads_in_response(names: Iterable[str]) -> bool:
    """Whether a model reads sentences in their response for one of the features (``Metric.reads_sentences``).

    A fusion of them scores responses as a whole, and no model reads a sentence apart from its response.
    """
    return any(metric.reads_sentences == "in_response" for metric, _ in filter(None, map(find_feature, names)))


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
        weights = {name: abs(weight) for name, (weight, _) in features.items() if not (in_response and is_apart(name))}
        uncounted = [name for name, (_, mean) in features.items() if in_response and mean == 0]
        return cls(weights, frozenset(uncounted), in_response)

    def suffice(self, names: Collection[str]) -> bool:
        """Return whether the features ``names`` have half of the weight that a sentence can have."""
        have = sum(weight for name, weight in self.weights.items() if name in names or name in self.uncounted)
        return 2 * have >= sum(self.weights.values())


def rates_verifiability(feature: str) -> bool:
    """Whether a feature says if there is anything to check (``MetricNumber.about``)."""
    metric_feature = find_feature(feature)
    return metric_feature is not None and metric_feature[0].number(metric_feature[1]).rates_verifiability


def find_verifiability(numbers: Mapping[str, float]) -> float | None:
    """How verifiable the text of these features is, 0–1, for the classifier that finds most to verify; None without
    any."""
    return max((number for name, number in numbers.items() if rates_verifiability(name)), default=None)


def is_probability(feature: str) -> bool:
    """Whether a feature is a model's probability, so that its logit counts."""
    metric_feature = find_feature(feature)
    return metric_feature is not None and metric_feature[0].number(metric_feature[1]).is_probability


def name_metric(feature: str) -> str:
    """The name of the metric that a feature is a number of; the feature's own for an unknown metric."""
    metric_feature = find_feature(feature)
    return feature if metric_feature is None else metric_feature[0].name


def choose_fusion(calibration: Calibration, metrics: Collection[str]) -> Fusion:
    """The fusion for a request that asks for ``metrics``.

    A fusion fits if its needed features are numbers of these metrics. The first fusion, whose metrics are the default,
    is taken where it misses nothing: more metrics do not change the default verdict. Else the fitting fusion that reads
    most of them is taken, and among equals the fusion that misses least; if none fits, the fusion that lacks the fewest
    metrics.
    """

    def rank(fusion: Fusion) -> tuple[int, bool, int, int]:
        lacking = {name_metric(feature.name) for feature in fusion.features if feature.needed}.difference(metrics)
        read = sum(name_metric(feature.name) in metrics for feature in fusion.features)
        missing = len(fusion.features) - read
        return len(lacking), missing > 0 or fusion is not calibration.fusions[0], -read, missing

    return min(calibration.fusions, key=rank)


def list_unread(fusion: Fusion, metrics: Collection[str]) -> list[str]:
    """The features of a fusion that are of none of ``metrics``: a verdict without them promises no bound."""
    return [feature.name for feature in fusion.features if name_metric(feature.name) not in metrics]


HALF = 0.5
"""The fixed threshold of values from 0 to 1."""


def is_consistent(value: float, threshold: float, *, fitted: bool) -> bool:
    """Whether a value counts as consistent.

    >>> is_consistent(0.5, 0.5, fitted=False), is_consistent(0.5, 0.5, fitted=True)
    (False, True)
    """
    return bool(value >= threshold if fitted else value > threshold)


def are_consistent(values: np.float64 | NDArray[np.float64], threshold: float, *, fitted: bool) -> NDArray[np.bool_]:
    """Which values count as consistent; none that is NaN."""
    return np.asarray(values >= threshold if fitted else values > threshold)


def normalized(value: float, scale: Scale) -> float:
    """Min-max form with the development set's bounds, 0–1 (PMI-Faith, §4)."""
    if scale.high <= scale.low:
        return 0.0
    return min(1.0, max(0.0, (value - scale.low) / (scale.high - scale.low)))


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
    consistent = is_consistent(normalized(value, scale), scale.threshold, fitted=True)
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
