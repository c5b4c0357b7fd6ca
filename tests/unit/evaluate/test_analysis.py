"""Figures of small sets, worked out by hand or by scikit-learn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from sklearn.metrics import auc as area_under
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from groundwire.engine import (
    Comparison,
    MetricResult,
    Q2Explanation,
    Score,
    TextSpan,
    Timings,
    UnsupportedSpan,
    Verdict,
)
from groundwire.evaluate.datasets.examples import Row
from groundwire.evaluate.statistics.agreement import reliability
from groundwire.evaluate.statistics.analysis import Development, analyse
from groundwire.evaluate.statistics.results import SCHEMA, Estimate, Results, SetFigures
from groundwire.runtime.errors import InvalidRequest
from tests.support.evaluation import CALIBRATION, row, score


def measured(labels: list[int | None], values: list[float | None], metric: str = "nli", **options: Any) -> SetFigures:
    rows = [row(str(place), label) for place, label in enumerate(labels)]
    return analyse("set", rows, [score({metric: value}) for value in values], repeats=50, **options)


def test_figures_of_a_metric() -> None:
    labels = [1, 1, 1, 0, 0, None]
    values = [0.9, 0.8, 0.2, 0.3, 0.1, 0.5]
    found = measured(labels, values)
    one = found.metrics["nli"]
    assert (found.rows, found.labels) == (6, {"consistent": 3, "inconsistent": 2, "none": 1})
    assert (one.rows, one.statuses, found.leading) == (5, {"scored": 6}, "nli")
    assert one.roc_auc is not None
    assert one.roc_auc.value == pytest.approx(5 / 6)  # of six pairs, 0.2 against 0.3 is wrong
    assert one.roc_auc.low <= one.roc_auc.value <= one.roc_auc.high
    assert one.average_precision is not None
    assert one.average_precision.value == pytest.approx((1 + 2 / 3) / 2)  # at 0.1, and at 0.3 behind 0.2
    (decision,) = one.decisions
    assert (decision.threshold, decision.origin, decision.tuned_on) == (0.5, "0.5", 0)
    assert decision.accuracy.value == pytest.approx(4 / 5)
    assert decision.balanced_accuracy.value == pytest.approx((2 / 3 + 1) / 2)
    assert [one.value for one in (decision.consistent.precision, decision.consistent.recall)] == [1.0, 2 / 3]
    assert [one.value for one in (decision.inconsistent.precision, decision.inconsistent.recall)] == [2 / 3, 1.0]
    assert decision.inconsistent.f1.value == pytest.approx(0.8)
    assert one.histogram is not None
    assert (sum(one.histogram.consistent), sum(one.histogram.inconsistent)) == (3, 2)
    assert (one.histogram.edges[0], one.histogram.edges[-1]) == (0.0, 1.0)
    for absent in (one.spearman, one.pearson, one.ranking, one.systems, one.reliability):
        assert absent is None


def test_what_did_not_score_is_left_out_and_counted() -> None:
    """Were the failed row a 0 or a 1, the area would be 0.25 or 0.75."""
    one = measured([1, 1, 0, 0], [0.9, None, 0.95, 0.4]).metrics["nli"]
    assert (one.rows, one.statuses) == (3, {"scored": 3, "failed": 1})
    assert one.roc_auc is not None
    assert one.roc_auc.value == 0.5


def test_an_invalid_row_counts_for_every_metric() -> None:
    invalid = Score("invalid", None, Verdict("unknown"), {}, (), None, Timings(0.0, {}), "s", "empty")
    rows = [row("a", 1), row("b", 0), row("c", 0)]
    found = analyse("set", rows, [score({"q2": 1.0, "nli": 0.5}), score({"q2": 0.0, "nli": 0.5}), invalid], repeats=20)
    for name in ("q2", "nli"):
        assert found.metrics[name].statuses == {"scored": 2, "invalid": 1}
        assert found.metrics[name].rows == 2


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        ([1, 1, 1], [0.1, 0.5, 0.9]),
        ([0, 0, 0], [0.1, 0.5, 0.9]),
        ([None, None], [0.1, 0.9]),
        ([1, 0, 0], [None, 0.4, 0.5]),
        ([1, 0], [None, None]),
    ],
)
def test_one_class_has_no_figures(labels: list[int | None], values: list[float | None]) -> None:
    found = measured(labels, values)
    one = found.metrics["nli"]
    assert (one.roc_auc, one.average_precision, one.roc, one.precision_recall, one.histogram) == (None,) * 5
    assert (one.decisions, found.mistakes, found.leading) == ((), (), "")


def test_a_constant_metric_is_worth_a_coin() -> None:
    one = measured([1, 0, 1, 0], [0.4] * 4).metrics["nli"]
    assert one.roc_auc == Estimate(0.5, 0.5, 0.5)


def test_curves_enclose_the_figures() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 120)
    values = np.round(rng.random(120) + 0.3 * labels, 2)
    one = measured(labels.tolist(), values.tolist(), "bleu").metrics["bleu"]
    assert one.roc is not None
    assert one.precision_recall is not None
    assert one.roc_auc is not None
    assert area_under(one.roc.x, one.roc.y) == pytest.approx(roc_auc_score(labels, values), abs=1e-3)
    recall, precision = np.array(one.precision_recall.x), np.array(one.precision_recall.y)
    steps = (np.diff(recall) * precision[1:]).sum()
    assert steps == pytest.approx(average_precision_score(1 - labels, -values), abs=1e-3)
    assert one.decisions == ()  # BLEU's values do not go from 0 to 1
    assert one.histogram is not None
    assert one.histogram.edges[-1] == values.max()


def test_a_long_curve_is_thinned() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2000)
    one = measured(labels.tolist(), (rng.random(2000) + 0.1 * labels).tolist()).metrics["nli"]
    assert one.roc is not None
    assert len(one.roc.x) <= 200
    assert (one.roc.x[0], one.roc.y[0], one.roc.x[-1], one.roc.y[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert area_under(one.roc.x, one.roc.y) == pytest.approx(one.roc_auc.value if one.roc_auc else 0, abs=5e-3)


def test_reliability() -> None:
    found = reliability(np.array([0.05, 0.15, 0.16, 1.0]), np.array([False, True, False, True]))
    assert found.predicted == pytest.approx((0.05, 0.155, 1.0))
    assert (found.observed, found.rows) == ((0.0, 0.5, 1.0), (1, 2, 1))
    assert found.error == pytest.approx((0.05 + 2 * 0.345 + 0) / 4)


def test_only_probabilities_have_a_reliability() -> None:
    values = {"detector.x": 0.9, "nli": 0.9}
    found = analyse("set", [row("a", 1), row("b", 0)], [score(values), score(values)], repeats=20)
    assert found.metrics["detector.x"].reliability is not None
    assert found.metrics["nli"].reliability is None


def development(labels: list[int], values: list[float], knowledge: list[str]) -> Development:
    rows = [row(f"d{i}", label, knowledge=text) for i, (label, text) in enumerate(zip(labels, knowledge, strict=True))]
    return Development("dev", rows, [score({"pmi": value}) for value in values])


def test_a_threshold_is_tuned_on_the_development_set() -> None:
    tuned = development([0, 0, 1, 1], [-2.0, 0.5, 0.75, 4.3], ["w", "x", "y", "z"])
    labels, values = [1, 1, 0, 0], [0.8, 0.6, 0.7, -1.0]
    found = measured(labels, list(values), "pmi", development=tuned)
    (decision,) = found.metrics["pmi"].decisions
    assert (decision.threshold, decision.origin, decision.tuned_on) == (0.75, "dev", 4)
    assert decision.consistent.f1.value == pytest.approx(f1_score(labels, [one >= 0.75 for one in values]))
    assert found.notes == ()


def test_development_rows_with_the_sets_knowledge_are_left_out() -> None:
    """With the third row the cut would be at 0.75."""
    tuned = development([0, 0, 1, 1], [-2.0, 0.5, 0.75, 4.3], ["w", "x", " elvis came in  1935.", "z"])
    found = measured([1, 0], [0.8, 0.7], "pmi", development=tuned)
    (decision,) = found.metrics["pmi"].decisions
    assert (decision.threshold, decision.tuned_on) == (4.3, 3)
    assert found.notes == ("Thresholds are tuned on 3 of the 4 rows of dev: 1 share knowledge with this set.",)


def test_a_development_set_that_is_no_use_is_noted() -> None:
    found = measured([1, 0], [0.8, 0.7], "pmi", development=development([1, 1], [0.1, 0.2], ["x", "y"]))
    assert found.metrics["pmi"].decisions == ()
    assert "No threshold could be tuned on dev" in found.notes[0]


def test_grades() -> None:
    rows = [row(str(i), grade=grade) for i, grade in enumerate([0.0, 0.5, 0.5, 1.0])]
    one = analyse("set", rows, [score({"q2": value}) for value in (0.1, 0.2, 0.2, 0.9)], repeats=50).metrics["q2"]
    assert one.rows == 4
    assert one.spearman is not None
    assert one.spearman.value == pytest.approx(1.0)
    assert one.pearson is not None
    assert one.pearson.value == pytest.approx(np.corrcoef([0, 0.5, 0.5, 1], [0.1, 0.2, 0.2, 0.9])[0, 1])


def test_pairs_and_systems() -> None:
    rows = [row(f"{i}{label}", label, context=f"c{i}") for i in range(8) for label in (1, 0)]
    values = [0.9, 0.1] * 7 + [0.2, 0.3]
    one = analyse("set", rows, [score({"q2": value}) for value in values], repeats=50).metrics["q2"]
    assert one.ranking is not None
    assert one.ranking.value == pytest.approx(7 / 8)
    assert one.systems is not None
    assert one.systems.contexts == 8
    assert list(one.systems.means) == ["5 %", "10 %", "15 %", "20 %", "25 %"]


def test_figures_of_each_source_and_system() -> None:
    rows = [
        row(f"{source}{system}{label}", label, source=source, system=system)
        for source in ("wow", "cmu")
        for system in ("t5", "gpt2")
        for label in (1, 0)
    ]
    right, wrong = (0.9, 0.1), (0.1, 0.9)
    values = [*right, *right, *right, *wrong]
    found = analyse("set", rows, [score({"q2": value}) for value in values], repeats=100).metrics["q2"].by_source
    assert {name: one.value for name, one in found.items()} == {
        "wow": 1.0,
        "cmu": 0.5,
        "system=t5": 1.0,
        "system=gpt2": 0.5,
    }


def test_one_source_is_no_breakdown_and_too_many_are_none() -> None:
    values = [score({"q2": 0.5})] * 40
    same = [row(str(i), i % 2, source="wow") for i in range(40)]
    assert analyse("set", same, values, repeats=20).metrics["q2"].by_source == {}
    many = [row(str(i), i % 2, source=f"s{i}") for i in range(40)]
    found = analyse("set", many, values, repeats=20)
    assert found.metrics["q2"].by_source == {}
    assert found.notes == ("There are 40 sources, too many for figures of each.",)


def test_verdicts_are_drawn_from_the_stored_metrics() -> None:
    """Probabilities of Q² 1, 0.6 and 0: 0.88, 0.6, 0.12; the fifth failed, and gets no verdict."""
    labels = [1, 1, 0, 0, 0]
    found = measured(labels, [1.0, 0.6, 0.6, 0.0, None], "q2", calibration=CALIBRATION)
    balanced, strict = found.verdicts
    assert (balanced.profile, strict.profile) == ("balanced", "strict")
    assert balanced.labels == {"consistent": 3, "inconsistent": 1, "unknown": 1}
    assert strict.labels == {"inconsistent": 3, "consistent": 1, "unknown": 1}
    assert [one.false_positive_rate.value if one.false_positive_rate else None for one in found.verdicts] == [0.0, 0.5]
    assert [one.false_negative_rate.value if one.false_negative_rate else None for one in found.verdicts] == [0.5, 0.0]
    assert (balanced.alarms_on_unverifiable, balanced.verifiability_accuracy) == (None, None)
    fused = found.metrics["fused"]
    assert fused.statuses == {"scored": 4, "unknown": 1}
    assert fused.roc_auc is not None
    assert fused.roc_auc.value == pytest.approx(3.5 / 4)
    assert fused.reliability is not None
    assert found.leading == "fused"
    assert list(found.metrics) == ["fused", "q2"]


def test_verifiability() -> None:
    """The third row is called checkable and is not; the last one has no judgement."""
    calibration = msgspec.structs.replace(CALIBRATION, verifiable=0.5)
    said = [True, True, False, False, None]
    rows = [row(str(i), None if i == 3 else 1, verifiable=one) for i, one in enumerate(said)]
    values = [(1.0, 0.9), (0.0, 0.8), (0.0, 0.7), (0.0, 0.1), (1.0, 0.1)]
    scores = [score({"q2": q2, "verifiability": checkable}) for q2, checkable in values]
    found = analyse("set", rows, scores, calibration=calibration, repeats=50)
    assert "verifiability" not in found.metrics
    assert found.verifiability is not None
    assert (found.verifiability.rows, found.verifiability.accuracy.value) == (4, 0.75)
    assert found.verifiability.roc_auc is not None
    assert found.verifiability.roc_auc.value == 1.0
    balanced = found.verdicts[0]
    assert balanced.labels == {"inconsistent": 2, "unverifiable": 2, "consistent": 1}
    assert balanced.verifiability_accuracy is not None
    assert balanced.verifiability_accuracy.value == 0.75
    assert balanced.alarms_on_unverifiable is not None
    assert balanced.alarms_on_unverifiable.value == 0.5


def test_an_inconsistent_response_that_passes_as_unverifiable_is_missed() -> None:
    rows = [row("a", 0), row("b", 0), row("c", 1)]
    values = [(0.0, 0.1), (0.0, 0.9), (1.0, 0.9)]
    scores = [score({"q2": q2, "verifiability": checkable}) for q2, checkable in values]
    found = analyse("set", rows, scores, calibration=CALIBRATION, repeats=50).verdicts[0]
    assert found.labels == {"unverifiable": 1, "inconsistent": 1, "consistent": 1}
    assert found.false_negative_rate is not None
    assert found.false_negative_rate.value == 0.5


def asked(answers: list[str | None], value: float = 0.5, name: str = "q2") -> Score:
    """A score of Q² with a kept question for each answer of the knowledge, and a discarded one."""
    span = TextSpan("Elvis", 0, 5, "noun_chunk")
    questions = [Comparison(span, "who?", 0, True, "", "Elvis", one, value=value) for one in answers]
    lost = Comparison(span, "what?", 1, False, "personal")
    explanation = Q2Explanation((span,), (*questions, lost), None if answers else "neutral")
    result = MetricResult(name, "scored", value, explanation=explanation)
    marks = (UnsupportedSpan("Elvis", 0, 5, "no_answer", "", name),)
    return Score("scored", value, Verdict("unknown"), {name: result}, marks, 1.0, Timings(0.0, {}), "s")


@pytest.mark.parametrize("name", ["q2", "q2_no_nli"])
def test_questions(name: str) -> None:
    scores = [asked(["1935", None], name=name), asked([], name=name), asked([None], name=name)]
    found = analyse("set", [row("a"), row("b"), row("c")], scores, repeats=50).questions
    assert found is not None
    assert found.with_a_question.value == pytest.approx(2 / 3)
    assert (found.questions, found.no_answer.value) == (3, pytest.approx(2 / 3))


def test_no_questions_without_q2() -> None:
    assert measured([1, 0], [0.5, 0.4]).questions is None


def test_mistakes_are_the_worst_of_the_leading_metric() -> None:
    rows = [row("right", 1), row("wrong", 0), row("fine", 1), row("middle", 0)]
    scores = [asked(["1935"], 0.1), asked([None], 0.9), asked(["1935"], 0.95), asked(["1935"], 0.05)]
    found = analyse("set", rows, scores, repeats=20)
    assert [(one.row, one.distance) for one in found.mistakes] == [("right", 0.5), ("wrong", 0.5)]
    worst = found.mistakes[1]
    assert (worst.label, worst.value, worst.response, worst.knowledge) == (0, 0.9, "wrong came.", rows[1].knowledge)
    assert worst.questions == (("who?", "Elvis", ""),)
    assert worst.values == {"q2": 0.9}
    assert worst.unsupported == scores[1].unsupported


def test_at_most_forty_mistakes_worst_first() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    found = measured(labels.tolist(), rng.random(200).tolist()).mistakes
    distances = [one.distance for one in found]
    assert len(found) == 40
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.9


def test_the_seed_decides_the_intervals() -> None:
    labels, values = [1, 0, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.2, 0.3, 0.1]
    first, again, other = (measured(labels, list(values), seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.metrics["nli"].roc_auc != other.metrics["nli"].roc_auc


def test_results_are_json_without_nan_and_come_back(tmp_path: Path) -> None:
    sets = (
        measured([1, 0, 0], [0.9, 0.1, None], "q2", calibration=CALIBRATION),
        measured([1, 1], [0.5, 0.5]),
        measured([None], [None]),
    )
    results = Results(SCHEMA, "2026-01-01T00:00:00+00:00", "s", 0, 50, sets)
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == results

    def numbers(value: object) -> None:
        if isinstance(value, dict):
            list(map(numbers, value.values()))
        elif isinstance(value, list):
            list(map(numbers, value))
        elif isinstance(value, float):
            assert math.isfinite(value)

    numbers(msgspec.json.decode((tmp_path / "results.json").read_bytes()))


def test_results_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with pytest.raises(InvalidRequest, match=r"results\.json cannot be read"):
        Results.load(path)
    path.write_text('{"schema": 99}')
    with pytest.raises(InvalidRequest, match="has schema 99; this version of Groundwire reads up to 1"):
        Results.load(path)
    path.write_text('{"schema": 1}')
    with pytest.raises(InvalidRequest, match=r"not the results\.json of an evaluation"):
        Results.load(path)


def test_rows_without_history_or_system_are_enough() -> None:
    assert analyse("set", [Row("a", "r", ("k",), label=1)], [score({"q2": 1.0})], repeats=10).rows == 1
