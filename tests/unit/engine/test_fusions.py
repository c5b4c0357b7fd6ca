"""Which fusion draws the verdict, by which threshold, and what it says about numbers that it lacks."""

from __future__ import annotations

import msgspec
import pytest

from groundwire.engine import Engine, InvalidRequest, LoadOptions, MetricResult, Options
from groundwire.engine.verdict.fusion import choose_fusion
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion, HeldOut, OrderStatistics
from tests.support.fakes import world
from tests.support.verdicts import decide, make_profile


def make_fusion(name: str, features: dict[str, bool]) -> Fusion:
    """A fusion of these features, by name: whether each is needed."""
    return Fusion(
        name=name,
        metrics=tuple(dict.fromkeys(feature.partition(".")[0] for feature in features)),
        intercept=0.0,
        features=tuple(
            Feature(name=feature, mean=0.5, deviation=0.25, weight=1.0, needed=needed)
            for feature, needed in features.items()
        ),
        profiles={"balanced": make_profile(0.5, 0.24, 0.2, max_false_positive_rate=0.25)},
        held_out=HeldOut(
            consistent=OrderStatistics(count=19, values=tuple(i / 20 for i in range(1, 20))),
            inconsistent=OrderStatistics(count=2, values=(0.1, 0.3)),
        ),
    )


FULL = make_fusion("full", {"nli": True, "overlap": False, "q2": False, "q2.no_answer": False})
FAST = make_fusion("fast", {"nli": True, "overlap": False})
SLOW = make_fusion("slow", {"q2": True, "feqa": True})
CALIBRATION = Calibration(fitted_on=("dev",), rows=21, fusions=(FULL, FAST, SLOW), scales={})


def scored(*names: str, value: float = 0.5) -> dict[str, MetricResult]:
    return {name: MetricResult(name, "scored", value) for name in names}


@pytest.mark.parametrize(
    ("metrics", "name"),
    [
        (("nli", "overlap", "q2"), "full"),
        (("nli", "q2"), "full"),  # reads three of its numbers, fast one
        (("nli", "overlap"), "fast"),  # both read two, and fast misses none
        (("nli",), "fast"),
        (("nli", "overlap", "bleu"), "fast"),
        (("q2", "feqa"), "slow"),
        (("feqa",), "slow"),  # none has all that it needs; this one lacks q2 alone, and reads feqa
        ((), "fast"),
    ],
)
def test_the_fusion_that_reads_most_of_the_metrics_draws_the_verdict(metrics: tuple[str, ...], name: str) -> None:
    assert choose_fusion(CALIBRATION, metrics).name == name
    assert decide(scored(*metrics), CALIBRATION, "balanced").fusion == name


def test_a_metric_that_was_asked_for_and_stopped_is_no_reason_for_another_fusion() -> None:
    stopped = {"q2": MetricResult("q2", "truncated", message="Too long.")}
    verdict = decide(scored("nli", "overlap") | stopped, CALIBRATION, "balanced")
    assert (verdict.fusion, verdict.label, verdict.absent) == ("full", "consistent", ("q2", "q2.no_answer"))
    assert verdict.message == "The values of q2, q2.no_answer are absent and count as their means."
    assert set(verdict.contributions or {}) == {"nli", "overlap"}


def test_without_a_metric_that_failed_no_response_is_consistent() -> None:
    failed = {"q2": MetricResult("q2", "failed", message="Broken.")}
    verdict = decide(scored("nli", "overlap") | failed, CALIBRATION, "balanced")
    assert (verdict.fusion, verdict.label, verdict.probability) == ("full", "unknown", None)
    assert verdict.message == "The verdict needs the metric q2, which ended without a value (failed): Broken."
    beside = {"bleu": MetricResult("bleu", "failed", message="Broken.")}
    assert decide(scored("nli", "overlap") | beside, CALIBRATION, "balanced").label == "consistent"


def test_without_a_metric_that_failed_and_only_refutes_no_response_is_consistent() -> None:
    fusion = msgspec.structs.replace(CALIBRATION.fusions[1], metrics=("nli", "overlap", "values"))
    failed = {"values": MetricResult("values", "failed", message="Broken.")}
    calibration = msgspec.structs.replace(CALIBRATION, fusions=(fusion,))
    verdict = decide(scored("nli", "overlap") | failed, calibration, "balanced")
    assert (verdict.label, verdict.probability, verdict.absent) == ("unknown", None, ())
    assert verdict.message == "The verdict needs the metric values, which ended without a value (failed): Broken."


def test_a_verdict_says_which_numbers_it_lacks() -> None:
    verdict = decide(scored("nli"), CALIBRATION, "balanced")
    assert (verdict.absent, verdict.message) == (("overlap",), "The value of overlap is absent and counts as its mean.")
    complete = decide(scored("nli", "overlap"), CALIBRATION, "balanced")
    assert (complete.absent, complete.message) == ((), "")
    unknown = decide(scored("overlap"), CALIBRATION, "balanced")
    assert (unknown.label, unknown.fusion, unknown.absent) == ("unknown", "fast", ("nli",))


def test_a_verdict_states_its_threshold_and_its_promise() -> None:
    point = decide(scored("nli", "overlap"), CALIBRATION, "balanced")
    assert (point.profile, point.threshold, point.max_false_positive_rate) == ("balanced", 0.5, 0.25)
    # ⌊0.1 · 20⌋ = 2nd smallest of 0.05, 0.1, …
    given = decide(scored("nli", "overlap", value=0.0), CALIBRATION, "balanced", 0.1)
    assert (given.profile, given.threshold, given.max_false_positive_rate) == (None, 0.1, 0.1)
    assert (given.label, given.probability) == ("inconsistent", pytest.approx(0.018, abs=1e-3))
    assert decide({}, None, "balanced", 0.1).profile is None


def test_a_verdict_without_all_metrics_of_its_fusion_promises_nothing() -> None:
    """Unless a metric found nothing to count, as on responses of the calibration."""
    silent = {"q2": MetricResult("q2", "nothing_to_verify")}
    stopped = {"q2": MetricResult("q2", "truncated", message="Too long.")}
    for results, bound in (
        (scored("nli", "overlap") | silent, 0.25),
        (scored("nli", "overlap") | stopped, None),
        (scored("nli", "q2"), None),  # overlap was not asked for
    ):
        verdict = decide(results, CALIBRATION, "balanced")
        assert (verdict.fusion, verdict.label, verdict.threshold) == ("full", "consistent", 0.5)
        assert verdict.absent
        assert verdict.max_false_positive_rate == bound


def test_the_option_reaches_the_verdict_and_its_signature() -> None:
    calibration = msgspec.structs.replace(CALIBRATION, fusions=(FAST,))
    with Engine(world(), LoadOptions(calibration=calibration)) as engine:
        score = engine.score(
            "Elvis was born in 1936.", "Elvis came in 1935.", options=Options(max_false_positive_rate=0.1)
        )
        assert (score.verdict.threshold, score.verdict.max_false_positive_rate) == (0.1, 0.1)
        assert "max_false_positive_rate=0.1" in score.signature
        (unusable,) = engine.score_many([{"response": "a"}], options=Options(max_false_positive_rate=0.1))
        assert unusable.verdict.profile is None
        with pytest.raises(InvalidRequest, match=r"enough for 0\.05 or more"):
            engine.score("a", "b", options=Options(max_false_positive_rate=0.04))


@pytest.mark.parametrize("rate", [0.0, 0.0009, 1.0, -1, float("nan"), "0.1"])
def test_a_rate_out_of_range_is_refused(rate: object) -> None:
    with (
        Engine(world(), LoadOptions(calibration=CALIBRATION)) as engine,
        pytest.raises(InvalidRequest, match="max_false_positive_rate"),
    ):
        engine.score("a", "b", options=Options(max_false_positive_rate=rate))  # type: ignore[arg-type]


def test_a_calibration_without_a_record_promises_nothing() -> None:
    old = msgspec.structs.replace(FULL, held_out=None, distributions={})
    calibration = msgspec.structs.replace(CALIBRATION, fusions=(old,))
    assert decide(scored("nli"), calibration, "balanced").threshold == 0.5
    with (
        Engine(world(), LoadOptions(calibration=calibration)) as engine,
        pytest.raises(InvalidRequest, match="no record of held-out responses"),
    ):
        engine.score("a", "b", metrics=["nli"], options=Options(max_false_positive_rate=0.1))


def test_a_profile_that_the_fusion_lacks_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="has no profile 'strict'; it has balanced"):
        decide(scored("nli"), CALIBRATION, "strict")
