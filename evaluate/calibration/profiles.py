"""Chooses the operating points of a fusion by verdicts on held-out responses, and measures what to expect of them.

Every set counts the same, and so does each class of a set. What a profile states is measured on sets that were left
out when its threshold was chosen, as its user's responses are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundwire.engine.extend import find_threshold, smallest_level
from groundwire.runtime.bundles.calibration import Band, HeldOut, OrderStatistics, Profile, ProfileName

from ..statistics.estimates import Bools, Floats

MAX_FALSE_POSITIVE_RATE = 0.05
"""What ``lenient`` promises (docs/adr, nr 24)."""
MAX_MISSED_RATE = 0.15
"""Share of the inconsistent responses that ``strict`` calls consistent, at most, of those that state something."""
MIN_PRECISION = 0.9
"""Share of the sure labels that are right, at least, where a band reaches it."""
THRESHOLDS = np.arange(1001) / 1000
MAX_ORDER_STATISTICS = 1000
"""Probabilities of each class that a calibration keeps."""
PRECISION = 1e6
"""Kept probabilities are multiples of its inverse."""


class HeldOutVerdicts(NamedTuple):
    """Verdicts on labelled responses by fits that had not seen them."""

    consistent: Bools
    """[N]: the labels."""
    probabilities: Floats
    """[N]: of the verdicts; NaN without one."""
    unverifiable: Bools
    """[N]: whether the verdict is ``unverifiable``, whatever the threshold."""
    parts: NDArray[np.generic]
    """[N]: what is left out together: the set, or the fold where there is one set."""
    sets: int
    """Number of sets."""

    def select(self, rows: Bools) -> HeldOutVerdicts:
        """The verdicts of these rows [N]."""
        return HeldOutVerdicts(*(column[rows] for column in self[:4]), self.sets)

    @property
    def stating(self) -> Bools:
        """[N]: whether a threshold decides the label."""
        return ~self.unverifiable & ~np.isnan(self.probabilities)

    @property
    def weights(self) -> Floats:
        """[N]: of the verdicts that a threshold decides; every class of every part has the same sum."""
        weights = np.zeros(len(self.consistent))
        for part in np.unique(self.parts):
            for label in (True, False):
                rows = self.stating & (self.parts == part) & (self.consistent == label)
                weights[rows] = 1 / max(1, rows.sum())
        return weights

    def measure(self, threshold: float) -> tuple[float, float, float]:
        """The false positive rate, the false negative rate, and the part of it that is called unverifiable.

        NaN where the class has no verdict.
        """
        decided = self.stating | self.unverifiable
        positive = self.stating & (self.probabilities < threshold)
        right, wrong = self.consistent & decided, ~self.consistent & decided
        return (
            _share(positive, right),
            _share(~positive, wrong),
            _share(self.unverifiable, wrong),
        )

    def keep(self, *, consistent: bool) -> OrderStatistics:
        """What a calibration keeps of one class."""
        rows = self.consistent == consistent
        kept = keep_order_statistics(self.probabilities[rows & self.stating])
        return OrderStatistics(count=kept.count, values=kept.values, unverifiable=int((rows & self.unverifiable).sum()))


class OperatingPoints(NamedTuple):
    """Fields of a ``Fusion`` that are drawn from held-out verdicts."""

    profiles: dict[ProfileName, Profile]
    band: Band
    held_out: HeldOut


def make_points(verdicts: HeldOutVerdicts) -> OperatingPoints:
    """The operating points, with their rates on each part by what is chosen on the others."""
    thresholds = choose_thresholds(verdicts)
    band = choose_band(verdicts, thresholds["balanced"])
    measured: dict[ProfileName, list[tuple[float, float, float]]] = {name: [] for name in thresholds}
    # Of each part, the weights of the sure labels, of those that are wrong, and of all.
    sureness: dict[ProfileName, list[tuple[float, float, float]]] = {name: [] for name in thresholds}
    for part in np.unique(verdicts.parts):
        rest, left_out = (verdicts.select(rows) for rows in (verdicts.parts != part, verdicts.parts == part))
        chosen = choose_thresholds(rest)
        chosen_band = choose_band(rest, chosen["balanced"])
        for name, threshold in chosen.items():
            measured[name].append(left_out.measure(threshold))
            sureness[name].append(_measure_band(left_out, chosen_band, threshold))
    profiles: dict[ProfileName, Profile] = {}
    for name, threshold in thresholds.items():
        false_positive, false_negative, unverifiable = (
            _mean(rates, default)
            for rates, default in zip(zip(*measured[name], strict=True), (0.0, 1.0, 0.0), strict=True)
        )
        sure, wrong, total = (sum(weights) for weights in zip(*sureness[name], strict=True))
        profiles[name] = Profile(
            threshold=threshold,
            max_false_positive_rate=MAX_FALSE_POSITIVE_RATE if name == "lenient" else None,
            false_positive_rate=false_positive,
            false_negative_rate=false_negative,
            unverifiable_rate=unverifiable,
            coverage=round(sure / total, 4) if total else 0.0,
            risk=round(wrong / sure, 4) if sure else 0.0,
            sets=verdicts.sets,
        )
    record = HeldOut(consistent=verdicts.keep(consistent=True), inconsistent=verdicts.keep(consistent=False))
    return OperatingPoints(profiles, band, record)


def choose_thresholds(verdicts: HeldOutVerdicts) -> dict[ProfileName, float]:
    """The thresholds of the profiles: ``lenient`` is never above ``balanced``, and ``strict`` never below it.

    ``balanced`` has the best mean balanced accuracy, in the middle of equally good ones; ``strict`` is the smallest
    that misses at most ``MAX_MISSED_RATE``; ``lenient`` promises ``MAX_FALSE_POSITIVE_RATE``, and is 0, which calls
    nothing inconsistent, where the consistent responses are too few for the promise.
    """
    below_right, below_wrong = (_share_below(verdicts, consistent=label) for label in (True, False))
    gain = (below_wrong - below_right).round(12)
    balanced = float(np.median(THRESHOLDS[gain == gain.max()]))
    strict = float(THRESHOLDS[np.argmax(below_wrong >= 1 - MAX_MISSED_RATE)]) if below_wrong.any() else balanced
    record = HeldOut(consistent=verdicts.keep(consistent=True), inconsistent=verdicts.keep(consistent=False))
    possible = smallest_level(record.consistent) <= MAX_FALSE_POSITIVE_RATE
    lenient = find_threshold(record, MAX_FALSE_POSITIVE_RATE) if possible else 0.0
    return {"balanced": balanced, "strict": max(balanced, strict), "lenient": min(balanced, lenient)}


def choose_band(verdicts: HeldOutVerdicts, threshold: float) -> Band:
    """The narrowest band around a threshold outside which at least ``MIN_PRECISION`` of each label is right.

    On a side where no probability reaches it, no label is sure.
    """
    right, wrong = (_share_below(verdicts, consistent=label) for label in (True, False))
    with np.errstate(invalid="ignore"):
        of_inconsistent = wrong / (right + wrong)
        of_consistent = (1 - right) / (2 - right - wrong)
    low = THRESHOLDS[(of_inconsistent >= MIN_PRECISION) & (threshold >= THRESHOLDS)]
    high = THRESHOLDS[(of_consistent >= MIN_PRECISION) & (threshold <= THRESHOLDS)]
    return Band(low=float(low.max(initial=0.0)), high=float(high.min(initial=1.0)))


def keep_order_statistics(probabilities: Floats) -> OrderStatistics:
    """At most ``MAX_ORDER_STATISTICS`` of the probabilities [N], evenly spread over their ranks and rounded down."""
    count = len(probabilities)
    stored = min(count, MAX_ORDER_STATISTICS)
    ranks = np.arange(1, stored + 1) * count // max(stored, 1)
    values = np.sort(probabilities)[ranks - 1]
    return OrderStatistics(count=count, values=tuple(math.floor(value * PRECISION) / PRECISION for value in values))


def _share_below(verdicts: HeldOutVerdicts, *, consistent: bool) -> Floats:
    """The share [thresholds] of a class below each of ``THRESHOLDS``, with every part in equal shares."""
    rows = verdicts.stating & (verdicts.consistent == consistent)
    if not rows.any():
        return np.zeros(len(THRESHOLDS))
    order = np.argsort(verdicts.probabilities[rows])
    values, weights = verdicts.probabilities[rows][order], verdicts.weights[rows][order]
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    return np.asarray(sums[np.searchsorted(values, THRESHOLDS)] / sums[-1])


def _measure_band(verdicts: HeldOutVerdicts, band: Band, threshold: float) -> tuple[float, float, float]:
    """The weights of the sure labels, of those that are wrong, and of all."""
    called = verdicts.probabilities >= threshold
    sure = np.where(called, verdicts.probabilities >= band.high, verdicts.probabilities < band.low)
    weights = verdicts.weights
    return (
        float(weights[sure].sum()),
        float(weights[sure & (called != verdicts.consistent)].sum()),
        float(weights.sum()),
    )


def _share(rows: Bools, of: Bools) -> float:
    return float(rows[of].mean()) if of.any() else math.nan


def _mean(rates: tuple[float, ...], default: float) -> float:
    """The mean of the rates that are known; the default without any."""
    known = [rate for rate in rates if not math.isnan(rate)]
    return round(sum(known) / len(known), 4) if known else default
