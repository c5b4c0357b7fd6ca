"""Own weights, or those that are there: by verdicts on rows that were left out."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from groundwire.evaluate.calibration.choosing import Choice, choose_calibration
from groundwire.evaluate.calibration.fusion import FusionOptions, LabelledFeatures
from groundwire.evaluate.calibration.operating_points import fit_calibration
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest
from tests.support.labelled import draw_examples, with_features

METRICS = ("q2", "pmi")


def number_rows(examples: list[LabelledFeatures], start: int = 0) -> list[LabelledFeatures]:
    return [example._replace(digest=f"{start + index:012d}") for index, example in enumerate(examples)]


@pytest.fixture(scope="module")
def there() -> Calibration:
    """A verdict by two metrics, of which the second says less."""
    return fit_calibration(number_rows(draw_examples(400, 1, q2=0.5, pmi=1.0)), METRICS)


def test_a_few_rows_in_a_perfect_order_move_nothing(there: Calibration) -> None:
    """Both candidates are right on all of them; own weights would be of another kind of text."""
    rows = number_rows(draw_examples(44, 2, q2=0.05, pmi=0.05), 1000)
    choice = choose_calibration(rows, METRICS, there=there)
    assert (choice.delivered, choice.rows, choice.is_worse) == ("unchanged", 44, False)
    kept, before = choice.calibration.fusions[0], there.fusions[0]
    assert (kept.features, kept.intercept) == (before.features, before.intercept)
    assert kept.profiles["balanced"].threshold == before.profiles["balanced"].threshold
    assert (choice.calibration.fitted_on, choice.calibration.rows, choice.calibration.scales) == (
        ("one",),
        44,
        there.scales,
    )
    assert kept.held_out is not None
    assert kept.held_out.consistent.count == 22
    assert kept.band.low < kept.band.high  # 44 rows are no reason to be sure of every label


def test_thresholds_move_where_the_scale_is_another() -> None:
    """Of one metric own weights give the same order."""
    there = fit_calibration(draw_examples(400, 1, q2=0.5), ("q2",))
    moved = [with_features(example, {"q2": example.features["q2"] + 1}) for example in draw_examples(300, 3, q2=0.5)]
    choice = choose_calibration(moved, ("q2",), there=there)
    assert choice.delivered == "thresholds"
    assert choice.accuracy["thresholds"] > choice.accuracy["unchanged"] + 0.1
    before, after = there.fusions[0], choice.calibration.fusions[0]
    assert after.profiles["balanced"].threshold > before.profiles["balanced"].threshold + 0.2
    assert after.features == before.features


def test_own_weights_are_taken_where_they_err_clearly_less(there: Calibration) -> None:
    """Here the second metric says nearly all, and the first nearly nothing."""
    rows = number_rows(draw_examples(300, 4, q2=3.0, pmi=0.3), 1000)
    choice = choose_calibration(rows, METRICS, there=there)
    assert choice.delivered == "weights"
    weights = {feature.name: feature.weight for feature in choice.calibration.fusions[0].features}
    assert weights["pmi"] > 3 * weights.get("q2", 0)


def test_what_errs_more_is_delivered_by_force_alone(there: Calibration) -> None:
    rows = number_rows(draw_examples(60, 5, q2=0.5, pmi=1.5), 1000)
    choice = choose_calibration(rows, METRICS, FusionOptions(features=("pmi",)), there)
    assert (choice.delivered, choice.is_worse) == ("weights", True)
    accuracy = choice.accuracy
    with pytest.raises(InvalidRequest, match=f"{accuracy['weights']:.1%}.*{accuracy['unchanged']:.1%}.*60 rows.*force"):
        choice.check()


def test_a_cost_moves_the_threshold_that_knows_of_none(there: Calibration) -> None:
    rows = number_rows(draw_examples(60, 6, q2=0.5, pmi=1.0), 1000)
    choice = choose_calibration(rows, METRICS, FusionOptions(cost_of_missed=20.0), there)
    assert choice.delivered == "thresholds"
    before = there.fusions[0].profiles["balanced"].threshold
    assert choice.calibration.fusions[0].profiles["balanced"].threshold > before


@pytest.mark.parametrize("case", ["nothing", "its own rows", "other metrics", "a name"])
def test_there_may_be_nothing_to_compare_with(there: Calibration, case: str) -> None:
    rows = number_rows(draw_examples(60, 7, q2=0.5, pmi=1.0), 0 if case == "its own rows" else 1000)
    if case == "other metrics":
        rows = number_rows(draw_examples(60, 7, q2=0.5), 1000)
    choice = choose_calibration(
        rows,
        ("q2",) if case == "other metrics" else METRICS,
        there=None if case == "nothing" else there,
        name="mine" if case == "a name" else None,
    )
    assert choice == Choice(choice.calibration, "weights")
    assert not choice.is_worse
    assert np.isfinite(choice.calibration.fusions[0].intercept)


@pytest.mark.parametrize(("texts", "shares"), [(1, True), (4, True), (5, False)])
def test_rows_about_a_few_texts_are_compared_with_a_warning(there: Calibration, texts: int, shares: bool) -> None:
    drawn = number_rows(draw_examples(60, 9, q2=0.5, pmi=1.0), 1000)
    rows = [example._replace(group=str(index // 2 % texts)) for index, example in enumerate(drawn)]
    choice = choose_calibration(rows, METRICS, there=there)
    assert (choice.rows, choice.shares_knowledge) == (60, shares)
