"""Where inconsistent responses concentrate: groups of responses, each tested against all others.

There are many groups, they overlap, and among groups of a length or a time one has more where another has less. So the
p values of Fisher's exact test are corrected by the method of Benjamini and Yekutieli (2001, *Annals of Statistics* 29,
1165–1188), which bounds the expected share of groups that are named by chance whatever the tests have to do with each
other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from scipy.stats import false_discovery_control, fisher_exact

from .kinds import name_lengths
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


def find_groups(rows: Sequence[Observation], compared: Collection[str] = ()) -> tuple[Group, ...]:
    """The groups of responses with a verdict; groups that differ come first, the largest difference first.

    Systems that are ``compared`` in pairs are not groups: by two tests, one difference would be chance and no chance.
    """
    counts = [
        *_count_groups(rows, "term", [row.terms for row in rows], MAX_TERMS),
        *_count_groups(rows, "response length", _name_lengths([row.words for row in rows])),
        *_count_groups(rows, "knowledge length", _name_lengths([row.knowledge_words for row in rows])),
        *_count_groups(rows, "sentences", [row.kinds for row in rows]),
        *_count_groups(rows, "language", [(row.language,) for row in rows]),
        *_count_groups(rows, "system", [(row.system,) for row in rows]),
        *_count_groups(rows, "source", [(row.source,) for row in rows]),
        *_count_groups(rows, "time", _name_times(rows)),
    ]
    tested = [
        count
        for count in counts
        if MIN_RESPONSES <= count.responses < count.total and (count.factor != "system" or count.name not in compared)
    ]
    if not tested:
        return ()
    p_values = [_test(count) for count in tested]
    adjusted = false_discovery_control(p_values, method="by").tolist()
    groups = [_build_group(*triple) for triple in zip(tested, p_values, adjusted, strict=True)]
    groups.sort(key=lambda group: (group.adjusted_p >= SIGNIFICANT, -abs(group.share.value - group.others)))
    others = [group for group in groups if group.factor == "term" and group.adjusted_p >= SIGNIFICANT][OTHER_TERMS:]
    return tuple(group for group in groups if group not in others)


def _count_groups(
    rows: Sequence[Observation], factor: Factor, names: Sequence[tuple[str, ...]], most: int = MAX_GROUPS
) -> Iterator[_Count]:
    """The ``most`` largest groups, of rows that have their names; empty names are none."""
    named_rows = [(of_row, row.is_inconsistent) for row, of_row in zip(rows, names, strict=True) if any(of_row)]
    responses = Counter(name for of_row, _ in named_rows for name in of_row)
    inconsistent = Counter(name for of_row, is_inconsistent in named_rows if is_inconsistent for name in of_row)
    total = len(named_rows), sum(is_inconsistent for _, is_inconsistent in named_rows)
    for name, count in responses.most_common(most):
        yield _Count(factor, name, count, inconsistent[name], *total)


def _name_lengths(lengths: Sequence[float | None]) -> list[tuple[str, ...]]:
    return [(name,) for name in name_lengths(lengths, BINS)]


def _name_times(rows: Sequence[Observation]) -> list[tuple[str, ...]]:
    times = [row.time for row in rows if row.time is not None]
    pattern = "%Y-%m-%d" if times and (max(times) - min(times)).days >= DAYS else "%Y-%m-%d %H:00"
    return [() if row.time is None else (row.time.strftime(pattern),) for row in rows]


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
