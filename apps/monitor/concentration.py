"""Where inconsistent responses concentrate: groups of responses, each tested against all others.

There are many groups, they overlap, and among groups of a length or a time one has more where another has less. So the
p values of Fisher's exact test are corrected by the method of Benjamini and Yekutieli (2001, *Annals of Statistics* 29,
1165–1188), which bounds the expected share of groups that are named by chance whatever the tests have to do with each
other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control, fisher_exact

from .observations import Observation
from .prevalence import share
from .records import Estimate, Factor, Group

SIGNIFICANT = 0.05
MIN_RESPONSES = 10
"""A smaller group is not tested."""
MAX_TERMS = 2000
"""Terms that are tested: the most frequent ones."""
OTHER_TERMS = 20
"""Terms that are reported although they do not differ."""
MAX_GROUPS = 50
"""Systems, sources or times that are tested: the largest ones."""
BINS = 5
"""Groups by length, at most."""
DAYS = 2
"""From so many days on, times are grouped by day, else by hour."""


class _Count(NamedTuple):
    factor: Factor
    name: str
    responses: int
    inconsistent: int
    total: int
    """Responses that the factor is known of."""
    total_inconsistent: int


def find_groups(rows: Sequence[Observation]) -> tuple[Group, ...]:
    """The groups of responses with a verdict; groups that differ come first, the largest difference first."""
    counts = [
        *_count_terms(rows),
        *_count_lengths(rows, "response length", lambda row: row.words),
        *_count_lengths(rows, "knowledge length", lambda row: row.knowledge_words),
        *_count_names(rows, "system", lambda row: row.system),
        *_count_names(rows, "source", lambda row: row.source),
        *_count_names(rows, "time", _make_clock(rows)),
    ]
    tested = [count for count in counts if MIN_RESPONSES <= count.responses < count.total]
    if not tested:
        return ()
    p_values = [_test(count) for count in tested]
    adjusted = false_discovery_control(p_values, method="by").tolist()
    groups = [_build_group(*triple) for triple in zip(tested, p_values, adjusted, strict=True)]
    groups.sort(key=lambda group: (group.adjusted_p >= SIGNIFICANT, -abs(group.share.value - group.others)))
    others = [group for group in groups if group.factor == "term" and group.adjusted_p >= SIGNIFICANT][OTHER_TERMS:]
    return tuple(group for group in groups if group not in others)


def _count_terms(rows: Sequence[Observation]) -> Iterator[_Count]:
    rows_with_terms = [row for row in rows if row.terms]
    responses = Counter(term for row in rows_with_terms for term in row.terms)
    inconsistent = Counter(term for row in rows_with_terms if row.is_inconsistent for term in row.terms)
    total = len(rows_with_terms), sum(row.is_inconsistent for row in rows_with_terms)
    for term, count in responses.most_common(MAX_TERMS):
        yield _Count("term", term, count, inconsistent[term], *total)


def _count_names(rows: Sequence[Observation], factor: Factor, read: Callable[[Observation], str]) -> Iterator[_Count]:
    labelled = [(name, row.is_inconsistent) for row in rows if (name := read(row))]
    responses = Counter(name for name, _ in labelled)
    inconsistent = Counter(name for name, is_inconsistent in labelled if is_inconsistent)
    for name, count in responses.most_common(MAX_GROUPS):
        yield _Count(factor, name, count, inconsistent[name], len(labelled), inconsistent.total())


def _count_lengths(
    rows: Sequence[Observation], factor: Factor, read: Callable[[Observation], float | None]
) -> Iterator[_Count]:
    labelled = [(length, row.is_inconsistent) for row in rows if (length := read(row)) is not None]
    if not labelled:
        return
    lengths, inconsistent = np.array([length for length, _ in labelled]), np.array([flag for _, flag in labelled])
    inner = np.unique(np.quantile(lengths, np.arange(1, BINS) / BINS, method="higher"))
    inner = inner[inner > lengths.min()]
    bins = np.searchsorted(inner, lengths, side="right")
    for index in range(len(inner) + 1):
        inside = bins == index
        low, high = lengths[inside].min(), lengths[inside].max()
        name = f"{low:.0f} words" if low == high else f"{low:.0f}–{high:.0f} words"
        yield _Count(
            factor, name, int(inside.sum()), int(inconsistent[inside].sum()), len(labelled), int(inconsistent.sum())
        )


def _make_clock(rows: Sequence[Observation]) -> Callable[[Observation], str]:
    times = [row.time for row in rows if row.time is not None]
    pattern = "%Y-%m-%d" if times and (max(times) - min(times)).days >= DAYS else "%Y-%m-%d %H:00"
    return lambda row: "" if row.time is None else row.time.strftime(pattern)


def _test(count: _Count) -> float:
    others, inconsistent = count.total - count.responses, count.total_inconsistent - count.inconsistent
    table = [
        [count.inconsistent, count.responses - count.inconsistent],
        [inconsistent, others - inconsistent],
    ]
    return float(min(fisher_exact(table).pvalue, 1.0))


def _build_group(count: _Count, p: float, adjusted_p: float) -> Group:
    others = (count.total_inconsistent - count.inconsistent) / (count.total - count.responses)
    interval = Estimate(*share(count.inconsistent, count.responses))
    return Group(count.factor, count.name, count.responses, count.inconsistent, interval, others, p, adjusted_p)
