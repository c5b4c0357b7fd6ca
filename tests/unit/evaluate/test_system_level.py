"""Simulated systems, on values for which their scores are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from groundwire.evaluate.statistics.system_level import correlate_with_quality, simulate_systems


def test_correlations_are_scipys() -> None:
    scores = np.round(np.random.default_rng(0).random((40, 5)), 1)
    expected = [spearmanr(scores_of_systems, [5, 4, 3, 2, 1])[0] for scores_of_systems in scores]
    assert correlate_with_quality(scores) == pytest.approx(expected)


def test_a_perfect_metric_orders_the_systems() -> None:
    """Each system's score is its share of consistent responses: 18, 35, 52, 70 and 88 of 350 are not."""
    simulated = simulate_systems(np.ones(20), np.zeros(20), repeats=30, seed=0)
    assert simulated is not None
    assert (simulated.contexts, simulated.correlation.value) == (20, pytest.approx(1.0))
    assert (simulated.correlation.low, simulated.correlation.high) == (pytest.approx(1.0), pytest.approx(1.0))
    expected = {f"{share} %": 1 - wrong / 350 for share, wrong in {5: 18, 10: 35, 15: 52, 20: 70, 25: 88}.items()}
    assert simulated.means == pytest.approx(expected)


def test_an_inverted_metric_turns_the_order_round() -> None:
    simulated = simulate_systems(np.zeros(20), np.ones(20), repeats=10, seed=0)
    assert simulated is not None
    assert simulated.correlation.value == pytest.approx(-1.0)


def test_contexts_that_are_easier_than_others_cancel_out() -> None:
    """All systems answer the same contexts, so a metric that is right by a hair is right, however contexts differ."""
    easy = np.random.default_rng(1).random(50) * 100
    simulated = simulate_systems(easy + 0.01, easy, repeats=20, seed=0)
    assert simulated is not None
    assert simulated.correlation.low == pytest.approx(1.0)


def test_a_blind_metric_is_near_zero_and_wide() -> None:
    values = np.random.default_rng(2).random((2, 200))
    blind = simulate_systems(values[0], values[0][::-1], repeats=400, seed=0)
    assert blind is not None
    assert abs(blind.correlation.value) < 0.2
    assert blind.correlation.low < -0.5
    assert blind.correlation.high > 0.5


def test_nothing_to_order() -> None:
    assert simulate_systems(np.full(9, 0.3), np.full(9, 0.3), repeats=20, seed=0) is None
    assert simulate_systems(np.ones(1), np.zeros(1), repeats=20, seed=0) is None


def test_the_seed_decides() -> None:
    values = np.random.default_rng(3).random((2, 30))
    first, again, other = (simulate_systems(*values, repeats=20, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
