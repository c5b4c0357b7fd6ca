"""Detectors: classifiers of (knowledge, response) that say consistent or not.

One implementation for all of them: the ALBERT models of VitaminC, FactCC, FaithCritic, BERT on Conv-FEVER, MiniCheck,
and any other checkpoint whose labels are known. What differs, the pair order, the labels that mean "consistent",
whether the whole response or each sentence is judged, stands in the bundle.
"""

from __future__ import annotations

from functools import partial

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import DetectorExplanation
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Request
from groundwire.runtime.calls import Classify
from groundwire.runtime.protocol import RoleInfo

from .base import Metric
from .claims import VERIFIABILITY, around, claims, classified_span, coverage, joined, marked, nothing_to_verify

PREFIX = "detector."


def detector(request: Request, options: Options, role: str, info: RoleInfo) -> Steps[MetricResult]:
    """The probability, 0–1, that the response (or its worst sentence) is consistent with the knowledge."""
    settings = options.detector
    unit = settings.unit or info.unit
    found = yield from claims(request, options)
    if not found:
        return nothing_to_verify(role)
    whole = [(around(found), joined(request, found))]
    each = [((sentence.start, sentence.end), sentence.text) for sentence in found]
    main = each if unit == "sentence" else whole
    also = each if settings.sentences and unit == "response" and len(each) > 1 else []
    answers = yield [Classify(role, request.knowledge, text) for _, text in (*main, *also)]
    ranges = [classified_span(place, answer) for (place, _), answer in zip((*main, *also), answers, strict=True)]
    scored, others = tuple(ranges[: len(main)]), tuple(ranges[len(main) :])
    consistent = all(one.label in info.supported for one in scored)
    wrong = [one for one in others or scored if one.label not in info.supported]
    return MetricResult(
        role,
        "scored",
        min(one.supported for one in scored),
        explanation=DetectorExplanation("consistent" if consistent else "inconsistent", scored, others),
        unsupported=tuple(marked(request, one, "detected", role) for one in wrong),
        coverage=coverage(answers),
    )


def metric(role: str, info: RoleInfo) -> Metric:
    """The metric of a bundle's detector role."""
    return Metric(role, role.removeprefix(PREFIX), frozenset({role}), partial(detector, role=role, info=info))


def roles(names: frozenset[str]) -> list[str]:
    """The roles among ``names`` that are detectors of consistency."""
    return sorted(name for name in names if name.startswith(PREFIX) and name != VERIFIABILITY)
