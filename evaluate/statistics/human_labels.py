"""Human labels, grades and pairs of a set, and how far a metric agrees with them: on the data and on every sample.

An analysis makes figures with intervals of it; a comparison takes the differences of two metrics sample by sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from groundwire.monitor.records import Estimate

from .estimates import Bools, Floats, classification, roc_auc, share, spearman
from .resampling import Resamples, estimate


class LabelledExample(Protocol):
    """What people said about an example (``Example``, ``ExampleValues``)."""

    @property
    def label(self) -> int | None:
        """1 consistent, 0 inconsistent."""
        ...

    @property
    def grade(self) -> float | None:
        """A rating on a scale."""
        ...

    @property
    def context(self) -> str:
        """Examples with the same non-empty context answer the same turn."""
        ...

    @property
    def group(self) -> str:
        """Examples with the same non-empty group have the same knowledge and history."""
        ...


class Pairs(NamedTuple):
    """Every (consistent, inconsistent) pair of examples of one context."""

    better: npt.NDArray[np.intp]
    worse: npt.NDArray[np.intp]
    """[pairs]; indices of the two examples."""
    context: npt.NDArray[np.intp]
    """[pairs]; index of their context among the contexts with pairs."""
    only_pair: Bools
    """[pairs]; whether the context has these two responses and no other."""
    contexts: int


MIN_GROUPS = 10
"""Contexts from which they are drawn as wholes: of fewer, samples of contexts would be too much alike."""


class HumanLabels:
    """Labels, grades and pairs of a set's examples, as arrays [examples], and the samples of all its intervals."""

    def __init__(self, examples: Sequence[LabelledExample], repeats: int, seed: int) -> None:
        self.repeats, self.seed = repeats, seed
        self.labelled: Bools = np.array([example.label is not None for example in examples], dtype=bool)
        self.consistent: Bools = np.array([example.label == 1 for example in examples], dtype=bool)
        grades = [np.nan if example.grade is None else example.grade for example in examples]
        self.grades: Floats = np.array(grades, dtype=np.float64)
        self.pairs = _pair_examples(examples)
        groups = group_examples(examples)
        self._groups = np.unique(groups, return_inverse=True)[1] if groups else np.empty(0, np.intp)
        self.by_context = len(set(groups)) >= MIN_GROUPS
        """Whether samples draw whole contexts; of fewer they draw examples."""
        self.samples = Resamples(groups if self.by_context else range(len(examples)), repeats, seed)
        self._contexts = Resamples(range(self.pairs.contexts), repeats, seed)

    def estimate(self, figure: Floats | None, *contexts: int) -> Estimate | None:
        """A figure of this set with its interval; None when it is undefined. A share, or each of the shares that it is
        the mean of, is of so many ``contexts``."""
        return None if figure is None else estimate(figure, self.repeats, *contexts)

    def count_classes(self, part: Bools) -> tuple[int, int]:
        """How many contexts the consistent and the inconsistent examples in ``part`` have (``count_contexts``)."""
        right, wrong = (part & self.labelled & label for label in (self.consistent, ~self.consistent))
        return self.count_contexts(right), self.count_contexts(wrong)

    def count_contexts(self, part: Bools) -> int:
        """How many contexts the examples in ``part`` have; each example counts where samples draw examples."""
        return len(np.unique(self._groups[part])) if self.by_context else int(part.sum())

    @property
    def inconsistent(self) -> Bools:
        """The examples that people labelled inconsistent."""
        return self.labelled & ~self.consistent

    @property
    def has_grades(self) -> bool:
        """Whether any example has a grade."""
        return bool(np.isfinite(self.grades).any())

    def select_labelled(self, values: Floats) -> Bools:
        """The examples with a label and a value; none of them when only one class has values."""
        selected = self.labelled & np.isfinite(values)
        return selected if len(np.unique(self.consistent[selected])) == 2 else np.zeros_like(selected)

    def select_graded(self, values: Floats) -> Bools:
        """The examples with a grade and a value; none of them when either is constant."""
        selected = np.isfinite(self.grades) & np.isfinite(values)
        varied = selected.any() and np.ptp(values[selected]) > 0 and np.ptp(self.grades[selected]) > 0
        return selected if varied else np.zeros_like(selected)

    def roc_auc(self, values: Floats, part: Bools | None = None) -> Floats | None:
        """ROC-AUC of the examples in ``part``, or of all, as a sampled figure; None without both classes."""
        labelled = self.select_labelled(values if part is None else np.where(part, values, np.nan))
        return (
            self.samples.measure(roc_auc(values[labelled], self.consistent[labelled]), labelled)
            if labelled.any()
            else None
        )

    def rank_correlation(self, values: Floats) -> Floats | None:
        """Spearman's correlation with the grades, as a sampled figure; None where it is undefined."""
        graded = self.select_graded(values)
        return self.samples.measure(spearman(values[graded], self.grades[graded]), graded) if graded.any() else None

    def ranking(self, values: Floats) -> Floats | None:
        """Share of pairs in the right order, a sampled figure over samples of contexts; a tie counts one half."""
        better, worse = values[self.pairs.better], values[self.pairs.worse]
        complete = np.isfinite(better) & np.isfinite(worse)
        if not complete.any():
            return None
        correct = np.where(better == worse, 0.5, better > worse)[complete]
        context, contexts = self.pairs.context[complete], self.pairs.contexts
        correct_by_context = np.bincount(context, correct, minlength=contexts).astype(np.float64)
        pairs_by_context = np.bincount(context, minlength=contexts).astype(np.float64)
        return self._contexts.measure(share(correct_by_context, pairs_by_context), np.ones(contexts, dtype=bool))

    def balanced_accuracy(self, flagged: Bools, decided: Bools) -> Floats | None:
        """Balanced accuracy, 0–1, where ``flagged`` of the ``decided`` examples are called inconsistent, as a sampled
        figure; None without both classes."""
        keep = self.labelled & decided
        if len(np.unique(self.consistent[keep])) < 2:
            return None
        balanced: Floats = self.samples.measure(classification(~flagged[keep], self.consistent[keep]), keep)[1]
        return balanced

    def power(self, flagged: Bools, decided: Bools) -> Floats | None:
        """Share of the inconsistent examples that is called so, 0–1, as a sampled figure; None without any."""
        keep = self.inconsistent & decided
        whole = keep.astype(np.float64)
        return self.samples.measure(share(flagged * whole, whole), np.ones_like(keep)) if keep.any() else None

    def values_of_only_pairs(self, values: Floats) -> tuple[Floats, Floats]:
        """Values of the consistent and of the inconsistent response of every context that has just these two."""
        only = self.pairs.only_pair
        better, worse = values[self.pairs.better[only]], values[self.pairs.worse[only]]
        complete = np.isfinite(better) & np.isfinite(worse)
        return better[complete], worse[complete]

    def share(self, part: Bools | Floats, whole: Bools | Floats) -> Estimate | None:
        """The sum of ``part`` over the sum of ``whole``, both [examples]; None when ``whole`` is 0."""
        everywhere = np.ones(len(self.labelled), dtype=bool)
        statistic = share(part.astype(np.float64), whole.astype(np.float64))
        return self.samples.estimate(statistic, everywhere, self.count_contexts(whole > 0))


def group_examples(examples: Sequence[LabelledExample]) -> list[str]:
    """What each example shares its knowledge and history with: the group, else the context, else nothing."""
    return [
        f"group {example.group}" if example.group else f"context {example.context}" if example.context else str(index)
        for index, example in enumerate(examples)
    ]


def _pair_examples(examples: Sequence[LabelledExample]) -> Pairs:
    groups: dict[str, list[int]] = {}
    for index, example in enumerate(examples):
        if example.context and example.label is not None:
            groups.setdefault(example.context, []).append(index)
    better, worse, context, only_pair = [], [], [], []
    contexts = 0
    for indices in groups.values():
        consistent = [index for index in indices if examples[index].label == 1]
        inconsistent = [index for index in indices if examples[index].label == 0]
        pairs = [(first, second) for first in consistent for second in inconsistent]
        better += [first for first, _ in pairs]
        worse += [second for _, second in pairs]
        context += [contexts] * len(pairs)
        only_pair += [len(indices) == 2] * len(pairs)
        contexts += bool(pairs)
    return Pairs(
        np.array(better, dtype=np.intp),
        np.array(worse, dtype=np.intp),
        np.array(context, dtype=np.intp),
        np.array(only_pair, dtype=bool),
        contexts,
    )
