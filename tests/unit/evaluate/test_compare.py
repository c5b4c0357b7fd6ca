"""Two runs side by side: the difference, its p, and what must not pass for "no worse"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from groundwire.evaluate.scores import metric_values
from groundwire.evaluate.scores.metric_values import RowValues
from groundwire.evaluate.statistics.compare import Difference, Run, compare_runs
from groundwire.evaluate.statistics.results import SCHEMA, Estimate, Results, SetFigures
from groundwire.runtime.errors import InvalidRequest

ROWS = 200
rng = np.random.default_rng(0)
LABELS = rng.integers(0, 2, ROWS)
GOOD = rng.normal(size=ROWS) + 2 * LABELS
BAD = rng.normal(size=ROWS) + 0.2 * LABELS


def run(sets: Mapping[str, Sequence[RowValues]], signature: str = "s") -> Run:
    figures = tuple(SetFigures(name, len(rows), {}, {}) for name, rows in sets.items())
    return Run(Results(SCHEMA, "now", signature, 0, 100, figures), {name: list(rows) for name, rows in sets.items()})


def rows(**metrics: Sequence[float]) -> list[RowValues]:
    return [
        RowValues(str(i), f"k{i}", int(label), None, f"c{i // 2}", {name: one[i] for name, one in metrics.items()})
        for i, label in enumerate(LABELS)
    ]


def found(a: Run, b: Run, figure: str = "roc_auc") -> dict[str, Difference]:
    return {one.metric: one for one in compare_runs(a, b, repeats=400).differences if one.figure == figure}


def test_a_worse_metric_is_found_out() -> None:
    one = found(run({"set": rows(q2=GOOD)}), run({"set": rows(q2=BAD)}))["q2"]
    assert one.a == pytest.approx(roc_auc_score(LABELS, GOOD))
    assert one.b == pytest.approx(roc_auc_score(LABELS, BAD))
    assert one.difference.value == pytest.approx(one.b - one.a)
    assert one.difference.low < one.difference.value < one.difference.high < 0
    assert (one.rows, one.set) == (ROWS, "set")
    assert one.p < 0.01
    assert one.worse_by(1)
    assert not one.worse_by(60)


def test_a_better_metric_is_no_regression() -> None:
    one = found(run({"set": rows(q2=BAD)}), run({"set": rows(q2=GOOD)}))["q2"]
    assert one.p < 0.01
    assert not one.worse_by(0)


def test_the_same_run_is_no_difference() -> None:
    same = run({"set": rows(q2=GOOD)})
    result = compare_runs(same, same, repeats=100)
    assert {one.figure for one in result.differences} == {"roc_auc", "ranking"}
    for one in result.differences:
        assert (one.difference, one.p) == (Estimate(0.0, 0.0, 0.0), 1.0)
        assert not one.worse_by(0)
    assert (result.missing, result.notes) == ((), ())


def test_chance_is_no_regression() -> None:
    """Two metrics of the same quality, whose errors have nothing in common."""
    other = np.random.default_rng(5).normal(size=ROWS) + 2 * LABELS
    one = found(run({"set": rows(q2=GOOD)}), run({"set": rows(q2=other)}))["q2"]
    assert one.p > 0.05
    assert not one.worse_by(0)


def test_pairing_sees_what_two_intervals_would_not() -> None:
    """A small loss on every row: the runs' own intervals overlap, the difference is clear."""
    slightly = GOOD - 0.25 * LABELS
    one = found(run({"set": rows(q2=GOOD)}), run({"set": rows(q2=slightly)}))["q2"]
    assert -0.05 < one.difference.value < 0
    assert one.p < 0.05


def test_grades_are_compared_by_rank_correlation() -> None:
    graded = [RowValues(str(i), "k", None, float(i % 5), "", {"q2": one}) for i, one in enumerate(GOOD)]
    other = [RowValues(str(i), "k", None, float(i % 5), "", {"q2": i % 5 + one / 9}) for i, one in enumerate(GOOD)]
    one = found(run({"set": graded}), run({"set": other}), "spearman")["q2"]
    assert one.b > 0.9 > one.a


@pytest.mark.parametrize(
    ("b", "missing"),
    [
        ({"set": rows(q2=GOOD)}, ["nli on 200 of 200 rows of set", "set other"]),
        ({"set": rows(q2=GOOD, nli=GOOD)[:150], "other": rows(q2=GOOD)}, ["50 of 200 rows of set"]),
        (
            {
                "set": rows(q2=GOOD, nli=[0.5] * ROWS),
                "other": [*rows(q2=GOOD)[1:], RowValues("0", "x", 1, None, "", {})],
            },
            ["1 of 200 rows of other"],
        ),
    ],
)
def test_what_b_lacks_is_named(b: dict[str, list[RowValues]], missing: list[str]) -> None:
    a = run({"set": rows(q2=GOOD, nli=GOOD), "other": rows(q2=GOOD)})
    named = compare_runs(a, run(b), repeats=20).missing
    assert len(named) == len(missing)
    for expected in missing:
        assert any(one.startswith(expected) for one in named), named


def test_rows_that_only_a_scored_are_left_out_and_named() -> None:
    part = rows(q2=GOOD)
    part[0] = RowValues("0", "k0", part[0].label, None, "c0", {})
    result = compare_runs(run({"set": rows(q2=GOOD)}), run({"set": part}), repeats=20)
    assert {one.rows for one in result.differences} == {ROWS - 1}
    assert result.missing == ("q2 on 1 of 200 rows of set",)


def test_a_figure_that_is_undefined_in_b_is_named() -> None:
    a = [RowValues(str(i), "k", None, float(i), "", {"q2": float(i)}) for i in range(5)]
    b = [RowValues(str(i), "k", None, float(i), "", {"q2": 0.5}) for i in range(5)]
    result = compare_runs(run({"set": a}), run({"set": b}), repeats=20)
    assert result.differences == ()
    assert result.missing == ("spearman of q2 on set, undefined there",)


def test_more_in_b_is_a_note() -> None:
    a, b = run({"set": rows(q2=GOOD)[:100]}), run({"set": rows(q2=GOOD, nli=GOOD), "new": rows(q2=GOOD)})
    result = compare_runs(a, b, repeats=20)
    assert result.missing == ()
    assert [note.split(".")[0] for note in result.notes] == [
        "Only B has the set new",
        "100 of 200 rows of set in B are not those of A",
        "nli scores 100 more rows of set in B",
    ]


def test_named_metrics_alone() -> None:
    a, b = run({"set": rows(q2=GOOD, nli=GOOD)}), run({"set": rows(q2=GOOD, nli=BAD)})
    assert {one.metric for one in compare_runs(a, b, metrics=["q2"], repeats=20).differences} == {"q2"}
    with pytest.raises(InvalidRequest, match="No run has the metric q3; they have nli, q2"):
        compare_runs(a, b, metrics=["q3"], repeats=20)


def test_runs_of_different_sets_cannot_be_compared() -> None:
    with pytest.raises(InvalidRequest, match="A has one, B has two"):
        compare_runs(run({"one": rows(q2=GOOD)}), run({"two": rows(q2=GOOD)}))


def test_a_run_is_read_from_its_directory(tmp_path: Path) -> None:
    kept = run({"set": rows(q2=GOOD.tolist())})
    kept.results.save(tmp_path / "results.json")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        Run.load(tmp_path)
    metric_values.save(tmp_path / "values" / "set.jsonl", kept.sets["set"])
    assert Run.load(tmp_path) == kept == Run.load(tmp_path / "results.json")
    (tmp_path / "alone").mkdir()
    kept.results.save(tmp_path / "alone" / "now.json")
    assert Run.load(tmp_path / "alone" / "now.json", tmp_path) == kept
    (tmp_path / "values" / "set.jsonl").write_text("[]\n")
    with pytest.raises(InvalidRequest, match="Not a RowValues"):
        Run.load(tmp_path)
