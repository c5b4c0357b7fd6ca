"""Generate, then check: every candidate is scored by the same metrics, and the best of them are kept.

All of them are asked about in one job, so what they share is computed once: equal calls, and for ``pmi`` the document
and the history, which the language model reads a single time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from groundwire.engine.plan import Plan
from groundwire.engine.scheduling.jobs import Finished
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Request
from groundwire.engine.schema.validation import make_request
from groundwire.engine.scoring import fold_outcomes
from groundwire.runtime.calls import Generate

from .records import GeneratedResponse


def distinct(responses: Sequence[GeneratedResponse]) -> list[GeneratedResponse]:
    """The first of the responses with each text: what is drawn may be drawn twice."""
    found: dict[str, GeneratedResponse] = {}
    for response in responses:
        found.setdefault(response.text, response)
    return list(found.values())


def to_requests(responses: Sequence[GeneratedResponse], call: Generate, options: Options) -> list[Request]:
    """One request for each response that has words."""
    return [
        make_request(response.text, call.knowledge, call.history, options)
        for response in responses
        if response.text.strip()
    ]


def rank(
    responses: Sequence[GeneratedResponse], finished: Finished[MetricResult], plan: Plan
) -> list[GeneratedResponse]:
    """The responses with their Scores, the most faithful first.

    ``finished`` has the outcomes of ``to_requests`` under ``plan``. By the verdict's probability where there is one,
    else by the first metric's value, else in the order of decoding; those without come last.
    """
    checked, start = [], 0
    for response in responses:
        if response.text.strip():
            end = start + len(plan.metrics)
            score = fold_outcomes(response.text, finished.outcomes[start:end], finished.timings, plan)
            response, start = msgspec.structs.replace(response, check=score), end
        checked.append(response)
    return sorted(checked, key=_rank_key)


def _rank_key(response: GeneratedResponse) -> tuple[bool, bool, float, bool, float, int]:
    if response.check is None:
        return True, True, 0.0, True, 0.0, response.index
    probability, value = response.check.verdict.probability, response.check.value
    return False, probability is None, -(probability or 0.0), value is None, -(value or 0.0), response.index
