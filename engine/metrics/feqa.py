"""FeQA: questions about the response's phrases, answered from the knowledge; the mean token F1 of the answers.

Source: Durmus et al. 2020, in the form of the Neural Path Hunter paper, whose document is the history and the triples
as text. Unlike Q², every question counts, even if the response itself does not answer it. As in the code of Durmus
et al., noun phrases of stop words alone are not asked about, and F1 counts every word, articles too.
"""

from __future__ import annotations

from groundwire.runtime.calls import Answer, TextSpan
from groundwire.runtime.triples import linearise

from ..schema.explanations import AnsweredPhrase, FeqaExplanation, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.normalization import format_document
from ..text.words import words
from .base import Details, Metric, RoleInfos, WordEvidence
from .claims import find_claims, nothing_to_verify
from .overlap import bag_f1
from .q2 import find_spans, generate_questions
from .requests import ReadRequest

SUPPORTED = 0.5
"""A phrase whose answer scores below this is reported as unsupported."""


def feqa(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The mean token F1, 0–1, of the knowledge's answers with the phrases that the questions ask for."""
    settings = options.feqa
    decoding = settings.decoding or options.q2.decoding
    claims = yield from find_claims(request, options)
    if not claims:
        return nothing_to_verify("feqa")
    spans = yield from find_spans(request, options.q2.spans, claims)
    spans = tuple(span for span in spans if not _is_empty_phrase(span))
    _, beams = yield from generate_questions(request, spans, decoding)
    questions = [(span, beam[0].text) for span, beam in zip(spans, beams, strict=True) if beam]
    if not questions:
        return MetricResult(
            "feqa", "nothing_to_verify", message="The response has no entity or noun phrase to ask about."
        )
    passages = select_passages(request)
    answers = yield [Answer(question, passages, settings.rule) for _, question in questions]
    phrases = tuple(
        AnsweredPhrase(span, question, answer.text, compute_f1(answer.text, span.text))
        for (span, question), answer in zip(questions, answers, strict=True)
    )
    return MetricResult(
        "feqa",
        "scored",
        sum(phrase.f1 for phrase in phrases) / len(phrases),
        explanation=FeqaExplanation(phrases),
        unsupported=tuple(map(_unsupported, (phrase for phrase in phrases if phrase.f1 < SUPPORTED))),
        coverage=min(answer.read.share for answer in answers),
    )


def select_passages(request: ReadRequest) -> tuple[str, ...]:
    """What the questions are answered from: for a request with triples, any text that it has as knowledge, and the
    paper's document of history and triples; otherwise its knowledge."""
    if not request.triples:
        return request.knowledge
    texts = (passage for passage in request.knowledge if passage != linearise(request.triples))
    return (*texts, format_document(request.history, request.triples))


def compute_f1(answer: str, phrase: str) -> float:
    """Bag-of-words F1, 0–1, of an answer and a phrase; every word and punctuation mark counts, in any case.

    >>> compute_f1("The Witches", "Witches")
    0.6666666666666666
    """
    return bag_f1((word.lower for word in words(answer)), (word.lower for word in words(phrase)))


def _is_empty_phrase(span: TextSpan) -> bool:
    """Whether it is a noun phrase without a content word, such as "he" or "what"; names are always asked about."""
    return span.kind == "noun_chunk" and not any(word.content for word in words(span.text))


def _unsupported(phrase: AnsweredPhrase) -> UnsupportedSpan:
    span, answer = phrase.span, phrase.answer
    return UnsupportedSpan(span.text, span.start, span.end, "mismatch" if answer else "no_answer", answer, "feqa")


def _details(result: MetricResult) -> Details | None:
    if not isinstance(result.explanation, FeqaExplanation):
        return None
    rows = tuple(
        (phrase.span.text, phrase.question, phrase.answer or "– no answer –", phrase.f1)
        for phrase in result.explanation.phrases
    )
    return Details(("phrase", "question", "answer in the knowledge", "F1"), rows)


METRICS = (
    Metric(
        name="feqa",
        title="FeQA",
        description="questions about the response’s phrases, answered from the knowledge",
        compute=feqa,
        roles=frozenset({"spans", "qg", "qa"}),
        groups=frozenset({"paper"}),
        order=4,
        words=WordEvidence(0.5, precision=1),
        details=_details,
    ),
)
