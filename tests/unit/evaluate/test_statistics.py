"""Statistics of weighted examples against scikit-learn and scipy, with ties and one-class samples."""

from __future__ import annotations

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
    areas,
    best_balanced_threshold,
    best_f1_threshold,
    classification,
    pearson,
    roc_auc,
    share,
    spearman,
)

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
    area, precision, consistent_precision = areas(values, consistent)(given)
    assert area == pytest.approx(roc_auc(values, consistent)(given), abs=1e-12)
    expected = [reference.average_precision_score(~consistent, -values, sample_weight=sample) for sample in given.T]
    assert precision == pytest.approx(expected, abs=1e-12)
    expected = [reference.average_precision_score(consistent, values, sample_weight=sample) for sample in given.T]
    assert consistent_precision == pytest.approx(expected, abs=1e-12)


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
        other = reference.average_precision_score(drawn, drawn_x)
        assert areas(x, consistent)(times[:, None])[:, 0] == pytest.approx([expected, precision, other])
    else:
        assert np.isnan(roc_auc(x, consistent)(times[:, None])[0])
    for ours, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr)):
        correlation = ours(x, y)(times[:, None])[0]
        if len(np.unique(drawn_x)) > 1 and len(np.unique(drawn_y)) > 1:
            assert correlation == pytest.approx(theirs(drawn_x, drawn_y)[0], abs=1e-9)
        else:
            assert np.isnan(correlation)


def test_share_of_groups_of_unequal_size() -> None:
    part, whole = np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 4.0])
    assert share(part, whole)(np.array([[1.0, 2.0], [1.0, 0.0], [1.0, 1.0]])).tolist() == [0.5, 4 / 6]


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


@pytest.mark.parametrize(
    ("values", "labels", "threshold"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], 0.8),
        ([0.9, 0.8, 0.2, 0.1], [0, 0, 1, 1], None),  # upside down: no threshold is better than none
        ([0.5, 0.5], [0, 1], None),
        ([0.0, 0.0, 0.0, 1.0, 0.0], [0, 1, 1, 1, 1], 1.0),  # the best F1 calls all of them consistent
        ([0.0, 0.5, 0.5, 1.0], [0, 0, 1, 1], 0.5),  # 3/4 from 0.5 and from 1.0 on: the lower one
    ],
)
def test_best_balanced_threshold(values: list[float], labels: list[int], threshold: float | None) -> None:
    assert best_balanced_threshold(np.array(values), np.array(labels, dtype=bool)) == threshold


def test_no_cut_is_better_balanced() -> None:
    values, consistent, _ = data(7)
    best = best_balanced_threshold(values, consistent)
    accuracy = {
        cut: ((values >= cut)[consistent].mean() + (values < cut)[~consistent].mean()) / 2 for cut in np.unique(values)
    }
    assert best is not None
    assert accuracy[best] == pytest.approx(max(accuracy.values()))


@pytest.mark.parametrize("find_threshold", [best_f1_threshold, best_balanced_threshold])
@pytest.mark.parametrize("label", [True, False])
def test_one_class_has_no_threshold(find_threshold: Callable[..., float | None], label: bool) -> None:
    assert find_threshold(np.array([0.1, 0.2]), np.array([label, label])) is None
