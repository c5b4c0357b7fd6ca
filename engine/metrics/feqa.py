"""FeQA: questions about the response's phrases, answered from the knowledge; the mean token F1 of the answers.

Source: Durmus et al. 2020, in the form of the Neural Path Hunter paper, whose document is the history and the triples
as text. Unlike Q², every question counts, also one that the response itself does not answer.
"""

from __future__ import annotations

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import AnsweredPhrase, FeqaExplanation
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Request, UnsupportedSpan
from groundwire.runtime import _native
from groundwire.runtime.calls import Answer, GenerateQuestions

from .base import Metric
from .claims import claims, nothing_to_verify
from .q2 import informative_spans

SUPPORTED = 0.5
"""A phrase whose answer scores below this is reported as unsupported."""


def feqa(request: Request, options: Options) -> Steps[MetricResult]:
    """The mean token F1, 0–1, of the knowledge's answers with the phrases they were asked for."""
    settings = options.feqa
    decoding = settings.decoding or options.q2.decoding
    judged = yield from claims(request, options)
    if not judged:
        return nothing_to_verify("feqa")
    spans = yield from informative_spans(request, options.q2.spans, judged)
    beams = yield [GenerateQuestions(span.text, request.response, decoding) for span in spans]
    asked = [(span, beam[0].text) for span, beam in zip(spans, beams, strict=True) if beam]
    if not asked:
        return MetricResult(
            "feqa", "nothing_to_verify", message="The response has no entity or noun phrase to ask about."
        )
    answers = yield [Answer(question, request.knowledge, settings.rule) for _, question in asked]
    phrases = tuple(
        AnsweredPhrase(span, question, answer.text, _native.token_f1(answer.text, span.text))
        for (span, question), answer in zip(asked, answers, strict=True)
    )
    return MetricResult(
        "feqa",
        "scored",
        sum(phrase.f1 for phrase in phrases) / len(phrases),
        explanation=FeqaExplanation(phrases),
        unsupported=tuple(map(_unsupported, (phrase for phrase in phrases if phrase.f1 < SUPPORTED))),
        coverage=min(answer.read.characters / answer.read.total for answer in answers),
    )


def _unsupported(phrase: AnsweredPhrase) -> UnsupportedSpan:
    span, answer = phrase.span, phrase.answer
    return UnsupportedSpan(span.text, span.start, span.end, "mismatch" if answer else "no_answer", answer, "feqa")


METRICS = (Metric("feqa", "FeQA", frozenset({"spans", "qg", "qa"}), feqa),)
