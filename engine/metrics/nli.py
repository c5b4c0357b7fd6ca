"""End-to-end inference: does the knowledge entail the response?

Source: the E2E NLI baseline of Honovich et al. 2021 (§5.1; authors' code): premise = knowledge, lower-cased, hypothesis
= response; 1, 0.5 or 0 for entailment, neutral or contradiction.
"""

from __future__ import annotations

from groundwire.runtime.calls import Classified, Classify

from ..scheduling.steps import Steps
from ..schema.explanations import NliExplanation
from ..schema.options import NliOptions, Options
from ..schema.results import MetricResult, Request
from .base import Details, Metric, RoleInfos, within
from .claims import (
    classified_span,
    describe_spans,
    find_claims,
    join_claims,
    least_coverage,
    nothing_to_verify,
    range_of,
    unsupported_span,
)

LABEL_VALUE = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}
"""What a label is worth (§5.1 of the paper, and the authors' code)."""


def nli(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """Classify the response against the knowledge: 0–1, and each sentence for the explanation."""
    settings = options.nli
    claims = yield from find_claims(request, options)
    if not claims:
        return nothing_to_verify("nli")
    text = join_claims(request, claims)
    premises = tuple(passage.lower() for passage in request.knowledge)
    parts = claims if settings.sentences and settings.direction != "backward" and len(claims) > 1 else ()
    directions = {
        "forward": Classify("nli", premises, text),
        "backward": Classify("nli", (text,), " ".join(premises)),
    }
    calls = [call for name, call in directions.items() if settings.direction in (name, "both")]
    answers = yield [*calls, *(Classify("nli", premises, sentence.text) for sentence in parts)]
    of_response, of_sentences = answers[: len(calls)], answers[len(calls) :]
    response, *reverse = (classified_span(range_of(claims), answer, expected_value(answer)) for answer in of_response)
    sentences = tuple(
        classified_span((sentence.start, sentence.end), answer, expected_value(answer))
        for sentence, answer in zip(parts, of_sentences, strict=True)
    )
    values = [label_value(answer, settings) for answer in of_response]
    # Only in the forward direction does a label say something about words of the response.
    forward = settings.direction != "backward"
    wrong = [span for span in sentences or (response,) if forward and span.label != "entailment"]
    return MetricResult(
        "nli",
        "scored",
        sum(values) / len(values),
        explanation=NliExplanation(response, reverse[0] if reverse else None, sentences),
        unsupported=tuple(
            unsupported_span(request, span, "contradiction" if span.label == "contradiction" else "not_entailed", "nli")
            for span in wrong
        ),
        coverage=least_coverage(answers),
    )


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
    inside = within((*result.explanation.sentences, result.explanation.response), start, end)
    return _features(NliExplanation(inside[0])) if inside else {}


def _details(result: MetricResult) -> Details | None:
    if not isinstance(result.explanation, NliExplanation):
        return None
    return describe_spans((result.explanation.response, *result.explanation.sentences))


METRICS = (
    Metric(
        name="nli",
        title="End-to-end NLI",
        description="whether the knowledge entails the response",
        compute=nli,
        roles=frozenset({"nli"}),
        groups=frozenset({"paper", "fast"}),
        order=3,
        features=_features,
        part=_part,
        evidence=("expected", "worst"),
        probabilities=("expected", "worst"),
        lower_is_better=("contradiction",),
        details=_details,
    ),
)
