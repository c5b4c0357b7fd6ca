"""Agreement of a metric with people, and its 95 % interval by bootstrap.

A statistic is made from the values once, and is then a function of the rows' weights: an array [rows, samples] that
says how often each row stands in each sample. Column 0 of every weighting is the data as they are, the others are
samples with replacement, so that the figure and its interval come from one and the same computation. What a sample
leaves undefined (one of the classes is missing, or a side is constant) is NaN there; it never leaves this module: an
undefined figure is None.

The reference implementations, in the tests: scikit-learn with ``sample_weight``, scipy on the drawn rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .results import Estimate

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Statistic: TypeAlias = Callable[[Floats], Floats]
"""From weights [rows, samples] to one number per sample, [samples], or to several, [numbers, samples]."""

_CHUNK = 32
"""Samples computed at a time: the weights of some thousand rows then stay in the processor's cache."""


class Resamples:
    """How often each of ``rows`` rows stands in each of ``repeats`` samples of as many rows, drawn with replacement.

    All figures of a set use the same samples, so that those of two metrics can be compared sample by sample.
    """

    def __init__(self, rows: int, repeats: int, seed: int) -> None:
        drawn = np.random.default_rng(seed).integers(0, rows, (repeats, rows)) if rows else np.empty((repeats, 0), int)
        flat = (drawn + np.arange(1, repeats + 1)[:, None] * rows).ravel()
        counts = np.bincount(flat, minlength=(repeats + 1) * rows).reshape(repeats + 1, rows)
        counts[0] = 1
        # No row is ever drawn 256 times: in 255 rows it cannot be, and in more of them the count is about Poisson(1).
        self._counts = np.ascontiguousarray(counts.T.astype(np.uint8))

    def measure(self, statistic: Statistic, keep: Bools) -> Floats:
        """The statistic of the rows in ``keep`` [rows]: for the data as they are, then for each sample."""
        counts = self._counts[keep]
        parts = [
            statistic(counts[:, first : first + _CHUNK].astype(np.float64))
            for first in range(0, counts.shape[1], _CHUNK)
        ]
        return np.concatenate(parts, axis=-1)

    def estimate(self, statistic: Statistic, keep: Bools) -> Estimate | None:
        """The statistic with its interval; None when it is undefined for these rows."""
        return estimate(self.measure(statistic, keep))


def estimate(numbers: Floats) -> Estimate | None:
    """Of ``Resamples.measure``'s numbers: the first, and the 2.5 and 97.5 percentiles of the defined others."""
    others = numbers[1:][np.isfinite(numbers[1:])]
    if not np.isfinite(numbers[0]) or not len(others):
        return None
    low, high = np.percentile(others, [2.5, 97.5])
    return Estimate(float(numbers[0]), float(low), float(high))


def p_value(differences: Floats) -> float:
    """Two-sided p of "no difference" from bootstrapped differences: twice the smaller tail, never 0."""
    known = differences[np.isfinite(differences)]
    tail = min(np.count_nonzero(known <= 0), np.count_nonzero(known >= 0))
    return float(min(1.0, 2 * (tail + 1) / (len(known) + 1)))


def roc_auc(values: Floats, consistent: Bools) -> Statistic:
    """Area under the ROC curve: how often a consistent row is above an inconsistent one; a tie counts one half."""
    right, wrong = _by_value(values, consistent)

    def of(weights: Floats) -> Floats:
        return _area(right @ weights, wrong @ weights)

    return of


def areas(values: Floats, consistent: Bools) -> Statistic:
    """ROC-AUC, and the average precision of the class inconsistent, lowest values first (scikit-learn's, which does not
    interpolate): two numbers for the price of one.
    """
    right, wrong = _by_value(values, consistent)

    def of(weights: Floats) -> Floats:
        above, below = right @ weights, wrong @ weights
        found = np.cumsum(below, axis=0)
        precision = found / np.maximum(found + np.cumsum(above, axis=0), 1)  # counts: less than 1 is 0 of 0
        return np.stack([_area(above, below), _ratio(np.einsum("vs,vs->s", below, precision), found[-1])])

    return of


def _area(above: Floats, below: Floats) -> Floats:
    """ROC-AUC from the weights of the consistent and of the inconsistent rows at each value, [values, samples]."""
    lower = np.cumsum(below, axis=0)
    pairs = above.sum(axis=0) * lower[-1]
    return _ratio(np.einsum("vs,vs->s", above, lower) - np.einsum("vs,vs->s", above, below) / 2, pairs)


def classification(predicted: Bools, consistent: Bools) -> Statistic:
    """Eight numbers of a decision; what scikit-learn warns about, an empty class or prediction, is 0 as there.

    Accuracy, balanced accuracy; precision, recall and F1 of consistent; the same of inconsistent; NaN for the balanced
    accuracy of a sample with one class.
    """
    cells = np.stack(
        [
            predicted & consistent,
            predicted & ~consistent,
            ~predicted & consistent,
            ~predicted & ~consistent,
        ]
    ).astype(np.float64)

    def of(weights: Floats) -> Floats:
        true, false, missed, rejected = cells @ weights
        return np.stack(
            [
                _ratio(true + rejected, true + false + missed + rejected),
                (_ratio(true, true + missed) + _ratio(rejected, rejected + false)) / 2,
                *_class(true, false, missed),
                *_class(rejected, missed, false),
            ]
        )

    return of


def _class(true: Floats, false: Floats, missed: Floats) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1."""
    return (
        _ratio(true, true + false, 0.0),
        _ratio(true, true + missed, 0.0),
        _ratio(2 * true, 2 * true + false + missed, 0.0),
    )


def pearson(x: Floats, y: Floats) -> Statistic:
    """Pearson's correlation."""
    x, y = x - x.mean(), y - y.mean()
    sums = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y])
    # A sample that draws equal values only has a variance of nothing but rounding.
    least = 1e-12 * np.array([[(x * x).mean()], [(y * y).mean()]])

    def of(weights: Floats) -> Floats:
        count, *totals = sums @ weights
        mean_x, mean_y, square_x, square_y, product = _ratio(np.stack(totals), count)
        variances = np.stack([square_x - mean_x**2, square_y - mean_y**2])
        variances[variances <= least] = 0.0
        return _ratio(product - mean_x * mean_y, np.sqrt(variances[0] * variances[1]))

    return of


def spearman(x: Floats, y: Floats) -> Statistic:
    """Spearman's correlation: Pearson's of the ranks that the rows have within their sample, ties at their mean."""
    ranked = [_ranks(values) for values in (x, y)]

    def of(weights: Floats) -> Floats:
        (rank_x, variance_x), (rank_y, variance_y) = (ranks(weights) for ranks in ranked)
        return _ratio((weights * rank_x * rank_y).sum(axis=0), np.sqrt(variance_x * variance_y))

    return of


def _ranks(values: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Ranks less their mean, [rows, samples], and their sum of squares, [samples], of weighted rows."""
    groups, inverse = _groups(values)

    def of(weights: Floats) -> tuple[Floats, Floats]:
        counts = groups @ weights
        rank = np.cumsum(counts, axis=0) - counts / 2 - weights.sum(axis=0) / 2
        return rank[inverse], (counts * rank**2).sum(axis=0)

    return of


def share(part: Floats, whole: Floats) -> Statistic:
    """The sum of ``part`` over the sum of ``whole``, both [rows]: a proportion, or a mean over unequal groups."""
    sums = np.stack([part, whole])

    def of(weights: Floats) -> Floats:
        above, below = sums @ weights
        return _ratio(above, below)

    return of


def best_f1_threshold(values: Floats, consistent: Bools) -> float | None:
    """The value from which "consistent" has the best F1, the lowest of equal ones; None unless both classes occur.

    This is PMI-Faith's way to tune a threshold on a development set. The paper first brings values to 0–1 with the
    set's smallest and largest value; that changes their order nowhere, so the threshold stands here in the metric's own
    unit.
    """
    if consistent.all() or not consistent.any():
        return None
    places = np.unique(values)
    groups, _ = _groups(values)
    hits = np.cumsum((groups @ consistent.astype(np.float64))[::-1])[::-1]
    called = np.cumsum(np.asarray(groups.sum(axis=1)).ravel()[::-1])[::-1]
    return float(places[np.argmax(2 * hits / (called + consistent.sum()))])


def _groups(values: Floats) -> tuple[Any, npt.NDArray[np.intp]]:
    """Which rows have each distinct value: a sparse 0/1 matrix [distinct, rows], ascending; and each row's place."""
    _, inverse = np.unique(values, return_inverse=True)
    rows = np.arange(len(values))
    return sparse.csr_array((np.ones(len(values)), (inverse, rows))), inverse


def _by_value(values: Floats, consistent: Bools) -> tuple[Any, Any]:
    """``_groups`` of the consistent and of the inconsistent rows, over the distinct values of both."""
    _, inverse = np.unique(values, return_inverse=True)
    shape = (int(inverse.max()) + 1, len(values))
    rows = [np.flatnonzero(consistent), np.flatnonzero(~consistent)]
    right, wrong = (sparse.csr_array((np.ones(len(own)), (inverse[own], own)), shape=shape) for own in rows)
    return right, wrong


def _ratio(above: Floats, below: Floats, undefined: float = np.nan) -> Floats:
    """``above / below``, and ``undefined`` where ``below`` is 0."""
    below = np.broadcast_to(below, above.shape)
    quotient: Floats = np.divide(above, below, out=np.full(above.shape, undefined), where=below != 0)
    return quotient
