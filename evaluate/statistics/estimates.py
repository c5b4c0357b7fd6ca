"""Statistics of agreement with human labels.

A statistic is built from the values once. It is then a function of the examples' weights: an array [examples, samples]
that says how often each example is in each sample (``resampling``). So one computation gives a figure and its interval.
Where a sample leaves a figure undefined (one of the classes is missing, or one side is constant), it is NaN.

The reference implementations, in the tests: scikit-learn with ``sample_weight``, scipy on the drawn examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Statistic: TypeAlias = Callable[[Floats], Floats]
"""From weights [examples, samples] to one number per sample, [samples], or to several, [numbers, samples]."""


def roc_auc(values: Floats, consistent: Bools) -> Statistic:
    """Area under the ROC curve: how often a consistent example is above an inconsistent one; a tie counts one half."""
    right, wrong = _split_by_value(values, consistent)

    def measure(weights: Floats) -> Floats:
        return _area(right @ weights, wrong @ weights)

    return measure


def areas(values: Floats, consistent: Bools) -> Statistic:
    """ROC-AUC, and the average precision of inconsistent, lowest values first, and of consistent, highest values first
    (scikit-learn's, which does not interpolate): three numbers for the price of one.
    """
    right, wrong = _split_by_value(values, consistent)

    def measure(weights: Floats) -> Floats:
        above, below = right @ weights, wrong @ weights
        return np.stack(
            [_area(above, below), _average_precision(below, above), _average_precision(above[::-1], below[::-1])]
        )

    return measure


def _average_precision(wanted: Floats, others: Floats) -> Floats:
    """From the weights of the class that is searched for and of the other, [values, samples], best value first."""
    retrieved = np.cumsum(wanted, axis=0)
    precision = retrieved / np.maximum(retrieved + np.cumsum(others, axis=0), 1)  # counts: less than 1 is 0 of 0
    return _divide(np.einsum("vs,vs->s", wanted, precision), retrieved[-1])


def _area(above: Floats, below: Floats) -> Floats:
    """ROC-AUC from the weights of the consistent and of the inconsistent examples at each value, [values, samples]."""
    lower = np.cumsum(below, axis=0)
    pairs = above.sum(axis=0) * lower[-1]
    return _divide(np.einsum("vs,vs->s", above, lower) - np.einsum("vs,vs->s", above, below) / 2, pairs)


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

    def measure(weights: Floats) -> Floats:
        true, false, missed, rejected = cells @ weights
        return np.stack(
            [
                _divide(true + rejected, true + false + missed + rejected),
                (_divide(true, true + missed) + _divide(rejected, rejected + false)) / 2,
                *_score_class(true, false, missed),
                *_score_class(rejected, missed, false),
            ]
        )

    return measure


def _score_class(true: Floats, false: Floats, missed: Floats) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F1."""
    return (
        _divide(true, true + false, 0.0),
        _divide(true, true + missed, 0.0),
        _divide(2 * true, 2 * true + false + missed, 0.0),
    )


def pearson(x: Floats, y: Floats) -> Statistic:
    """Pearson's correlation."""
    x, y = x - x.mean(), y - y.mean()
    sums = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y])
    # The variance of a sample of equal values is nothing but rounding.
    least = 1e-12 * np.array([[(x * x).mean()], [(y * y).mean()]])

    def measure(weights: Floats) -> Floats:
        count, *totals = sums @ weights
        mean_x, mean_y, square_x, square_y, product = _divide(np.stack(totals), count)
        variances = np.stack([square_x - mean_x**2, square_y - mean_y**2])
        variances[variances <= least] = 0.0
        return _divide(product - mean_x * mean_y, np.sqrt(variances[0] * variances[1]))

    return measure


def spearman(x: Floats, y: Floats) -> Statistic:
    """Spearman's correlation: Pearson's of the examples' ranks within their sample, ties at their mean."""
    ranked = [_rank_values(values) for values in (x, y)]

    def measure(weights: Floats) -> Floats:
        (rank_x, variance_x), (rank_y, variance_y) = (ranks(weights) for ranks in ranked)
        return _divide((weights * rank_x * rank_y).sum(axis=0), np.sqrt(variance_x * variance_y))

    return measure


def _rank_values(values: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Ranks less their mean, [examples, samples], and their sum of squares, [samples], of weighted examples."""
    groups, inverse = _group_by_value(values)

    def measure(weights: Floats) -> tuple[Floats, Floats]:
        counts = groups @ weights
        rank = np.cumsum(counts, axis=0) - counts / 2 - weights.sum(axis=0) / 2
        return rank[inverse], (counts * rank**2).sum(axis=0)

    return measure


def share(part: Floats, whole: Floats) -> Statistic:
    """The sum of ``part`` over the sum of ``whole``, both [examples]: a proportion, or a mean over unequal groups."""
    sums = np.stack([part, whole])

    def measure(weights: Floats) -> Floats:
        above, below = sums @ weights
        return _divide(above, below)

    return measure


def best_f1_threshold(values: Floats, consistent: Bools) -> float | None:
    """The value from which "consistent" has the best F1, the lowest of equal ones; None unless both classes occur.

    This is PMI-Faith's way to tune a threshold on a development set. The paper first brings values to 0–1 with the
    set's smallest and largest value; that changes their order nowhere, so the threshold is in the metric's own unit
    here.
    """
    if consistent.all() or not consistent.any():
        return None
    candidates, hits, called = _count_called(values, consistent)
    return float(candidates[np.argmax(2 * hits / (called + consistent.sum()))])


def best_balanced_threshold(values: Floats, consistent: Bools) -> float | None:
    """The value from which "consistent" has the best balanced accuracy, the lowest of equal ones.

    Unlike the best F1, it does not call every example consistent where most are, or where the values separate the
    classes badly. None where no threshold is better than that.
    """
    if consistent.all() or not consistent.any():
        return None
    candidates, hits, called = _count_called(values, consistent)
    right = hits / consistent.sum() - (called - hits) / (~consistent).sum()
    best = int(np.argmax(right))
    return float(candidates[best]) if right[best] > 1e-9 else None


def _count_called(values: Floats, consistent: Bools) -> tuple[Floats, Floats, Floats]:
    """The distinct values, ascending, how many consistent examples reach each of them, and how many examples do."""
    groups, _ = _group_by_value(values)
    hits = np.cumsum((groups @ consistent.astype(np.float64))[::-1])[::-1]
    called = np.cumsum(np.asarray(groups.sum(axis=1)).ravel()[::-1])[::-1]
    return np.unique(values), hits, called


def _group_by_value(values: Floats) -> tuple[Any, npt.NDArray[np.intp]]:
    """A sparse 0/1 matrix [distinct, examples]: which examples have each distinct value, ascending; and the index of
    each example's value among them.
    """
    _, inverse = np.unique(values, return_inverse=True)
    columns = np.arange(len(values))
    return sparse.csr_array((np.ones(len(values)), (inverse, columns))), inverse


def _split_by_value(values: Floats, consistent: Bools) -> tuple[Any, Any]:
    """``_group_by_value`` of the consistent and of the inconsistent examples, over the distinct values of both."""
    _, inverse = np.unique(values, return_inverse=True)
    shape = (int(inverse.max()) + 1, len(values))
    classes = [np.flatnonzero(consistent), np.flatnonzero(~consistent)]
    right, wrong = (
        sparse.csr_array((np.ones(len(columns)), (inverse[columns], columns)), shape=shape) for columns in classes
    )
    return right, wrong


def _divide(above: Floats, below: Floats, undefined: float = np.nan) -> Floats:
    """``above / below``, and ``undefined`` where ``below`` is 0."""
    below = np.broadcast_to(below, above.shape)
    quotient: Floats = np.divide(above, below, out=np.full(above.shape, undefined), where=below != 0)
    return quotient
