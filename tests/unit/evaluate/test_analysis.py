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

from groundwire.engine import MetricResult, Score, UnsupportedSpan, Verdict
from groundwire.engine.schema.explanations import Comparison, Q2Explanation
from groundwire.engine.schema.results import Timings
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.scores.metric_values import decide_examples
from groundwire.evaluate.statistics.agreement import Threshold, measure_reliability
from groundwire.evaluate.statistics.analysis import Development, analyse, select_unfitted
from groundwire.evaluate.statistics.results import SCHEMA, ErrorThreshold, Results, SetFigures
from groundwire.monitor.prevalence import share
from groundwire.monitor.records import Estimate
from groundwire.runtime.bundles.calibration import Band, Feature
from groundwire.runtime.calls import TextSpan
from groundwire.runtime.errors import InvalidRequest
from tests.support.evaluation import CALIBRATION, make_example, score


def measured(labels: list[int | None], values: list[float | None], metric: str = "nli", **options: Any) -> SetFigures:
    examples = [make_example(str(index), label) for index, label in enumerate(labels)]
    return analyse("set", examples, [score({metric: value}) for value in values], repeats=50, **options)


def test_figures_of_a_metric() -> None:
    labels = [1, 1, 1, 0, 0, None]
    values = [0.9, 0.8, 0.2, 0.3, 0.1, 0.5]
    figures = measured(labels, values)
    metric = figures.metrics["nli"]
    assert (figures.examples, figures.labels) == (
        6,
        {"consistent": 3, "inconsistent": 2, "unverifiable": 0, "none": 1},
    )
    assert (metric.examples, metric.statuses, figures.leading) == (5, {"scored": 6}, "nli")
    assert metric.roc_auc is not None
    assert metric.roc_auc.value == pytest.approx(5 / 6)  # of six pairs, 0.2 against 0.3 is wrong
    assert metric.roc_auc.low <= metric.roc_auc.value <= metric.roc_auc.high
    assert metric.average_precision is not None
    assert metric.average_precision.value == pytest.approx((1 + 2 / 3) / 2)  # at 0.1, and at 0.3 after 0.2
    (decision,) = metric.decisions
    assert (decision.threshold, decision.origin, decision.tuned_on) == (0.5, "0.5", 0)
    assert decision.accuracy.value == pytest.approx(4 / 5)
    assert decision.balanced_accuracy.value == pytest.approx((2 / 3 + 1) / 2)
    assert [metric.value for metric in (decision.consistent.precision, decision.consistent.recall)] == [1.0, 2 / 3]
    assert [metric.value for metric in (decision.inconsistent.precision, decision.inconsistent.recall)] == [2 / 3, 1.0]
    assert decision.inconsistent.f1.value == pytest.approx(0.8)
    assert metric.histogram is not None
    assert (sum(metric.histogram.consistent), sum(metric.histogram.inconsistent)) == (3, 2)
    assert (metric.histogram.edges[0], metric.histogram.edges[-1]) == (0.0, 1.0)
    for absent in (metric.spearman, metric.pearson, metric.ranking, metric.system_level, metric.reliability):
        assert absent is None


def test_one_half_counts_as_inconsistent() -> None:
    """The Q² paper calls a response consistent above 0.5: neutral inference, worth 0.5, is inconsistent."""
    (decision,) = measured([1, 1, 0, 0], [1.0, 0.5, 0.5, 0.0]).metrics["nli"].decisions
    assert decision.accuracy.value == 0.75
    assert (decision.consistent.recall.value, decision.inconsistent.recall.value) == (0.5, 1.0)


def test_a_fixed_threshold_is_exceeded_and_a_tuned_one_reached() -> None:
    values = np.array([0.4, 0.5, 0.6, np.nan])
    assert Threshold(0.5, "0.5").call_consistent(values).tolist() == [False, False, True, False]
    assert Threshold(0.5, "dev", 10).call_consistent(values).tolist() == [False, True, True, False]


def test_unverifiable_is_a_label_of_its_own() -> None:
    examples = [make_example("a", 1), make_example("b", verifiable=False), make_example("c"), make_example("d", 0)]
    figures = analyse("set", examples, [score({"nli": 0.5})] * 4, repeats=20)
    assert figures.labels == {"consistent": 1, "inconsistent": 1, "unverifiable": 1, "none": 1}


def test_a_score_column_is_measured_like_a_metric() -> None:
    examples = [
        msgspec.structs.replace(make_example(name, label), scores=scores)
        for name, label, scores in (
            ("a", 1, (("old", 0.9), ("grade", 5.0))),
            ("b", 1, (("old", 0.4), ("grade", 4.0))),
            ("c", 0, (("old", 0.6), ("grade", 1.0))),
            ("d", 0, (("grade", 2.0),)),
        )
    ]
    figures = analyse("set", examples, [score({"nli": 0.5})] * 4, repeats=20)
    old, grade = figures.metrics["old"], figures.metrics["grade"]
    assert (old.examples, old.statuses) == (3, {"scored": 3, "not_given": 1})
    assert old.roc_auc is not None
    assert grade.roc_auc is not None
    assert (old.roc_auc.value, grade.roc_auc.value) == (0.5, 1.0)
    assert [decision.origin for decision in old.decisions] == ["0.5"]
    assert grade.decisions == ()  # its values are not within 0 and 1


def test_what_did_not_score_is_left_out_and_counted() -> None:
    """Were the failed example a 0 or a 1, the area would be 0.25 or 0.75."""
    metric = measured([1, 1, 0, 0], [0.9, None, 0.95, 0.4]).metrics["nli"]
    assert (metric.examples, metric.statuses) == (3, {"scored": 3, "failed": 1})
    assert metric.roc_auc is not None
    assert metric.roc_auc.value == 0.5


def test_labelled_examples_that_a_metric_did_not_score_are_counted() -> None:
    figures = measured([1, 1, 0, 0, None], [0.9, None, 0.95, 0.4, 0.2])
    assert (figures.labelled, figures.examples) == (4, 5)
    assert figures.count_missing(figures.metrics["nli"]) == 1
    unlabelled = measured([None, None], [0.9, 0.1])
    assert unlabelled.labelled == 2


def test_without_any_probability_there_is_no_fused_column() -> None:
    """The verdict needs q2, which was not asked for."""
    figures = measured([1, 1, 0, 0], [0.9, 0.8, 0.95, 0.4], calibration=CALIBRATION)
    assert list(figures.metrics) == ["nli"]
    assert figures.leading == "nli"


def test_an_invalid_example_counts_for_every_metric() -> None:
    invalid = Score("invalid", None, Verdict("unknown"), {}, (), None, Timings(0.0, {}), "s", "empty")
    examples = [make_example("a", 1), make_example("b", 0), make_example("c", 0)]
    figures = analyse(
        "set", examples, [score({"q2": 1.0, "nli": 0.5}), score({"q2": 0.0, "nli": 0.5}), invalid], repeats=20
    )
    for name in ("q2", "nli"):
        assert figures.metrics[name].statuses == {"scored": 2, "invalid": 1}
        assert figures.metrics[name].examples == 2


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
    figures = measured(labels, values)
    metric = figures.metrics["nli"]
    assert (metric.roc_auc, metric.average_precision, metric.roc, metric.precision_recall, metric.histogram) == (
        None,
    ) * 5
    assert (metric.decisions, figures.errors, figures.error_threshold, figures.leading) == ((), (), None, "")


def test_labels_turned_round_are_named() -> None:
    right = [index % 2 for index in range(40)]
    values = [0.9 if label else 0.2 for label in right]
    note = "nli gives inconsistent responses the higher values (ROC-AUC 0.000): check that label 1 is consistent."
    assert note in measured([1 - label for label in right], values).notes
    assert not [note for note in measured(list(right), values).notes if "label 1" in note]


def test_repeated_responses_and_contradicting_labels_are_counted() -> None:
    examples = [make_example(name, label) for name, label in (("a", 1), ("a", 0), ("b", 1), ("b", 1), ("c", 0))]
    examples.append(make_example("c", 0, knowledge="Elvis came in 1936."))
    scores = [score({"nli": 0.5}) for _ in examples]
    (note,) = [note for note in analyse("set", examples, scores, repeats=50).notes if "repeat" in note]
    assert "same knowledge and history: 2." in note
    assert note.endswith("two labels: 1.")
    assert not [note for note in analyse("set", examples[1:3], scores[:2], repeats=50).notes if "repeat" in note]


def test_a_constant_metric_is_worth_a_coin() -> None:
    metric = measured([1, 0, 1, 0], [0.4] * 4).metrics["nli"]
    assert metric.roc_auc == Estimate(0.5, 0.5, 0.5)


def test_curves_enclose_the_figures() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 120)
    values = np.round(rng.random(120) + 0.3 * labels, 2)
    metric = measured(labels.tolist(), values.tolist(), "bleu").metrics["bleu"]
    assert metric.roc is not None
    assert metric.precision_recall is not None
    assert metric.roc_auc is not None
    assert area_under(metric.roc.x, metric.roc.y) == pytest.approx(roc_auc_score(labels, values), abs=1e-3)
    recall, precision = np.array(metric.precision_recall.x), np.array(metric.precision_recall.y)
    steps = (np.diff(recall) * precision[1:]).sum()
    assert steps == pytest.approx(average_precision_score(1 - labels, -values), abs=1e-3)
    assert metric.precision_recall_consistent is not None
    assert metric.average_precision_consistent is not None
    recall, precision = np.array(metric.precision_recall_consistent.x), np.array(metric.precision_recall_consistent.y)
    expected = average_precision_score(labels, values)
    assert (np.diff(recall) * precision[1:]).sum() == pytest.approx(expected, abs=1e-3)
    assert metric.average_precision_consistent.value == pytest.approx(expected)
    assert metric.decisions == ()  # BLEU's values do not go from 0 to 1
    assert metric.histogram is not None
    assert metric.histogram.edges[-1] == values.max()


def test_a_long_curve_is_thinned() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2000)
    metric = measured(labels.tolist(), (rng.random(2000) + 0.1 * labels).tolist()).metrics["nli"]
    assert metric.roc is not None
    assert len(metric.roc.x) <= 200
    assert (metric.roc.x[0], metric.roc.y[0], metric.roc.x[-1], metric.roc.y[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert area_under(metric.roc.x, metric.roc.y) == pytest.approx(
        metric.roc_auc.value if metric.roc_auc else 0, abs=5e-3
    )


def test_shares_of_all_or_none_say_how_many_contexts_they_are_of() -> None:
    """Twelve contexts of two responses each, all of them right."""
    examples = [
        make_example(f"{index}-{label}", label, knowledge=f"Elvis came in {index}.")
        for index in range(12)
        for label in (1, 0)
    ]
    scores = [score({"q2": float(example.label or 0)}) for example in examples]
    figures = analyse("set", examples, scores, calibration=CALIBRATION, repeats=50)
    none, every = Estimate(*share(0, 12)), Estimate(*share(12, 12))
    assert (figures.verdicts[0].false_positive_rate, figures.verdicts[0].false_negative_rate) == (none, none)
    (decision, *_) = figures.metrics["q2"].decisions
    assert (decision.accuracy, decision.consistent.precision, decision.inconsistent.recall) == (every, every, every)


def test_examples_that_the_calibration_was_fitted_to_are_left_out() -> None:
    examples = [make_example(str(index), index % 2) for index in range(6)]
    scores = [score({"q2": index / 5}) for index in range(6)]
    shouted = msgspec.structs.replace(examples[1], response="1  CAME.")
    fitted = msgspec.structs.replace(CALIBRATION, row_digests=(examples[0].digest, shouted.digest))
    assert select_unfitted("set", examples, scores, fitted) == (examples[2:], scores[2:])
    assert select_unfitted("set", examples, scores, CALIBRATION) == (examples, scores)
    assert select_unfitted("set", examples, scores, None) == (examples, scores)
    without = make_example("6", verifiable=False)
    with pytest.raises(InvalidRequest, match="fitted to all 2 labelled examples of set"):
        select_unfitted("set", [*examples[:2], without], [*scores[:2], scores[0]], fitted)


def test_a_verdict_without_metrics_of_its_fusion_is_a_note() -> None:
    fusion = CALIBRATION.fusions[0]
    lacking = Feature(name="nli.worst", mean=0.5, deviation=0.25, weight=0.1)
    calibration = msgspec.structs.replace(
        CALIBRATION, fusions=(msgspec.structs.replace(fusion, features=(*fusion.features, lacking)),)
    )
    figures = measured([1, 0, 1, 0], [0.9, 0.2, 0.7, 0.1], "q2", calibration=calibration)
    assert "not asked for (nli.worst)" in figures.notes[0]
    assert measured([1, 0, 1, 0], [0.9, 0.2, 0.7, 0.1], "q2", calibration=CALIBRATION).notes == ()


def test_reliability() -> None:
    bins = measure_reliability(np.array([0.05, 0.15, 0.16, 1.0]), np.array([False, True, False, True]))
    assert bins.predicted == pytest.approx((0.05, 0.155, 1.0))
    assert (bins.observed, bins.examples) == ((0.0, 0.5, 1.0), (1, 2, 1))
    assert bins.error == pytest.approx((0.05 + 2 * 0.345 + 0) / 4)


def test_only_probabilities_have_a_reliability() -> None:
    values = {"detector.x": 0.9, "nli": 0.9}
    figures = analyse("set", [make_example("a", 1), make_example("b", 0)], [score(values), score(values)], repeats=20)
    assert figures.metrics["detector.x"].reliability is not None
    assert figures.metrics["nli"].reliability is None


def development(labels: list[int], values: list[float], knowledge: list[str]) -> Development:
    examples = [
        make_example(f"d{i}", label, knowledge=text)
        for i, (label, text) in enumerate(zip(labels, knowledge, strict=True))
    ]
    return Development("dev", examples, [score({"pmi": value}) for value in values])


def test_a_threshold_is_tuned_on_the_development_set() -> None:
    tuned = development([0, 0, 1, 1], [-2.0, 0.5, 0.75, 4.3], ["w", "x", "y", "z"])
    labels, values = [1, 1, 0, 0], [0.8, 0.6, 0.7, -1.0]
    figures = measured(labels, list(values), "pmi", development=tuned)
    (decision,) = figures.metrics["pmi"].decisions
    assert (decision.threshold, decision.origin, decision.tuned_on) == (0.75, "dev", 4)
    assert decision.consistent.f1.value == pytest.approx(f1_score(labels, [value >= 0.75 for value in values]))
    assert figures.notes == ()


def test_a_set_of_few_contexts_says_that_its_intervals_may_be_too_narrow() -> None:
    labels, values = [1, 0] * 6, list(np.linspace(0, 1, 12))
    assert "too few contexts" in measured(labels, values).notes[0]
    examples = [make_example(str(i), label, knowledge=f"{i}") for i, label in enumerate(labels)]
    assert analyse("set", examples, [score({"nli": value}) for value in values], repeats=20).notes == ()


def test_development_examples_with_the_sets_knowledge_are_left_out() -> None:
    """With the third example the cut would be at 0.75."""
    tuned = development([0, 0, 1, 1], [-2.0, 0.5, 0.75, 4.3], ["w", "x", " elvis came in  1935.", "z"])
    figures = measured([1, 0], [0.8, 0.7], "pmi", development=tuned)
    (decision,) = figures.metrics["pmi"].decisions
    assert (decision.threshold, decision.tuned_on) == (4.3, 3)
    assert figures.notes == ("Thresholds are tuned on 3 of the 4 examples of dev: 1 share knowledge with this set.",)


def test_a_development_set_that_is_no_use_is_noted() -> None:
    figures = measured([1, 0], [0.8, 0.7], "pmi", development=development([1, 1], [0.1, 0.2], ["x", "y"]))
    assert figures.metrics["pmi"].decisions == ()
    assert "No threshold could be tuned on dev" in figures.notes[0]


def test_grades() -> None:
    examples = [make_example(str(i), grade=grade) for i, grade in enumerate([0.0, 0.5, 0.5, 1.0])]
    metric = analyse("set", examples, [score({"q2": value}) for value in (0.1, 0.2, 0.2, 0.9)], repeats=50).metrics[
        "q2"
    ]
    assert metric.examples == 4
    assert metric.spearman is not None
    assert metric.spearman.value == pytest.approx(1.0)
    assert metric.pearson is not None
    assert metric.pearson.value == pytest.approx(np.corrcoef([0, 0.5, 0.5, 1], [0.1, 0.2, 0.2, 0.9])[0, 1])


def test_pairs_and_systems() -> None:
    examples = [make_example(f"{i}{label}", label, context=f"c{i}") for i in range(8) for label in (1, 0)]
    values = [0.9, 0.1] * 7 + [0.2, 0.3]
    metric = analyse("set", examples, [score({"q2": value}) for value in values], repeats=50).metrics["q2"]
    assert metric.ranking is not None
    assert metric.ranking.value == pytest.approx(7 / 8)
    assert metric.system_level is not None
    assert metric.system_level.contexts == 8
    assert list(metric.system_level.means) == ["5 %", "10 %", "15 %", "20 %", "25 %"]


def test_figures_of_each_source_and_system() -> None:
    examples = [
        make_example(f"{source}{system}{label}", label, source=source, system=system)
        for source in ("wow", "cmu")
        for system in ("t5", "gpt2")
        for label in (1, 0)
    ]
    right, wrong = (0.9, 0.1), (0.1, 0.9)
    values = [*right, *right, *right, *wrong]
    areas = analyse("set", examples, [score({"q2": value}) for value in values], repeats=100).metrics["q2"].by_source
    assert {name: area.value for name, area in areas.items()} == {
        "wow": 1.0,
        "cmu": 0.5,
        "system=t5": 1.0,
        "system=gpt2": 0.5,
    }


def test_figures_by_length_kind_and_language_with_their_counts() -> None:
    texts = ("He came in 1935.", "Who was he?", "Der Hund schläft nicht, und die Katze ist auch noch immer wach.")
    examples = [
        msgspec.structs.replace(make_example(f"{number}{label}{i}", label), response=text)
        for i in range(3)
        for number, text in enumerate(texts)
        for label in (1, 0)
    ]
    values = [score({"q2": 0.1 if example.response == texts[1] else float(example.label or 0)}) for example in examples]
    figures = analyse("set", examples, values, repeats=100).metrics["q2"]
    assert {name: (area.value, figures.part_examples[name]) for name, area in figures.by_source.items()} == {
        "length=3 words": (0.5, 6),
        "length=4 words": (1.0, 6),
        "length=12 words": (1.0, 6),
        "sentences=with a number": (1.0, 6),
        "sentences=question": (0.5, 6),
        "sentences=with a name": (1.0, 6),
        "language=English": (0.875, 12),
        "language=not English": (1.0, 6),
    }


def test_one_source_is_no_breakdown_and_too_many_are_none() -> None:
    values = [score({"q2": 0.5})] * 40
    same = [make_example(str(i), i % 2, source="wow") for i in range(40)]
    assert analyse("set", same, values, repeats=20).metrics["q2"].by_source == {}
    many = [make_example(str(i), i % 2, source=f"s{i}", knowledge=f"{i}") for i in range(40)]
    figures = analyse("set", many, values, repeats=20)
    assert figures.metrics["q2"].by_source == {}
    assert figures.notes == ("There are 40 sources, too many for figures of each.",)


def test_verdicts_are_drawn_from_the_stored_metrics() -> None:
    """Probabilities of Q² 1, 0.6 and 0: 0.88, 0.6, 0.12; the fifth failed, and gets no verdict."""
    labels = [1, 1, 0, 0, 0]
    figures = measured(labels, [1.0, 0.6, 0.6, 0.0, None], "q2", calibration=CALIBRATION)
    balanced, strict = figures.verdicts
    assert (balanced.profile, strict.profile) == ("balanced", "strict")
    assert balanced.labels == {"consistent": 3, "inconsistent": 1, "unknown": 1}
    assert strict.labels == {"inconsistent": 3, "consistent": 1, "unknown": 1}
    assert [
        verdicts.false_positive_rate.value if verdicts.false_positive_rate else None for verdicts in figures.verdicts
    ] == [0.0, 0.5]
    assert [
        verdicts.false_negative_rate.value if verdicts.false_negative_rate else None for verdicts in figures.verdicts
    ] == [0.5, 0.0]
    assert (balanced.false_positive_rate_on_unverifiable, balanced.verifiability_accuracy) == (None, None)
    fused = figures.metrics["verdict"]
    assert fused.statuses == {"scored": 4, "unknown": 1}
    assert fused.roc_auc is not None
    assert fused.roc_auc.value == pytest.approx(3.5 / 4)
    assert fused.reliability is not None
    assert figures.leading == "verdict"
    assert list(figures.metrics) == ["verdict", "q2"]


def test_verifiability() -> None:
    """The third example is called checkable and is not; the last one has no label."""
    calibration = msgspec.structs.replace(CALIBRATION, verifiable=0.5)
    labels = [True, True, False, False, None]
    examples = [make_example(str(i), None if i == 3 else 1, verifiable=label) for i, label in enumerate(labels)]
    values = [(1.0, 0.9), (0.0, 0.8), (0.0, 0.7), (0.0, 0.1), (1.0, 0.1)]
    scores = [score({"q2": q2, "verifiability": checkable}) for q2, checkable in values]
    figures = analyse("set", examples, scores, calibration=calibration, repeats=50)
    assert "verifiability" not in figures.metrics
    assert figures.verifiability is not None
    assert (figures.verifiability.examples, figures.verifiability.accuracy.value) == (4, 0.75)
    assert figures.verifiability.roc_auc is not None
    assert figures.verifiability.roc_auc.value == 1.0
    balanced = figures.verdicts[0]
    assert balanced.labels == {"inconsistent": 2, "unverifiable": 2, "consistent": 1}
    assert balanced.verifiability_accuracy is not None
    assert balanced.verifiability_accuracy.value == 0.75
    assert balanced.false_positive_rate_on_unverifiable is not None
    assert balanced.false_positive_rate_on_unverifiable.value == 0.5


def test_an_inconsistent_response_that_passes_as_unverifiable_is_missed() -> None:
    examples = [make_example("a", 0), make_example("b", 0), make_example("c", 1)]
    values = [(0.0, 0.1), (0.0, 0.9), (1.0, 0.9)]
    scores = [score({"q2": q2, "verifiability": checkable}) for q2, checkable in values]
    verdicts = analyse("set", examples, scores, calibration=CALIBRATION, repeats=50).verdicts[0]
    assert verdicts.labels == {"unverifiable": 1, "inconsistent": 1, "consistent": 1}
    assert verdicts.false_negative_rate is not None
    assert verdicts.false_negative_rate.value == 0.5


def asked(answers: list[str | None], value: float = 0.5, name: str = "q2") -> Score:
    """A score of Q² with a kept question for each answer of the knowledge, and a discarded one."""
    span = TextSpan("Elvis", 0, 5, "noun_chunk")
    questions = [Comparison(span, "who?", 0, True, "", "Elvis", answer, value=value) for answer in answers]
    lost = Comparison(span, "what?", 1, False, "personal")
    explanation = Q2Explanation((span,), (*questions, lost), None if answers else "neutral")
    result = MetricResult(name, "scored", value, explanation=explanation)
    marks = (UnsupportedSpan("Elvis", 0, 5, "no_answer", "", name),)
    return Score("scored", value, Verdict("unknown"), {name: result}, marks, 1.0, Timings(0.0, {}), "s")


@pytest.mark.parametrize("name", ["q2", "q2_no_nli"])
def test_questions(name: str) -> None:
    scores = [asked(["1935", None], name=name), asked([], name=name), asked([None], name=name)]
    questions = analyse("set", [make_example("a"), make_example("b"), make_example("c")], scores, repeats=50).questions
    assert questions is not None
    assert questions.with_question.value == pytest.approx(2 / 3)
    assert (questions.questions, questions.no_answer.value) == (3, pytest.approx(2 / 3))


def test_no_questions_without_q2() -> None:
    assert measured([1, 0], [0.5, 0.4]).questions is None


def test_errors_are_the_worst_of_the_leading_metric() -> None:
    examples = [make_example("right", 1), make_example("wrong", 0), make_example("fine", 1), make_example("middle", 0)]
    scores = [asked(["1935"], 0.1), asked([None], 0.9), asked(["1935"], 0.95), asked(["1935"], 0.05)]
    figures = analyse("set", examples, scores, repeats=20)
    assert [(error.example, error.distance) for error in figures.errors] == [("right", 0.5), ("wrong", 0.5)]
    worst = figures.errors[1]
    assert (worst.label, worst.value, worst.response, worst.knowledge) == (0, 0.9, "wrong came.", examples[1].knowledge)
    assert worst.questions == (("who?", "Elvis", ""),)
    assert worst.values == {"q2": 0.9}
    assert worst.unsupported == scores[1].unsupported


def test_only_the_wrong_side_of_the_threshold_is_an_error() -> None:
    """0.7 is below the consistent 0.9 and above the inconsistent 0.6, which are all right at the threshold but one."""
    labels, values = [1, 1, 0, 0], [0.9, 0.7, 0.6, 0.8]
    bounded = measured(labels, list(values))
    assert bounded.error_threshold == ErrorThreshold(0.5, "0.5")
    assert [(error.example, error.called) for error in bounded.errors] == [("3", "consistent"), ("2", "consistent")]
    open_ended = measured(labels, list(values), "bleu")  # no 0.5: the best F1 of consistent is from 0.7 on
    assert open_ended.error_threshold == ErrorThreshold(0.7, "this set")
    assert [error.example for error in open_ended.errors] == ["3"]
    dev = [make_example("d", 1, knowledge="Another."), make_example("e", 0, knowledge="A third.")]
    tuned = measured(
        labels, list(values), development=Development("dev", dev, [score({"nli": 0.85}), score({"nli": 0.1})])
    )
    assert tuned.error_threshold == ErrorThreshold(0.85, "dev")
    assert [(error.example, error.called) for error in tuned.errors] == [("1", "inconsistent")]


def test_errors_of_the_verdict_are_by_its_label() -> None:
    """By rank, the consistent 0.6 is on the wrong side of half of the others; the verdict still calls it consistent."""
    examples = [make_example("right", 1), make_example("low", 1), make_example("high", 0), make_example("wrong", 0)]
    scores = [score({"q2": value}) for value in (0.9, 0.3, 0.1, 0.7)]
    figures = analyse("set", examples, scores, calibration=CALIBRATION, repeats=20)
    assert (figures.leading, figures.error_threshold) == ("verdict", ErrorThreshold(0.5, "profile balanced"))
    assert {error.example: error.called for error in figures.errors} == {"low": "inconsistent", "wrong": "consistent"}
    balanced = figures.verdicts[0]
    assert balanced.false_positive_rate is not None
    assert balanced.false_negative_rate is not None
    assert (balanced.false_positive_rate.value, balanced.false_negative_rate.value) == (0.5, 0.5)


def test_no_errors_without_an_error() -> None:
    figures = measured([1, 1, 0], [0.9, 0.6, 0.4])
    assert (figures.errors, figures.error_threshold) == ((), ErrorThreshold(0.5, "0.5"))


def test_at_most_forty_errors_worst_first() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    errors = measured(labels.tolist(), rng.random(200).tolist()).errors
    distances = [error.distance for error in errors]
    assert len(errors) == 40
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
    for other in (99, 2):
        path.write_text(f'{{"schema": {other}}}')
        with pytest.raises(InvalidRequest, match=f"has schema {other}, and this version of Groundwire reads 3"):
            Results.load(path)
    path.write_text('{"schema": 3}')
    with pytest.raises(InvalidRequest, match=r"not the results\.json of an evaluation"):
        Results.load(path)


def test_examples_without_history_or_system_are_enough() -> None:
    assert analyse("set", [Example("a", "r", ("k",), label=1)], [score({"q2": 1.0})], repeats=10).examples == 1


def test_delivered_labels_are_counted_by_human_label() -> None:
    examples = [make_example(str(i), int(i % 2)) for i in range(40)]
    scores = [score({"q2": (0.9 if i % 4 else 0.2) if i % 2 else (0.1 if i % 8 else 0.8)}) for i in range(40)]
    figures = analyse("set", examples, scores, calibration=CALIBRATION, repeats=50)
    verdicts = figures.verdicts[0]
    assert verdicts.called == {"consistent": {"consistent": 20}, "inconsistent": {"inconsistent": 15, "consistent": 5}}
    assert verdicts.threshold == CALIBRATION.fusions[0].profiles["balanced"].threshold
    assert verdicts.balanced_accuracy is not None
    assert verdicts.balanced_accuracy.value == pytest.approx((1 + 0.75) / 2)
    cuts = figures.trade_off
    assert cuts is not None
    at = cuts.thresholds.index(verdicts.threshold)
    assert (cuts.false_positive_rate[at], cuts.false_negative_rate[at]) == (0, 0.25)
    assert list(cuts.false_positive_rate) == sorted(cuts.false_positive_rate)
    assert list(cuts.false_negative_rate) == sorted(cuts.false_negative_rate, reverse=True)


def test_the_surest_labels_come_first() -> None:
    examples = [make_example(str(i), int(i < 20)) for i in range(40)]
    values = [0.99] * 10 + [0.55] * 5 + [0.45] * 5 + [0.55] * 5 + [0.45] * 5 + [0.01] * 10
    figures = analyse("set", examples, [score({"q2": v}) for v in values], calibration=CALIBRATION, repeats=50)
    assert figures.risk_coverage is not None
    errors = dict(zip(figures.risk_coverage.x, figures.risk_coverage.y, strict=True))
    assert errors[0.5] == 0.0
    assert errors[1.0] == 0.25


def test_labels_that_are_sure_are_counted_apart() -> None:
    """Two systems; of the 24 labels 12 are sure, of which 2 are wrong, and of the others 4."""
    band = Band(low=0.2, high=0.8)
    fusions = (msgspec.structs.replace(CALIBRATION.fusions[0], band=band),)
    calibration = msgspec.structs.replace(CALIBRATION, fusions=fusions)
    right, wrong = [0.99] * 6 + [0.7] * 3 + [0.3] * 3, [0.01] * 4 + [0.99] * 2 + [0.3] * 5 + [0.7]
    examples = [
        msgspec.structs.replace(make_example(str(index), int(index < 12)), system="ours" if index % 2 else "theirs")
        for index in range(24)
    ]
    scores = [score({"q2": value}) for value in right + wrong]
    probabilities = [verdict.probability for verdict in decide_examples(examples, scores, calibration, "balanced")]
    sure = [probability is not None and not band.low <= probability < band.high for probability in probabilities]
    assert sum(sure) == 12
    verdicts = analyse("set", examples, scores, calibration=calibration, repeats=50).verdicts[0]
    for figure, expected in ((verdicts.coverage, 0.5), (verdicts.risk, 2 / 12), (verdicts.risk_if_unsure, 4 / 12)):
        assert figure is not None
        assert figure.value == pytest.approx(expected)
    ours = verdicts.by_part["system=ours"]
    assert (ours.coverage, ours.risk) == (0.5, pytest.approx(1 / 6))
    assert ours.risk_if_unsure == pytest.approx(
        (sum(v == 0.3 for v in right[1::2]) + sum(v == 0.7 for v in wrong[1::2])) / 6
    )
    every = analyse("set", examples, scores, calibration=CALIBRATION, repeats=50).verdicts[0]
    assert every.coverage is not None
    assert (every.coverage.value, every.risk) == (0.0, None), "without a band no label is sure"


def test_the_brier_score_is_the_mean_squared_distance() -> None:
    figures = measured([1, 1, 0, 0], [0.9, 0.6, 0.2, 0.5])
    brier = figures.metrics["nli"].brier
    assert brier is None
    fused = analyse(
        "set",
        [make_example(str(i), label) for i, label in enumerate([1, 1, 0, 0])],
        [score({"q2": v}) for v in (0.9, 0.6, 0.2, 0.5)],
        calibration=CALIBRATION,
        repeats=50,
    ).metrics["verdict"]
    assert fused.brier is not None
    assert 0 < fused.brier.value < 0.25
