"""From the outcomes of a plan's metrics to a score."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from numbers import Real
from typing import Any

from ..metrics import Metric
from ..scheduling.jobs import Unfinished
from ..schema.results import MetricResult, Request, Score, Timings
from ..verdict.score import build_score
from .plan import Plan


def fold_outcomes(
    request: Request, outcomes: Sequence[MetricResult | Unfinished], timings: Timings, plan: Plan
) -> Score:
    """Return the score of ``request`` from one outcome per metric of the plan."""
    results = results_of(plan.metrics, outcomes)
    return build_score(request, results, timings, plan.calibration, plan.options, plan.signature)


def results_of(metrics: Sequence[Metric], outcomes: Sequence[MetricResult | Unfinished]) -> tuple[MetricResult, ...]:
    """Return one result per metric; a metric without one gets the status that says why, and its message."""
    return tuple(_result_of(metric, outcome) for metric, outcome in zip(metrics, outcomes, strict=True))


def _result_of(metric: Metric, outcome: object) -> MetricResult:
    if isinstance(outcome, Unfinished):
        return MetricResult(metric.name, outcome.status, message=outcome.message)
    if not isinstance(outcome, MetricResult):
        kind = type(outcome).__name__
        return MetricResult(
            metric.name, "failed", message=f"The metric gave {kind} where a MetricResult belongs: a defect of its code."
        )
    value: Any = outcome.value  # of a metric of the caller's, whatever its type says
    if outcome.status == "scored" and (isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value)):
        return MetricResult(
            metric.name, "failed", message=f"The metric gave {value!r:.40} as its value: a defect of its code."
        )
    return outcome
