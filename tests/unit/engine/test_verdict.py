"""The verdict: fused, calibrated, and unknown when a needed value is missing."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, InvalidRequest, LoadOptions, MetricResult, Options, Request, UnsupportedSpan
from groundwire.engine.verdict.fusion import (
    decide_metrics,
    find_feature,
    find_scale,
    sigmoid,
)
from groundwire.runtime.bundles.calibration import MAX_LOGIT, Calibration, Feature, Fusion, Scale
from groundwire.runtime.errors import BundleError
from tests.support.fakes import world
from tests.support.verdicts import bind, decide, fold, make_profile

PROFILES = {
    "strict": make_profile(0.8, 0.3, 0.05),
    "balanced": make_profile(0.5, 0.15, 0.15),
    "lenient": make_profile(0.2, 0.05, 0.3),
}
FULL = Fusion(
    name="full",
    metrics=("q2", "overlap"),
    intercept=0.5,
    features=(
        Feature(name="q2", mean=0.5, deviation=0.25, weight=1.0, needed=True),
        Feature(name="overlap.missing", mean=2.0, deviation=2.0, weight=-0.5),
    ),
    profiles=PROFILES,  # type: ignore[arg-type]
)
CALIBRATION = Calibration(fitted_on=("dev",), rows=100, fusions=(FULL,), scales={})


def make_results(**values: float) -> dict[str, MetricResult]:
    return {name: MetricResult(name, "scored", value) for name, value in values.items()}


def with_probability() -> Calibration:
    """A calibration that reads one probability."""
    feature = Feature(name="token_classifier", mean=1.0, deviation=2.0, weight=0.5, needed=True, logit=True)
    return msgspec.structs.replace(CALIBRATION, fusions=(msgspec.structs.replace(FULL, features=(feature,)),))


@pytest.mark.parametrize(
    ("value", "profile", "label"),
    [
        (1.0, "strict", "consistent"),
        (0.5, "strict", "inconsistent"),
        (0.5, "balanced", "consistent"),
        (0.25, "balanced", "inconsistent"),
        (0.25, "lenient", "consistent"),
        (0.0, "lenient", "inconsistent"),
    ],
)
def test_the_profile_sets_the_threshold(value: float, profile: str, label: str) -> None:
    verdict = decide(make_results(q2=value), CALIBRATION, profile)  # type: ignore[arg-type]
    assert verdict.label == label
    assert verdict.probability == pytest.approx(1 / (1 + math.exp(-(0.5 + (value - 0.5) / 0.25))))
    assert verdict.contributions == {"q2": pytest.approx((value - 0.5) / 0.25)}


@pytest.mark.parametrize(
    ("value", "logit"), [(0.5, 0.0), (0.8, math.log(4)), (0.0, -MAX_LOGIT), (1.0, MAX_LOGIT), (1e-9, -MAX_LOGIT)]
)
def test_of_a_probability_the_logit_counts_within_bounds(value: float, logit: float) -> None:
    verdict = decide(make_results(token_classifier=value), with_probability(), "balanced")
    assert verdict.contributions == {"token_classifier": pytest.approx(0.5 * (logit - 1.0) / 2.0)}


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf])
def test_what_is_no_probability_gives_no_verdict(value: float) -> None:
    assert decide(make_results(token_classifier=value), with_probability(), "balanced").label == "unknown"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_gives_no_verdict(value: float) -> None:
    verdict = decide(make_results(q2=value), CALIBRATION, "balanced")
    assert (verdict.label, verdict.probability) == ("unknown", None)
    assert "finite" in verdict.message


@pytest.mark.parametrize("status", ["failed", "truncated", "deadline", "nothing_to_verify", "cancelled"])
def test_without_the_value_of_a_needed_metric_the_verdict_is_unknown(status: str) -> None:
    results = {"q2": MetricResult("q2", status, message="why not")} | make_results(overlap=1.0)  # type: ignore[arg-type]
    verdict = decide(results, CALIBRATION, "balanced")
    assert (verdict.label, verdict.probability) == ("unknown", None)
    assert "why not" in verdict.message


def test_without_calibration_or_needed_metric_the_verdict_is_unknown() -> None:
    assert decide(make_results(q2=1.0), None, "balanced").label == "unknown"
    verdict = decide(make_results(overlap=1.0), CALIBRATION, "balanced")
    assert (verdict.label, verdict.probability) == ("unknown", None)
    assert "needs the metric q2: name it too" in verdict.message


def test_a_response_below_the_verifiability_threshold_is_unverifiable() -> None:
    doubtful = make_results(q2=0.0, verifiability=0.2)
    assert decide(doubtful, CALIBRATION, "balanced").label == "unverifiable"
    assert decide(make_results(q2=0.0, verifiability=0.9), CALIBRATION, "balanced").label == "inconsistent"
    never = msgspec.structs.replace(CALIBRATION, verifiable=None)
    assert decide(doubtful, never, "balanced").label == "inconsistent"


def test_the_verdict_unverifiable_needs_no_other_metric() -> None:
    verdict = decide(make_results(verifiability=0.4), CALIBRATION, "balanced")
    assert (verdict.label, verdict.probability) == ("unverifiable", None)
    assert decide(make_results(verifiability=0.6), CALIBRATION, "balanced").label == "unknown"


@pytest.mark.parametrize("status", ["failed", "truncated", "deadline", "cancelled"])
def test_a_response_to_texts_that_were_not_read_is_unknown_even_if_it_states_nothing(status: str) -> None:
    stopped = {"q2": MetricResult("q2", status, message="Why not.")}  # type: ignore[arg-type]
    verdict = decide(stopped | make_results(verifiability=0.1), CALIBRATION, "balanced")
    assert (verdict.label, verdict.probability) == ("unknown", None)
    assert verdict.message == f"The verdict needs the metric q2, which ended without a value ({status}): Why not."


def test_a_response_that_states_nothing_is_unverifiable_with_a_message() -> None:
    nothing = {"q2": MetricResult("q2", "nothing_to_verify", message="no words")}
    for results in (nothing, make_results(q2=0.5), {}):
        verdict = decide(results | make_results(verifiability=0.1), CALIBRATION, "balanced")
        assert verdict.label == "unverifiable"
        assert verdict.message == "The response states nothing that knowledge could confirm."


def test_the_message_names_metrics_and_no_features() -> None:
    names = ("nli.expected", "nli.worst", "detector.consistency", "q2")
    features = tuple(Feature(name=name, mean=0.5, deviation=0.2, weight=1.0, needed=True) for name in names)
    calibration = msgspec.structs.replace(CALIBRATION, fusions=(msgspec.structs.replace(FULL, features=features),))

    def explain(**results: MetricResult) -> str:
        named = {result.name: result for result in results.values()}
        return decide(named | make_results(overlap=1.0), calibration, "balanced").message

    assert explain() == (
        "The verdict needs the metrics nli, detector.consistency and q2: name them too, or the group default, or leave "
        "metrics out."
    )
    nli = MetricResult("nli", "deadline", message="Late.")
    assert explain(nli=nli) == "The verdict needs the metric nli, which ended without a value (deadline): Late."
    q2 = MetricResult("q2", "failed", message="Broken.")
    both = "The verdict needs the metric nli, which ended without a value (deadline), as q2 did: Late."
    assert explain(nli=nli, q2=q2) == both
    scored = MetricResult("nli", "scored", 1.0)
    assert explain(nli=scored, q2=q2) == (
        "The verdict needs the metric q2, which ended without a value (failed): Broken."
    )
    assert explain(nli=scored) == (
        "The verdict needs more of the metric nli than its value; leave its options at their defaults."
    )


def test_the_engine_computes_the_metrics_that_the_calibration_reads(tmp_path: Path) -> None:
    with Engine(world(), LoadOptions(calibration=CALIBRATION)) as engine:
        score = engine.score("Elvis was born in 1936.", "Elvis came in 1935.")
        assert list(score.metrics) == ["q2", "overlap"]
        assert score.verdict.label == "consistent"  # Half of the answers agree, and few words are missing.
        assert set(score.verdict.contributions or {}) == {"q2", "overlap.missing"}
        assert "calibration:" in score.signature
        alone = engine.score("Elvis was born in 1936.", "Elvis came in 1935.", metrics=["overlap"])
        assert alone.verdict.label == "unknown"
        with pytest.raises(InvalidRequest, match="profile"):
            engine.score("a", "b", options=Options(profile="no such"))  # type: ignore[arg-type]


def test_a_calibration_is_equal_after_saving_and_loading(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    CALIBRATION.save(path)
    assert Calibration.load(path) == CALIBRATION
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"schema": 99}))
    with pytest.raises(BundleError, match="schema 99"):
        Calibration.load(path)
    path.write_text(json.dumps(content | {"surprise": 1}))
    with pytest.raises(BundleError, match="surprise"):
        Calibration.load(path)
    with pytest.raises(BundleError, match="cannot be read"):
        Calibration.load(tmp_path / "absent.json")


SCALE = Scale(low=-2.0, high=4.0, threshold=0.5)


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_normalized_values_are_monotonic_from_0_to_1(first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert 0 <= SCALE.normalize(low) <= SCALE.normalize(high) <= 1


def test_a_scale_without_width_normalizes_to_0() -> None:
    assert msgspec.structs.replace(SCALE, high=SCALE.low).normalize(3.0) == 0.0


def test_normalization_is_linear_between_the_bounds() -> None:
    assert SCALE.normalize(1.0) == pytest.approx(0.5)


@pytest.mark.parametrize(("logit", "expected"), [(0.0, 0.5), (1000.0, 1.0), (-1000.0, 0.0), (math.log(3), 0.75)])
def test_sigmoid_is_correct_for_small_and_large_logits(logit: float, expected: float) -> None:
    assert sigmoid(logit) == pytest.approx(expected)


def test_a_response_that_states_nothing_has_no_unsupported_words() -> None:
    response = "I love Elvis"
    missing = UnsupportedSpan("Elvis", 7, 12, "not_in_knowledge", "", "q2")
    for verifiability, label, spans in ((0.9, "inconsistent", (missing,)), (0.2, "unverifiable", ())):
        results = [
            MetricResult("q2", "scored", 0.0, unsupported=(missing,)),
            MetricResult("verifiability", "scored", verifiability),
        ]
        score = fold(Request(response, ("k",)), results, CALIBRATION)
        assert score.verdict.label == label
        assert [(span.text, span.start) for span in score.unsupported] == [(s.text, s.start) for s in spans]


SCALED = msgspec.structs.replace(
    CALIBRATION, scales={"pmi": SCALE, "verifiability": Scale(low=0.0, high=1.0, threshold=0.1)}
)


@pytest.mark.parametrize(
    ("value", "decision"), [(-5.0, "inconsistent"), (0.99, "inconsistent"), (1.0, "consistent"), (9.0, "consistent")]
)
def test_a_metric_decides_by_its_threshold_in_the_calibration(value: float, decision: str) -> None:
    results = make_results(pmi=value, q2=1.0, verifiability=0.9)
    score = fold(Request("a", ("k",)), results.values(), SCALED)
    assert score.metrics["pmi"].decision == decision
    # No threshold for q2, and verifiability says nothing about consistency.
    assert {score.metrics[name].decision for name in ("q2", "verifiability")} == {None}


def test_without_value_or_calibration_a_metric_decides_nothing() -> None:
    failed = bind([MetricResult("pmi", "failed", message="why")])
    (scale,) = (find_scale(metric, SCALED) for metric, _ in failed)
    assert scale == SCALE
    assert [result.decision for _, result in decide_metrics(failed, [scale])] == [None]
    assert [result.decision for _, result in decide_metrics(bind(make_results(pmi=9.0).values()), [None])] == [None]


def test_results_of_older_versions_have_no_decision() -> None:
    assert MetricResult.from_json('{"name":"pmi","status":"scored","value":1.0}').decision is None
    assert '"decision":null' in MetricResult("pmi", "scored", 1.0).to_json()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nli", ("nli", "")),
        ("nli.contradiction", ("nli", "contradiction")),
        ("nli.unknown", ("nli", "unknown")),
        ("detector.mine", ("detector.mine", "")),
        ("detector.mine.worst", ("detector.mine", "worst")),
        ("overlap.missing", ("overlap", "missing")),
        ("unknown", ("unknown", "")),
        ("unknown.worst", ("unknown.worst", "")),
    ],
)
def test_a_feature_is_found_by_its_name(name: str, expected: tuple[str, str]) -> None:
    metric, number = find_feature(name)
    assert (metric.name, number.key) == expected
