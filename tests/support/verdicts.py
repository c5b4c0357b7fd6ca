"""Verdicts and scores of results that are given by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groundwire.engine import MetricResult, Request, Score, Verdict
from groundwire.engine.metrics import bind_results
from groundwire.engine.metrics.base import BoundResult
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.results import Timings
from groundwire.engine.verdict.decision import Decision, decide_again
from groundwire.engine.verdict.fusion import bind_criteria
from groundwire.engine.verdict.score import build_score
from groundwire.runtime.bundles.calibration import Calibration, Profile, ProfileName


def make_profile(
    threshold: float = 0.5,
    false_positive_rate: float = 0.1,
    false_negative_rate: float = 0.1,
    max_false_positive_rate: float | None = None,
) -> Profile:
    """A profile with these rates, whose labels are all sure."""
    return Profile(
        threshold=threshold,
        max_false_positive_rate=max_false_positive_rate,
        false_positive_rate=false_positive_rate,
        false_negative_rate=false_negative_rate,
        unverifiable_rate=0.0,
        coverage=1.0,
        risk=0.0,
        sets=1,
    )


def bind(results: Iterable[MetricResult]) -> tuple[BoundResult, ...]:
    """The results with their metrics."""
    return bind_results({result.name: result for result in results})


def decide(
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> Verdict:
    """The verdict on a text of which only the results say anything."""
    return decide_text("Well.", results, calibration, profile, max_false_positive_rate)[0]


def decide_text(
    response: str,
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName = "balanced",
    max_false_positive_rate: float | None = None,
) -> Decision:
    """The verdicts on a response to some knowledge, by stored results."""
    return decide_again(Request(response, ("Knowledge.",)), results, calibration, profile, max_false_positive_rate)


def fold(request: Request, results: Iterable[MetricResult], calibration: Calibration | None) -> Score:
    """The score of a request with these results."""
    results = list(results)
    criteria = bind_criteria([metric for metric, _ in bind(results)], calibration, "balanced")
    return build_score(ReadRequest.of(request), results, Timings(0.0, {}), criteria, "signature")
