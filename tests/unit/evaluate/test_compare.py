"""Two runs side by side: the difference, its p, and what must not pass for "no worse"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from groundwire.evaluate import Run, compare
from groundwire.evaluate.comparison import FigureDifference
from groundwire.evaluate.scores import metric_values
from groundwire.evaluate.scores.metric_values import ExampleValues
from groundwire.evaluate.statistics.results import SCHEMA, Results, SetFigures
from groundwire.monitor.records import Estimate
from groundwire.runtime.errors import InvalidRequest

VERIFIABILITY = "verifiability"
EXAMPLES = 200
rng = np.random.default_rng(0)
LABELS = rng.integers(0, 2, EXAMPLES)
GOOD = rng.normal(size=EXAMPLES) + 2 * LABELS
BAD = rng.normal(size=EXAMPLES) + 0.2 * LABELS


def build_run(sets: Mapping[str, Sequence[ExampleValues]], signature: str = "s") -> Run:
    figures = tuple(SetFigures(name, len(values), {}, {}) for name, values in sets.items())
    return Run(
        Results(SCHEMA, "now", signature, 0, 100, figures),
        {name: list(values) for name, values in sets.items()},
    )


def build_values(**metrics: Sequence[float]) -> list[ExampleValues]:
    return [
        ExampleValues(
            str(i),
            f"k{i}",
            int(label),
            None,
            f"c{i // 2}",
            {name: values[i] for name, values in metrics.items()},
        )
        for i, label in enumerate(LABELS)
    ]


def compare_by_metric(a: Run, b: Run, figure: str = "roc_auc") -> dict[str, FigureDifference]:
    return {
        difference.metric: difference
        for difference in compare(a, b, repeats=400).differences
        if difference.figure == figure
    }


def test_a_worse_metric_is_found_out() -> None:
    difference = compare_by_metric(build_run({"set": build_values(q2=GOOD)}), build_run({"set": build_values(q2=BAD)}))[
        "q2"
    ]
    assert difference.a == pytest.approx(roc_auc_score(LABELS, GOOD))
    assert difference.b == pytest.approx(roc_auc_score(LABELS, BAD))
    assert difference.difference.value == pytest.approx(difference.b - difference.a)
    assert difference.difference.low < difference.difference.value < difference.difference.high < 0
    assert (difference.examples, difference.set) == (EXAMPLES, "set")
    assert difference.p < 0.01
    assert difference.worse_by(1)
    assert not difference.worse_by(60)


def test_a_better_metric_is_no_regression() -> None:
    difference = compare_by_metric(build_run({"set": build_values(q2=BAD)}), build_run({"set": build_values(q2=GOOD)}))[
        "q2"
    ]
    assert difference.p < 0.01
    assert not difference.worse_by(0)


def test_the_same_run_is_no_difference() -> None:
    same = build_run({"set": build_values(q2=GOOD)})
    result = compare(same, same, repeats=100)
    assert {difference.figure for difference in result.differences} == {"roc_auc", "ranking"}
    for difference in result.differences:
        assert (difference.difference, difference.p) == (Estimate(0.0, 0.0, 0.0), 1.0)
        assert not difference.worse_by(0)
    assert (result.missing, result.notes) == ((), ())


def test_chance_is_no_regression() -> None:
    """Two metrics of the same quality, whose errors have nothing in common."""
    other = np.random.default_rng(5).normal(size=EXAMPLES) + 2 * LABELS
    difference = compare_by_metric(
        build_run({"set": build_values(q2=GOOD)}), build_run({"set": build_values(q2=other)})
    )["q2"]
    assert difference.p > 0.05
    assert not difference.worse_by(0)


def test_many_equal_metrics_are_no_regression_by_chance() -> None:
    """Of forty metrics that differ by chance alone, some have p < 0.05; none of them closes the gate."""
    noise = np.random.default_rng(3).normal(size=(2, 40, EXAMPLES)) + 2 * LABELS
    a, b = (build_run({"set": build_values(**{f"m{i}": row for i, row in enumerate(side)})}) for side in noise)
    result = compare(a, b, repeats=100)
    assert any(difference.p < 0.05 for difference in result.differences)
    assert not any(difference.worse_by(0) for difference in result.differences)
    assert all(difference.adjusted_p >= difference.p for difference in result.differences)


def test_enough_samples_are_drawn_for_the_correction() -> None:
    """A clear loss of one among many equal metrics is still found, however few samples were asked for."""
    same = {f"m{i}": GOOD for i in range(20)}
    a, b = build_run({"set": build_values(q2=GOOD, **same)}), build_run({"set": build_values(q2=BAD, **same)})
    result = compare(a, b, repeats=10)
    assert result.repeats == 40 * 2 * 21  # ROC-AUC and ranking of 21 metrics
    assert {difference.metric for difference in result.differences if difference.worse_by(1)} == {"q2"}


def test_pairing_sees_what_two_intervals_would_not() -> None:
    """A small loss on every example: the runs' own intervals overlap, the difference is clear."""
    slightly = GOOD - 0.25 * LABELS
    difference = compare_by_metric(
        build_run({"set": build_values(q2=GOOD)}), build_run({"set": build_values(q2=slightly)})
    )["q2"]
    assert -0.05 < difference.difference.value < 0
    assert difference.p < 0.05


def test_grades_are_compared_by_rank_correlation() -> None:
    graded = [ExampleValues(str(i), "k", None, float(i % 5), "", {"q2": score}) for i, score in enumerate(GOOD)]
    other = [
        ExampleValues(str(i), "k", None, float(i % 5), "", {"q2": i % 5 + score / 9}) for i, score in enumerate(GOOD)
    ]
    score = compare_by_metric(build_run({"set": graded}), build_run({"set": other}), "spearman")["q2"]
    assert score.b > 0.9 > score.a


@pytest.mark.parametrize(
    ("b", "missing"),
    [
        ({"set": build_values(q2=GOOD)}, ["nli on 200 of 200 examples of set", "set other"]),
        ({"set": build_values(q2=GOOD, nli=GOOD)[:150], "other": build_values(q2=GOOD)}, ["50 of 200 examples of set"]),
        (
            {
                "set": build_values(q2=GOOD, nli=[0.5] * EXAMPLES),
                "other": [*build_values(q2=GOOD)[1:], ExampleValues("0", "x", 1, None, "", {})],
            },
            ["1 of 200 examples of other"],
        ),
    ],
)
def test_what_b_lacks_is_named(b: dict[str, list[ExampleValues]], missing: list[str]) -> None:
    a = build_run({"set": build_values(q2=GOOD, nli=GOOD), "other": build_values(q2=GOOD)})
    named = compare(a, build_run(b), repeats=20).missing
    assert len(named) == len(missing)
    for expected in missing:
        assert any(name.startswith(expected) for name in named), named


def test_examples_that_only_a_scored_are_left_out_and_named() -> None:
    part = build_values(q2=GOOD)
    part[0] = ExampleValues("0", "k0", part[0].label, None, "c0", {})
    result = compare(build_run({"set": build_values(q2=GOOD)}), build_run({"set": part}), repeats=20)
    assert {difference.examples for difference in result.differences} == {EXAMPLES - 1}
    assert result.missing == ("q2 on 1 of 200 examples of set",)


def test_a_figure_that_is_undefined_in_b_is_named() -> None:
    a = [ExampleValues(str(i), "k", None, float(i), "", {"q2": float(i)}) for i in range(5)]
    b = [ExampleValues(str(i), "k", None, float(i), "", {"q2": 0.5}) for i in range(5)]
    result = compare(build_run({"set": a}), build_run({"set": b}), repeats=20)
    assert result.differences == ()
    assert result.missing == ("spearman of q2 on set, undefined there",)


def test_more_in_b_is_a_note() -> None:
    a, b = (
        build_run({"set": build_values(q2=GOOD)[:100]}),
        build_run({"set": build_values(q2=GOOD, nli=GOOD), "new": build_values(q2=GOOD)}),
    )
    result = compare(a, b, repeats=20)
    assert result.missing == ()
    assert [note.split(".")[0] for note in result.notes] == [
        "Only B has the set new",
        "100 of 200 examples of set in B are not those of A",
        "nli scores 100 more examples of set in B",
    ]


def test_named_metrics_alone() -> None:
    a, b = build_run({"set": build_values(q2=GOOD, nli=GOOD)}), build_run({"set": build_values(q2=GOOD, nli=BAD)})
    assert {difference.metric for difference in compare(a, b, metrics=["q2"], repeats=20).differences} == {"q2"}
    with pytest.raises(InvalidRequest, match="No run has the metric q3; they have nli, q2"):
        compare(a, b, metrics=["q3"], repeats=20)


def test_a_rating_of_verifiability_is_no_figure_of_consistency() -> None:
    """`evaluate` has no line for it either: it says whether a response states something, not whether it is right."""
    a, b = (build_run({"set": build_values(q2=GOOD, **{VERIFIABILITY: values})}) for values in (GOOD, BAD))
    assert {difference.metric for difference in compare(a, b, repeats=20).differences} == {"q2"}
    without = build_run({"set": build_values(q2=GOOD)})
    assert compare(a, without, repeats=20).missing == ()
    with pytest.raises(InvalidRequest, match=f"No run has the metric {VERIFIABILITY}; they have q2"):
        compare(a, b, metrics=[VERIFIABILITY], repeats=20)


def test_runs_of_different_sets_cannot_be_compared() -> None:
    with pytest.raises(InvalidRequest, match=r'A has one, B has two.*"system" in each row, and run groundwire report'):
        compare(build_run({"one": build_values(q2=GOOD)}), build_run({"two": build_values(q2=GOOD)}))


def test_a_run_is_read_from_its_directory(tmp_path: Path) -> None:
    kept = build_run({"set": build_values(q2=GOOD.tolist())})
    kept.results.save(tmp_path / "results.json")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        Run.load(tmp_path)
    metric_values.save_values(tmp_path / "values" / "set.jsonl", kept.sets["set"])
    assert Run.load(tmp_path) == kept == Run.load(tmp_path / "results.json")
    (tmp_path / "alone").mkdir()
    kept.results.save(tmp_path / "alone" / "now.json")
    assert Run.load(tmp_path / "alone" / "now.json", tmp_path) == kept
    (tmp_path / "values" / "set.jsonl").write_text("[]\n")
    with pytest.raises(InvalidRequest, match="Not the JSON form of ExampleValues"):
        Run.load(tmp_path)


def test_examples_without_a_label_are_in_no_figure_of_labels() -> None:
    values = build_values(q2=GOOD)
    unlabelled = [msgspec.structs.replace(value, label=None) for value in values[:6]] + values[6:]
    (difference,) = compare_by_metric(build_run({"set": unlabelled}), build_run({"set": unlabelled})).values()
    assert difference.examples == EXAMPLES - 6


def build_called(called: Sequence[str]) -> list[ExampleValues]:
    """Examples of a context each, with a verdict."""
    return [
        ExampleValues(str(i), f"k{i}", int(label), None, f"c{i}", {"verdict": 0.5}, "", name)
        for i, (label, name) in enumerate(zip(LABELS, called, strict=True))
    ]


def test_delivered_labels_are_compared_example_by_example() -> None:
    """The p of the power is about McNemar's, which counts the examples that only one of the runs finds."""
    draws = np.random.default_rng(1)
    found_by_a, found_by_b = draws.random(EXAMPLES) < 0.26, draws.random(EXAMPLES) < 0.45
    a, b = (
        [
            "inconsistent" if label == 0 and is_found else "consistent"
            for label, is_found in zip(LABELS, found, strict=True)
        ]
        for found in (found_by_a, found_by_b)
    )
    run_a, run_b = build_run({"set": build_called(a)}), build_run({"set": build_called(b)})
    wrong = LABELS == 0
    power = compare_by_metric(run_a, run_b, "power")["verdict"]
    assert (power.a, power.b) == pytest.approx((found_by_a[wrong].mean(), found_by_b[wrong].mean()))
    assert power.examples == wrong.sum()
    only_a, only_b = (found_by_a & ~found_by_b)[wrong].sum(), (found_by_b & ~found_by_a)[wrong].sum()
    mcnemar = binomtest(int(only_a), int(only_a + only_b)).pvalue
    assert power.p == pytest.approx(mcnemar, abs=0.02)
    assert power.p < 0.05
    balanced = compare_by_metric(run_a, run_b, "balanced_accuracy")["verdict"]
    assert (balanced.a, balanced.b) == pytest.approx(((1 + power.a) / 2, (1 + power.b) / 2))
    assert balanced.examples == EXAMPLES


def test_a_run_without_verdicts_has_no_labels_to_compare() -> None:
    runs = (
        build_run({"set": build_called([""] * EXAMPLES)}),
        build_run({"set": build_called(["consistent"] * EXAMPLES)}),
    )
    assert not compare_by_metric(*runs, "balanced_accuracy")
    assert not compare_by_metric(*runs, "power")
