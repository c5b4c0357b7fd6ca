"""Pairs of one context, ranks within them, and the worst errors, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from groundwire.evaluate.statistics.error_analysis import measure_wrong_side
from groundwire.evaluate.statistics.human_labels import HumanLabels
from tests.support.evaluation import make_example

NAN = float("nan")


def label_examples(*labels: tuple[int | None, str]) -> HumanLabels:
    return HumanLabels(
        [make_example(str(i), label, context=context) for i, (label, context) in enumerate(labels)], 50, 0
    )


@pytest.mark.parametrize(
    ("labels", "values", "expected"),
    [
        ([(1, "a"), (0, "a")], [0.9, 0.1], 1.0),
        ([(1, "a"), (0, "a")], [0.1, 0.9], 0.0),
        ([(1, "a"), (0, "a")], [0.5, 0.5], 0.5),
        # One context in order, one not; the example without a context and the unlabelled one are in no pair.
        ([(1, "a"), (0, "a"), (1, "b"), (0, "b"), (0, ""), (None, "a")], [0.9, 0.1, 0.2, 0.3, 0.0, 1.0], 0.5),
        # Two consistent and two inconsistent responses are four pairs: three in order and one tie.
        ([(1, "a"), (1, "a"), (0, "a"), (0, "a")], [0.9, 0.5, 0.5, 0.2], 3.5 / 4),
        # A pair without a value does not count.
        ([(1, "a"), (0, "a"), (1, "b"), (0, "b")], [0.9, 0.1, NAN, 0.3], 1.0),
    ],
)
def test_ranking(labels: list[tuple[int | None, str]], values: list[float], expected: float) -> None:
    ranking = label_examples(*labels).ranking(np.array(values))
    assert ranking is not None
    assert ranking[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    "labels", [[(1, ""), (0, "")], [(1, "a"), (0, "b")], [(1, "a"), (1, "a")], [(None, "a"), (0, "a")]]
)
def test_no_pair_no_ranking(labels: list[tuple[int | None, str]]) -> None:
    assert label_examples(*labels).ranking(np.array([0.5, 0.4])) is None


def test_ranking_is_resampled_by_context() -> None:
    """With one context right and one wrong, a sample has 0, 1 or 2 of the right one."""
    ranking = label_examples((1, "a"), (0, "a"), (1, "b"), (0, "b")).ranking(np.array([0.9, 0.1, 0.2, 0.3]))
    assert ranking is not None
    assert set(ranking.tolist()) == {0.0, 0.5, 1.0}


def test_only_pairs_are_contexts_of_exactly_two_responses() -> None:
    examples = label_examples((1, "a"), (0, "a"), (0, "b"), (1, "b"), (1, "c"), (0, "c"), (0, "c"), (1, "d"), (1, "d"))
    better, worse = examples.values_of_only_pairs(np.arange(9.0))
    assert (better.tolist(), worse.tolist()) == ([0.0, 3.0], [1.0, 2.0])


def test_selecting_labelled_needs_both_classes() -> None:
    examples = label_examples((1, ""), (0, ""), (None, ""))
    assert examples.select_labelled(np.array([0.1, 0.2, 0.3])).tolist() == [True, True, False]
    assert not examples.select_labelled(np.array([0.1, NAN, 0.3])).any()


def test_a_metric_without_a_value_is_left_out() -> None:
    examples = label_examples((1, ""), (0, ""), (1, ""), (0, ""))
    ranking = examples.roc_auc(np.array([0.5, 0.4, NAN, 0.9]))
    assert ranking is not None
    assert ranking[0] == 0.5


def test_distance_is_the_share_of_the_other_class_on_the_wrong_side() -> None:
    values = np.array([0.1, 0.4, 0.4, 0.9])
    consistent = np.array([True, True, False, False])
    distances = measure_wrong_side(values, consistent)
    assert distances.tolist() == [1.0, 0.75, 0.75, 1.0]
    area = roc_auc_score(consistent, values)
    assert distances[consistent].mean() == pytest.approx(1 - area)
    assert distances[~consistent].mean() == pytest.approx(1 - area)
