"""What verdicts are drawn by: a fusion with its features bound to their metrics, and an operating point.

A plan binds them once, so that a decision looks no metric up by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion, ProfileName, Scale

from ..metrics import Metric
from ..metrics.base import BoundResult
from ..schema.results import Label, MetricResult, Verdict
from .fusion import SentenceWeights, choose_fusion, find_feature, find_scale, is_consistent
from .operating_point import OperatingPoint, find_operating_point


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
        return "consistent" if is_consistent(probability, self.point.threshold, fitted=True) else "inconsistent"

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
    which = "metrics" if len(missing) > 1 else "metric"
    return f"The verdict needs the {which} {' and '.join(missing)}: name them too, or leave metrics out."
