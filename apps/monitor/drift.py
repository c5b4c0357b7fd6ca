"""Whether traffic differs from a reference, and since when.

Alerts are bounded over all looks together. Without a change, the chance of an alert at look k is at most
α / (k · (k + 1)), and these sum up to α over any number of looks (the union bound; a spending of α that needs no number
of looks in advance). Half of it is for the responses of the look, which show a jump soonest, half for all responses so
far, which show a small change that stays. Both are Fisher's exact tests against the same reference, so nothing is
approximate, and the looks need not be independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
from scipy.stats import fisher_exact

from .observations import Observation
from .prevalence import Interval, share
from .records import Drift, Estimate, Look, ShareChange, Shift
from .shift import describe_values, find_shift

QUANTITIES: dict[str, Callable[[Observation], float | None]] = {
    "probability": lambda row: row.probability,
    "length in words": lambda row: row.words,
    "word overlap with the knowledge": lambda row: row.overlap,
    "length of the knowledge in words": lambda row: row.knowledge_words,
}
LABELS = ("inconsistent", "unverifiable", "unknown")
"""Whose shares are compared."""


def compare_with_reference(
    reference: Sequence[Observation],
    rows: Sequence[Observation],
    name: str,
    *,
    alert_rate: float,
    look_size: int,
    looks_before: int = 0,
) -> Drift | None:
    """The drift of ``rows`` from ``reference``, which is called ``name``; None where one has no verdicts."""
    old, new = ([row for row in several if row.has_verdict] for several in (reference, rows))
    if not old or not new:
        return None
    inconsistent = sum(row.is_inconsistent for row in old)
    changes = [
        compare_shares(label, *(_count_label(several, label) for several in (reference, rows))) for label in LABELS
    ]
    return Drift(
        name,
        len(old),
        inconsistent,
        Estimate(*share(inconsistent, len(old))),
        tuple(change for change in changes if change is not None),
        tuple(_measure_shifts(reference, rows)),
        tuple(take_looks(inconsistent, len(old), new, alert_rate, look_size, looks_before)),
        alert_rate,
    )


def take_looks(
    inconsistent: int,
    responses: int,
    rows: Sequence[Observation],
    alert_rate: float,
    look_size: int,
    looks_before: int = 0,
) -> list[Look]:
    """Compare ``rows``, all with a verdict, with a reference, in looks of about ``look_size`` of them.

    ``looks_before`` were taken in earlier reports: they have spent their part of ``alert_rate``.
    """
    looks, so_far, total = [], 0, 0
    for number, indices in enumerate(np.array_split(np.arange(len(rows)), max(1, len(rows) // look_size)), 1):
        part = [rows[index] for index in indices]
        count = sum(row.is_inconsistent for row in part)
        so_far, total = so_far + count, total + len(part)
        spent = number + looks_before
        level = alert_rate / (spent * (spent + 1)) / 2
        p, p_so_far = (
            _test_increase(inconsistent, responses, *counts) for counts in ((count, len(part)), (so_far, total))
        )
        alert = min(p, p_so_far) <= level
        interval = Estimate(*share(count, len(part)))
        looks.append(
            Look(spent, part[0].line, part[-1].line, len(part), count, interval, level, p, p_so_far, alert=alert)
        )
    return looks


def compare_shares(label: str, reference: tuple[int, int], now: tuple[int, int]) -> ShareChange | None:
    """Two shares, each (count, total), by the two-proportion z test with pooled variance.

    None where neither has the label.
    """
    (x, n), (y, m) = reference, now
    if x + y == 0:
        return None
    before, after = share(x, n), share(y, m)
    pooled = (x + y) / (n + m)
    deviation = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    difference = subtract_shares(after, before)
    p = 2 * NormalDist().cdf(-abs(difference.value) / deviation) if deviation else 1.0
    return ShareChange(label, before.value, after.value, Estimate(*difference), p)


def subtract_shares(a: Interval, b: Interval) -> Interval:
    """The difference ``a − b`` of two shares of different responses.

    Its interval is the tenth of Newcombe (1998, *Statistics in Medicine* 17, 873–890), from both
    shares' intervals.
    """
    difference = a.value - b.value
    low = difference - math.hypot(a.value - a.low, b.high - b.value)
    high = difference + math.hypot(a.high - a.value, b.value - b.low)
    return Interval(difference, low, high)


def _count_label(rows: Sequence[Observation], label: str) -> tuple[int, int]:
    """How many have the label, of the responses that could: "inconsistent" needs a verdict."""
    counted = [row for row in rows if row.has_verdict] if label == "inconsistent" else rows
    return sum(row.label == label for row in counted), len(counted)


def _measure_shifts(reference: Sequence[Observation], rows: Sequence[Observation]) -> list[Shift]:
    shifts = []
    for name, read in QUANTITIES.items():
        old, new = (
            np.array([value for row in several if (value := read(row)) is not None]) for several in (reference, rows)
        )
        distribution = describe_values(old)
        if distribution is not None and len(new):
            shifts.append(find_shift(name, distribution, new))
    return shifts


def _test_increase(reference: int, responses: int, count: int, total: int) -> float:
    table = [[count, total - count], [reference, responses - reference]]
    return float(min(fisher_exact(table, alternative="greater").pvalue, 1.0))
