"""Trusted rows: the threshold is an order statistic, labels are delivered ones, and made errors say what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

pytest.importorskip("sklearn")

from groundwire.engine import Engine, LoadOptions, MetricResult, Options, Request
from groundwire.evaluate import calibrate, calibrate_trusted
from groundwire.evaluate.calibration.trusted import DecidedRow, decide_rows, fit_trusted, make_twin_examples
from groundwire.evaluate.datasets.examples import Example
from groundwire.runtime.bundles.calibration import Band
from groundwire.runtime.errors import InvalidRequest
from tests.support.evaluation import CALIBRATION
from tests.support.fakes import world
from tests.support.verdicts import fold


def decide(values: Sequence[float | None], kind: str = "") -> list[DecidedRow]:
    """Rows whose metric q2 has these values; None is a metric without one."""
    rows = [Example(f"r{index}", f"It is {index}.", ("It is.",), source=kind) for index in range(len(values))]
    results = (
        MetricResult("q2", "failed" if value is None else "scored", value, "no" if value is None else "")
        for value in values
    )
    scores = [
        fold(Request(row.response, row.knowledge), [result], CALIBRATION)
        for row, result in zip(rows, results, strict=True)
    ]
    return decide_rows(rows, scores, CALIBRATION)


def probability(value: float) -> float:
    (row,) = decide([value])
    assert row.verdict.probability is not None
    return row.verdict.probability


@pytest.mark.parametrize(("count", "level", "rank"), [(50, 0.05, 2), (50, 0.15, 7), (20, 0.05, 1), (99, 0.1, 10)])
def test_the_threshold_is_the_order_statistic_of_the_bound(count: int, level: float, rank: int) -> None:
    values = np.random.default_rng(1).permutation(count) / count
    fitted = fit_trusted(("own",), decide(values.tolist()), decide([0.0, 1.0], "value"), CALIBRATION, level)
    assert fitted.threshold == pytest.approx(probability((rank - 1) / count), abs=1e-6)
    assert (fitted.trusted, fitted.stopped) == (count, rank - 1)


@pytest.mark.no_cover
def test_of_further_rows_no_more_are_stopped_than_promised() -> None:
    """Means over draws of 50 rows: at most the bound, and not far below what so few rows allow, 7/51."""
    rng, rates = np.random.default_rng(0), []
    for _ in range(40):
        fitted = fit_trusted(("own",), decide(rng.random(50).tolist()), [], CALIBRATION, 0.15)
        rates.append(np.mean([probability(value) < fitted.threshold for value in rng.random(100)]))
    assert 0.11 < np.mean(rates) <= 0.15


def test_what_is_written_promises_the_bound_and_states_made_errors() -> None:
    made = [*decide([0.0, 0.9], "value"), *decide([0.95, 0.9, 0.99, 0.0], "negation")]
    fitted = fit_trusted(("own",), decide((np.arange(60) / 60).tolist()), made, CALIBRATION, 0.1)
    (fusion,) = fitted.calibration.fusions
    assert fusion.features == CALIBRATION.fusions[0].features
    assert fusion.held_out is not None
    assert (fusion.held_out.made, fusion.held_out.consistent.count) == (True, 60)
    assert (fitted.calibration.fitted_on, len(fitted.calibration.row_digests or ())) == (("own",), 60)
    assert {kind: (errors.made, errors.missed) for kind, errors in fitted.kinds.items()} == {
        "value": (2, 1),
        "negation": (4, 3),
    }
    assert fitted.missed_rate == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert fusion.profiles["balanced"].max_false_positive_rate == 0.1
    assert fusion.profiles["balanced"].false_negative_rate == fitted.missed_rate


def test_what_states_nothing_is_stopped_by_no_threshold_and_draws_none() -> None:
    rows = [row._replace(verdict=replace(row.verdict, label="unverifiable")) for row in decide([0.0] * 9)]
    fitted = fit_trusted(("own",), [*decide([0.9] * 20), *rows], rows, CALIBRATION, 0.05)
    assert (fitted.trusted, fitted.unverifiable, fitted.stopped) == (20, 9, 0)
    assert fitted.threshold == pytest.approx(probability(0.9), abs=1e-6)
    held_out = fitted.calibration.fusions[0].held_out
    assert held_out is not None
    assert (held_out.consistent.unverifiable, held_out.inconsistent.unverifiable) == (9, 9)


def test_rows_without_a_probability_are_counted_and_do_not_count() -> None:
    fitted = fit_trusted(("own",), decide([*[0.5] * 20, None, None]), [], CALIBRATION, 0.05)
    assert (fitted.trusted, fitted.unscored, fitted.missed_rate) == (20, 2, None)
    with pytest.raises(InvalidRequest, match=r"There are 19 trusted rows that state something, of 22; .* Give 1 more"):
        fit_trusted(("own",), decide([*[0.5] * 19, None, None, None]), [], CALIBRATION, 0.05)


@pytest.mark.parametrize(
    ("rows", "level", "message"),
    [
        ([{"response": "It is.", "knowledge": "It is."}] * 19, 0.05, "There are 19 trusted rows; .* Give 1 more"),
        (
            [{"response": "It is.", "knowledge": "It is.", "label": "hallucinated"}] * 40,
            0.05,
            "40 of the 40 trusted rows are labelled inconsistent, the first is '1'",
        ),
        ([{"response": "It is."}] * 20, 0.05, "Row 0 cannot be used: no knowledge"),
        ([{"response": "Elvis came.", "knowledge": "Elvis came."}] * 20, 0.01, "calibrate with at least 99"),
        ([{"response": "Elvis came.", "knowledge": "Elvis came."}] * 20, 0.0, "above 0 and below 1"),
        ([{"response": "Elvis came.", "knowledge": "Elvis came."}] * 20, 1.0, "above 0 and below 1"),
    ],
)
def test_rows_that_cannot_be_trusted_are_refused(rows: list[dict[str, Any]], level: float, message: str) -> None:
    with Engine(world(), LoadOptions(calibration=CALIBRATION)) as engine, pytest.raises(InvalidRequest, match=message):
        calibrate_trusted(rows, engine, level)


def make_rows(count: int, *, labelled: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "response": f"Elvis was born in {1900 + i + wrong}.",
            "knowledge": f"Elvis came in {1900 + i}, Ann in 1850.",
            **({"label": 1 - wrong} if labelled else {}),
        }
        for i in range(count)
        for wrong in ((0, 1) if labelled else (0,))
    ]


def test_an_engine_takes_what_rows_in_memory_give() -> None:
    with Engine(world(), LoadOptions(calibration=CALIBRATION)) as engine:
        trusted = calibrate_trusted(make_rows(20), engine).calibration
        labelled = calibrate(make_rows(22, labelled=True), engine, ("q2", "nli"))
    assert (labelled.rows, trusted.rows) == (44, 20)
    for fitted in (trusted, labelled):
        with Engine(world(), LoadOptions(calibration=fitted)) as engine:
            verdict = engine.score("Elvis was born in 1935.", "Elvis came in 1935.").verdict
            assert verdict.threshold == fitted.fusions[0].profiles["balanced"].threshold
    with Engine(world(), LoadOptions(calibration=trusted)) as engine:
        bounded = engine.score(
            "Elvis was born in 1935.", "Elvis came in 1935.", options=Options(max_false_positive_rate=0.1)
        ).verdict
        assert bounded.max_false_positive_rate == 0.1


def test_made_errors_are_labelled_and_about_the_same_knowledge() -> None:
    trusted = [Example("a", "Ann left in 1850.", ("Ann left in 1850, Bob in 1860.",)), Example("b", "x", ("y",))]
    (twin,) = (twin for twin in make_twin_examples(trusted) if twin.source == "value")
    assert (twin.id, twin.response, twin.label, twin.knowledge) == (
        "a-value",
        "Ann left in 1860.",
        0,
        trusted[0].knowledge,
    )
    assert twin.unsupported == ((12, 16),)


def test_what_is_written_says_how_many_labels_are_sure() -> None:
    """The band of the calibration is 0.3 to 0.8: of the right rows one half is above it, of the made ones a quarter."""
    banded = replace(CALIBRATION, fusions=(replace(CALIBRATION.fusions[0], band=Band(low=0.3, high=0.8)),))
    right, made = decide([0.6, 0.95] * 12), decide([0.0, 0.95, 0.6, 0.6] * 4, "value")
    sure = [row.verdict.probability is not None and not 0.3 <= row.verdict.probability < 0.8 for row in (*right, *made)]
    profile = fit_trusted(("own",), right, made, banded, 0.2).calibration.fusions[0].profiles["balanced"]
    assert profile.coverage == pytest.approx((np.mean(sure[:24]) + np.mean(sure[24:])) / 2, abs=1e-4)
    wrong = np.mean([(row.verdict.probability or 0) >= 0.8 for row in made]) / 2
    wrong += np.mean([(row.verdict.probability or 1) < 0.3 for row in right]) / 2
    assert profile.risk == pytest.approx(wrong / profile.coverage, abs=1e-3)
