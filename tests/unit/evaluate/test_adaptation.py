"""Rows, folds and fits of ``groundwire adapt``, without models."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from groundwire.engine import MetricResult, Score
from groundwire.evaluate.adaptation import extra
from groundwire.evaluate.adaptation.fitting import average_loss
from groundwire.evaluate.adaptation.head import PENALTIES, fit_changes, measure_log_loss
from groundwire.evaluate.adaptation.report import AdaptationReport, CandidateFigures, Gain
from groundwire.evaluate.adaptation.rows import (
    FOLDS,
    MIN_ROWS,
    RowCounts,
    check_labels,
    group_by_passage,
    select_rows,
    split_folds,
)
from groundwire.evaluate.datasets.examples import Example
from groundwire.monitor.records import Estimate
from groundwire.runtime.errors import InvalidRequest
from tests.support.evaluation import score

ROLE = "detector.a"


def make_rows(count: int, labels: Any = (1, 0), per_knowledge: int = 1) -> list[Example]:
    return [
        Example(
            id=str(index),
            response=f"It is {index}.",
            knowledge=(f"Fact {index // per_knowledge}.",),
            label=labels[index % len(labels)],
        )
        for index in range(count)
    ]


def select(rows: list[Example], scores: list[Score] | None = None) -> tuple[list[Any], RowCounts]:
    return select_rows({"mine": rows}, {"mine": scores or [score({ROLE: 0.5}) for _ in rows]}, ROLE)


def test_every_row_that_is_left_out_is_counted() -> None:
    rows = make_rows(100)
    rows[0] = msgspec.structs.replace(rows[0], label=None)
    rows[3] = msgspec.structs.replace(rows[1], id="3", response="  it IS 1. ")
    rows[6] = msgspec.structs.replace(rows[5], id="6", label=1)
    scores = [score({ROLE: None if index == 9 else 0.5}) for index in range(100)]
    kept, counts = select(rows, scores)
    assert counts == RowCounts(
        total=100,
        unlabelled=1,
        repeated=1,
        contradictory=2,
        unscored=1,
        consistent=48,
        inconsistent=47,
        groups=95,
    )
    assert len(kept) == 95
    assert not {"0", "3", "5", "6", "9"} & {row.example.id for row in kept}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (make_rows(200, (1,)), "The 200 rows are all consistent; a fit needs rows of both labels, at least 40 of each"),
        (make_rows(200, (0,)), "The 200 rows are all inconsistent"),
        (make_rows(3, (None,)), "The 3 rows have no label that can be used; .* Left out: 3 have no label"),
        (
            make_rows(100, (1, 1, 1, 0)),
            "There are 75 consistent and 25 inconsistent rows; .* Label 15 more inconsistent",
        ),
        (make_rows(20), "Label 30 more consistent and 30 more inconsistent"),
        (make_rows(400, per_knowledge=100), "rows are about 4 different knowledge texts"),
    ],
)
def test_rows_that_are_too_few_are_refused(rows: list[Example], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        select(rows)


def test_rows_without_a_score_are_named_when_too_few_are_left() -> None:
    failed = [MetricResult(ROLE, "truncated", message="too long")] * 50
    scores = [msgspec.structs.replace(score({ROLE: 0.5}), metrics={ROLE: result}) for result in failed]
    with pytest.raises(InvalidRequest, match=r"Left out: 50 have no score \(truncated\)"):
        select(make_rows(120), scores + [score({ROLE: 0.5})] * 70)


def test_rows_that_share_a_passage_are_one_group_also_through_others() -> None:
    rows = [
        Example(id=str(number), response="r", knowledge=knowledge)
        for number, knowledge in enumerate([("a", "b"), ("c",), ("B ", "c"), ("d",), ("e", "  D")])
    ]
    groups = group_by_passage(rows)
    assert groups[0] == groups[1] == groups[2]
    assert groups[3] == groups[4]
    assert len(set(groups)) == 2


@pytest.mark.parametrize("seed", [1, 2])
def test_no_knowledge_is_in_two_folds_and_every_fold_has_both_labels(seed: int) -> None:
    rows, _ = select(make_rows(300, (1, 0, 0), per_knowledge=2))
    folds = split_folds(rows, seed)
    assert set(folds.tolist()) == set(range(FOLDS))
    by_knowledge: dict[Any, set[int]] = {}
    for row, fold in zip(rows, folds.tolist(), strict=True):
        by_knowledge.setdefault(row.example.knowledge, set()).add(fold)
        assert row.example.label in (0, 1)
    assert {len(of_one) for of_one in by_knowledge.values()} == {1}
    shares = [
        np.mean([row.example.label for row, f in zip(rows, folds, strict=True) if f == fold]) for fold in range(5)
    ]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.1)
    np.testing.assert_array_equal(folds, split_folds(rows, seed))


def test_knowledge_that_has_nearly_all_rows_of_a_label_is_refused() -> None:
    rows = make_rows(200, (0,))
    shared = [
        msgspec.structs.replace(row, id=f"c{row.id}", label=1, knowledge=("All.",) if number < 60 else row.knowledge)
        for number, row in enumerate(make_rows(70, (0,)))
    ]
    kept, counts = select([*rows, *[msgspec.structs.replace(row, response=f"c {row.id}") for row in shared]])
    assert counts.consistent == 70 > MIN_ROWS
    with pytest.raises(InvalidRequest, match="Too many rows share their knowledge"):
        split_folds(kept, 1)


def draw(count: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Features of which the second says the label and the margin says nothing."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2.0
    features = rng.normal(size=(count, 6)) * [1, 0.01, 1, 1, 1, 0] + 3
    features[:, 1] += 0.02 * labels
    return features, rng.normal(size=count), labels, np.full(count, 1 / count)


def test_a_change_starts_at_none_and_grows_as_the_penalty_falls() -> None:
    features, margins, labels, weights = draw(200)
    changes = list(fit_changes(features, margins, labels, weights))
    sizes = [float(np.abs(change.weight * features.std(0)).sum()) for change in changes]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.05 * sizes[-1]
    losses = [measure_log_loss(margins + c.change_margins(features), labels, weights) for c in changes]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * measure_log_loss(margins, labels, weights)
    assert changes[-1].weight[5] == 0.0  # a feature that never changes
    (alone,) = fit_changes(features, margins, labels, weights, (PENALTIES[2],))
    np.testing.assert_allclose(alone.weight, changes[2].weight, atol=2e-2 * np.abs(alone.weight).max())


def test_the_gradient_is_that_of_the_loss() -> None:
    """At the optimum the penalized loss rises in every direction."""
    features, margins, labels, weights = draw(80, 3)
    (change,) = fit_changes(features, margins, labels, weights, (0.1,))
    deviation = features.std(0)

    def loss(weight: Any, shift: float) -> float:
        changed = margins + features @ weight + shift
        return measure_log_loss(changed, labels, weights) + 0.1 * float(((weight * deviation) ** 2).sum())

    least = loss(change.weight, change.shift)
    for index in range(5):
        for step in (-0.1, 0.1):
            moved = change.weight + np.eye(6)[index] * step / deviation[index]
            recentred = change.shift - float(features.mean(0) @ (moved - change.weight))
            assert loss(moved, recentred) > least


def test_the_loss_of_probabilities_counts_both_labels_alike() -> None:
    consistent, inconsistent = np.array([0.5, 0.5, 0.5]), np.array([0.2])
    assert average_loss(consistent, inconsistent) == pytest.approx((np.log(2) - np.log(0.8)) / 2)
    assert average_loss(np.array([0.0]), np.array([1.0])) < 15
    assert average_loss(np.zeros(0), inconsistent) == float("inf")


FIGURES = CandidateFigures(None, None, {})
HIGHER, SAME, LOWER = (Estimate(value, value - 0.02, value + 0.02) for value in (0.05, 0.01, -0.05))


def make_report(area: Estimate | None, accuracy: Estimate | None) -> AdaptationReport:
    return AdaptationReport(
        bundle="compact@0",
        role=ROLE,
        metrics=(),
        sets=("mine",),
        rows=RowCounts(0, 0, 0, 0, 0, 0, 0, 0),
        undecided=0,
        seed=1,
        repeats=10,
        before="unchanged",
        candidates={},
        after=FIGURES,
        gain=Gain(area, None, {"balanced": accuracy}, {}),
        unverifiable={"consistent": 0, "inconsistent": 0},
        chosen_in_folds=(),
        written="head",
        penalty=None,
    )


@pytest.mark.parametrize(
    ("area", "accuracy", "conclusion"),
    [
        (HIGHER, HIGHER, "ROC-AUC and the balanced accuracy of balanced rose by more than chance explains"),
        (HIGHER, SAME, "On held-out rows ROC-AUC rose"),
        (SAME, SAME, "The rows bought nothing that chance does not explain"),
        (None, None, "The rows bought nothing"),
        (HIGHER, LOWER, "the balanced accuracy of balanced got worse"),
    ],
)
def test_the_conclusion_says_what_the_intervals_show(
    area: Estimate | None, accuracy: Estimate | None, conclusion: str
) -> None:
    report = make_report(area, accuracy)
    assert conclusion in report.conclusion
    assert "no verdict to compare with" in msgspec.structs.replace(report, before=None).conclusion
    assert AdaptationReport.from_json(report.to_json()) == report


def test_the_conclusion_says_when_the_calibration_alone_did_it() -> None:
    report = make_report(HIGHER, HIGHER)
    for of_head, alone in ((SAME, True), (HIGHER, False)):
        gain = msgspec.structs.replace(report.gain, roc_auc_of_head=of_head)
        said = msgspec.structs.replace(report, gain=gain).conclusion
        assert ("The calibration alone did that" in said) == alone


@pytest.mark.parametrize(
    ("consistent", "inconsistent", "is_hinted"), [(0, 0, False), (3, 9, False), (3, 30, True), (20, 30, False)]
)
def test_labels_that_call_opinions_inconsistent_are_hinted_at(
    consistent: int, inconsistent: int, is_hinted: bool
) -> None:
    report = make_report(None, None)
    counts = msgspec.structs.replace(report.rows, consistent=100, inconsistent=100)
    unverifiable = {"consistent": consistent, "inconsistent": inconsistent}
    report = msgspec.structs.replace(report, rows=counts, unverifiable=unverifiable)
    assert ("try --set verifiable=0" in report.hint) == is_hinted


def test_a_missing_library_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra.importlib.util, "find_spec", lambda name: None if name == "onnx_ir" else object())
    with pytest.raises(ImportError, match=r"needs onnx_ir; run: pip install 'groundwire\[adapt\]'"):
        extra.check_libraries()


def test_labels_are_counted_before_rows_are_scored() -> None:
    check_labels({"mine": make_rows(2 * MIN_ROWS)})
    with pytest.raises(InvalidRequest, match="30 consistent and 30 inconsistent rows; at least 40 of each"):
        check_labels({"mine": make_rows(40), "others": make_rows(20)})
