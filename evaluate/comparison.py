"""Two runs side by side on the examples that both scored: which metric became better, and is it more than chance?

The difference of a figure is computed in samples of the same examples for both runs (a paired bootstrap), so what makes
an example easy or hard for either run cancels out. The p values are corrected for the number of figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Self, TypeAlias

import msgspec
import numpy as np

from groundwire.engine.schema.base import Record
from groundwire.engine.verdict import find_feature
from groundwire.monitor.records import Estimate
from groundwire.runtime.errors import InvalidRequest

from .runs import Run
from .scores.metric_values import VERDICT, ExampleValues
from .statistics.estimates import Bools, Floats
from .statistics.human_labels import HumanLabels
from .statistics.resampling import adjust_p_values, p_value

FigureName: TypeAlias = Literal["roc_auc", "ranking", "spearman", "balanced_accuracy", "power"]
FIGURES: dict[FigureName, Callable[[HumanLabels, Floats], Floats | None]] = {
    "roc_auc": HumanLabels.roc_auc,
    "ranking": HumanLabels.ranking,
    "spearman": HumanLabels.rank_correlation,
}
"""The figures of a metric's values that are compared, where the set has the labels, pairs or grades for them."""
LABEL_FIGURES: dict[FigureName, Callable[[HumanLabels, Bools, Bools], Floats | None]] = {
    "balanced_accuracy": HumanLabels.balanced_accuracy,
    "power": HumanLabels.power,
}
"""The figures of the verdict's labels under the default profile."""
SIGNIFICANT = 0.05
"""A smaller p is taken for more than chance."""


class FigureDifference(Record, frozen=True):
    """One figure of one metric on one set, in both runs, on the examples that have a value in both."""

    set: str
    metric: str
    figure: FigureName
    examples: int
    """Examples with a value in both runs, and with what the figure needs: a label, or a grade."""
    a: float
    b: float
    difference: Estimate
    """``b - a``."""
    p: float
    """Two-sided, of no difference."""
    adjusted_p: float = 1.0
    """``p`` for all differences of the comparison together (Holm): among twenty equal figures, one has a p below 0.05
    by chance."""

    def worse_by(self, points: float) -> bool:
        """Whether B is worse by more than ``points`` hundredths, and by more than chance."""
        return -self.difference.value * 100 > points and self.adjusted_p < SIGNIFICANT


class RunComparison(Record, frozen=True):
    """Every difference of two runs, and what only one of them has."""

    a: str
    b: str
    """Signatures of the runs."""
    repeats: int
    """Bootstrap samples: those asked for, or as many as the correction of all the p values needs."""
    seed: int
    differences: tuple[FigureDifference, ...]
    missing: tuple[str, ...]
    """What A has and B lacks: sets, metrics, examples with a value. A gate must not take these for "no worse"."""
    notes: tuple[str, ...] = ()
    """What else differs."""


def compare(
    a: Run, b: Run, *, metrics: Sequence[str] | None = None, repeats: int = 1000, seed: int = 0
) -> RunComparison:
    """Compare two runs figure by figure.

    Args:
        a: The run that the differences are from.
        b: The other run.
        metrics: Names of the metrics to compare; None compares all that both runs have.
        repeats: Bootstrap samples, at least. More are drawn for many figures, since the smallest p, 2 / (repeats + 1),
            must stay below 0.05 once it is corrected for them.
        seed: Seed of the samples.

    Returns:
        The differences of ``b`` from ``a``, with intervals and corrected p-values.

    Raises:
        InvalidRequest: The runs have no set in common, or neither has a named metric.
    """
    common = [name for name in a.sets if name in b.sets]
    if not common:
        raise InvalidRequest(
            f"The runs share no set: A has {_join(a.sets)}, B has {_join(b.sets)}. Two runs are compared on the same "
            "responses, in files of one name. To compare two dialogue systems, put the responses of both in one file, "
            'with "system" in each row, and run groundwire report.'
        )
    with_values = {
        name
        for run in (a, b)
        for examples in run.sets.values()
        for example in examples
        for name in example.values
        if not find_feature(name).number.rates_verifiability
    }
    if unknown := [name for name in metrics or () if name not in with_values]:
        raise InvalidRequest(f"No run has the metric {_join(unknown)}; they have {_join(sorted(with_values))}.")
    missing = [f"set {name}" for name in a.sets if name not in b.sets]
    notes = [f"Only B has the set {name}." for name in b.sets if name not in a.sets]
    notes += [
        f"{letter} leaves out {figures.fitted} examples of {figures.name}, which its calibration was fitted to."
        for letter, run in (("A", a), ("B", b))
        for figures in run.results.sets
        if figures.fitted
    ]
    all_shared = [_Shared.of(name, a.sets[name], b.sets[name], metrics) for name in common]
    repeats = max(repeats, math.ceil(2 / SIGNIFICANT) * sum(shared.count_figures() for shared in all_shared))
    differences: list[FigureDifference] = []
    for shared in all_shared:
        differences += shared.differences(repeats, seed)
        missing += shared.missing
        notes += shared.notes
    adjusted = adjust_p_values([difference.p for difference in differences])
    differences = [
        msgspec.structs.replace(difference, adjusted_p=p) for difference, p in zip(differences, adjusted, strict=True)
    ]
    return RunComparison(
        a.results.signature, b.results.signature, repeats, seed, tuple(differences), tuple(missing), tuple(notes)
    )


class _Shared(NamedTuple):
    """The examples of a set with the same text and labels in both runs, and what only one run has."""

    name: str
    pairs: list[tuple[ExampleValues, ExampleValues]]
    metrics: list[str]
    missing: list[str]
    notes: list[str]

    @classmethod
    def of(
        cls, name: str, a: Sequence[ExampleValues], b: Sequence[ExampleValues], wanted: Sequence[str] | None
    ) -> Self:
        by_id = {example.id: example for example in b}
        pairs = [
            (example, by_id[example.id])
            for example in a
            if example.id in by_id and _is_same(example, by_id[example.id])
        ]
        missing, notes = [], []
        if lost := len(a) - len(pairs):
            missing.append(f"{lost} of {len(a)} examples of {name}, or their texts or labels differ")
        if more := len(b) - len(pairs):
            notes.append(f"{more} of {len(b)} examples of {name} in B are not those of A.")
        counts = [_count_values(examples) for examples in zip(*pairs, strict=True)] if pairs else [{}, {}]
        metrics = []
        for metric in wanted or (
            name for name in {**counts[0], **counts[1]} if not find_feature(name).number.rates_verifiability
        ):
            first, second = (count.get(metric, 0) for count in counts)
            if first and second:
                metrics.append(metric)
            if second < first:
                missing.append(f"{metric} on {first - second} of {first} examples of {name}")
            elif first < second:
                notes.append(f"{metric} scores {second - first} more examples of {name} in B.")
        return cls(name, pairs, metrics, missing, notes)

    def count_figures(self) -> int:
        """How many figures may be compared: those for which the set has labels, pairs or grades."""
        labels = HumanLabels([example for example, _ in self.pairs], 0, 0)
        kinds = len(set(labels.consistent[labels.labelled].tolist())) == 2, labels.pairs.contexts, labels.has_grades
        return len(self.metrics) * sum(map(bool, kinds)) + (len(LABEL_FIGURES) if VERDICT in self.metrics else 0)

    def differences(self, repeats: int, seed: int) -> Iterator[FigureDifference]:
        """Every figure that is defined in both runs; a figure that only A has is added to ``missing``."""
        labels = HumanLabels([example for example, _ in self.pairs], repeats, seed)
        for metric in self.metrics:
            first, second = (
                np.array([example.values.get(metric, np.nan) for example in examples], dtype=np.float64)
                for examples in zip(*self.pairs, strict=True)
            )
            in_both = np.isfinite(first) & np.isfinite(second)
            counts = {"spearman": int((in_both & np.isfinite(labels.grades)).sum())}
            first, second = np.where(in_both, first, np.nan), np.where(in_both, second, np.nan)
            for figure, measure in FIGURES.items():
                before, after = measure(labels, first), measure(labels, second)
                if before is None:
                    continue
                difference = None if after is None else labels.estimate(after - before)
                if after is None or difference is None:
                    self.missing.append(f"{figure} of {metric} on {self.name}, undefined there")
                else:
                    examples = counts.get(figure, int((in_both & labels.labelled).sum()))
                    yield self._describe(metric, figure, examples, before, after, difference, repeats)
        if VERDICT in self.metrics:
            yield from self._compare_labels(labels, repeats)

    def _compare_labels(self, labels: HumanLabels, repeats: int) -> Iterator[FigureDifference]:
        """The figures of the verdicts that both runs gave: each pair of labels of one response counts."""
        called = np.array([[a.called, b.called] for a, b in self.pairs]).T
        decided = np.all((called != "") & (called != "unknown"), axis=0)
        for figure, measure in LABEL_FIGURES.items():
            before, after = (measure(labels, of_run == "inconsistent", decided) for of_run in called)
            if before is None or after is None:
                continue
            if (difference := labels.estimate(after - before)) is not None:
                counted = labels.labelled if figure == "balanced_accuracy" else labels.inconsistent
                examples = int((counted & decided).sum())
                yield self._describe(VERDICT, figure, examples, before, after, difference, repeats)

    def _describe(
        self,
        metric: str,
        figure: FigureName,
        examples: int,
        before: Floats,
        after: Floats,
        difference: Estimate,
        repeats: int,
    ) -> FigureDifference:
        return FigureDifference(
            set=self.name,
            metric=metric,
            figure=figure,
            examples=examples,
            a=float(before[0]),
            b=float(after[0]),
            difference=difference,
            p=p_value(after - before, repeats),
        )


def _is_same(a: ExampleValues, b: ExampleValues) -> bool:
    return (a.key, a.label, a.grade, a.context) == (b.key, b.label, b.grade, b.context)


def _count_values(examples: Sequence[ExampleValues]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for example in examples:
        for name in example.values:
            counts[name] = counts.get(name, 0) + 1
    return counts


def _join(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
