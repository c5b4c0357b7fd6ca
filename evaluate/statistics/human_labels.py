"""What people said of the rows of a set, and how far a metric agrees: in the data as they are, and in every sample.

An analysis makes figures with intervals of it, a comparison takes the differences of two metrics sample by sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .estimates import Bools, Floats, Resamples, roc_auc, share, spearman
from .results import Estimate


class Judged(Protocol):
    """A row, as far as people's judgement of it goes (``Row``, ``RowValues``)."""

    @property
    def label(self) -> int | None:
        """1 consistent, 0 inconsistent."""
        ...

    @property
    def grade(self) -> float | None:
        """A judgement on a scale."""
        ...

    @property
    def context(self) -> str:
        """Rows with the same non-empty context answer the same turn."""
        ...


class Pairs(NamedTuple):
    """Every (consistent, inconsistent) pair of rows of one context."""

    better: npt.NDArray[np.intp]
    worse: npt.NDArray[np.intp]
    """[pairs]; places of the two rows."""
    context: npt.NDArray[np.intp]
    """[pairs]; place of their context among those that have pairs."""
    duel: Bools
    """[pairs]; whether the context has these two responses and no other."""
    contexts: int


class People:
    """Labels, grades and pairs of a set's rows, as arrays [rows], and the samples that all its intervals rest on."""

    def __init__(self, rows: Sequence[Judged], repeats: int, seed: int) -> None:
        self.repeats, self.seed = repeats, seed
        self.labelled: Bools = np.array([row.label is not None for row in rows], dtype=bool)
        self.consistent: Bools = np.array([row.label == 1 for row in rows], dtype=bool)
        self.grades: Floats = np.array([np.nan if row.grade is None else row.grade for row in rows], dtype=np.float64)
        self.pairs = _pairs(rows)
        self.samples = Resamples(len(rows), repeats, seed)
        self._contexts = Resamples(self.pairs.contexts, repeats, seed)

    @property
    def inconsistent(self) -> Bools:
        """The rows that people call so."""
        return self.labelled & ~self.consistent

    def known(self, values: Floats) -> Bools:
        """The rows that have a label and a value; none of them when only one class has values."""
        both = self.labelled & np.isfinite(values)
        return both if len(np.unique(self.consistent[both])) == 2 else np.zeros_like(both)

    def graded(self, values: Floats) -> Bools:
        """The rows that have a grade and a value; none of them when either is constant."""
        both = np.isfinite(self.grades) & np.isfinite(values)
        varied = both.any() and np.ptp(values[both]) > 0 and np.ptp(self.grades[both]) > 0
        return both if varied else np.zeros_like(both)

    def auc(self, values: Floats, part: Bools | None = None) -> Floats | None:
        """ROC-AUC [1 + repeats] of the rows in ``part``, or of all; None without both classes."""
        known = self.known(values if part is None else np.where(part, values, np.nan))
        return self.samples.measure(roc_auc(values[known], self.consistent[known]), known) if known.any() else None

    def rank_correlation(self, values: Floats) -> Floats | None:
        """Spearman's correlation [1 + repeats] with the grades; None where it is undefined."""
        known = self.graded(values)
        return self.samples.measure(spearman(values[known], self.grades[known]), known) if known.any() else None

    def ranking(self, values: Floats) -> Floats | None:
        """Share of pairs in the right order [1 + repeats], over samples of contexts; a tie counts one half."""
        better, worse = values[self.pairs.better], values[self.pairs.worse]
        known = np.isfinite(better) & np.isfinite(worse)
        if not known.any():
            return None
        won = np.where(better == worse, 0.5, better > worse)[known]
        places, contexts = self.pairs.context[known], self.pairs.contexts
        right = np.bincount(places, won, minlength=contexts).astype(np.float64)
        total = np.bincount(places, minlength=contexts).astype(np.float64)
        return self._contexts.measure(share(right, total), np.ones(contexts, dtype=bool))

    def duels(self, values: Floats) -> tuple[Floats, Floats]:
        """Values of the consistent and of the inconsistent response of every context that has just these two."""
        better, worse = values[self.pairs.better[self.pairs.duel]], values[self.pairs.worse[self.pairs.duel]]
        known = np.isfinite(better) & np.isfinite(worse)
        return better[known], worse[known]

    def share(self, part: Bools | Floats, whole: Bools | Floats) -> Estimate | None:
        """The sum of ``part`` over the sum of ``whole``, both [rows]; None when ``whole`` is 0."""
        everywhere = np.ones(len(self.labelled), dtype=bool)
        return self.samples.estimate(share(part.astype(np.float64), whole.astype(np.float64)), everywhere)


def _pairs(rows: Sequence[Judged]) -> Pairs:
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        if row.context and row.label is not None:
            groups.setdefault(row.context, []).append(place)
    better, worse, context, duel = [], [], [], []
    contexts = 0
    for places in groups.values():
        right = [place for place in places if rows[place].label == 1]
        wrong = [place for place in places if rows[place].label == 0]
        found = [(one, other) for one in right for other in wrong]
        better += [one for one, _ in found]
        worse += [other for _, other in found]
        context += [contexts] * len(found)
        duel += [len(places) == 2] * len(found)
        contexts += bool(found)
    first, second, where = (np.array(one, dtype=np.intp) for one in (better, worse, context))
    return Pairs(first, second, where, np.array(duel, dtype=bool), contexts)
