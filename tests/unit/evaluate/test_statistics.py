"""Statistics of weighted examples against scikit-learn and scipy, with ties and one-class samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as reference

from groundwire.evaluate.statistics.estimates import (
    Bools,
    Floats,
    Resamples,
    areas,
    best_f1_threshold,
    classification,
    estimate,
    p_value,
    pearson,
    roc_auc,
    share,
    spearman,
)
from groundwire.evaluate.statistics.results import Estimate

EXAMPLES = 60


def data(seed: int = 0) -> tuple[Floats, Bools, Floats]:
    """Values with many ties, labels, and grades on a scale of four."""
    rng = np.random.default_rng(seed)
    consistent = rng.random(EXAMPLES) < 0.4
    values = np.round(rng.random(EXAMPLES) + 0.4 * consistent, 1)
    return values, consistent, np.round(3 * rng.random(EXAMPLES) + consistent) / 3


def weights(seed: int = 1, samples: int = 20) -> Floats:
    return np.random.default_rng(seed).integers(0, 4, (EXAMPLES, samples)).astype(np.float64)


def test_roc_auc_is_scikit_learns() -> None:
    values, consistent, _ = data()
    given = weights()
    expected = [reference.roc_auc_score(consistent, values, sample_weight=sample) for sample in given.T]
    assert roc_auc(values, consistent)(given) == pytest.approx(expected, abs=1e-12)


def test_areas_are_scikit_learns() -> None:
    values, consistent, _ = data()
    given = weights()
    area, precision = areas(values, consistent)(given)
    assert area == pytest.approx(roc_auc(values, consistent)(given), abs=1e-12)
    expected = [reference.average_precision_score(~consistent, -values, sample_weight=sample) for sample in given.T]
    assert precision == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("threshold", [-1.0, 0.3, 0.5, 0.9, 2.0])
def test_classification_is_scikit_learns(threshold: float) -> None:
    values, consistent, _ = data()
    predicted = values >= threshold
    given = weights()
    for numbers, sample in zip(classification(predicted, consistent)(given).T, given.T, strict=True):
        both = {"sample_weight": sample, "zero_division": 0.0}
        expected = [
            reference.accuracy_score(consistent, predicted, sample_weight=sample),
            reference.balanced_accuracy_score(consistent, predicted, sample_weight=sample),
            *reference.precision_recall_fscore_support(consistent, predicted, average="binary", **both)[:3],
            *reference.precision_recall_fscore_support(~consistent, ~predicted, average="binary", **both)[:3],
        ]
        assert numbers == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(pearson, stats.pearsonr), (spearman, stats.spearmanr)], ids=["pearson", "spearman"]
)
def test_correlations_are_scipys_on_the_drawn_examples(
    ours: Callable[[Floats, Floats], Callable[[Floats], Floats]], theirs: Callable[..., tuple[float, float]]
) -> None:
    values, _, grades = data()
    given = weights()
    expected = [theirs(*(np.repeat(side, times.astype(int)) for side in (values, grades)))[0] for times in given.T]
    assert ours(values, grades)(given) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2), st.integers(0, 3)), min_size=2, max_size=12))
@settings(deadline=None, max_examples=60)
def test_few_examples_many_ties(examples: list[tuple[int, int, int]]) -> None:
    """Every statistic on a handful of examples, where classes are missing and sides are constant."""
    x, y, times = (np.array(column, dtype=np.float64) for column in zip(*examples, strict=True))
    consistent = y > 0
    drawn_x, drawn_y, drawn = (np.repeat(side, times.astype(int)) for side in (x, y, consistent))
    if len(np.unique(drawn)) == 2:
        expected = reference.roc_auc_score(drawn, drawn_x)
        precision = reference.average_precision_score(~drawn, -drawn_x)
        assert areas(x, consistent)(times[:, None])[:, 0] == pytest.approx([expected, precision])
    else:
        assert np.isnan(roc_auc(x, consistent)(times[:, None])[0])
    for ours, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr)):
        correlation = ours(x, y)(times[:, None])[0]
        if len(np.unique(drawn_x)) > 1 and len(np.unique(drawn_y)) > 1:
            assert correlation == pytest.approx(theirs(drawn_x, drawn_y)[0], abs=1e-9)
        else:
            assert np.isnan(correlation)


def test_samples_are_drawn_with_replacement_by_the_seed() -> None:
    def counts(resamples: Resamples) -> Floats:
        return resamples.measure(lambda given: given, np.ones(7, dtype=bool))

    drawn = counts(Resamples(7, 500, seed=3))
    assert drawn.shape == (7, 501)
    assert (drawn[:, 0] == 1).all()
    assert (drawn.sum(axis=0) == 7).all()
    assert drawn[:, 1:].mean() == pytest.approx(1.0)
    assert drawn[:, 1:].var() == pytest.approx(6 / 7, abs=0.05)  # binomial(7, 1/7)
    assert (drawn == counts(Resamples(7, 500, seed=3))).all()
    assert (drawn != counts(Resamples(7, 500, seed=4))).any()


def test_the_interval_is_that_of_scoring_every_sample_by_itself() -> None:
    values, consistent, _ = data()
    resamples = Resamples(EXAMPLES, 200, seed=5)
    everywhere = np.ones(EXAMPLES, dtype=bool)
    given = resamples.measure(lambda side: side, everywhere)
    naive = [
        reference.roc_auc_score(*(np.repeat(side, times.astype(int)) for side in (consistent, values)))
        for times in given.T
    ]
    interval = resamples.estimate(roc_auc(values, consistent), everywhere)
    assert interval is not None
    assert (interval.value, interval.low, interval.high) == pytest.approx(
        (naive[0], *np.percentile(naive[1:], [2.5, 97.5]))
    )


def test_what_is_undefined_is_none_and_no_warning() -> None:
    values = np.array([0.1, 0.2, 0.3])
    everywhere = np.ones(3, dtype=bool)
    resamples = Resamples(3, 50, seed=0)
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
    assert estimate(np.array([0.5, np.nan, 0.4, 0.6, np.nan])) == Estimate(0.5, 0.405, 0.595)
    assert estimate(np.array([0.5, np.nan])) is None
    assert estimate(np.array([np.nan, 0.5])) is None


def test_share_of_groups_of_unequal_size() -> None:
    part, whole = np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 4.0])
    assert share(part, whole)(np.array([[1.0, 2.0], [1.0, 0.0], [1.0, 1.0]])).tolist() == [0.5, 4 / 6]


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
    assert p_value(np.array(differences)) == pytest.approx(p)


@pytest.mark.parametrize(
    ("values", "labels", "threshold"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], 0.8),
        ([0.9, 0.8, 0.2, 0.1], [0, 0, 1, 1], 0.1),  # upside down: calling all of them consistent has the best F1
        ([-2.0, 0.5, 0.5, 4.3], [0, 0, 1, 1], 0.5),  # 2/3 at 4.3 (1 of 2 found), 0.8 at 0.5 (2 of 2, one too many)
        ([0.0, 1.0], [0, 1], 1.0),
    ],
)
def test_best_f1_threshold(values: list[float], labels: list[int], threshold: float) -> None:
    assert best_f1_threshold(np.array(values), np.array(labels, dtype=bool)) == threshold


def test_no_cut_has_a_better_f1() -> None:
    values, consistent, _ = data(7)
    best = best_f1_threshold(values, consistent)
    assert best is not None
    f1 = {cut: reference.f1_score(consistent, values >= cut) for cut in np.unique(values)}
    assert f1[best] == max(f1.values())
    assert best == min(cut for cut, score in f1.items() if score == f1[best])


@pytest.mark.parametrize("label", [True, False])
def test_one_class_has_no_threshold(label: bool) -> None:
    assert best_f1_threshold(np.array([0.1, 0.2]), np.array([label, label])) is None
