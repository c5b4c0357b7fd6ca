"""End-to-end inference: does the knowledge entail the response?

Source: the E2E NLI baseline of Honovich et al. 2021 (§5.1; authors' code): premise = knowledge, lower-cased, hypothesis
= response; 1, 0.5 or 0 for entailment, neutral or contradiction.
"""

from __future__ import annotations

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import NliExplanation
from groundwire.engine.schema.options import NliOptions, Options
from groundwire.engine.schema.results import MetricResult, Request
from groundwire.runtime.calls import Classified, Classify

from .base import Metric
from .claims import around, claims, classified_span, coverage, joined, marked, nothing_to_verify

LABEL_VALUE = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}


def nli(request: Request, options: Options) -> Steps[MetricResult]:
    """Classify the response against the knowledge: 0–1, and each sentence for the explanation."""
    settings = options.nli
    found = yield from claims(request, options)
    if not found:
        return nothing_to_verify("nli")
    text = joined(request, found)
    premises = tuple(passage.lower() for passage in request.knowledge)
    parts = found if settings.sentences and settings.direction != "backward" and len(found) > 1 else ()
    directions = {
        "forward": Classify("nli", premises, text),
        "backward": Classify("nli", (text,), " ".join(premises)),
    }
    asked = [call for name, call in directions.items() if settings.direction in (name, "both")]
    answers = yield [*asked, *(Classify("nli", premises, sentence.text) for sentence in parts)]
    whole, labels = answers[: len(asked)], answers[len(asked) :]
    about, *reverse = (classified_span(around(found), answer, expected(answer)) for answer in whole)
    each = tuple(
        classified_span((sentence.start, sentence.end), answer, expected(answer))
        for sentence, answer in zip(parts, labels, strict=True)
    )
    values = [value(answer, settings) for answer in whole]
    # Only in the forward direction does a label say something about words of the response.
    wrong = [one for one in each or (about,) if one.label != "entailment"] if settings.direction != "backward" else []
    return MetricResult(
        "nli",
        "scored",
        sum(values) / len(values),
        explanation=NliExplanation(about, reverse[0] if reverse else None, each),
        unsupported=tuple(
            marked(request, one, "contradiction" if one.label == "contradiction" else "not_entailed", "nli")
            for one in wrong
        ),
        coverage=coverage(answers),
    )


def value(answer: Classified, settings: NliOptions) -> float:
    """What one classification is worth."""
    return LABEL_VALUE[answer.label] if settings.value == "label" else expected(answer)


def expected(answer: Classified) -> float:
    """The expectation of the label's value, 0–1."""
    return min(1.0, sum(LABEL_VALUE[label] * share for label, share in answer.probabilities.items()))


METRICS = (Metric("nli", "End-to-end NLI", frozenset({"nli"}), nli),)
