"""The share of inconsistent responses, corrected for errors: known values, limits, and coverage by simulation."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from groundwire.monitor.prevalence import ErrorRates, correct_share, count_errors, share
from groundwire.runtime.bundles.calibration import Calibration, HeldOut, OrderStatistics
from tests.support.evaluation import CALIBRATION


def held_out(consistent: tuple[float, ...], inconsistent: tuple[float, ...], scale: int = 1) -> Calibration:
    """A calibration with these held-out probabilities, each of ``scale`` responses."""
    records = [OrderStatistics(count=scale * len(values), values=values) for values in (consistent, inconsistent)]
    fusion = msgspec.structs.replace(
        CALIBRATION.fusions[0], held_out=HeldOut(consistent=records[0], inconsistent=records[1])
    )
    return msgspec.structs.replace(CALIBRATION, fusions=(fusion,))


@pytest.mark.parametrize(("count", "total"), [(0, 7), (7, 7), (3, 10), (500, 1234)])
def test_a_share_has_wilsons_interval(count: int, total: int) -> None:
    interval = binomtest(count, total).proportion_ci(method="wilson")
    assert share(count, total) == pytest.approx((count / total, interval.low, interval.high), abs=1e-12)


def test_there_is_no_share_of_nothing() -> None:
    with pytest.raises(ValueError, match="no share of nothing"):
        share(0, 0)
    assert correct_share(0, 0, ErrorRates(10, 1, 10, 9)) is None


def test_a_perfect_verdict_needs_no_correction() -> None:
    corrected = correct_share(300, 1000, ErrorRates(10**9, 0, 10**9, 10**9))
    assert corrected is not None
    assert corrected.value == 0.3
    # Agresti and Coull's interval, for which z²/2 of each class are added.
    n, p = 1000 + 1.96**2, (300 + 1.96**2 / 2) / (1000 + 1.96**2)
    half = 1.96 * math.sqrt(p * (1 - p) / n)
    assert corrected[1:] == pytest.approx((p - half, p + half), abs=1e-4)


def test_what_is_called_so_by_mistake_is_taken_off() -> None:
    """Rogan and Gladen: (0.3 − 0.1) / (0.7 − 0.1)."""
    corrected = correct_share(300, 1000, ErrorRates(1000, 100, 1000, 700))
    assert corrected is not None
    assert corrected.value == pytest.approx(1 / 3)
    nothing = correct_share(80, 1000, ErrorRates(1000, 100, 1000, 700))
    assert nothing is not None
    assert (nothing.value, nothing.low) == (0, 0)
    assert 0 < nothing.high < 0.05
    everything = correct_share(720, 1000, ErrorRates(1000, 100, 1000, 700))
    assert everything is not None
    assert (everything.value, everything.high) == (1, 1)


def test_a_verdict_that_separates_nothing_says_nothing() -> None:
    assert correct_share(300, 1000, ErrorRates(1000, 300, 1000, 300)) is None
    assert correct_share(300, 1000, ErrorRates(1000, 500, 1000, 300)) is None
    assert correct_share(1, 2, ErrorRates(1, 0, 1, 1)) is not None


@given(st.data())
def test_the_interval_is_around_the_share_and_within_bounds(data: st.DataObject) -> None:
    total, consistent, inconsistent = (data.draw(st.integers(1, 2000)) for _ in range(3))
    rates = ErrorRates(
        consistent, data.draw(st.integers(0, consistent)), inconsistent, data.draw(st.integers(0, inconsistent))
    )
    corrected = correct_share(data.draw(st.integers(0, total)), total, rates)
    if corrected is not None:
        assert 0 <= corrected.low <= corrected.value <= corrected.high <= 1


@pytest.mark.parametrize("prevalence", [0.02, 0.1, 0.3, 0.7])
def test_the_interval_has_the_share_in_95_of_100_samples(prevalence: float) -> None:
    """Of the traffic and of both classes of the calibration at the same time."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        rates = ErrorRates(200, rng.binomial(200, 0.25), 200, rng.binomial(200, 0.7))
        called = int(rng.binomial(500, prevalence * 0.7 + (1 - prevalence) * 0.25))
        corrected = correct_share(called, 500, rates)
        assert corrected is not None
        covered += corrected.low <= prevalence <= corrected.high
    assert covered > 0.935 * 2000


def test_known_error_rates_alone_would_be_too_narrow() -> None:
    few, many = (correct_share(300, 1000, ErrorRates(n, n * 0.2, n, n * 0.7)) for n in (100, 100_000))
    assert few is not None
    assert many is not None
    assert few.high - few.low > 1.5 * (many.high - many.low)


def test_errors_are_counted_on_held_out_responses() -> None:
    calibration = held_out((0.2, 0.6, 0.7, 0.9), (0.1, 0.3, 0.5, 0.8), scale=3)
    rates = count_errors(calibration, calibration.fusions[0], 0.5)
    assert rates == ErrorRates(12, 3, 12, 6)
    assert (rates.false_positive_rate, rates.true_positive_rate) == (0.25, 0.5)


def test_a_calibration_of_an_earlier_version_has_the_rates_of_its_profiles() -> None:
    fusion = CALIBRATION.fusions[0]
    assert count_errors(CALIBRATION, fusion, 0.5) == ErrorRates(50, 5.0, 50, 45.0)
    assert count_errors(CALIBRATION, fusion, 0.51) is None
    one_class = held_out((0.2,), ())
    assert count_errors(one_class, one_class.fusions[0], 0.5) is None
