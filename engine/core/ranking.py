"""Orders candidate responses to one turn by a metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundwire.runtime.arguments import check_sequence
from groundwire.runtime.errors import InvalidRequest

from ..scheduling.jobs import Finished
from ..schema.options import Options
from ..schema.results import MetricResult, Ranked, Request
from ..schema.validation import make_request
from .core import Core, results_of
from .pending import Pending, Procedure
from .plan import Plan


def start_ranking(
    core: Core,
    candidates: Sequence[str],
    knowledge: Any,
    history: Any,
    triples: Any,
    metric: str,
    options: Options | None,
) -> Pending[tuple[Ranked, ...]]:
    """Start one job about all candidates; see ``Engine.rank``."""
    candidates = check_sequence("candidates", candidates, "a list of responses")
    if not candidates:
        raise InvalidRequest("candidates is empty; pass a list of responses.")
    plan = core.plan((metric,), options)
    requests = [make_request(candidate, knowledge, history, plan.options, triples) for candidate in candidates]
    if len(plan.metrics) > 1:
        raise InvalidRequest(f"metric={metric!r} is a group; rank by one of {', '.join(plan.names)}.")
    return core.drive(_rank(core, candidates, requests, plan), on_threads=False)


def _rank(
    core: Core, candidates: Sequence[str], requests: Sequence[Request], plan: Plan
) -> Procedure[tuple[Ranked, ...]]:
    finished: Finished[MetricResult] = yield core.start(requests, plan)
    results = results_of(plan.metrics * len(candidates), finished.outcomes)
    ranked = [Ranked(*candidate) for candidate in zip(candidates, range(len(candidates)), results, strict=True)]
    return tuple(sorted(ranked, key=lambda item: (item.result.value is None, -(item.result.value or 0.0))))
