"""Chooses the operating points of a fusion by verdicts on held-out responses, and measures what to expect of them.

Every set counts the same, unless it has too few responses (``ENOUGH``), and so does each class of a set. What a profile
states is measured on sets that were left out when its threshold was chosen, as its user's responses are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundwire.engine.verdict import find_threshold, smallest_level
from groundwire.runtime.bundles.calibration import Band, HeldOut, OrderStatistics, Profile, ProfileName

from ..statistics.delivered import DeliveredLabels
from ..statistics.estimates import Bools, Floats

MAX_FALSE_POSITIVE_RATE = 0.05
"""What ``lenient`` promises by default (docs/adr, nr 24)."""
MAX_MISSED_RATE = 0.15
"""Share of the inconsistent responses that ``strict`` calls consistent, at most, of those that state something."""
MIN_PRECISION = 0.9
"""Share of the sure labels that are right, at least, where a band reaches it."""
LEAST_PRECISION = 0.8
"""On a side where fewer are right than this at best, no label is sure."""
MIN_SURE = 0.05
"""Share of the responses that must be outside a band on each side: of fewer the share that is right says little."""
ENOUGH = 100
"""Responses of a class with which a set counts in full, and in proportion with fewer: of these a rate is known to no
less than ± 10 points."""
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
    prior: HeldOut | None = None
    """Verdicts by the same weights on other responses, which count where these are fewer than ``ENOUGH`` of a class."""

    def select(self, rows: Bools) -> HeldOutVerdicts:
        """The verdicts of these rows [N]."""
        return self._replace(
            consistent=self.consistent[rows],
            probabilities=self.probabilities[rows],
            unverifiable=self.unverifiable[rows],
            parts=self.parts[rows],
        )

    @property
    def stating(self) -> Bools:
        """[N]: whether a threshold decides the label."""
        return ~self.unverifiable & ~np.isnan(self.probabilities)

    @property
    def weights(self) -> Floats:
        """[N]: of the verdicts that a threshold decides; every class of a part has the sum 1, if it has enough."""
        weights = np.zeros(len(self.consistent))
        for part in np.unique(self.parts):
            for label in (True, False):
                rows = self.stating & (self.parts == part) & (self.consistent == label)
                weights[rows] = 1 / max(ENOUGH, rows.sum())
        return weights

    def measure(self, threshold: float) -> tuple[float, float, float]:
        """The false positive rate, the false negative rate, and the part of it that is called unverifiable.

        NaN where the class has no verdict.
        """
        delivered = DeliveredLabels(
            self.consistent,
            ~self.consistent,
            self.stating & (self.probabilities < threshold),
            self.unverifiable,
            self.stating | self.unverifiable,
        )
        return _share(*delivered.false_positives), _share(*delivered.missed), _share(*delivered.missed_unverifiable)

    def keep(self, *, consistent: bool) -> OrderStatistics:
        """What a calibration keeps of one class."""
        rows = self.consistent == consistent
        record = keep_order_statistics(self.probabilities[rows & self.stating])
        return msgspec.structs.replace(record, unverifiable=int((rows & self.unverifiable).sum()))


class OperatingPoints(NamedTuple):
    """Fields of a ``Fusion`` that are drawn from held-out verdicts."""

    profiles: dict[ProfileName, Profile]
    band: Band
    held_out: HeldOut


def make_points(
    verdicts: HeldOutVerdicts,
    cost_of_missed: float = 1.0,
    max_false_positive_rate: float = MAX_FALSE_POSITIVE_RATE,
    keep: Mapping[ProfileName, float] = MappingProxyType({}),
) -> OperatingPoints:
    """The operating points, with their rates on each part by what is chosen on the others.

    The thresholds of ``keep`` are not drawn; that of ``lenient`` is.
    """

    def choose(of: HeldOutVerdicts) -> dict[ProfileName, float]:
        fixed: dict[ProfileName, float] = {name: threshold for name, threshold in keep.items() if name != "lenient"}
        chosen = choose_thresholds(of, cost_of_missed, max_false_positive_rate) | fixed
        balanced = chosen["balanced"]
        return chosen | {"strict": max(balanced, chosen["strict"]), "lenient": min(balanced, chosen["lenient"])}

    thresholds = choose(verdicts)
    # What is left of a part may be too few for a promise that the whole can make.
    alone = measure_one_by_one(verdicts, max_false_positive_rate, thresholds)
    band = choose_band(verdicts, thresholds["balanced"])
    measured: dict[ProfileName, list[tuple[float, float, float]]] = {name: [] for name in thresholds}
    # Of each part, the weights of the sure labels, of those that are wrong, and of all.
    sureness: dict[ProfileName, list[tuple[float, float, float]]] = {name: [] for name in thresholds}
    for part in np.unique(verdicts.parts):
        rest, left_out = (verdicts.select(rows) for rows in (verdicts.parts != part, verdicts.parts == part))
        chosen = choose(rest)
        chosen_band = choose_band(rest, chosen["balanced"])
        for name, threshold in chosen.items():
            is_alone = name == "lenient" and not _can_promise(rest, max_false_positive_rate)
            measured[name].append(alone if is_alone else left_out.measure(threshold))
            line = thresholds[name] if is_alone else threshold
            sureness[name].append(_measure_band(left_out, chosen_band, line))
    right, wrong = (
        [int((verdicts.consistent[verdicts.parts == part] == label).sum()) for part in np.unique(verdicts.parts)]
        for label in (True, False)
    )
    profiles: dict[ProfileName, Profile] = {}
    for name, threshold in thresholds.items():
        of_parts = zip(*measured[name], strict=True)
        false_positive, false_negative, unverifiable = map(_average, of_parts, (right, wrong, wrong), (0.0, 1.0, 0.0))
        sure, sure_and_wrong, total = (sum(weights) for weights in zip(*sureness[name], strict=True))
        profiles[name] = Profile(
            threshold=threshold,
            max_false_positive_rate=max_false_positive_rate if name == "lenient" else None,
            false_positive_rate=false_positive,
            false_negative_rate=false_negative,
            unverifiable_rate=unverifiable,
            coverage=round(sure / total, 4) if total else 0.0,
            risk=round(sure_and_wrong / sure, 4) if sure else 0.0,
            sets=verdicts.sets,
        )
    record = HeldOut(consistent=verdicts.keep(consistent=True), inconsistent=verdicts.keep(consistent=False))
    return OperatingPoints(profiles, band, record)


def measure_one_by_one(
    verdicts: HeldOutVerdicts, max_false_positive_rate: float, thresholds: Mapping[ProfileName, float]
) -> tuple[float, float, float]:
    """``HeldOutVerdicts.measure`` of ``lenient``, each consistent response by the threshold of the others.

    No inconsistent response has a part in it.
    """
    _, missed, unverifiable = verdicts.measure(thresholds["lenient"])
    values = np.sort(verdicts.probabilities[verdicts.consistent & verdicts.stating])
    rank = math.floor(max_false_positive_rate * len(values) + 1e-9)  # of the others, whose number plus 1 it is
    # A response is below the threshold of the others where fewer than ``rank`` of these are at or below it.
    at_or_below = np.searchsorted(values, values, side="right") - 1
    called = (at_or_below < rank) & (values < thresholds["balanced"])
    count = len(values) + int((verdicts.consistent & verdicts.unverifiable).sum())
    return (float(called.sum()) / count if count else math.nan), missed, unverifiable


def call_left_out(verdicts: HeldOutVerdicts, cost_of_missed: float = 1.0, balanced: float | None = None) -> Bools:
    """Which responses [N] are called inconsistent by the threshold ``balanced``, or by what the other parts give."""
    called = np.zeros(len(verdicts.consistent), dtype=bool)
    for part in np.unique(verdicts.parts):
        rows = verdicts.parts == part
        drawn = choose_thresholds(verdicts.select(~rows), cost_of_missed)["balanced"] if balanced is None else balanced
        called |= rows & verdicts.stating & (verdicts.probabilities < drawn)
    return called


def choose_thresholds(
    verdicts: HeldOutVerdicts, cost_of_missed: float = 1.0, max_false_positive_rate: float = MAX_FALSE_POSITIVE_RATE
) -> dict[ProfileName, float]:
    """The thresholds of the profiles: ``lenient`` is never above ``balanced``, and ``strict`` never below it.

    ``balanced`` has the best mean balanced accuracy, in the middle of equally good ones, or the least cost where a
    missed error costs so many false positives; ``strict`` is the smallest
    that misses at most ``MAX_MISSED_RATE``; ``lenient`` promises ``max_false_positive_rate``, and is 0, which calls
    nothing inconsistent, where the consistent responses are too few for the promise.
    """
    below_right, below_wrong = (_share_below(verdicts, consistent=label) for label in (True, False))
    gain = (cost_of_missed * below_wrong - below_right).round(12)
    balanced = float(np.median(THRESHOLDS[gain == gain.max()]))
    strict = float(THRESHOLDS[np.argmax(below_wrong >= 1 - MAX_MISSED_RATE)]) if below_wrong.any() else balanced
    record = HeldOut(consistent=verdicts.keep(consistent=True), inconsistent=verdicts.keep(consistent=False))
    possible = _can_promise(verdicts, max_false_positive_rate)
    lenient = find_threshold(record, max_false_positive_rate) if possible else 0.0
    return {"balanced": balanced, "strict": max(balanced, strict), "lenient": min(balanced, lenient)}


def _can_promise(verdicts: HeldOutVerdicts, max_false_positive_rate: float) -> bool:
    """Whether the consistent responses are enough for the bound."""
    return smallest_level(verdicts.keep(consistent=True)) <= max_false_positive_rate


def choose_band(verdicts: HeldOutVerdicts, threshold: float) -> Band:
    """The narrowest band around a threshold outside which at least ``MIN_PRECISION`` of each label is right.

    A side that does not reach it has the edge outside which most labels are right, and no sure label below
    ``LEAST_PRECISION``. Only edges outside which there are at least ``MIN_SURE`` of the responses count.
    """
    right, wrong = (_share_below(verdicts, consistent=label) for label in (True, False))
    low = _find_edge(right + wrong, wrong, threshold >= THRESHOLDS)
    high = _find_edge(2 - right - wrong, 1 - right, threshold <= THRESHOLDS)
    return Band(low=0.0 if low is None else max(low), high=1.0 if high is None else min(high))


def _find_edge(called: Floats, well: Floats, allowed: Bools) -> list[float] | None:
    """The thresholds beyond which enough labels are right; of ``called`` [thresholds] responses ``well`` are so."""
    allowed = allowed & (called >= 2 * MIN_SURE)
    if not allowed.any():
        return None
    precision = well[allowed] / called[allowed]
    if precision.max() < LEAST_PRECISION:
        return None
    reached = precision >= min(MIN_PRECISION, precision.max())
    return [float(threshold) for threshold in THRESHOLDS[allowed][reached]]


def keep_order_statistics(probabilities: Floats) -> OrderStatistics:
    """At most ``MAX_ORDER_STATISTICS`` of the probabilities [N], evenly spread over their ranks and rounded down."""
    count = len(probabilities)
    stored = min(count, MAX_ORDER_STATISTICS)
    ranks = np.arange(1, stored + 1) * count // max(stored, 1)
    values = np.sort(probabilities)[ranks - 1]
    return OrderStatistics(count=count, values=tuple(math.floor(value * PRECISION) / PRECISION for value in values))


def _share_below(verdicts: HeldOutVerdicts, *, consistent: bool) -> Floats:
    """The share [thresholds] of a class below each of ``THRESHOLDS``, with every part in equal shares.

    What the parts lack of the weight of one that has enough is the prior's.
    """
    rows = verdicts.stating & (verdicts.consistent == consistent)
    order = np.argsort(verdicts.probabilities[rows])
    values, weights = verdicts.probabilities[rows][order], verdicts.weights[rows][order]
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    below = sums[np.searchsorted(values, THRESHOLDS)]
    lacking = max(0.0, 1 - sums[-1])
    if verdicts.prior is not None and lacking:
        record = verdicts.prior.consistent if consistent else verdicts.prior.inconsistent
        below = below + lacking * np.searchsorted(record.values, THRESHOLDS) / max(1, len(record.values))
        return np.asarray(below / (sums[-1] + lacking))
    return np.asarray(below / (sums[-1] or 1.0))


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


def _share(part: Bools, whole: Bools) -> float:
    return float(part[whole].mean()) if whole.any() else math.nan


def _average(rates: Sequence[float], responses: Sequence[int], default: float) -> float:
    """The mean of the parts' rates that are known, where parts with enough responses count the same."""
    weighted = [
        (rate, min(count, ENOUGH)) for rate, count in zip(rates, responses, strict=True) if not math.isnan(rate)
    ]
    total = sum(count for _, count in weighted)
    return round(sum(rate * count for rate, count in weighted) / total, 4) if total else default
