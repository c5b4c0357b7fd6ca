"""What metrics give, as results: a metric of the caller's may give anything, and then its result is ``failed``.

Nothing that a metric says wrongly reaches a verdict, a mark or a table. The message names the metric, what it gave and
what is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from numbers import Real
from typing import Any, get_args

from ..metrics import Metric
from ..scheduling.jobs import Failure
from ..schema.explanations import REASONS, UnsupportedSpan
from ..schema.results import MetricResult, Status

ROUNDING = 1e-6
"""How far beyond its bounds a value may be: models compute in single precision."""
_STATUSES = frozenset(get_args(Status))


def results_of(
    metrics: Sequence[Metric], outcomes: Sequence[MetricResult | Failure], response: str
) -> tuple[MetricResult, ...]:
    """Return one result per metric of a response; a metric without one has a status that says why, and its message.

    Args:
        metrics: The metrics.
        outcomes: What each of them gave, in their order.
        response: The response as metrics read it.
    """
    return tuple(result_of(metric, outcome, response) for metric, outcome in zip(metrics, outcomes, strict=True))


def result_of(metric: Metric, outcome: object, response: str) -> MetricResult:
    """Return what a metric gave about a response, or the result ``failed`` that says what is wrong with it."""
    if isinstance(outcome, Failure):
        return MetricResult(metric.name, outcome.status, message=outcome.message)
    if isinstance(outcome, MetricResult) and not (problem := _find_problem(metric, outcome, response)):
        return outcome
    if not isinstance(outcome, MetricResult):
        problem = f"gave {type(outcome).__name__}; return a MetricResult"
    return MetricResult(
        metric.name, "failed", message=f"The metric {metric.name} {problem}. This is a defect of its code."
    )


def _find_problem(metric: Metric, result: MetricResult, response: str) -> str:
    """What a result says that it may not, and what is allowed; empty for nothing."""
    value: Any = result.value  # of a metric of the caller's, whatever its type says
    if result.name != metric.name:
        return f"gave a result with the name {result.name!r:.60}; name it {metric.name!r}"
    if result.status not in _STATUSES:
        return f"gave the status {result.status!r:.60}; allowed are {', '.join(get_args(Status))}"
    if result.status != "scored":  # then it has no value
        return ""
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        return f"gave {value!r:.40} as its value; give a finite number"
    if metric.bounds is not None and not metric.bounds[0] - ROUNDING <= float(value) <= metric.bounds[1] + ROUNDING:
        low, high = metric.bounds
        return f"gave the value {value:g}; its Metric.bounds are {low:g} to {high:g}, and None is for no bounds"
    return next(filter(None, (_find_problem_of_span(span, response) for span in result.unsupported)), "")


def _find_problem_of_span(span: Any, response: str) -> str:
    if not isinstance(span, UnsupportedSpan):
        return f"gave {type(span).__name__} as unsupported; give UnsupportedSpan records"
    if span.reason not in REASONS:
        return f"gave the reason {span.reason!r:.60}; allowed are {', '.join(REASONS)}"
    if not (type(span.start) is type(span.end) is int and 0 <= span.start < span.end <= len(response)):
        return (
            f"gave the characters {span.start!r:.20} to {span.end!r:.20} as unsupported; the response as it reads it "
            f"has {len(response)}"
        )
    return ""
