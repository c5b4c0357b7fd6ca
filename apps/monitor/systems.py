"""Which of several systems has fewer inconsistent responses: every pair's difference of shares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from .drift import subtract_shares
from .observations import Observation
from .prevalence import share
from .records import Estimate, SystemDifference

MAX_SYSTEMS = 5
"""Systems that are compared in pairs, at most: the systems with the most verdicts."""


def compare_systems(rows: Sequence[Observation]) -> tuple[SystemDifference, ...]:
    """The difference of each pair of systems in the share called inconsistent, of responses with such a verdict.

    Systems are in the order of their names. None of fewer than two systems.
    """
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.system and row.has_verdict:
            count = counts.setdefault(row.system, [0, 0])
            count[0] += row.is_inconsistent
            count[1] += 1
    largest = sorted(sorted(counts), key=lambda system: -counts[system][1])[:MAX_SYSTEMS]
    return tuple(_subtract(a, counts[a], b, counts[b]) for a, b in combinations(sorted(largest), 2))


def _subtract(a: str, count_a: Sequence[int], b: str, count_b: Sequence[int]) -> SystemDifference:
    share_a, share_b = share(*count_a), share(*count_b)
    return SystemDifference(
        a, b, count_a[1], count_b[1], share_a.value, share_b.value, Estimate(*subtract_shares(share_a, share_b))
    )
