"""One calibrated probability from all metrics, and the verdict drawn from it.

The fusion is a logistic regression: a few weighted numbers, each of which can be read in the bundle's calibration. A
metric alone is calibrated by isotonic regression. Nothing fails open: without a number that the fusion needs there is
no probability, and the verdict is ``unknown``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping

from groundwire.engine.schema.results import Label, MetricResult, Verdict
from groundwire.runtime.calibration import Calibration, ProfileName, Scale

from .features import features


def decide(results: Mapping[str, MetricResult], calibration: Calibration | None, profile: ProfileName) -> Verdict:
    """The verdict on the metrics' results; InvalidRequest when the calibration lacks the profile."""
    if calibration is None:
        return Verdict("unknown", profile=profile, message="The bundle has no calibration; load one with it.")
    point = calibration.profile(profile)
    numbers = features(results)
    checkable = numbers.get("verifiability")
    unverifiable = calibration.verifiable is not None and checkable is not None and checkable < calibration.verifiable
    missing = [feature.name for feature in calibration.features if feature.needed and feature.name not in numbers]
    if missing and unverifiable:
        # "Well, so it is!" has no word to look up either.
        return Verdict("unverifiable", None, profile, point.threshold)
    if missing:
        return Verdict("unknown", profile=profile, message=_why(missing, results))
    contributions = {
        feature.name: feature.weight * (numbers[feature.name] - feature.mean) / feature.deviation
        for feature in calibration.features
        if feature.name in numbers
    }
    probability = sigmoid(calibration.intercept + sum(contributions.values()))
    label: Label = "consistent" if probability >= point.threshold else "inconsistent"
    if unverifiable:
        label = "unverifiable"
    return Verdict(label, probability, profile, point.threshold, contributions)


def calibrated(value: float, scale: Scale) -> float:
    """The probability of "consistent", 0–1, that one metric's value stands for.

    >>> scale = Scale(low=0.0, high=2.0, threshold=0.5, knots=((0.0, 0.1), (1.0, 0.3), (2.0, 0.9)))
    >>> [round(calibrated(value, scale), 3) for value in (-1.0, 0.5, 2.0, 9.0)]
    [0.1, 0.2, 0.9, 0.9]
    """
    places = [place for place, _ in scale.knots]
    right = bisect_right(places, value)
    if right == 0:
        return scale.knots[0][1]
    if right == len(places):
        return scale.knots[-1][1]
    (x0, y0), (x1, y1) = scale.knots[right - 1], scale.knots[right]
    return y0 + (y1 - y0) * (value - x0) / (x1 - x0)


def normalized(value: float, scale: Scale) -> float:
    """Min-max form with the development set's bounds, 0–1 (PMI-Faith, §4)."""
    if scale.high <= scale.low:
        return 0.0
    return min(1.0, max(0.0, (value - scale.low) / (scale.high - scale.low)))


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(−logit)), without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1 + odds)


def _why(missing: list[str], results: Mapping[str, MetricResult]) -> str:
    metric = missing[0].split(".worst")[0]
    found = results.get(metric)
    if found is None:
        return f"The verdict needs {', '.join(missing)}, which was not asked for; leave metrics out, or name it."
    return f"The verdict needs {', '.join(missing)}; {metric} ended with {found.status}: {found.message}"
