"""The promise: of consistent responses like those of the calibration, at most a given share is called inconsistent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import InvalidRequest
from groundwire.engine.verdict.operating_point import find_threshold, measure_power, smallest_level
from groundwire.runtime.bundles.calibration import HeldOut, OrderStatistics


def record(values: list[float], count: int | None = None) -> OrderStatistics:
    return OrderStatistics(count=len(values) if count is None else count, values=tuple(sorted(values)))


def hold_out(consistent: list[float], inconsistent: list[float] | None = None) -> HeldOut:
    return HeldOut(consistent=record(consistent), inconsistent=record(inconsistent or []))


@pytest.mark.parametrize(
    ("level", "threshold"),
    # ⌊level · 20⌋-th smallest of 0.01, 0.02, … 0.19
    [(0.05, 0.01), (0.099, 0.01), (0.1, 0.02), (0.5, 0.1), (0.95, 0.19), (0.999, 0.19)],
)
def test_the_threshold_is_an_order_statistic(level: float, threshold: float) -> None:
    assert find_threshold(hold_out([i / 100 for i in range(1, 20)]), level) == threshold


def test_a_product_that_floating_point_misses_counts() -> None:
    assert math.floor(0.29 * 100) == 28
    assert find_threshold(hold_out([i / 100 for i in range(1, 100)]), 0.29) == 0.29


def test_a_level_below_what_the_responses_can_promise_is_refused() -> None:
    held_out = hold_out([0.1] * 43)
    assert find_threshold(held_out, 1 / 44) == 0.1
    with pytest.raises(InvalidRequest) as refused:
        find_threshold(held_out, 0.02)
    assert str(refused.value) == (
        "A false positive rate of at most 0.02 cannot be promised: the calibration has 43 consistent held-out "
        "responses, enough for 0.0228 or more. Allow more, or calibrate with at least 49 consistent responses."
    )
    assert find_threshold(hold_out([0.1] * 49), 0.02) == 0.1
    assert smallest_level(record([])) == 1
    with pytest.raises(InvalidRequest, match="has 0 consistent"):
        find_threshold(hold_out([]), 0.5)


@pytest.mark.parametrize("count", [1000, 1001, 1999, 2500, 10_000])
def test_values_that_stand_for_more_give_no_higher_a_threshold(count: int) -> None:
    everything = [(i + 1) / count for i in range(count)]
    thinned = record([everything[(j * count) // 1000 - 1] for j in range(1, 1001)], count)
    for level in (0.001, 0.0123, 0.05, 0.25, 0.9):
        exact = find_threshold(hold_out(everything), level)
        kept = find_threshold(HeldOut(consistent=thinned, inconsistent=thinned), level)
        assert exact - 1 / 1000 - 1 / count < kept <= exact


GRID = st.integers(0, 6).map(lambda i: i / 6)


@given(values=st.lists(GRID, min_size=2, max_size=24), level=st.floats(0.04, 0.96))
def test_of_exchangeable_values_no_more_than_the_level_are_below_the_others_threshold(
    values: list[float], level: float
) -> None:
    """The guarantee itself: every value is as likely to be the new one, so it is the share of these, ties or not."""
    below = 0
    for index, value in enumerate(values):
        held_out = hold_out(values[:index] + values[index + 1 :])
        if smallest_level(held_out.consistent) <= level:
            below += value < find_threshold(held_out, level)
    assert below <= level * len(values) + 1e-6


@pytest.mark.parametrize("digits", [12, 1], ids=["distinct", "ties"])
@pytest.mark.parametrize(("count", "level"), [(10, 0.25), (19, 0.05), (57, 0.1), (200, 0.2)])
def test_the_promise_holds_over_many_draws(count: int, level: float, digits: int) -> None:
    draws = 4000
    rng = np.random.default_rng(1)
    values = rng.beta(4, 2, (draws, count + 1)).round(digits)
    called = [values[i, -1] < find_threshold(hold_out(values[i, :-1].tolist()), level) for i in range(draws)]
    chance = 3 * math.sqrt(level / draws)
    assert np.mean(called) <= level + chance
    if digits == 12:  # and it is not kept by calling nothing inconsistent
        assert np.mean(called) >= level - 1 / (count + 1) - chance


def test_without_the_correction_it_would_be_broken() -> None:
    """The ⌈α·n⌉-th smallest of 10 values is above a new one in 3 of 11 cases, not in 1 of 4."""
    values = np.random.default_rng(1).random((4000, 11))
    assert np.mean(values[:, -1] < np.sort(values[:, :-1])[:, math.ceil(0.25 * 10) - 1]) > 0.26


def test_the_power_is_the_share_of_inconsistent_responses_below_the_threshold() -> None:
    held_out = hold_out([0.9], [0.1, 0.2, 0.3, 0.3, 0.6])
    assert [measure_power(held_out, threshold) for threshold in (0.1, 0.3, 0.31, 1.0)] == [0, 0.4, 0.8, 1]
    assert measure_power(hold_out([0.9]), 0.5) is None
