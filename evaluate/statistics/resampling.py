"""Bootstrap samples of a labelled set, and what they say about a figure: its interval, and the p of a difference.

Responses to one context (knowledge and history) are alike, so contexts are drawn, each with all its examples: a cluster
bootstrap. Intervals are bias-corrected and accelerated (BCa; Efron 1987): they follow the skewness of figures near 1,
where percentiles of the samples do not. A jackknife over contexts gives the acceleration. A share of 0 or 1 has
Wilson's interval instead, and a perfect mean of two shares the interval that theirs give (Newcombe 1998). Several
comparisons are corrected by Holm's method.

A sampled figure is an array: the figure of the data as they are, then of each sample, then of the data without each
block of contexts. Where a sample leaves it undefined it is NaN; NaN never leaves this module: an undefined figure is
None.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from groundwire.monitor.prevalence import share
from groundwire.monitor.records import Estimate

from .estimates import Bools, Floats, Statistic

MAX_BLOCKS = 200
"""Blocks of contexts that the jackknife leaves out one at a time: single contexts where there are no more."""
_CHUNK = 32
"""Samples computed at a time: the weights of some thousand examples then stay in the processor's cache."""
_TAIL = 1.959963984540054
"""The standard normal quantile of 97.5 %."""


class Resamples:
    """How often each example is in each of ``repeats`` samples; examples of one group are drawn together.

    ``groups`` has the group of each example. All figures of a set use the same samples, so that two metrics can be
    compared sample by sample.
    """

    def __init__(self, groups: Sequence[Hashable], repeats: int, seed: int) -> None:
        self.repeats = repeats
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        group_of = np.array([numbers[group] for group in groups], dtype=np.intp)
        count, rng = len(numbers), np.random.default_rng(seed)
        shape = (repeats, count)
        drawn = rng.integers(0, count, shape) if count else np.empty(shape, int)
        flat = (drawn + np.arange(repeats)[:, None] * count).ravel()
        sampled = np.bincount(flat, minlength=repeats * count).reshape(shape)
        blocks = min(count, MAX_BLOCKS)
        block_of = rng.permutation(count) % blocks if blocks else np.empty(0, int)
        left_out = np.arange(blocks)[:, None] != block_of
        counts = np.concatenate([np.ones((1, count), int), sampled, left_out])
        # No group is ever drawn 256 times: of 255 it cannot be, and of more the count is about Poisson(1).
        self._counts = np.ascontiguousarray(counts.astype(np.uint8).T[group_of])

    def measure(self, statistic: Statistic, keep: Bools) -> Floats:
        """The statistic of the examples in ``keep`` [examples], as a sampled figure."""
        counts = self._counts[keep]
        parts = [
            statistic(counts[:, first : first + _CHUNK].astype(np.float64))
            for first in range(0, counts.shape[1], _CHUNK)
        ]
        return np.concatenate(parts, axis=-1)

    def estimate(self, statistic: Statistic, keep: Bools, *contexts: int) -> Estimate | None:
        """The statistic with its interval; None when it is undefined for these examples."""
        return estimate(self.measure(statistic, keep), self.repeats, *contexts)


def estimate(figure: Floats, repeats: int, *contexts: int) -> Estimate | None:
    """A sampled figure with its 95 % interval, BCa; None when it is undefined.

    A share of 0 or 1 is 0 or 1 in every sample, which says nothing. Its interval is Wilson's, for ``contexts``, the
    number of contexts that it is a share of. A mean of shares, which ROC-AUC is too where no pair is in the wrong
    order, has a number for each of them, and the squared distances of their bounds add up. Other figures have none.
    """
    value, samples, left_out = figure[0], _known(figure[1 : 1 + repeats]), _known(figure[1 + repeats :])
    if not np.isfinite(value) or not len(samples):
        return None
    if contexts and all(contexts) and value in (0, 1):
        bounds = [share(count if value else 0, count) for count in contexts]
        distance = math.hypot(*(part.high - part.low for part in bounds)) / len(bounds)
        return Estimate(float(value), float(max(0.0, value - distance)), float(min(1.0, value + distance)))
    low, high = np.percentile(samples, 100 * _bca_levels(float(value), samples, left_out))
    return Estimate(float(value), float(low), float(high))


def _bca_levels(value: float, samples: Floats, left_out: Floats) -> Floats:
    """The quantiles of the samples that bound the interval, 0–1: 0.025 and 0.975 for an unbiased, symmetric figure."""
    below = (np.count_nonzero(samples < value) + np.count_nonzero(samples <= value)) / 2
    # A bias of all samples on one side would be infinite.
    share = np.clip(below, 0.5, len(samples) - 0.5) / len(samples)
    bias = ndtri(share)
    distances = left_out.mean() - left_out if len(left_out) else np.zeros(1)
    spread = (distances**2).sum()
    acceleration = (distances**3).sum() / (6 * spread**1.5) if spread > 0 else 0.0
    shifted = bias + np.array([-_TAIL, _TAIL])
    levels: Floats = ndtr(bias + shifted / (1 - acceleration * shifted))
    return levels


def p_value(difference: Floats, repeats: int) -> float:
    """Two-sided p of "no difference" from a sampled difference: twice the smaller tail, never 0."""
    differences = _known(difference[1 : 1 + repeats])
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return float(min(1.0, 2 * (tail + 1) / (len(differences) + 1)))


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """The p values for several comparisons by Holm's method: at most a share α of families has one below α by chance.

    >>> adjust_p_values([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, highest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _known(numbers: Floats) -> npt.NDArray[np.float64]:
    return numbers[np.isfinite(numbers)]
