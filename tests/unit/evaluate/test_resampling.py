"""Samples of contexts, their intervals and p values against scipy and scikit-learn."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as reference

from groundwire.evaluate.statistics.estimates import Floats, Statistic, pearson, roc_auc, share, spearman
from groundwire.evaluate.statistics.resampling import MAX_BLOCKS, Resamples, adjust_p_values, estimate, p_value
from groundwire.monitor.records import Estimate


def read_counts(resamples: Resamples, examples: int) -> Floats:
    """How often each example is in the data, in each sample, and without each block, [examples, columns]."""
    return resamples.measure(lambda given: given, np.ones(examples, dtype=bool))


def test_samples_are_drawn_with_replacement_by_the_seed() -> None:
    drawn = read_counts(Resamples(range(7), 500, seed=3), 7)
    assert drawn.shape == (7, 1 + 500 + 7)
    assert (drawn[:, 0] == 1).all()
    samples = drawn[:, 1:501]
    assert (samples.sum(axis=0) == 7).all()
    assert samples.mean() == pytest.approx(1.0)
    assert samples.var() == pytest.approx(6 / 7, abs=0.05)  # binomial(7, 1/7)
    assert (drawn == read_counts(Resamples(range(7), 500, seed=3), 7)).all()
    assert (drawn != read_counts(Resamples(range(7), 500, seed=4), 7)).any()


def test_examples_of_one_group_are_drawn_together() -> None:
    drawn = read_counts(Resamples(["a", "b", "a", "c", "b", "a"], 200, seed=0), 6)
    assert (drawn[0] == drawn[2]).all()
    assert (drawn[0] == drawn[5]).all()
    assert (drawn[1] == drawn[4]).all()
    assert (drawn[[0, 1, 3], 1:201].sum(axis=0) == 3).all()
    assert (drawn[0] != drawn[1]).any()


def test_every_group_is_left_out_once() -> None:
    left_out = read_counts(Resamples(range(5), 0, seed=0), 5)[:, 1:]
    assert sorted(map(tuple, left_out.tolist())) == sorted(map(tuple, (1 - np.eye(5)).tolist()))
    many = read_counts(Resamples(range(5 * MAX_BLOCKS), 0, seed=0), 5 * MAX_BLOCKS)[:, 1:]
    assert many.shape[1] == MAX_BLOCKS
    assert ((1 - many).sum(axis=0) == 5).all()
    assert ((1 - many).sum(axis=1) == 1).all()


def mean_of(values: Floats) -> Statistic:
    return share(values, np.ones(len(values)))


@pytest.mark.parametrize("values", [np.random.default_rng(1).exponential(size=40), np.arange(25.0) ** 3])
def test_intervals_are_scipys_bca(values: Floats) -> None:
    """On the same samples: scipy draws no others when it is given a distribution."""
    resamples = Resamples(range(len(values)), 2000, seed=2)
    everywhere = np.ones(len(values), dtype=bool)
    samples = resamples.measure(mean_of(values), everywhere)[1:2001]
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=0, bootstrap_result=SimpleNamespace(bootstrap_distribution=samples)
    ).confidence_interval
    interval = resamples.estimate(mean_of(values), everywhere)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)
    # The values are skewed, so their interval is not that of the plain percentiles.
    assert interval.low > np.percentile(samples, 2.5)


def test_the_samples_of_a_figure_are_those_of_scoring_every_sample_by_itself() -> None:
    rng = np.random.default_rng(0)
    consistent = rng.random(60) < 0.4
    values = np.round(rng.random(60) + 0.4 * consistent, 1)
    resamples = Resamples(range(60), 50, seed=5)
    naive = [
        reference.roc_auc_score(*(np.repeat(side, times.astype(int)) for side in (consistent, values)))
        for times in read_counts(resamples, 60).T
    ]
    assert resamples.measure(roc_auc(values, consistent), np.ones(60, dtype=bool)) == pytest.approx(naive)


def test_contexts_that_agree_widen_the_interval() -> None:
    """Four responses of a context have one value, so there are twenty independent ones and not eighty."""
    values = np.repeat(np.random.default_rng(0).normal(size=20), 4)
    everywhere = np.ones(80, dtype=bool)
    by_example, by_context = (
        Resamples(groups, 1000, seed=1).estimate(mean_of(values), everywhere)
        for groups in (range(80), [index // 4 for index in range(80)])
    )
    assert by_example is not None
    assert by_context is not None
    assert by_context.high - by_context.low > 1.6 * (by_example.high - by_example.low)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_share_of_none_or_all_has_wilsons_interval(value: float) -> None:
    values, everywhere = np.full(25, value), np.ones(25, dtype=bool)
    theirs = stats.binomtest(int(25 * value), 25).proportion_ci(method="wilson")
    interval = Resamples(range(25), 100, seed=0).estimate(mean_of(values), everywhere, 25)
    assert interval is not None
    assert (interval.low, interval.value, interval.high) == pytest.approx((theirs.low, value, theirs.high))
    assert interval.high - interval.low > 0.13


@pytest.mark.parametrize(("value", "expected"), [(1.0, (0.816, 1.0)), (0.0, (0.0, 0.184))])
def test_a_perfect_mean_of_two_shares_is_as_uncertain_as_they_are(value: float, expected: tuple[float, float]) -> None:
    """Wilson's bounds of 10 of 10 and of 12 of 12 are 0.7225 and 0.7575 by hand: √(0.2775² + 0.2425²) / 2 = 0.184."""
    interval = estimate(np.full(50, value), 40, 10, 12)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx(expected, abs=5e-4)


def test_what_is_undefined_is_none_and_no_warning() -> None:
    values = np.array([0.1, 0.2, 0.3])
    everywhere = np.ones(3, dtype=bool)
    resamples = Resamples(range(3), 50, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for statistic in (
            roc_auc(values, np.array([True, True, True])),
            spearman(values, np.array([1.0, 1.0, 1.0])),
            pearson(np.array([0.3, 0.3, 0.3]), values),
            share(np.zeros(3), np.zeros(3)),
        ):
            assert resamples.estimate(statistic, everywhere) is None


def test_undefined_samples_are_left_out_of_the_interval() -> None:
    assert estimate(np.array([0.5, np.nan, 0.4, 0.6, np.nan]), 4) == Estimate(0.5, 0.405, 0.595)
    assert estimate(np.array([0.5, np.nan]), 1) is None
    assert estimate(np.array([np.nan, 0.5]), 1) is None
    assert estimate(np.array([0.5, 0.5, 0.5, 0.5]), 3) == Estimate(0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([0.1] * 99, 0.02),
        ([-0.1] * 99, 0.02),
        ([0.0] * 99, 1.0),
        ([0.1] * 97 + [-0.1] * 2, 0.06),
        ([0.1, -0.1] * 50, 1.0),
        ([np.nan] + [0.1] * 99, 0.02),
    ],
)
def test_p_value(differences: list[float], p: float) -> None:
    sampled = np.array([0.0, *differences, -9.0])  # the figure itself, and without a block
    assert p_value(sampled, len(differences)) == pytest.approx(p)


@pytest.mark.parametrize(
    ("given", "adjusted"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.5, 0.02], [1.0, 1.0, 0.06]),
    ],
)
def test_p_values_are_adjusted_by_holms_method(given: list[float], adjusted: list[float]) -> None:
    assert adjust_p_values(given) == pytest.approx(adjusted)
