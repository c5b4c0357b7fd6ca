"""Whether responses look like those of the calibration: numbers by hand, and what chance alone gives."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

pytest.importorskip("scipy")

from groundwire.evaluate.statistics.analysis import analyse
from groundwire.evaluate.statistics.shift import compare_with_calibration, explain_shift
from groundwire.monitor.records import Shift
from groundwire.monitor.shift import compare_responses, describe_distributions, describe_texts, find_band, measure_shift
from groundwire.runtime.bundles.calibration import Calibration, Distribution
from tests.support.evaluation import CALIBRATION, make_example, score


def test_the_index_by_hand() -> None:
    """Counts 2, 8 against 6, 4, and half a response more in every bin: 2.5/11, 8.5/11 against 6.5/11, 4.5/11."""
    distribution = Distribution(edges=(5.0,), counts=(6, 4))
    index, by_chance = measure_shift(distribution, np.array([1.0, 4.9] + [5.0] * 8))
    expected = (2.5 - 6.5) / 11 * math.log(2.5 / 6.5) + (8.5 - 4.5) / 11 * math.log(8.5 / 4.5)
    assert index == pytest.approx(expected)
    assert index == pytest.approx(0.5787, abs=1e-4)
    assert by_chance == pytest.approx((1 / 10 + 1 / 10) * 3.8415, abs=1e-4)  # χ² with one degree of freedom
    assert measure_shift(distribution, np.array([1.0] * 6 + [9.0] * 4))[0] == 0


def test_without_a_shift_the_index_is_above_its_chance_in_one_of_twenty_samples() -> None:
    rng = np.random.default_rng(2)
    above = []
    for _ in range(600):
        described = describe_distributions([{"words": value} for value in rng.normal(size=300)])["words"]
        index, by_chance = measure_shift(described, rng.normal(size=150))
        above.append(index > by_chance)
    assert 0.02 <= np.mean(above) <= 0.09


@pytest.mark.parametrize(
    ("index", "by_chance", "band"),
    [
        (0.0999, 0.01, "alike"),
        (0.1, 0.01, "shifted"),
        (0.25, 0.01, "shifted"),
        (0.2501, 0.01, "different"),
        (0.9, 0.9, "alike"),
        (0.9, 0.89, "different"),
    ],
)
def test_the_bands(index: float, by_chance: float, band: str) -> None:
    assert find_band(index, by_chance, 900) == band
    assert find_band(index, by_chance, 29) == "too few to tell"


def test_texts_are_described_by_length_and_overlap() -> None:
    assert describe_texts("The bees, the BEES make wax!", ("Bees make honey.", "And wax")) == {"words": 4, "overlap": 1}
    assert describe_texts("A cat sat", ("A dog",)) == {"words": 2, "overlap": 0}
    assert describe_texts("the …!", ("k",)) == {"words": 1, "overlap": 0}
    assert describe_texts("the!", ("k",)) == {}


def test_deciles_are_bins_and_what_is_always_the_same_has_none() -> None:
    responses = [{"words": float(i), "overlap": 1.0, "probability": i % 2} for i in range(1, 101)]
    described = describe_distributions(responses)  # type: ignore[arg-type]
    assert set(described) == {"words", "probability"}
    assert described["words"].counts == (10, 10, 10, 10, 10, 10, 10, 10, 10, 10)
    assert described["probability"] == Distribution(edges=(1.0,), counts=(50, 50))
    assert describe_distributions([]) == {}


def test_shifts_are_those_of_the_quantities_that_both_have() -> None:
    distributions = describe_distributions([{"words": float(i), "probability": i / 100} for i in range(100)])
    shifts = compare_responses(distributions, [{"words": 200.0}] * 50 + [{"overlap": 0.5}])
    assert [(shift.quantity, shift.responses, shift.band) for shift in shifts] == [("length in words", 50, "different")]


@pytest.mark.parametrize(
    ("bands", "text"),
    [
        (("alike", "alike"), "look like those of the calibration."),
        (("too few to tell", "alike"), "50 consistent responses are too few to tell"),
        (("shifted", "alike"), "differ somewhat from those of the calibration in length in words:"),
        (("different", "shifted"), "differ from those of the calibration in length in words:"),
        (("different", "different"), "in length in words and word overlap with the knowledge: its bounds"),
    ],
)
def test_a_sentence_says_what_shifts_mean(bands: tuple[str, str], text: str) -> None:
    shifts = [
        Shift("length in words", 50, 0.2, 0.1, bands[0]),  # type: ignore[arg-type]
        Shift("word overlap with the knowledge", 50, 0.2, 0.1, bands[1]),  # type: ignore[arg-type]
    ]
    assert text in explain_shift(shifts)


def calibrate_on(probabilities: list[float]) -> Calibration:
    distributions = describe_distributions([{"probability": value, "words": 2.0} for value in probabilities])
    (fusion,) = CALIBRATION.fusions
    return msgspec.structs.replace(CALIBRATION, fusions=(msgspec.structs.replace(fusion, distributions=distributions),))


def test_a_set_is_compared_by_its_consistent_examples_with_a_verdict() -> None:
    examples = [make_example(f"e{i}", 1 if i < 60 else 0) for i in range(100)]
    scores = [score({"q2": None if i == 0 else 1.0 if i < 60 else 0.0}) for i in range(100)]
    calibration = calibrate_on([i / 100 for i in range(100)])
    (shift,) = compare_with_calibration(examples, scores, calibration)
    assert (shift.quantity, shift.responses, shift.band) == ("probability", 59, "different")
    figures = analyse("set", examples, scores, calibration=calibration, repeats=20)
    assert figures.shifts == (shift,)
    assert figures.notes[-1] == explain_shift([shift])
    # Nothing is compared without a description, a verdict, or a calibration.
    assert compare_with_calibration(examples, scores, CALIBRATION) == ()
    assert compare_with_calibration(examples, [score({"q2": None})] * 100, calibration) == ()
    assert compare_with_calibration(examples, scores, None) == ()


def test_a_set_that_is_alike_has_no_note() -> None:
    examples = [make_example(f"e{i}", 1) for i in range(100)]
    values = [i / 100 for i in range(100)]
    scores = [score({"q2": value}) for value in values]
    calibration = calibrate_on([1 / (1 + math.exp(-(value - 0.5) / 0.25)) for value in values])
    figures = analyse("set", examples, scores, calibration=calibration, repeats=20)
    assert [(shift.quantity, shift.band) for shift in figures.shifts] == [("probability", "alike")]
    assert not any("calibration" in note for note in figures.notes)
