"""The threshold of a verdict, and its promise: a bound on the false positive rate, by split conformal prediction.

The false positive rate is the share of consistent responses called inconsistent: those whose probability is below the
threshold. Let the threshold be the k-th smallest probability of n consistent responses that the fusion had not seen,
k = ⌊α·(n + 1)⌋. If a further consistent response is exchangeable with them, its probability is strictly below the
threshold with a chance of at most k / (n + 1) ≤ α, whatever the distribution, ties included; the "+ 1" is the
finite-sample correction (Vovk, Gammerman and Shafer 2005, ch. 2; Angelopoulos and Bates 2023, §1 and appendix D). The
chance is over the draw of the n responses, too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

from groundwire.runtime.bundles.calibration import Fusion, HeldOut, OrderStatistics, ProfileName
from groundwire.runtime.errors import InvalidRequest

_ROUNDING = 1e-9
"""0.29 · 100 is 28.999… in floating point."""


class OperatingPoint(NamedTuple):
    """A threshold, and what it promises."""

    profile: ProfileName | None
    """None where a false positive rate or a threshold was asked for."""
    threshold: float
    max_false_positive_rate: float | None
    """None for a profile that promises none, and for a threshold that was asked for."""


def find_operating_point(
    fusion: Fusion, profile: ProfileName, max_false_positive_rate: float | None = None, threshold: float | None = None
) -> OperatingPoint:
    """The profile's threshold, the one for ``max_false_positive_rate``, or ``threshold`` itself.

    InvalidRequest if the fusion lacks the profile, or has not enough held-out responses for the bound.
    """
    if threshold is not None:
        return OperatingPoint(None, threshold, None)
    if max_false_positive_rate is None:
        point = fusion.profile(profile)
        return OperatingPoint(profile, point.threshold, point.max_false_positive_rate)
    if fusion.held_out is None:
        raise InvalidRequest(
            f"Options.max_false_positive_rate is {max_false_positive_rate:g}, but the calibration is of an earlier "
            "version and has no record of held-out responses to draw a threshold from. Fit it again with "
            "`groundwire calibrate`, or leave the option out and choose a profile."
        )
    return OperatingPoint(None, find_threshold(fusion.held_out, max_false_positive_rate), max_false_positive_rate)


def find_threshold(held_out: HeldOut, level: float) -> float:
    """The largest threshold, 0–1, whose false positive rate is at most ``level``.

    InvalidRequest if the level is below ``smallest_level``: then nothing may be called inconsistent.
    """
    record = held_out.consistent
    if level + _ROUNDING < smallest_level(record):
        raise InvalidRequest(
            f"A false positive rate of at most {level:g} cannot be promised: the calibration has {record.count} "
            f"consistent held-out responses, enough for {_round_up(smallest_level(record)):g} or more. Allow more, or "
            f"calibrate with at least {math.ceil(1 / level - _ROUNDING) - 1} consistent responses."
        )
    rank = min(record.count, math.floor(level * (record.count + 1) + _ROUNDING))
    # ⌊j · count / m⌋ ≤ rank for j < (rank + 1) · m / count
    last = math.ceil((rank + 1) * len(record.values) / record.count) - 1
    return record.values[min(last, len(record.values)) - 1]


def smallest_level(record: OrderStatistics) -> float:
    """The smallest false positive rate, 0–1, that so many consistent responses can promise; 1 without any."""
    if not record.values:
        return 1.0
    return (record.count // len(record.values)) / (record.count + 1)


def measure_power(held_out: HeldOut, threshold: float) -> float | None:
    """The share, 0–1, of inconsistent held-out responses that ``threshold`` calls so; None without any."""
    values = held_out.inconsistent.values
    return bisect_left(values, threshold) / len(values) if values else None


def _round_up(level: float) -> float:
    return math.ceil(level * 1e4 - _ROUNDING) / 1e4
