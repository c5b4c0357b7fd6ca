"""Generate, then check: every candidate is scored by the same metrics, and the best of them are kept.

All of them are asked about in one job, so what they share is computed once: equal calls, and for ``pmi`` the document
and the history, which the language model reads a single time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from groundwire.engine.metrics import select
from groundwire.engine.scheduling.scheduler import Finished
from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult
from groundwire.engine.schema.validation import make_request
from groundwire.engine.verdict.score import build_score
from groundwire.runtime.calibration import Calibration
from groundwire.runtime.calls import Generate
from groundwire.runtime.protocol import Runtime

from .records import GeneratedResponse


def distinct(responses: Sequence[GeneratedResponse]) -> list[GeneratedResponse]:
    """The first of the responses with each text: what is drawn may be drawn twice."""
    found: dict[str, GeneratedResponse] = {}
    for response in responses:
        found.setdefault(response.text, response)
    return list(found.values())


def tasks(
    responses: Sequence[GeneratedResponse], call: Generate, metrics: Sequence[str], options: Options, runtime: Runtime
) -> list[tuple[str, Steps[MetricResult]]]:
    """What to ask of each response that has words: its metrics, in their order."""
    requests = [make_request(one.text, call.knowledge, call.history, options) for one in responses if one.text.strip()]
    chosen = select(metrics, runtime)
    return [(metric.name, metric.steps(request, options)) for request in requests for metric in chosen]


def ranked(
    responses: Sequence[GeneratedResponse],
    finished: Finished,
    metrics: int,
    calibration: Calibration | None,
    options: Options,
    signature: str,
) -> list[GeneratedResponse]:
    """The responses with their Scores, the most faithful first.

    ``finished`` are the results of ``tasks``, ``metrics`` how many each response has. By the verdict's probability
    where there is one, else by the first metric's value, else in the order of decoding; those without come last.
    """
    checked, at = [], 0
    for response in responses:
        if response.text.strip():
            results = finished.results[at : at + metrics]
            score = build_score(response.text, results, finished.timings, calibration, options, signature)
            response, at = msgspec.structs.replace(response, check=score), at + metrics
        checked.append(response)
    return sorted(checked, key=_place)


def _place(response: GeneratedResponse) -> tuple[bool, bool, float, bool, float, int]:
    if response.check is None:
        return True, True, 0.0, True, 0.0, response.index
    probability, value = response.check.verdict.probability, response.check.value
    return False, probability is None, -(probability or 0.0), value is None, -(value or 0.0), response.index
