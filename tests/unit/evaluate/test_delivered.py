"""The rates that ``evaluate``, ``calibrate`` and ``adapt`` state are counted alike."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from groundwire.engine import MetricResult, Score
from groundwire.engine.schema.explanations import ClassifiedSpan, VerifiabilityExplanation
from groundwire.evaluate.adaptation.fitting import Fit, Material
from groundwire.evaluate.adaptation.report import _decide, _Figures
from groundwire.evaluate.adaptation.rows import LabelledRow
from groundwire.evaluate.calibration.fusion import FusionOptions
from groundwire.evaluate.calibration.profiles import HeldOutVerdicts
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.scores.metric_values import decide_examples
from groundwire.evaluate.statistics.analysis import analyse
from groundwire.monitor.records import Estimate
from groundwire.runtime.bundles.calibration import HeldOut, OrderStatistics
from groundwire.runtime.errors import InvalidRequest
from tests.support.evaluation import CALIBRATION, make_example, score

MOST = 20
"""Rows of each label; every fourth row states nothing, and has a low value; some of these have no value at all."""


def make_scores() -> tuple[list[Example], list[Score]]:
    examples, scores = [], []
    for index in range(2 * MOST):
        label, is_silent = index % 2, index % 8 in (3, 4)
        value = (0.9 if index % 5 else 0.2) if label else (0.1 if index % 6 else 0.95)
        made = score({"q2": 0.3 if is_silent else value})
        if is_silent:
            span = ClassifiedSpan(0, 1, "x", {}, 0.0)
            silent = MetricResult("verifiability", "scored", 0.0, explanation=VerifiabilityExplanation((span,)))
            q2 = {} if index % 16 in (3, 4) else {"q2": made.metrics["q2"]}
            metrics = {"q2": MetricResult("q2", "nothing_to_verify"), **q2, "verifiability": silent}
            made = msgspec.structs.replace(made, metrics=metrics)
        examples.append(msgspec.structs.replace(make_example(str(index), label), response="Well, that is nice!"))
        scores.append(made)
    return examples, scores


def read(figure: Estimate | None) -> float:
    assert figure is not None
    return figure.value


@pytest.mark.parametrize("profile", ["balanced", "strict"])
def test_the_same_verdicts_have_the_same_rates(profile: Any) -> None:
    examples, scores = make_scores()
    verdicts = decide_examples(examples, scores, CALIBRATION, profile)
    labels = [verdict.label for verdict in verdicts]
    assert {"consistent", "inconsistent", "unverifiable"} == set(labels)
    silent = [verdict.probability is None for verdict in verdicts if verdict.label == "unverifiable"]
    assert {True, False} == set(silent)

    evaluated = next(
        figures
        for figures in analyse("set", examples, scores, calibration=CALIBRATION, repeats=10).verdicts
        if figures.profile == profile
    )

    rows = [LabelledRow("set", *pair, index) for index, pair in enumerate(zip(examples, scores, strict=True))]
    everything = np.arange(len(rows))
    material = Material(rows, everything, None, "q2", ("q2",), CALIBRATION, FusionOptions())  # type: ignore[arg-type]
    fit = Fit({"unchanged": CALIBRATION}, {}, "unchanged", None)  # type: ignore[arg-type]
    decided = _decide(material, [(everything, fit, "unchanged")])
    adapted = _Figures(material, [decided], 10).describe(decided, {}).profiles[profile]

    held_out = HeldOutVerdicts(
        np.array([example.label == 1 for example in examples]),
        np.array([np.nan if verdict.probability is None else verdict.probability for verdict in verdicts]),
        np.array([label == "unverifiable" for label in labels]),
        np.zeros(len(examples)),
        1,
    )
    threshold = CALIBRATION.fusions[0].profiles[profile].threshold
    false_positive_rate, missed, unverifiable = held_out.measure(threshold)

    assert 0 < false_positive_rate < 1
    assert 0 < unverifiable < missed < 1
    assert read(evaluated.false_positive_rate) == pytest.approx(false_positive_rate)
    assert read(adapted.false_positive_rate) == pytest.approx(false_positive_rate)
    assert read(evaluated.false_negative_rate) == pytest.approx(missed)
    assert 1 - read(adapted.power) == pytest.approx(missed)
    assert read(adapted.unverifiable_rate) == pytest.approx(unverifiable)
    balanced_accuracy = 1 - (false_positive_rate + missed) / 2
    assert read(evaluated.balanced_accuracy) == pytest.approx(balanced_accuracy)
    assert read(adapted.balanced_accuracy) == pytest.approx(balanced_accuracy)
    assert read(adapted.cost) == pytest.approx(100 * (false_positive_rate + missed))


def test_a_bound_is_measured_beside_the_profiles() -> None:
    examples, scores = make_scores()
    values = tuple(number / 100 for number in range(1, 100))
    record = HeldOut(
        consistent=OrderStatistics(count=99, values=values), inconsistent=OrderStatistics(count=0, values=())
    )
    fusions = (msgspec.structs.replace(CALIBRATION.fusions[0], held_out=record),)
    calibration = msgspec.structs.replace(CALIBRATION, fusions=fusions)
    *profiles, bounded = analyse(
        "set", examples, scores, calibration=calibration, repeats=10, max_false_positive_rate=0.3
    ).verdicts
    assert [figures.profile for figures in (*profiles, bounded)] == ["balanced", "strict", "at most 30 %"]
    assert (bounded.threshold, bounded.max_false_positive_rate) == (0.3, 0.3)
    with pytest.raises(InvalidRequest, match=r"at most 0\.001 cannot be promised"):
        analyse("set", examples, scores, calibration=calibration, repeats=10, max_false_positive_rate=0.001)
