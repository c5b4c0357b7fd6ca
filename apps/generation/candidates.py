"""Scores the candidate responses of one generation with the same metrics and ranks them.

One job scores all of them, so shared work is done once: equal calls, and for ``pmi`` the document and the history,
which the language model reads a single time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from groundwire.engine import MetricResult, Options, Plan, Request
from groundwire.engine.extend import JobResult, fold_outcomes, make_request
from groundwire.runtime.calls import Generate
from groundwire.runtime.texts.unread import is_blank

from .records import GeneratedResponse


def drop_duplicates(responses: Sequence[GeneratedResponse]) -> list[GeneratedResponse]:
    """Return the first response with each text; sampling may draw a text twice."""
    by_text: dict[str, GeneratedResponse] = {}
    for response in responses:
        by_text.setdefault(response.text, response)
    return list(by_text.values())


def make_requests(responses: Sequence[GeneratedResponse], call: Generate, options: Options) -> list[Request]:
    """Return one request for each response that has words."""
    return [
        make_request(response.text, call.knowledge, call.history, options)
        for response in responses
        if not is_blank(response.text)
    ]


def rank_responses(
    responses: Sequence[GeneratedResponse],
    requests: Sequence[Request],
    job_result: JobResult[MetricResult],
    plan: Plan,
) -> list[GeneratedResponse]:
    """Return the responses with their Scores, the most faithful first.

    ``make_requests`` made ``requests``, and ``job_result`` has their outcomes under ``plan``. The order is by the
    verdict's probability; without one by the first metric's value; without that by decoding score. Responses without a
    Score come last.
    """
    checked, waiting, outcomes = [], iter(requests), iter(job_result.outcomes)
    for response in responses:
        if not is_blank(response.text):
            of_response = tuple(itertools.islice(outcomes, len(plan.metrics)))
            score = fold_outcomes(next(waiting), of_response, job_result.timings, plan)
            response = msgspec.structs.replace(response, check=score)
        checked.append(response)
    return sorted(checked, key=_sort_key)


def _sort_key(response: GeneratedResponse) -> tuple[bool, bool, float, bool, float, int]:
    if response.check is None:
        return True, True, 0.0, True, 0.0, response.index
    probability, value = response.check.verdict.probability, response.check.value
    return False, probability is None, -(probability or 0.0), value is None, -(value or 0.0), response.index
