"""One calibrated probability from all metrics, and the verdict drawn from it.

The fusion is a logistic regression: a few weighted numbers, each of which can be read in the bundle's calibration.
Nothing fails open: without a number that the fusion needs there is no probability, and the verdict is ``unknown``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from groundwire.runtime.calibration import Calibration, ProfileName

from ..schema.results import Label, MetricResult, Status, Verdict
from .features import features, find_feature
from .threshold import is_consistent

NOTHING_STATED = "The response states nothing that knowledge could confirm."
STOPPED: frozenset[Status] = frozenset({"truncated", "deadline", "cancelled", "failed"})
"""Statuses of metrics that could not look at the texts; ``nothing_to_verify`` is what a metric says about them."""


def decide(results: Mapping[str, MetricResult], calibration: Calibration | None, profile: ProfileName) -> Verdict:
    """The verdict on the metrics' results; InvalidRequest when the calibration lacks the profile."""
    if calibration is None:
        return Verdict("unknown", profile=profile, message="The bundle has no calibration; load one with it.")
    point = calibration.profile(profile)
    numbers = features(results)
    checkable = numbers.get("verifiability")
    unverifiable = calibration.verifiable is not None and checkable is not None and checkable < calibration.verifiable
    missing = {
        _name_metric(feature.name): None
        for feature in calibration.features
        if feature.needed and feature.name not in numbers
    }
    stopped = [results[name] for name in missing if name in results and results[name].status in STOPPED]
    if missing and unverifiable and not stopped:
        # "Well, so it is!" has no word to look up either, so this verdict needs no number of the fusion.
        return Verdict("unverifiable", None, profile, point.threshold, message=NOTHING_STATED)
    if missing:
        return Verdict("unknown", profile=profile, message=_explain_missing(list(missing), results))
    contributions = {
        feature.name: feature.weight * (numbers[feature.name] - feature.mean) / feature.deviation
        for feature in calibration.features
        if feature.name in numbers
    }
    logit = calibration.intercept + sum(contributions.values())
    if not math.isfinite(logit):
        message = "The numbers of the verdict do not add up to a finite one; check the calibration and the models."
        return Verdict("unknown", profile=profile, message=message)
    probability = sigmoid(logit)
    label: Label = "consistent" if is_consistent(probability, point.threshold, fitted=True) else "inconsistent"
    if unverifiable:
        return Verdict("unverifiable", probability, profile, point.threshold, contributions, NOTHING_STATED)
    return Verdict(label, probability, profile, point.threshold, contributions)


def decide_sentence(numbers: Mapping[str, float], calibration: Calibration, profile: ProfileName) -> Verdict:
    """The verdict on the numbers about one sentence of several; ``unknown`` when most evidence says nothing of it.

    Nothing is needed by name: a sentence may have no question of Q², and a response's other sentences have it.
    """
    point = calibration.profile(profile)
    known = [feature for feature in calibration.features if feature.name in numbers]
    checkable = numbers.get("verifiability")
    if calibration.verifiable is not None and checkable is not None and checkable < calibration.verifiable:
        return Verdict("unverifiable", None, profile, point.threshold)
    if 2 * sum(abs(feature.weight) for feature in known) < sum(abs(feature.weight) for feature in calibration.features):
        return Verdict("unknown", profile=profile, message="The metrics say too little about this sentence.")
    contributions = {
        feature.name: feature.weight * (numbers[feature.name] - feature.mean) / feature.deviation for feature in known
    }
    probability = sigmoid(calibration.intercept + sum(contributions.values()))
    label: Label = "consistent" if is_consistent(probability, point.threshold, fitted=True) else "inconsistent"
    return Verdict(label, probability, profile, point.threshold, contributions)


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(−logit)), without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1 + odds)


def _name_metric(feature: str) -> str:
    """The name of the metric that a feature is a number of."""
    known = find_feature(feature)
    return feature if known is None else known[0].name


def _explain_missing(missing: Sequence[str], results: Mapping[str, MetricResult]) -> str:
    """Why the metrics ``missing`` have no numbers for the verdict, and what to do."""
    asked = sorted((results[name] for name in missing if name in results), key=lambda result: result.value is not None)
    if not asked:
        which = "metrics" if len(missing) > 1 else "metric"
        return f"The verdict needs the {which} {' and '.join(missing)}: name them too, or leave metrics out."
    first, others = asked[0], [result.name for result in asked[1:] if result.value is None]
    if first.value is not None:
        return f"The verdict needs more of the metric {first.name} than its value; leave its options at their defaults."
    also = f", as {' and '.join(others)} did" if others else ""
    ended = f"which ended without a value ({first.status})"
    return f"The verdict needs the metric {first.name}, {ended}{also}: {first.message}"
