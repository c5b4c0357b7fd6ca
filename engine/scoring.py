"""From a request to its score: start the metrics of a plan, and fold their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from groundwire.runtime.protocol import Runtime

from .metrics import Metric
from .plan import Plan
from .scheduling.jobs import Finished, Job, Unfinished
from .scheduling.scheduler import Scheduler
from .schema.results import MetricResult, Request, Score, Timings
from .verdict.score import build_score

ALL_QUESTIONS = 1_000
"""More than are generated about a span."""


class PendingScore(NamedTuple):
    """A request in flight."""

    job: Job[MetricResult]
    request: Request
    plan: Plan

    def build(self, finished: Finished[MetricResult]) -> Score:
        """The score, when ``job.future`` has given ``finished``."""
        return fold_outcomes(self.request, finished.outcomes, finished.timings, self.plan)


def start(
    request: Request,
    plan: Plan,
    runtime: Runtime,
    scheduler: Scheduler,
    deadline_ms: float | None = None,
    *,
    is_bulk: bool = False,
) -> PendingScore:
    """Start the metrics of one request; ``deadline_ms`` overrides that of the options.

    ``is_bulk`` puts it after the single requests of its priority.
    """
    return PendingScore(start_all([request], plan, runtime, scheduler, deadline_ms, is_bulk=is_bulk), request, plan)


def start_all(
    requests: Sequence[Request],
    plan: Plan,
    runtime: Runtime,
    scheduler: Scheduler,
    deadline_ms: float | None = None,
    *,
    is_bulk: bool = False,
) -> Job[MetricResult]:
    """Start the metrics of several requests as one job: request by request, each with the plan's metrics in order.

    ``deadline_ms`` and ``is_bulk`` are those of ``start``.
    """
    options = plan.options
    if options.q2.questions_at_once is None and scheduler.unfinished < runtime.spare_requests:
        q2 = msgspec.structs.replace(options.q2, questions_at_once=ALL_QUESTIONS)
        options = msgspec.structs.replace(options, q2=q2)
    tasks = [metric.compute(request, options, runtime.role_info) for request in requests for metric in plan.metrics]
    return scheduler.submit(
        tasks,
        options.max_windows,
        options.deadline_ms if deadline_ms is None else deadline_ms,
        options.priority,
        is_bulk=is_bulk,
        tenant=options.tenant,
        size=sum(map(_count_characters, requests)),
    )


def fold_outcomes(
    request: Request, outcomes: Sequence[MetricResult | Unfinished], timings: Timings, plan: Plan
) -> Score:
    """The score of ``request`` from one outcome per metric of the plan."""
    results = results_of(plan.metrics, outcomes)
    return build_score(request, results, timings, plan.calibration, plan.options, plan.signature)


def results_of(metrics: Sequence[Metric], outcomes: Sequence[MetricResult | Unfinished]) -> tuple[MetricResult, ...]:
    """One result per metric; a metric without one gets the status that says why, and its message."""
    return tuple(_result_of(metric, outcome) for metric, outcome in zip(metrics, outcomes, strict=True))


def _count_characters(request: Request) -> int:
    return len(request.response) + sum(map(len, (*request.knowledge, *request.history)))


def _result_of(metric: Metric, outcome: object) -> MetricResult:
    if isinstance(outcome, Unfinished):
        return MetricResult(metric.name, outcome.status, message=outcome.message)
    if not isinstance(outcome, MetricResult):
        kind = type(outcome).__name__
        return MetricResult(
            metric.name, "failed", message=f"The metric gave {kind} where a MetricResult belongs: a defect of its code."
        )
    return outcome
