"""How many of many responses are inconsistent, corrected for the verdict's own errors.

A verdict that calls 70 % of the inconsistent responses so, and 25 % of the consistent ones, says "inconsistent" of a
quarter of a traffic without a single one. With the true positive rate t, the false positive rate f and the share p that
is called inconsistent, (p − f) / (t − f) is the estimate of Rogan and Gladen (1978, *American Journal of Epidemiology*
107, 71–76). Its interval is by Lang and Reiczigel (2014, *Preventive Veterinary Medicine* 113, 13–22): it counts
the uncertainty of t and f, measured on so many responses of the calibration, as well as of p. It holds where the
responses are like the calibration's: f and t are then the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from statistics import NormalDist
from typing import NamedTuple

from groundwire.runtime.bundles.calibration import Calibration, Fusion, OrderStatistics


class Interval(NamedTuple):
    """A share, 0–1, and its interval."""

    value: float
    low: float
    high: float


class ErrorRates(NamedTuple):
    """What a threshold does to held-out responses of a calibration. Positive: called inconsistent."""

    consistent: int
    """Responses."""
    false_positives: float
    """How many of them are called inconsistent."""
    inconsistent: int
    true_positives: float

    @property
    def false_positive_rate(self) -> float:
        """Share, 0–1, of the consistent responses."""
        return self.false_positives / self.consistent

    @property
    def true_positive_rate(self) -> float:
        """Share, 0–1, of the inconsistent responses."""
        return self.true_positives / self.inconsistent


def count_errors(calibration: Calibration, fusion: Fusion, threshold: float) -> ErrorRates | None:
    """Return the errors of a threshold on the held-out responses of a fusion.

    A calibration of an earlier version knows the rates of its profiles' thresholds alone. They are taken as measured on
    half of its responses each.

    Args:
        calibration: The calibration that has the fusion.
        fusion: The fusion whose probabilities are compared with the threshold.
        threshold: The threshold, 0–1.

    Returns:
        The counts; None where the calibration does not know them, as when its inconsistent responses are made.
    """
    if fusion.held_out is None:
        profile = next((profile for profile in fusion.profiles.values() if profile.threshold == threshold), None)
        half = calibration.rows // 2
        if profile is None or not half:
            return None
        power = 1 - profile.false_negative_rate
        return ErrorRates(half, half * profile.false_positive_rate, half, half * power)
    if fusion.held_out.made or not fusion.held_out.consistent.count or not fusion.held_out.inconsistent.count:
        return None
    classes = (fusion.held_out.consistent, fusion.held_out.inconsistent)
    # Responses that are called unverifiable are called inconsistent by no threshold.
    (consistent, false_positives), (inconsistent, true_positives) = (
        (record.count + record.unverifiable, record.count * _share_below(record, threshold)) for record in classes
    )
    return ErrorRates(consistent, false_positives, inconsistent, true_positives)


def correct_share(called: int, responses: int, rates: ErrorRates, level: float = 0.95) -> Interval | None:
    """Estimate the share of inconsistent responses from the share that is called inconsistent.

    >>> correct_share(300, 1000, ErrorRates(1000, 100, 1000, 700))
    Interval(value=0.3333333333333333, low=0.27993688290403085, high=0.3881031893288539)

    Args:
        called: Responses that are called inconsistent.
        responses: Responses with a verdict.
        rates: Error rates of the verdict on labelled responses.
        level: Confidence level of the interval, between 0 and 1.

    Returns:
        The share with its interval, both within 0–1. None without responses, and where inconsistent responses are not
        called so more often than consistent ones: then the verdicts say nothing about the share.
    """
    difference = rates.true_positive_rate - rates.false_positive_rate
    if not responses or difference <= 0:
        return None
    z = _quantile(level)
    # Lang and Reiczigel add z²/2 positive and as many negative responses, and one of each to both samples of the
    # calibration, and shift the middle of the interval.
    n, n_true, n_false = responses + z**2, rates.inconsistent + 2, rates.consistent + 2
    p = (called + z**2 / 2) / n
    true, false = (rates.true_positives + 1) / n_true, (rates.false_positives + 1) / n_false
    if true <= false:
        return None
    middle = (p - false) / (true - false)
    of_true, of_false = true * (1 - true) / n_true, false * (1 - false) / n_false
    shift = 2 * z**2 * (middle * of_true - (1 - middle) * of_false)
    half = z * math.sqrt(p * (1 - p) / n + middle**2 * of_true + (1 - middle) ** 2 * of_false) / (true - false)
    value = _bound((called / responses - rates.false_positive_rate) / difference)
    return Interval(value, min(_bound(middle + shift - half), value), max(_bound(middle + shift + half), value))


def share(count: int, total: int, level: float = 0.95) -> Interval:
    """Return a share with Wilson's interval.

    >>> share(0, 10)
    Interval(value=0.0, low=0.0, high=0.27753279986288915)

    Args:
        count: Positive cases, 0 to ``total``.
        total: All cases, 1 or more.
        level: Confidence level of the interval, between 0 and 1.

    Returns:
        The share with its interval, both within 0–1.

    Raises:
        ValueError: ``total`` is 0.
    """
    if not total:
        raise ValueError("there is no share of nothing")
    z, p = _quantile(level), count / total
    scale = 1 + z**2 / total
    middle = (p + z**2 / (2 * total)) / scale
    half = z * math.sqrt(p * (1 - p) / total + z**2 / (4 * total**2)) / scale
    # Exact at both ends, where rounding would leave 1e-17.
    return Interval(p, 0.0 if count == 0 else middle - half, 1.0 if count == total else middle + half)


def summarize_verdicts(
    counts: Mapping[tuple[str, str, float | None], int], calibration: Calibration | None
) -> tuple[Interval | None, Interval | None]:
    """Return the share of inconsistent verdicts, and the share that is corrected for their errors.

    Args:
        counts: Verdicts by label, fusion and threshold; ``unknown`` is not in the shares.
        calibration: The calibration that drew them; None corrects nothing.

    Returns:
        Both shares of the responses with a verdict. The first is None without one; the second also where verdicts are
        by several fusions or thresholds, or the calibration does not know the errors.
    """
    decided = {key: count for key, count in counts.items() if key[0] != "unknown" and count > 0}
    total = sum(decided.values())
    if not total:
        return None, None
    inconsistent = sum(count for (label, _, _), count in decided.items() if label == "inconsistent")
    # An unverifiable response is so at every threshold.
    thresholds = {(fusion, threshold) for label, fusion, threshold in decided if label != "unverifiable"}
    if not thresholds:
        return share(inconsistent, total), None
    (fusion, threshold), *others = thresholds
    rates = None
    if calibration is not None and threshold is not None and not others:
        rates = count_errors(calibration, calibration.fusion(fusion), threshold)
    return share(inconsistent, total), None if rates is None else correct_share(inconsistent, total, rates)


def count_missing(count: int, total: int, half_width: float = 0.05) -> int:
    """How many more cases a share needs for an interval of ± ``half_width``, if it is where its interval allows most.

    >>> count_missing(3, 22), count_missing(50, 1000)
    (320, 0)
    """
    interval = share(count, total)
    worst = min(max(0.5, interval.low), interval.high)
    return max(0, math.ceil((_quantile(0.95) / half_width) ** 2 * worst * (1 - worst)) - total)


def _share_below(record: OrderStatistics, threshold: float) -> float:
    return bisect_left(record.values, threshold) / len(record.values)


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _bound(value: float) -> float:
    return min(max(value, 0.0), 1.0)
