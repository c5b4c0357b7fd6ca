"""One calibrated probability from all metrics, and the verdict drawn from it.

The fusion is a logistic regression: a few weighted numbers, each of which can be read in the bundle's calibration.
Nothing fails open: without a number that the fusion needs there is no probability, and the verdict is ``unknown``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from groundwire.runtime.calibration import Calibration, ProfileName

from ..schema.results import Label, MetricResult, Verdict
from .features import features
from .threshold import is_consistent


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
        # "Well, so it is!" has no word to look up either, so this verdict needs no number of the fusion.
        return Verdict("unverifiable", None, profile, point.threshold)
    if missing:
        return Verdict("unknown", profile=profile, message=_explain_missing(missing, results))
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
        label = "unverifiable"
    return Verdict(label, probability, profile, point.threshold, contributions)


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(−logit)), without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1 + odds)


def _explain_missing(missing: list[str], results: Mapping[str, MetricResult]) -> str:
    result = next((results[name] for name in results if f"{missing[0]}.".startswith(f"{name}.")), None)
    if result is None:
        return f"The verdict needs {', '.join(missing)}, which was not asked for; leave metrics out, or name it."
    return f"The verdict needs {', '.join(missing)}; {result.name} ended with {result.status}: {result.message}"
