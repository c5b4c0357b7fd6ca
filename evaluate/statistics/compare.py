"""Two runs side by side, on the rows that both have scored: which metric became better, and is it more than chance?

The difference of a figure is computed in a thousand samples of the same rows for both runs (a paired bootstrap), so
what makes a row easy or hard for either run cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np

from groundwire.engine.schema.base import Record
from groundwire.evaluate.scores import metric_values
from groundwire.evaluate.scores.metric_values import VALUES, RowValues
from groundwire.runtime.errors import InvalidRequest

from .estimates import Floats, estimate, p_value
from .human_labels import People
from .results import Estimate, Results

FigureName: TypeAlias = Literal["roc_auc", "ranking", "spearman"]
FIGURES: dict[FigureName, Callable[[People, Floats], Floats | None]] = {
    "roc_auc": People.auc,
    "ranking": People.ranking,
    "spearman": People.rank_correlation,
}
"""What is compared, where the set has the labels, pairs or grades for it."""
SIGNIFICANT = 0.05
"""A smaller p is taken for more than chance."""


class Run(NamedTuple):
    """A run's results, and the values they were computed from."""

    results: Results
    sets: dict[str, list[RowValues]]

    @classmethod
    def load(cls, path: Path, directory: Path | None = None) -> Self:
        """Read ``results.json``, or the run's directory; its values stand beside it, or in another ``directory``.

        InvalidRequest when a file is missing or something else.
        """
        file = path / "results.json" if path.is_dir() else path
        results = Results.load(file)
        folder = (directory or file.parent) / VALUES
        return cls(results, {one.name: metric_values.load(folder / f"{one.name}.jsonl") for one in results.sets})


class Difference(Record, frozen=True):
    """One figure of one metric on one set, in both runs, on the rows that have a value in both."""

    set: str
    metric: str
    figure: FigureName
    rows: int
    """Of the set that both runs have."""
    a: float
    b: float
    difference: Estimate
    """``b - a``."""
    p: float
    """Two-sided, of no difference."""

    def worse_by(self, points: float) -> bool:
        """Whether B is worse by more than ``points`` hundredths, and by more than chance."""
        return -self.difference.value * 100 > points and self.p < SIGNIFICANT


class Comparison(Record, frozen=True):
    """Everything that two runs have in common."""

    a: str
    b: str
    """Signatures of the runs."""
    repeats: int
    seed: int
    differences: tuple[Difference, ...]
    missing: tuple[str, ...]
    """What A has and B lacks: sets, metrics, rows with a value. A gate must not take these for "no worse"."""
    notes: tuple[str, ...] = ()
    """What else differs."""


def compare_runs(
    a: Run, b: Run, *, metrics: Sequence[str] | None = None, repeats: int = 1000, seed: int = 0
) -> Comparison:
    """The differences of ``b`` from ``a``, of all their common metrics or of ``metrics``.

    Raises InvalidRequest when the runs have no set in common, or a named metric is in neither.
    """
    common = [name for name in a.sets if name in b.sets]
    if not common:
        raise InvalidRequest(f"The runs share no set: A has {_listed(a.sets)}, B has {_listed(b.sets)}.")
    everywhere = {name for run in (a, b) for rows in run.sets.values() for row in rows for name in row.values}
    if wrong := [name for name in metrics or () if name not in everywhere]:
        raise InvalidRequest(f"No run has the metric {_listed(wrong)}; they have {_listed(sorted(everywhere))}.")
    missing = [f"set {name}" for name in a.sets if name not in b.sets]
    notes = [f"Only B has the set {name}." for name in b.sets if name not in a.sets]
    differences: list[Difference] = []
    for name in common:
        shared = _Shared.of(name, a.sets[name], b.sets[name], metrics)
        differences += shared.differences(repeats, seed)
        missing += shared.missing
        notes += shared.notes
    return Comparison(
        a.results.signature, b.results.signature, repeats, seed, tuple(differences), tuple(missing), tuple(notes)
    )


class _Shared(NamedTuple):
    """The rows of a set that both runs judge alike, and what only one of them has."""

    name: str
    pairs: list[tuple[RowValues, RowValues]]
    metrics: list[str]
    missing: list[str]
    notes: list[str]

    @classmethod
    def of(cls, name: str, a: Sequence[RowValues], b: Sequence[RowValues], wanted: Sequence[str] | None) -> Self:
        others = {row.id: row for row in b}
        pairs = [(row, others[row.id]) for row in a if row.id in others and _same(row, others[row.id])]
        missing, notes = [], []
        if lost := len(a) - len(pairs):
            missing.append(f"{lost} of {len(a)} rows of {name}, or their texts or labels differ")
        if more := len(b) - len(pairs):
            notes.append(f"{more} of {len(b)} rows of {name} in B are not those of A.")
        counts = [_counts(rows) for rows in zip(*pairs, strict=True)] if pairs else [{}, {}]
        metrics = []
        for metric in wanted or {**counts[0], **counts[1]}:
            first, second = (count.get(metric, 0) for count in counts)
            if first and second:
                metrics.append(metric)
            if second < first:
                missing.append(f"{metric} on {first - second} of {first} rows of {name}")
            elif first < second:
                notes.append(f"{metric} scores {second - first} more rows of {name} in B.")
        return cls(name, pairs, metrics, missing, notes)

    def differences(self, repeats: int, seed: int) -> Iterator[Difference]:
        """Every figure that is defined in both runs; one that only A has becomes ``missing``."""
        people = People([row for row, _ in self.pairs], repeats, seed)
        for metric in self.metrics:
            first, second = (
                np.array([row.values.get(metric, np.nan) for row in rows], dtype=np.float64)
                for rows in zip(*self.pairs, strict=True)
            )
            known = np.isfinite(first) & np.isfinite(second)
            first, second = np.where(known, first, np.nan), np.where(known, second, np.nan)
            for figure, measure in FIGURES.items():
                before, after = measure(people, first), measure(people, second)
                if before is None:
                    continue
                found = None if after is None else estimate(after - before)
                if after is None or found is None:
                    self.missing.append(f"{figure} of {metric} on {self.name}, undefined there")
                else:
                    yield Difference(
                        set=self.name,
                        metric=metric,
                        figure=figure,
                        rows=int(known.sum()),
                        a=float(before[0]),
                        b=float(after[0]),
                        difference=found,
                        p=p_value(after[1:] - before[1:]),
                    )


def _same(a: RowValues, b: RowValues) -> bool:
    return (a.key, a.label, a.grade, a.context) == (b.key, b.label, b.grade, b.context)


def _counts(rows: Sequence[RowValues]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        for name in row.values:
            found[name] = found.get(name, 0) + 1
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
