"""What the report says about traffic: shares, groups, drift, and that alerts keep their rate."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import chi2_contingency

from groundwire.engine import InvalidRequest, Request
from groundwire.monitor.concentration import MIN_RESPONSES, find_groups
from groundwire.monitor.drift import compare_shares, compare_with_reference, take_looks
from groundwire.monitor.observations import Observations, read_time
from groundwire.monitor.prevalence import ErrorRates, correct_share
from groundwire.monitor.records import RowToLabel, ShareRange, TrafficReport
from groundwire.monitor.summary import Reference, build_report
from groundwire.monitor.systems import compare_systems
from groundwire.runtime.bundles.calibration import Calibration
from tests.support.evaluation import CALIBRATION
from tests.support.traffic import DESCRIBED, EXACT, describe_alike, make_rows, make_score, observe

WHEN = "2026-11-23T00:00:00+00:00"


def report(observations: Observations, calibration: Calibration | None = EXACT, **fields: Any) -> TrafficReport:
    return build_report(observations, "traffic.jsonl", WHEN, calibration, **fields)


def test_only_verdicts_are_in_the_share_and_the_rest_is_counted() -> None:
    scores = [make_score(0.9, calibration=DESCRIBED, sure=True)] * 54
    scores += [make_score(0.1, calibration=DESCRIBED)] * 36
    scores += [make_score(0.3, "unverifiable", DESCRIBED, sure=True)] * 10 + [
        make_score(None, calibration=DESCRIBED)
    ] * 5
    observations = observe(scores, describe_alike(len(scores)))
    observations.add_problem("invalid")
    built = report(observations, DESCRIBED)
    assert built.labels == {"consistent": 54, "inconsistent": 36, "unverifiable": 10, "unknown": 5, "unscored": 1}
    assert built.problems == {"failed": 5, "invalid": 1}
    assert built.share is not None
    assert built.share.value == 0.4
    assert built.corrected is not None
    assert tuple(msgspec.structs.astuple(built.corrected.share)) == correct_share(
        36, 90, ErrorRates(1000, 100, 1000, 800)
    )
    assert (built.corrected.false_positive_rate, built.corrected.true_positive_rate) == (0.1, 0.8)
    assert built.range == ShareRange(0.36, 0.46, 100)
    assert built.stopped is not None
    assert built.stopped["balanced"] == 36 / 105
    assert (built.lines, built.threshold, built.sure) == (106, 0.5, 54)


def test_a_reference_that_is_right_bounds_the_share_from_below() -> None:
    """A tenth of the reference is called inconsistent: as many of the right ones here."""
    traffic = observe([make_score(0.9)] * 54 + [make_score(0.1)] * 46)
    old = observe([make_score(0.9)] * 90 + [make_score(0.1)] * 10)
    built = report(traffic, reference=Reference(old, "old", 0.05, 500))
    assert built.range is not None
    assert built.range.low == pytest.approx((0.46 - 0.1) / 0.9)
    assert built.range.high == 0.46


def test_the_rows_to_label_are_nearest_to_the_threshold() -> None:
    values = [0.9, 0.52, 0.1, 0.45, None, 0.6]
    observations = Observations(0, 3)
    for line, value in enumerate(values, 1):
        observations.add(line, {"id": f"r{line}"}, make_score(value), Request("Elvis came.", ("a", "b"), ("Hi.",)))
    assert [row.line for row in observations.nearest] == [2, 4, 6]
    assert observations.nearest[0] == RowToLabel(2, "r2", "Elvis came.", ("a", "b"), ("Hi.",))


def test_without_verdicts_there_is_no_share() -> None:
    built = report(observe([make_score(None), make_score(0.2, "unverifiable")]))
    assert (built.share, built.corrected, built.groups, built.worst) == (None, None, (), ())
    assert "no share" in built.notes[0]
    with pytest.raises(InvalidRequest, match="has no line with a score"):
        report(Observations())


@pytest.mark.parametrize(
    ("scores", "calibration", "note"),
    [
        ([make_score(0.1)], None, "another calibration"),
        ([make_score(0.1, calibration=None)], EXACT, "another calibration"),
        ([make_score(0.1), make_score(0.1, calibration=CALIBRATION)], EXACT, "another calibration"),
        ([make_score(0.1), make_score(0.1, threshold=0.4)], EXACT, "several thresholds"),
        ([make_score(0.1), make_score(0.1, fusion="fast")], EXACT, "several fusions"),
        ([make_score(0.1, calibration=CALIBRATION, threshold=0.6)], CALIBRATION, "error rates of this threshold"),
    ],
)
def test_a_share_whose_errors_are_not_known_is_not_corrected(
    scores: list[Any], calibration: Calibration | None, note: str
) -> None:
    built = report(observe(scores), calibration)
    assert built.share is not None
    assert built.corrected is None
    assert note in " ".join(built.notes)


def test_responses_that_are_not_known_to_be_like_the_calibrations_are_not_corrected() -> None:
    """A third is wrong and unverifiable: a corrected share would be confident, and wrong."""
    scores = [make_score(0.9, calibration=DESCRIBED)] * 300
    texts = describe_alike(300)
    alike = report(observe(scores, texts), DESCRIBED)
    longer = report(observe(scores, [f"{text} {text} was here" for text in texts]), DESCRIBED)
    few, without = report(observe(scores[:9], texts), DESCRIBED), report(observe(scores), DESCRIBED)
    assert [shift.band for built in (alike, longer) for shift in built.like_calibration] == ["alike", "different"]
    assert alike.notes == ()
    assert alike.corrected is not None
    for built, note in (
        (longer, "differ from those of the calibration in length in words"),
        (few, "too few to tell"),
        (without, "it is not known whether"),
    ):
        assert built.corrected is None
        assert note in built.notes[0]


def test_a_calibration_of_trusted_responses_corrects_nothing() -> None:
    fusion = DESCRIBED.fusions[0]
    assert fusion.held_out is not None
    made = msgspec.structs.replace(fusion, held_out=msgspec.structs.replace(fusion.held_out, made=True))
    calibration = msgspec.structs.replace(DESCRIBED, fusions=(made,))
    built = report(observe([make_score(0.9, calibration=calibration)] * 300, describe_alike(300)), calibration)
    assert built.corrected is None
    assert "real errors are missed" in built.notes[0]


def test_the_worst_responses_are_kept_in_order() -> None:
    probabilities = [0.4, 0.05, 0.3, 0.05, 0.9, 0.2, 0.45, 0.01]
    texts = [f"Elvis was born in 1936 {index}." for index in range(8)]
    rows = [{"id": f"r{index}", "system": "a"} for index in range(8)]
    observations = observe([make_score(value) for value in probabilities], texts, rows, examples=4)
    kept = [(worst.line, worst.probability) for worst in observations.worst]
    assert kept == [(8, 0.01), (2, 0.05), (4, 0.05), (6, 0.2)]
    first = observations.worst[0]
    assert (first.id, first.response, first.knowledge) == ("r7", texts[7], ("Elvis came in 1935.",))
    assert first.unsupported[0].text == "1936"


def test_groups_that_differ_are_found_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for index in range(2000):
        about_honey = index % 5 == 0
        flag = bool(rng.random() < (0.5 if about_honey else 0.1))
        terms = (*(("honey",) if about_honey else ()), *(f"word{n}" for n in rng.choice(200, 8, replace=False)))
        rows += make_rows([flag], terms=terms, system=f"s{index % 2}", words=float(index % 30))
    groups = find_groups(rows)
    differing = [(group.factor, group.name) for group in groups if group.adjusted_p < 0.05]
    assert differing == [("term", "honey")]
    honey = groups[0]
    assert honey.responses == 400
    assert honey.share.value == honey.inconsistent / 400
    assert honey.others == pytest.approx(0.1, abs=0.02)
    assert {group.factor for group in groups} == {"term", "response length", "system"}
    assert min(group.responses for group in groups) >= MIN_RESPONSES


def test_kinds_of_sentences_and_languages_are_groups() -> None:
    rows = [
        row._replace(kinds=("question",) if row.is_inconsistent else ("other statement",), language="English")
        for row in make_rows([number % 2 == 0 for number in range(60)])
    ]
    groups = {(group.factor, group.name): group.share.value for group in find_groups(rows)}
    assert groups["sentences", "question"] == 1.0
    assert groups["sentences", "other statement"] == 0.0
    assert not any(factor == "language" for factor, _ in groups)
    mixed = [row._replace(language="English" if row.line % 3 else "not English") for row in rows]
    assert ("language", "not English") in {(group.factor, group.name) for group in find_groups(mixed)}


@pytest.mark.no_cover
def test_by_chance_few_reports_name_any_group() -> None:
    """Of 100 traffics in which nothing matters, at most 5 % name a group; Benjamini and Yekutieli's is stricter."""
    rng = np.random.default_rng(1)
    named = 0
    for _ in range(100):
        rows = [
            row
            for flag, number in zip(rng.random(300) < 0.3, rng.integers(0, 40, 300), strict=True)
            for row in make_rows([bool(flag)], terms=(f"w{number}", f"v{number % 7}"), system=f"s{number % 3}")
        ]
        named += any(group.adjusted_p < 0.05 for group in find_groups(rows))
    assert named <= 5


def test_lengths_are_compared_in_bins() -> None:
    rows = [row for n in range(600) for row in make_rows([n % 30 > 23], words=float(n % 30))]
    groups = [group for group in find_groups(rows) if group.factor == "response length"]
    assert sum(group.responses for group in groups) == 600
    assert groups[0].name == "24–29 words"
    assert (groups[0].share.value, groups[0].others) == (1.0, 0.0)


def test_two_shares_are_compared_by_the_z_test() -> None:
    change = compare_shares("inconsistent", (40, 400), (90, 600))
    assert change is not None
    expected = chi2_contingency([[40, 360], [90, 510]], correction=False).pvalue
    assert change.p == pytest.approx(expected)
    assert (change.reference, change.now, change.difference.value) == (0.1, 0.15, pytest.approx(0.05))
    assert 0 < change.difference.low < 0.05 < change.difference.high
    # Newcombe (1998), table II: 56/70 and 48/80, method 10.
    known = compare_shares("x", (48, 80), (56, 70))
    assert known is not None
    assert (known.difference.low, known.difference.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert compare_shares("unknown", (0, 400), (0, 600)) is None
    same = compare_shares("unknown", (400, 400), (600, 600))
    assert same is not None
    assert same.p == 1


def test_systems_are_compared_in_pairs() -> None:
    """Newcombe (1998), table II: 56 of 70 and 48 of 80 have the difference 0.2, 0.0524 to 0.3339."""
    rows = [
        *make_rows([index < 48 for index in range(80)], system="b"),
        *make_rows([index < 56 for index in range(70)], system="a"),
        *make_rows([False] * 12, system="c"),
        *make_rows([True]),
    ]
    first, second, third = compare_systems(rows)
    assert (first.a, first.b, first.responses_a, first.responses_b) == ("a", "b", 70, 80)
    assert (first.share_a, first.share_b) == (0.8, 0.6)
    assert msgspec.structs.astuple(first.difference) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert [(pair.a, pair.b, pair.is_small) for pair in (second, third)] == [("a", "c", True), ("b", "c", True)]
    assert not first.is_small
    assert compare_systems(make_rows([True, False], system="a")) == ()


def test_the_report_compares_the_largest_systems() -> None:
    sizes = {"f": 9, "a": 2, "b": 8, "c": 7, "d": 6, "e": 5}
    scores = [make_score(0.9)] * sum(sizes.values()) + [make_score(0.1, "unverifiable")] * 50
    rows = [{"system": name} for name, size in sizes.items() for _ in range(size)] + [{"system": "a"}] * 50
    pairs = report(observe(scores, rows=rows)).systems
    assert len(pairs) == 10
    assert {name for pair in pairs for name in (pair.a, pair.b)} == set("bcdef")


def test_systems_that_are_compared_in_pairs_are_no_groups() -> None:
    """Fisher's corrected test may find chance what the interval of the difference finds none."""
    names = [f"s{index % 6}" for index in range(75)]
    scores = [make_score(0.1 if name == "s1" else 0.9) for name in names]
    built = report(observe(scores, rows=[{"system": name} for name in names]))
    assert {name for pair in built.systems for name in (pair.a, pair.b)} == {"s0", "s1", "s2", "s3", "s4"}
    assert {group.name for group in built.groups if group.factor == "system"} == {"s5"}
    two = report(observe(scores[:40], rows=[{"system": name} for name in ("a", "b") * 20]))
    assert two.systems
    assert not [group for group in two.groups if group.factor == "system"]


def test_without_unverifiable_responses_there_is_no_range() -> None:
    scores = [make_score(0.9)] * 60 + [make_score(0.1)] * 20
    built = report(observe(scores))
    assert built.share is not None
    assert built.range is None
    assert report(observe([*scores, make_score(0.1, "unverifiable")])).range == ShareRange(20 / 81, 21 / 81, 81)


@pytest.mark.no_cover
def test_without_a_change_alerts_keep_their_rate_over_all_looks() -> None:
    rng = np.random.default_rng(3)
    runs, alerts = 200, 0
    for _ in range(runs):
        reference = int(rng.binomial(1000, 0.2))
        looks = take_looks(reference, 1000, make_rows((rng.random(3000) < 0.2).tolist()), 0.1, 150)
        assert len(looks) == 20
        alerts += any(look.alert for look in looks)
    assert alerts <= 0.1 * runs


def test_single_tests_would_not_keep_it() -> None:
    """What the looks are for: tested at 0.1 each time, most traffics without a change would give an alert."""
    rng = np.random.default_rng(3)
    alerts = 0
    for _ in range(50):
        reference = int(rng.binomial(1000, 0.2))
        looks = take_looks(reference, 1000, make_rows((rng.random(3000) < 0.2).tolist()), 0.1, 150)
        alerts += any(min(look.p, look.p_so_far) <= 0.1 for look in looks)
    assert alerts > 25


def test_a_jump_and_a_small_lasting_change_give_an_alert() -> None:
    rng = np.random.default_rng(4)
    before = (rng.random(1500) < 0.1).tolist()
    jump = take_looks(200, 2000, make_rows(before + (rng.random(1500) < 0.3).tolist()), 0.05, 300)
    assert next(look.number for look in jump if look.alert) == 6
    small = take_looks(1000, 10_000, make_rows([n % 8 == 0 for n in range(20_000)]), 0.05, 500)
    first = next(look for look in small if look.alert)
    assert first.p > first.level
    assert first.p_so_far <= first.level


def test_looks_of_earlier_reports_have_spent_their_part() -> None:
    rows = make_rows([True] * 10 + [False] * 90)
    (first,) = take_looks(50, 1000, rows, 0.05, 500)
    (later,) = take_looks(50, 1000, rows, 0.05, 500, looks_before=9)
    assert (first.number, first.level) == (1, 0.0125)
    assert (later.number, later.level) == (10, pytest.approx(0.05 / 110 / 2))
    assert (first.p, first.first, first.last) == (later.p, 1, 100)


def test_of_few_responses_nothing_is_said_about_a_drift() -> None:
    few, many = make_rows([False] * 7), make_rows([False] * 40)
    for reference, rows, is_small in ((many, few, True), (few, many, True), (many, many, False)):
        drift = compare_with_reference(reference, rows, "old", alert_rate=0.05, look_size=500)
        assert drift is not None
        assert drift.is_small is is_small
        assert not drift.alerts


def test_drift_needs_verdicts_on_both_sides() -> None:
    rows = make_rows([True, False])
    assert compare_with_reference([], rows, "r", alert_rate=0.05, look_size=10) is None
    built = report(
        observe([make_score(0.9)] * 3), reference=Reference(observe([make_score(None)]), "old.jsonl", 0.05, 10)
    )
    assert built.drift is None
    assert "cannot be compared" in built.notes[-1]


def test_other_quantities_of_the_reference_are_a_shift() -> None:
    rng = np.random.default_rng(5)

    def observed(long: bool) -> Observations:
        texts = [" ".join(["Elvis"] * (int(n) + 1 + 20 * long)) for n in rng.integers(0, 15, 400)]
        return observe([make_score(value) for value in rng.random(400)], texts)

    changed = report(observed(True), reference=Reference(observed(False), "old.jsonl", 0.05, 100)).drift
    same = report(observed(False), reference=Reference(observed(False), "old.jsonl", 0.05, 100)).drift
    assert changed is not None
    assert same is not None
    assert {shift.quantity: shift.band for shift in changed.shifts}["length in words"] == "different"
    assert {shift.band for shift in same.shifts} == {"alike"}
    assert len(same.looks) == 4


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-22T12:00:00Z",
        "2026-11-22T13:00:00+01:00",
        "2026-11-22 12:00",
        1795348800,
        1795348800.0,
        1795348800000,
        datetime(2026, 11, 22, 12),
        datetime(2026, 11, 22, 12, tzinfo=UTC),
    ],
)
def test_times_are_read_in_any_form(value: Any) -> None:
    assert read_time(value) == datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_other_times() -> None:
    assert read_time(None) is None
    assert read_time("") is None
    assert read_time(date(2026, 11, 22)) == datetime(2026, 11, 22, tzinfo=UTC)
    for value in ("yesterday", True, [1], 1e300, float("nan")):
        with pytest.raises(InvalidRequest, match=r"time is .*allowed are ISO 8601"):
            read_time(value)


def test_a_report_is_read_back() -> None:
    texts = [f"Elvis was born in {'1935' if index % 3 else '1936'}." for index in range(60)]
    scores = [make_score(index / 60) for index in range(60)]
    rows = [{"time": 1795348800 + 3600 * index, "system": f"s{index % 2}"} for index in range(60)]
    built = report(observe(scores, texts, rows), reference=Reference(observe(scores), "old.jsonl", 0.05, 20))
    assert TrafficReport.from_json(built.to_json()) == built
    assert (built.first_time, built.last_time) == ("2026-11-22T12:00:00Z", "2026-11-24T23:00:00Z")
    assert {group.factor for group in built.groups} >= {"term", "time"}
    assert sum(built.probabilities.now) == 60
