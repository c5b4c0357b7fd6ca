"""Q²: ask questions about the response, answer them from the knowledge, compare the answers.

Source: Honovich et al. 2021, "Q²: Evaluating Factual Consistency in Knowledge-Grounded Dialogues via Question
Generation and Question Answering"; where paper and authors' code differ, the code. The file reads in the order of the
data: response → spans → questions → answers from the response → answers from the knowledge → comparisons → score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import Comparison, Q2Explanation
from groundwire.engine.schema.options import Options, Q2Options
from groundwire.engine.schema.results import MetricResult, Request, UnsupportedSpan
from groundwire.engine.text.sentences import Sentence
from groundwire.runtime import _native
from groundwire.runtime.calls import (
    Answer,
    Answered,
    Classified,
    Classify,
    FindSpans,
    GeneratedQuestion,
    GenerateQuestions,
    IsPersonal,
    TextSpan,
)
from groundwire.runtime.errors import InvalidRequest

from .base import Metric
from .claims import claims, joined, nothing_to_verify, within

LABEL_VALUE = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}
"""Value of the end-to-end label when no question is valid (§5.1 and the authors' code)."""
SUPPORTED = 0.5
"""A span whose questions score below this on average is reported as unsupported."""

Verdict = Literal["", "personal", "no_answer_in_response", "other_answer_in_response"]


class Question(NamedTuple):
    """A generated question about a span, and why it was discarded ("" when it was kept)."""

    span: TextSpan
    rank: int
    text: str
    response_answer: str
    discarded: Verdict


def q2(request: Request, options: Options, name: str = "q2", nli: bool = True) -> Steps[MetricResult]:
    """Score a request by Q²: the mean over valid questions of how well the knowledge's answers match, 0–1."""
    settings = options.q2
    judged = yield from claims(request, options)
    if not judged:
        return nothing_to_verify(name)
    spans = yield from informative_spans(request, settings.spans, judged)
    beams = yield [GenerateQuestions(span.text, request.response, settings.decoding) for span in spans]
    questions = yield from ask_response(request, spans, beams, settings)
    kept = [question for question in questions if not question.discarded]
    if not kept:
        return (yield from end_to_end(request, joined(request, judged), settings, name, spans, questions))
    answers = yield [Answer(question.text, request.knowledge, settings.rule) for question in kept]
    labels = yield from compare(kept, answers, settings.nli and nli)
    return fold(name, spans, questions, answers, labels)


def informative_spans(
    request: Request, given: Sequence[tuple[int, int]] | None, judged: Sequence[Sentence]
) -> Steps[tuple[TextSpan, ...]]:
    """Named entities and noun phrases of the sentences to judge, or the caller's own ranges."""
    if given is None:
        (spans,) = yield [FindSpans(request.response)]
        return within(spans, judged)
    length = len(request.response)
    for start, end in given:
        if not 0 <= start < end <= length:
            raise InvalidRequest(
                f"Q2Options.spans has ({start}, {end}); a range must satisfy 0 <= start < end <= {length}, "
                "the length of the response in characters."
            )
    return tuple(TextSpan(request.response[start:end], start, end) for start, end in given)


def ask_response(
    request: Request, spans: Sequence[TextSpan], beams: Sequence[tuple[GeneratedQuestion, ...]], settings: Q2Options
) -> Steps[list[Question]]:
    """Ask the response its own questions; a question is valid when the answer is the span it was made for.

    With ``single``, questions of a span are asked in beam order until one is valid, ``questions_at_once`` per wave; the
    others are never asked.
    """
    step = settings.questions_at_once if settings.questions == "single" else max(map(len, beams), default=1)
    found: list[list[Question]] = [[] for _ in spans]
    waiting = [i for i, generated in enumerate(beams) if generated]
    while waiting:
        batch = [
            (i, rank, beams[i][rank].text)
            for i in waiting
            for rank in range(len(found[i]), min(len(found[i]) + step, len(beams[i])))
        ]
        asked = [Answer(text, (request.response,), settings.rule) for _, _, text in batch]
        filtered = [IsPersonal(text) for _, _, text in batch] if settings.personal_filter else []
        results = yield [*asked, *filtered]
        answers, personal = results[: len(batch)], results[len(batch) :] or [False] * len(batch)
        for (i, rank, text), answer, about_speakers in zip(batch, answers, personal, strict=True):
            found[i].append(Question(spans[i], rank, text, answer.text, judge(spans[i], answer, about_speakers)))
        waiting = [i for i in waiting if len(found[i]) < len(beams[i]) and not _settled(found[i], settings)]
    if settings.questions == "single":
        found = [_until_valid(questions) for questions in found]
    return [question for questions in found for question in questions]


def judge(span: TextSpan, answer: Answered, personal: bool) -> Verdict:
    """Why a question is discarded; "" when it is valid."""
    if personal:
        return "personal"
    if answer.status != "answered":
        return "no_answer_in_response"
    return "" if _native.exact_match(answer.text, span.text) else "other_answer_in_response"


def compare(kept: Sequence[Question], answers: Sequence[Answered], nli: bool) -> Steps[list[Classified | None]]:
    """Inference labels for the answers that are there but are not word for word the span; None where not needed."""
    unequal = [
        nli and answer.text != "" and _native.token_f1(answer.text, question.span.text) < 1
        for question, answer in zip(kept, answers, strict=True)
    ]
    labels = yield [
        Classify("nli", (f"{question.text} {answer.text}.",), f"{question.text} {question.span.text}.")
        for question, answer, asked in zip(kept, answers, unequal, strict=True)
        if asked
    ]
    remaining = iter(labels)
    return [next(remaining) if asked else None for asked in unequal]


def fold(
    name: str,
    spans: Sequence[TextSpan],
    questions: Sequence[Question],
    answers: Sequence[Answered],
    labels: Sequence[Classified | None],
) -> MetricResult:
    """The score and its explanation, from what the stages found."""
    found = iter(zip(answers, labels, strict=True))
    comparisons = tuple(
        _discarded(question) if question.discarded else _compared(question, *next(found)) for question in questions
    )
    values = [comparison.value for comparison in comparisons if comparison.value is not None]
    return MetricResult(
        name,
        "scored",
        sum(values) / len(values),
        explanation=Q2Explanation(tuple(spans), comparisons),
        unsupported=unsupported(name, comparisons),
        coverage=min(answer.read.characters / answer.read.total for answer in answers),
    )


def unsupported(name: str, comparisons: Sequence[Comparison]) -> tuple[UnsupportedSpan, ...]:
    """Spans whose questions score below 0.5 on average, each with its lowest comparison as the reason."""
    by_span: dict[TextSpan, list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.value is not None:
            by_span.setdefault(comparison.span, []).append(comparison)
    out = []
    for span, group in sorted(by_span.items(), key=lambda item: item[0].start):
        worst = min(group, key=lambda comparison: comparison.value or 0.0)
        if sum(comparison.value or 0.0 for comparison in group) / len(group) < SUPPORTED:
            reason: Literal["no_answer", "contradiction", "mismatch"] = "mismatch"
            if worst.knowledge_answer is None:
                reason = "no_answer"
            elif worst.nli == "contradiction":
                reason = "contradiction"
            says = worst.knowledge_answer or ""
            out.append(UnsupportedSpan(span.text, span.start, span.end, reason, says, name))
    return tuple(out)


def end_to_end(
    request: Request,
    text: str,
    settings: Q2Options,
    name: str,
    spans: Sequence[TextSpan],
    questions: Sequence[Question],
) -> Steps[MetricResult]:
    """Without a valid question: classify the whole ``text`` against the knowledge, both lower-cased."""
    comparisons = tuple(map(_discarded, questions))
    if not settings.fallback:
        message = "No valid question could be asked about the response; turn the fallback on to classify it as a whole."
        return MetricResult(
            name, "nothing_to_verify", message=message, explanation=Q2Explanation(tuple(spans), comparisons)
        )
    premises = tuple(passage.lower() for passage in request.knowledge)
    (found,) = yield [Classify("nli", premises, text.lower())]
    return MetricResult(
        name,
        "scored",
        LABEL_VALUE[found.label],
        explanation=Q2Explanation(tuple(spans), comparisons, found.label, found.probabilities),
        coverage=found.read.characters / found.read.total,
    )


def _settled(questions: Sequence[Question], settings: Q2Options) -> bool:
    return settings.questions == "single" and any(not question.discarded for question in questions)


def _until_valid(questions: list[Question]) -> list[Question]:
    # Asking several at once must not change what is kept or explained.
    valid = next((i for i, question in enumerate(questions) if not question.discarded), len(questions))
    return questions[: valid + 1]


def _discarded(question: Question) -> Comparison:
    return Comparison(question.span, question.text, question.rank, False, question.discarded, question.response_answer)


def _compared(question: Question, answer: Answered, label: Classified | None) -> Comparison:
    f1 = _native.token_f1(answer.text, question.span.text)
    decided = {"entailment": 1.0, "contradiction": 0.0}
    return Comparison(
        question.span,
        question.text,
        question.rank,
        True,
        "",
        question.response_answer,
        answer.text or None,
        f1,
        label.label if label else None,
        label.probabilities if label else None,
        decided.get(label.label, f1) if label else f1,
    )


METRICS = (
    Metric("q2", "Q²", frozenset({"spans", "qg", "qa", "nli"}), q2),
    Metric(
        "q2_no_nli", "Q² w/o NLI", frozenset({"spans", "qg", "qa", "nli"}), partial(q2, name="q2_no_nli", nli=False)
    ),
)
