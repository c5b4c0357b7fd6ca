"""A threshold of one's own, and whether a label is sure."""

from __future__ import annotations

import pytest

from groundwire.engine import Options
from groundwire.engine.core.plan import check_options
from groundwire.guard import Policy
from groundwire.guard.policies import check_policy, find_action
from groundwire.runtime.bundles.calibration import Band
from groundwire.runtime.errors import InvalidRequest
from groundwire.testing import make_engine


def score(probability: float, threshold: float) -> tuple[str, bool]:
    with make_engine(lambda response, knowledge: probability) as engine:
        verdict = engine.score("Honey is sweet.", "Honey.", options=Options(threshold=threshold)).verdict
        assert (verdict.profile, verdict.threshold, verdict.max_false_positive_rate) == (None, threshold, None)
        return verdict.label, verdict.sure


@pytest.mark.parametrize(
    ("probability", "threshold", "label"),
    [(0.4, 0.4, "consistent"), (0.4, 0.41, "inconsistent"), (0.4, 0.0, "consistent"), (0.9, 1.0, "inconsistent")],
)
def test_a_response_is_consistent_from_the_threshold_on(probability: float, threshold: float, label: str) -> None:
    assert score(probability, threshold)[0] == label


@pytest.mark.parametrize(
    ("options", "other"),
    [
        (Options(threshold=0.4, profile="strict"), "profile is 'strict'"),
        (Options(threshold=0.4, max_false_positive_rate=0.1), "max_false_positive_rate is 0.1"),
    ],
)
def test_two_choices_of_a_threshold_are_refused(options: Options, other: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"threshold is 0\.4 and Options\.{other}.*give one of them"):
        check_options(options, frozenset(), None)


@pytest.mark.parametrize("threshold", [-0.1, 1.1])
def test_a_threshold_is_a_probability(threshold: float) -> None:
    with pytest.raises(InvalidRequest, match="threshold"):
        check_options(Options(threshold=threshold), frozenset(), None)


@pytest.mark.parametrize(
    ("probability", "threshold", "sure"),
    [(0.1, 0.5, True), (0.4, 0.5, False), (0.6, 0.5, False), (0.9, 0.5, True), (0.9, 0.95, False), (0.1, 0.05, False)],
)
def test_a_label_is_sure_outside_the_band_on_its_own_side(probability: float, threshold: float, sure: bool) -> None:
    band = Band(low=0.3, high=0.8)
    assert band.is_sure(probability, consistent=probability >= threshold) is sure


def test_without_a_band_no_label_is_sure() -> None:
    assert score(0.9, 0.5) == ("consistent", False)


def test_a_policy_treats_labels_apart_that_are_not_sure() -> None:
    policy = check_policy(Policy(unsure="flag"))
    assert find_action(policy, "inconsistent", sure=False) == "flag"
    assert find_action(policy, "consistent", sure=False) == "flag"
    assert find_action(policy, "inconsistent", sure=True) == "block"
    assert find_action(policy, "unknown", sure=False) == "block"
    assert find_action(Policy(), "consistent", sure=False) == "release"
    with pytest.raises(InvalidRequest, match=r"Policy\.unsure is 'maybe'"):
        check_policy(Policy(unsure="maybe"))  # type: ignore[arg-type]
