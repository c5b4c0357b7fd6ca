"""What a verdict is drawn from, and by: the numbers of metrics by name, the fusion that reads them, and its threshold.

A plan binds the fusion's features to its metrics once (``Criteria``), so that a decision looks no metric up. A
threshold is itself the value of a development example that counts as consistent, so values from it on do, as in table 9
of PMI-Faith.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion, ProfileName, Scale

from ..metrics import Metric, find, stand_in
from ..metrics.base import BoundResult, MetricNumber
from ..schema.results import Label, MetricResult, Verdict
from .operating_point import OperatingPoint, find_operating_point


def features(results: Iterable[BoundResult]) -> dict[str, float]:
    """Return every number of results: a scored metric's value by its name, the others as ``metric.key``.

    A metric whose options change the unit of its value has the value in one unit among its own numbers.
    """
    scored = [bound for bound in results if bound.result.value is not None]
    numbers = {metric.name: result.value for metric, result in scored if result.value is not None}
    for metric, result in scored:
        if result.explanation is not None:
            for key, number in metric.features(result.explanation).items():
                numbers[metric.name_number(key)] = number
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
    return any(map(is_in_response, names))


def is_in_response(feature: str) -> bool:
    """Whether a feature is of a model that reads sentences in their response."""
    return find_feature(feature).metric.reads_sentences == "in_response"


class SentenceWeights(NamedTuple):
    """How much each feature of a fusion counts of a sentence.

    Where a model reads the sentence in its response, features of the sentence apart from it do not count, and a feature
    that counts what speaks against a text is 0 where there is nothing to count.
    """

    weights: Mapping[str, float]
    """Weights of features that a sentence can have, from 0."""
    uncounted: frozenset[str]
    """Features that every sentence has, as 0 if as nothing else."""
    in_response: frozenset[str] = frozenset()
    """Features of models that read sentences in their response."""

    @property
    def reads_in_response(self) -> bool:
        """Whether a model reads sentences in their response for one of the features."""
        return bool(self.in_response)

    @classmethod
    def of(cls, features: Mapping[str, tuple[float, float]]) -> SentenceWeights:
        """Build them from the weight and the mean of each feature of a fusion."""
        in_response = frozenset(filter(is_in_response, features))
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
        bound if scale is None or bound.result.value is None else _decide(bound, scale)
        for bound, scale in zip(results, scales, strict=True)
    )


def _decide(bound: BoundResult, scale: Scale) -> BoundResult:
    value = features((bound,))[bound.metric.name]
    decision = "consistent" if scale.normalize(value) >= scale.threshold else "inconsistent"
    return BoundResult(bound.metric, replace(bound.result, decision=decision))


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


@dataclass(frozen=True, slots=True)
class BoundFeature:
    """A feature of a fusion, and where its metric is among the metrics of a plan."""

    feature: Feature
    metric: str
    """Name of the metric that it is a number of."""
    index: int | None
    """Index of that metric; None where it was not asked for."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A fusion that draws verdicts, with everything that a decision reads of it."""

    fusion: Fusion
    point: OperatingPoint
    features: tuple[BoundFeature, ...]
    weighed: frozenset[str]
    """The names of the features."""
    read: tuple[int, ...]
    """Indices of the metrics that the fusion asks for: further metrics, which a caller adds, do not change it."""
    weights: SentenceWeights
    verifiable: float | None
    """Verifiability, 0–1, below which a text states nothing; None never says so."""
    verifiability: frozenset[str]
    """Names of the numbers that say how verifiable a text is, 0–1."""

    @property
    def is_complete(self) -> bool:
        """Whether all metrics of the fusion were asked for: a verdict without them promises no bound."""
        return all(bound.index is not None for bound in self.features)

    def label(self, probability: float) -> Label:
        """Return what a probability of being consistent, 0–1, means."""
        return "consistent" if probability >= self.point.threshold else "inconsistent"

    def is_sure(self, verdict: Verdict) -> bool:
        """Return whether the label of a verdict is outside the band around thresholds where labels are often wrong.

        That a text states nothing is not sure where the metrics find it inconsistent: then something may be stated.
        """
        if verdict.label == "unverifiable":
            return verdict.probability is None or self.label(verdict.probability) == "consistent"
        if verdict.probability is None or verdict.label == "unknown":
            return False
        return self.fusion.band.is_sure(verdict.probability, consistent=verdict.label == "consistent")

    def is_chat(self, numbers: Mapping[str, float], *, of_all: bool = True) -> bool:
        """Return whether a text states nothing in the view of every classifier that was asked; False where none was.

        Args:
            numbers: The numbers of a text, by name.
            of_all: Whether every classifier has to say so, or else one.
        """
        rates = [number for name, number in numbers.items() if name in self.verifiability]
        return self.verifiable is not None and bool(rates) and (max if of_all else min)(rates) < self.verifiable


@dataclass(frozen=True, slots=True)
class Criteria:
    """How the results of certain metrics become a verdict."""

    metrics: tuple[Metric, ...]
    """The metrics that were asked for; results have their order."""
    scales: tuple[Scale | None, ...]
    """For each metric the scale by which its value alone decides; None where there is none."""
    basis: Verdict
    """What all verdicts have in common: fusion and threshold, with the label ``unknown``. Without a threshold, and with
    a message, if there is no calibration or a metric that its fusion needs was not asked for."""
    rule: Rule | None
    """None without a calibration: every verdict is ``basis``."""

    def bind(self, results: Sequence[MetricResult]) -> tuple[BoundResult, ...]:
        """Return the results, which have the order of the metrics, with their metrics."""
        return tuple(map(BoundResult, self.metrics, results))


def bind_criteria(
    metrics: Sequence[Metric],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
    threshold: float | None = None,
) -> Criteria:
    """Choose the fusion that draws the verdicts, and bind its features to metrics.

    Args:
        metrics: The metrics that are asked for.
        calibration: How their values are read; None where none was fitted.
        profile: Name of the operating point.
        max_false_positive_rate: A bound, 0–1, that takes the profile's place; None takes the profile.
        threshold: A probability, 0–1, that takes the place of both; None takes one of them.

    Returns:
        What every decision about results of these metrics reads.

    Raises:
        InvalidRequest: The calibration lacks the profile, or cannot promise the rate.
    """
    metrics = tuple(metrics)
    if calibration is None:
        message = "The bundle has no calibration; load one with it."
        is_profile = max_false_positive_rate is None and threshold is None
        basis = Verdict("unknown", profile=profile if is_profile else None, message=message)
        return Criteria(metrics, (None,) * len(metrics), basis, None)
    names = [metric.name for metric in metrics]
    fusion = choose_fusion(calibration, names)
    point = find_operating_point(fusion, profile, max_false_positive_rate, threshold)
    rule = Rule(
        fusion,
        point,
        features=tuple(_bind_feature(feature, names) for feature in fusion.features),
        weighed=frozenset(feature.name for feature in fusion.features),
        read=tuple(index for index, name in enumerate(names) if name in fusion.metrics),
        weights=SentenceWeights.of({feature.name: (feature.weight, feature.mean) for feature in fusion.features}),
        verifiable=calibration.verifiable,
        verifiability=frozenset(
            metric.name_number(number.key)
            for metric in metrics
            for number in metric.numbers
            if number.rates_verifiability
        ),
    )
    basis = Verdict("unknown", profile=point.profile, fusion=fusion.name)
    missing = dict.fromkeys(bound.metric for bound in rule.features if bound.feature.needed and bound.index is None)
    basis = replace(basis, message=ask_for(list(missing))) if missing else replace(basis, threshold=point.threshold)
    return Criteria(metrics, tuple(find_scale(metric, calibration) for metric in metrics), basis, rule)


def _bind_feature(feature: Feature, names: Sequence[str]) -> BoundFeature:
    metric = find_feature(feature.name).metric.name
    return BoundFeature(feature, metric, names.index(metric) if metric in names else None)


def ask_for(missing: Sequence[str]) -> str:
    """Return what to do where the metrics that a verdict needs were not asked for."""
    *first, last = missing
    which, names, them = ("metrics", f"{', '.join(first)} and {last}", "them") if first else ("metric", last, "it")
    return f"The verdict needs the {which} {names}: name {them} too, or the group default, or leave metrics out."
