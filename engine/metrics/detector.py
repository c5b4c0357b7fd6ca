"""Detectors: classifiers of (knowledge, response) that say consistent or not.

One implementation for all of them: the ALBERT models of VitaminC, FactCC, FaithCritic, BERT on Conv-FEVER, MiniCheck,
any other checkpoint whose labels are known, and the language models that answer a prompt (metric ``judge``). The bundle
says what differs: the order of the pair, the labels that mean "consistent", whether the whole response or each sentence
is classified, and what the sentences' values become together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from groundwire.runtime.bundles.manifest import Aggregation
from groundwire.runtime.calls import Classify

from ..schema.explanations import DetectorExplanation
from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.retrieval import NEAR
from ..text.words import within
from .base import Details, Metric, MetricNumber, RoleInfos
from .claims import (
    VERIFIABILITY,
    ask_in_parts,
    classified_span,
    describe_spans,
    find_claims,
    join_claims,
    least_coverage,
    nothing_to_verify,
    read_claims,
    unsupported_span,
)
from .requests import ReadRequest, open_knowledge

PREFIX = "detector."


def detector(request: ReadRequest, options: Options, role_info: RoleInfos, role: str) -> Steps[MetricResult]:
    """The probability, 0–1, that the response (or its worst sentence) is consistent with the knowledge."""
    settings, info = options.detector, role_info(role)
    unit = settings.unit or info.unit
    claims = yield from find_claims(request, options)
    if not claims:
        return nothing_to_verify(role)
    evidence = yield from open_knowledge(request, NEAR)
    response = [join_claims(request, claims)._replace(start=claims[0].start, end=claims[-1].end)]
    sentences = read_claims(request, claims) or response
    main = sentences if unit == "sentence" else response
    further = sentences if settings.sentences is not False and unit == "response" and len(claims) > 1 else []
    answers = yield from ask_in_parts(
        [*main, *further], lambda reading: Classify(role, evidence.select(reading), reading.text)
    )
    worst = [min(of_reading, key=lambda answer: answer.supported or 0.0) for of_reading in answers]
    spans = [
        classified_span((reading.start, reading.end), answer)
        for reading, answer in zip((*main, *further), worst, strict=True)
    ]
    scored, others = tuple(spans[: len(main)]), tuple(spans[len(main) :])
    consistent = all(span.label in info.supported for span in scored)
    doubted, by_itself = (
        [span for span in of_unit if span.label not in info.supported] for of_unit in (scored, others)
    )
    wrong = by_itself or doubted  # a response may be doubted as a whole where no sentence is
    return MetricResult(
        role,
        "scored",
        _aggregate([span.supported for span in scored], info.aggregation),
        explanation=DetectorExplanation("consistent" if consistent else "inconsistent", scored, others),
        unsupported=tuple(unsupported_span(request, span, "detected", role) for span in wrong),
        message=evidence.message,
        coverage=evidence.share * least_coverage(list(chain.from_iterable(answers))),
    )


def _aggregate(values: Sequence[float], aggregation: Aggregation) -> float:
    return min(values) if aggregation == "min" else sum(values) / len(values)


def is_detector(name: str) -> bool:
    """Return whether a name is the role, and so the metric, of a detector of consistency.

    Args:
        name: A name such as ``detector.consistency``.
    """
    return name.startswith(PREFIX) and len(name) > len(PREFIX) and name != VERIFIABILITY


def detector_metric(role: str) -> Metric:
    """The metric of a detector's role, ``detector.NAME``: every bundle names its own."""
    return Metric(
        name=role,
        title=role.removeprefix(PREFIX),
        description="a classifier that was trained to separate consistent from inconsistent responses",
        compute=partial(detector, role=role),
        roles=frozenset({role}),
        groups=frozenset({"paper", "fast"}),
        features=_features,
        part=_part,
        reads_sentences="apart",
        numbers=tuple(MetricNumber(key, is_evidence=True, is_probability=True) for key in ("", "worst")),
        details=_details,
    )


def _features(explanation: DetectorExplanation) -> dict[str, float]:
    return {"worst": min(span.supported for span in explanation.sentences)} if explanation.sentences else {}


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, DetectorExplanation):
        return {}
    inside = within(result.explanation.sentences, start, end) or within(result.explanation.scored, start, end)
    return {"": inside[0].supported} if inside else {}


def _details(result: MetricResult) -> Details | None:
    if not isinstance(result.explanation, DetectorExplanation):
        return None
    return describe_spans((*result.explanation.scored, *result.explanation.sentences))


METRICS = (
    replace(
        detector_metric("judge"),
        title="Judge",
        description="the probability that a language model, asked whether the response is supported, answers yes",
        groups=frozenset(),
        order=103,
    ),
)
