"""Operating points by hand: thresholds, bands, and rates on sets that were left out."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from groundwire.evaluate.calibration.profiles import (
    HeldOutVerdicts,
    call_left_out,
    choose_band,
    choose_thresholds,
    make_points,
)


def verdicts(
    right: list[float], wrong: list[float], parts: list[str] | None = None, unverifiable: list[bool] | None = None
) -> HeldOutVerdicts:
    consistent = np.array([True] * len(right) + [False] * len(wrong))
    names = np.array(parts or ["one"] * len(consistent))
    silent = np.array(unverifiable or [False] * len(consistent))
    return HeldOutVerdicts(consistent, np.array([*right, *wrong]), silent, names, len(set(names)))


def test_balanced_is_right_most_often_and_strict_misses_few() -> None:
    """Of ten wrong ones the threshold 0.7 misses one, 0.8 none; balanced is between the classes' best split."""
    held_out = verdicts([0.5, 0.6, 0.7, 0.8, 0.9] * 10, [0.1, 0.2, 0.3, 0.4, 0.75] * 10)
    thresholds = choose_thresholds(held_out)
    assert 0.4 < thresholds["balanced"] <= 0.5
    # 0.75 is a fifth of the wrong ones: at most 15 % may be missed.
    assert thresholds["strict"] == 0.751
    assert thresholds["lenient"] <= thresholds["balanced"]


@pytest.mark.parametrize(("cost", "threshold"), [(0.2, 0.2), (1.0, 0.5), (20.0, 0.8)])
def test_a_missed_error_may_cost_more_or_less_than_a_false_positive(cost: float, threshold: float) -> None:
    """No other threshold costs less."""
    held_out = verdicts([0.3] * 3 + [0.6] * 5 + [0.9] * 2, [0.1] * 3 + [0.4] * 6 + [0.7] * 3)
    chosen = choose_thresholds(held_out, cost)["balanced"]
    assert chosen == pytest.approx(threshold, abs=0.1)

    def measure_cost(value: float) -> float:
        stopped, missed, _ = held_out.measure(value)
        return stopped + cost * missed

    others = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8)
    assert measure_cost(chosen) == pytest.approx(min(map(measure_cost, others)))


def test_profiles_keep_their_order_where_the_classes_are_far_apart() -> None:
    thresholds = choose_thresholds(verdicts([0.9] * 40, [0.1] * 40))
    assert thresholds["lenient"] == thresholds["balanced"] == thresholds["strict"]
    assert 0.1 < thresholds["balanced"] <= 0.9


@pytest.mark.parametrize("bound", [0.05, 0.2, 0.4])
def test_lenient_promises_the_bound_that_was_asked_for(bound: float) -> None:
    held_out = verdicts([number / 100 for number in range(1, 100)], [0.0] * 99)
    points = make_points(held_out, max_false_positive_rate=bound)
    assert points.profiles["lenient"].max_false_positive_rate == bound
    assert points.profiles["balanced"].max_false_positive_rate is None
    lenient = choose_thresholds(held_out, max_false_positive_rate=bound)["lenient"]
    assert lenient == min(bound, choose_thresholds(held_out)["balanced"])


def test_every_set_counts_the_same() -> None:
    """A large set does not outvote two smaller ones, which agree on another threshold."""
    sizes = {"large": 900, "a": 100, "b": 100}
    parts = [name for name, size in sizes.items() for _ in range(size)] * 2
    held_out = verdicts([0.3] * 900 + [0.8] * 200, [0.2] * 900 + [0.6] * 200, parts)
    assert 0.6 < choose_thresholds(held_out)["balanced"] <= 0.8
    rows = verdicts([0.3] * 900 + [0.8] * 200, [0.2] * 900 + [0.6] * 200)
    assert 0.2 < choose_thresholds(rows)["balanced"] <= 0.3


def test_a_set_with_few_responses_counts_in_proportion() -> None:
    parts = (["many"] * 200 + ["few"] * 20) * 2
    weights = verdicts([0.9] * 220, [0.1] * 220, parts).weights
    assert weights[:200].sum() == pytest.approx(1.0)
    assert weights[200:220].sum() == pytest.approx(0.2)


def test_a_band_leaves_labels_that_are_right_in_nine_of_ten() -> None:
    right = [0.2] + [0.5, 0.6] * 5 + [0.9] * 9
    wrong = [0.1] * 9 + [0.4, 0.5] * 5 + [0.95]
    band = choose_band(verdicts(right, wrong), 0.5)
    # Below 0.5 are 14 wrong ones and a right one, above it 14 right ones and a wrong one.
    assert (band.low, band.high) == (0.5, 0.501)
    assert not band.is_sure(0.5, consistent=True)
    assert band.is_sure(0.9, consistent=True)
    assert not band.is_sure(0.9, consistent=False)
    never = choose_band(verdicts([0.5] * 10, [0.5] * 10), 0.5)
    assert (never.low, never.high) == (0.0, 1.0)


@pytest.mark.parametrize("threshold", [0.2, 0.95])
def test_a_threshold_that_is_given_is_kept_and_its_rates_are_measured(threshold: float) -> None:
    held_out = verdicts([0.9] * 60 + [0.3] * 40, [0.1] * 100)
    profiles = make_points(held_out, keep={"balanced": threshold}).profiles
    assert profiles["balanced"].threshold == threshold
    assert profiles["balanced"].false_positive_rate == (0.0 if threshold == 0.2 else 1.0)
    assert profiles["lenient"].threshold <= threshold <= profiles["strict"].threshold
    missed = call_left_out(held_out, balanced=threshold)[100:]
    assert missed.all()


def test_rates_are_of_sets_that_were_left_out_and_of_delivered_labels() -> None:
    parts = ["a"] * 40 + ["b"] * 40 + ["a"] * 40 + ["b"] * 40
    silent = [False] * 80 + [True] * 10 + [False] * 70
    held_out = verdicts([0.9] * 40 + [0.6] * 40, [0.7] * 40 + [0.1] * 40, parts, silent)
    profile = make_points(held_out).profiles["balanced"]
    assert profile.sets == 2
    # With b alone the threshold is from 0.1 to 0.6: a's 0.7 are missed. With a alone it is above 0.7: b's 0.6 fall.
    assert profile.false_positive_rate == 0.5
    assert profile.false_negative_rate == 0.5
    assert profile.unverifiable_rate == 0.125
    record = make_points(held_out).held_out
    assert (record.inconsistent.count, record.inconsistent.unverifiable) == (70, 10)
    assert (record.consistent.count, record.consistent.unverifiable) == (80, 0)


def test_too_few_consistent_rows_promise_nothing() -> None:
    assert choose_thresholds(verdicts([0.9] * 9, [0.1] * 9))["lenient"] == 0.0


def test_lenient_of_few_responses_is_measured_one_by_one() -> None:
    """Of 22, no part leaves 19, which 5 % takes. The smallest is the threshold, and is itself below that of the 21."""
    right, wrong = [0.2] + [0.6 + index / 100 for index in range(21)], [0.1] * 10 + [0.3] * 12
    parts = [str(index % 5) for index in range(22)] * 2
    lenient = make_points(verdicts(right, wrong, parts)._replace(sets=1)).profiles["lenient"]
    assert lenient.threshold == pytest.approx(0.2)
    assert lenient.false_positive_rate == pytest.approx(1 / 22, abs=1e-4)
    assert 1 - lenient.false_negative_rate == pytest.approx(10 / 22, abs=1e-4)
