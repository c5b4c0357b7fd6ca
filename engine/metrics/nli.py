"""End-to-end inference: does the knowledge entail the response?

Source: the E2E NLI baseline of Honovich et al. 2021 (§5.1; authors' code): premise = knowledge, lower-cased, hypothesis
= response; 1, 0.5 or 0 for entailment, neutral or contradiction. A response that the model cannot read at once is read
in windows of sentences, and the least supported window counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from groundwire.runtime.calls import Classified, Classify

from ..schema.explanations import NliExplanation
from ..schema.options import NliOptions, Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.reading import ReadText
from ..text.retrieval import NEAR
from ..text.words import within
from .base import Details, Metric, MetricNumber, RoleInfos
from .claims import (
    ask_in_parts,
    classified_span,
    describe_spans,
    find_claims,
    join_claims,
    least_coverage,
    nothing_to_verify,
    range_of,
    read_claims,
    unsupported_span,
)
from .requests import ReadRequest, open_knowledge

LABEL_VALUE = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}
"""What a label is worth (§5.1 of the paper, and the authors' code)."""


def nli(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """Classify the response against the knowledge: 0–1, and each sentence for the explanation."""
    settings = options.nli
    claims = yield from find_claims(request, options)
    if not claims:
        return nothing_to_verify("nli")
    whole = join_claims(request, claims)
    evidence = yield from open_knowledge(request, NEAR)
    parts = read_claims(request, claims) if settings.sentences is not False and settings.direction != "backward" else []
    parts = parts if len(claims) > 1 else []

    def ask(reading: ReadText) -> Classify:
        return Classify("nli", lower(evidence.select(reading)), reading.text)

    of_response: list[Classified] = []
    of_sentences: list[Classified] = []
    read: list[Classified] = []
    if settings.direction != "backward":
        answers = yield from ask_in_parts([whole, *parts], ask)
        read += chain.from_iterable(answers)
        forward, *of_sentences = (min(of_reading, key=expected_value) for of_reading in answers)
        of_response.append(forward)
    if settings.direction != "forward":
        of_response += yield [Classify("nli", (whole.text,), " ".join(lower(request.knowledge)))]
        read.append(of_response[-1])
    response, *reverse = (classified_span(range_of(claims), answer, expected_value(answer)) for answer in of_response)
    sentences = tuple(
        classified_span((sentence.start, sentence.end), answer, expected_value(answer))
        for sentence, answer in zip(parts, of_sentences, strict=True)
    )
    values = [label_value(answer, settings) for answer in of_response]
    # Only in the forward direction does a label say something about words of the response.
    classified = () if settings.direction == "backward" else sentences or (response,)
    wrong = [span for span in classified if span.label != "entailment"]
    return MetricResult(
        "nli",
        "scored",
        sum(values) / len(values),
        explanation=NliExplanation(response, reverse[0] if reverse else None, sentences),
        unsupported=tuple(
            unsupported_span(request, span, "contradiction" if span.label == "contradiction" else "not_entailed", "nli")
            for span in wrong
        ),
        message=evidence.message,
        coverage=evidence.share * least_coverage(read),
    )


def lower(passages: Sequence[str]) -> tuple[str, ...]:
    """Premises as the authors' code has them."""
    return tuple(passage.lower() for passage in passages)


def label_value(answer: Classified, settings: NliOptions) -> float:
    """What one classification is worth, 0–1."""
    return LABEL_VALUE[answer.label] if settings.value == "label" else expected_value(answer)


def expected_value(answer: Classified) -> float:
    """The expectation of the label's value, 0–1."""
    return min(1.0, sum(LABEL_VALUE[label] * share for label, share in answer.probabilities.items()))


def _features(explanation: NliExplanation) -> dict[str, float]:
    spans = explanation.sentences or (explanation.response,)
    return {
        "expected": explanation.response.supported,
        "entailment": explanation.response.probabilities["entailment"],
        "contradiction": explanation.response.probabilities["contradiction"],
        "worst": min(span.supported for span in spans),
    }


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, NliExplanation):
        return {}
    explanation = result.explanation
    inside = within(explanation.sentences, start, end) or within((explanation.response,), start, end)
    return _features(NliExplanation(inside[0])) if inside else {}


def _details(result: MetricResult) -> Details | None:
    if not isinstance(result.explanation, NliExplanation):
        return None
    return describe_spans((result.explanation.response, *result.explanation.sentences))


NLI = Metric(
    name="nli",
    title="End-to-end NLI",
    description="whether the knowledge entails the response",
    compute=nli,
    roles=frozenset({"nli"}),
    groups=frozenset({"paper", "fast"}),
    order=3,
    features=_features,
    part=_part,
    reads_sentences="apart",
    numbers=(
        MetricNumber("expected", is_evidence=True, is_probability=True),
        MetricNumber("worst", is_evidence=True, is_probability=True),
        MetricNumber("contradiction", is_lower_better=True),
    ),
    details=_details,
)
METRICS = (NLI,)
