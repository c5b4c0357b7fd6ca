"""Q²: ask questions about the response, answer them from the knowledge, compare the answers.

Source: Honovich et al. 2021, "Q²: Evaluating Factual Consistency in Knowledge-Grounded Dialogues via Question
Generation and Question Answering"; where paper and authors' code differ, the code. The file reads in the order of the
data: response → spans → questions → answers from the response → answers from the knowledge → comparisons → score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from groundwire.runtime.calls import (
    Answer,
    Answered,
    Classified,
    Classify,
    Decoding,
    FindSpans,
    GeneratedQuestion,
    GenerateQuestions,
    IsPersonal,
    ReadAnswer,
    TextSpan,
)
from groundwire.runtime.errors import TooLong, Unreadable

from ..schema.explanations import Comparison, PassageRange, Q2Explanation, Reason, UnsupportedSpan
from ..schema.options import Options, Q2Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..schema.validation import check_spans
from ..text.normalization import answer_f1, match_answers
from ..text.reading import LEAST_SIZE, WINDOW_SIZE, ReadText, count_pieces, cut_reading
from ..text.retrieval import NEAR
from ..text.sentences import Sentence
from .base import Cell, Details, Metric, MetricNumber, RoleInfos, WordEvidence
from .claims import ask_in_parts, find_claims, join_claims, keep_overlapping, least_coverage, nothing_to_verify
from .nli import LABEL_VALUE, expected_value, lower
from .reader import ROLE, consistency, reader
from .requests import ReadRequest, SelectedKnowledge, open_knowledge

ALL_QUESTIONS = 1_000
"""More than are generated about a span."""
SUPPORTED = 0.5
"""A span whose questions score below this on average is reported as unsupported."""

Discarded: TypeAlias = Literal["", "personal", "no_answer_in_response", "other_answer_in_response"]
"""Why a question is not kept; empty for a question that is kept."""
DISCARDED = {
    "personal": "about the speakers",
    "no_answer_in_response": "the response does not answer it",
    "other_answer_in_response": "the response answers something else",
}


class SpanQuestion(NamedTuple):
    """A generated question about a span, and why it was discarded ("" when it was kept)."""

    span: TextSpan
    rank: int
    text: str
    response_answer: str
    discarded: Discarded


def q2(
    request: ReadRequest, options: Options, role_info: RoleInfos, name: str = "q2", nli: bool = True
) -> Steps[MetricResult]:
    """Score a request by Q²: the mean over valid questions of how well the knowledge's answers match, 0–1."""
    settings = options.q2
    claims = yield from find_claims(request, options)
    if not claims:
        return nothing_to_verify(name)
    evidence = yield from open_knowledge(request)
    spans = yield from find_spans(request, settings.spans, claims)
    contexts, beams = yield from generate_questions(request, spans, settings.decoding)
    questions = yield from ask_response(contexts, spans, beams, settings)
    asked = [question for question in questions if not question.discarded]
    if not asked:
        whole = join_claims(request, claims)
        return (yield from classify_response(evidence, whole, settings, name, spans, questions))
    answers = yield [
        Answer(question.text, select_evidence(request, evidence, question.span, question.text), settings.rule)
        for question in asked
    ]
    f1s = [
        answer_f1(answer.text, question.span.text, settings.fold_accents)
        for question, answer in zip(asked, answers, strict=True)
    ]
    labels = yield from compare_answers(asked, answers, f1s, settings.nli and nli)
    result = build_result(name, spans, questions, answers, f1s, labels)
    return replace(result, message=evidence.message, coverage=evidence.share * (result.coverage or 0.0))


def q2_reader(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """Score a request by Q² with the reader beside the answers, 0–1: each question half its token F1, half its support.

    The reader says how far the knowledge supports "question span.", so that a wrong or missing answer of the QA model
    costs a question half at most. Without a valid question it reads the response as a whole.
    """
    name = "q2_reader"
    without_fallback = replace(options, q2=replace(options.q2, fallback=False))
    result = yield from q2(request, without_fallback, role_info, name, nli=False)
    explanation = result.explanation
    if not isinstance(explanation, Q2Explanation):
        return result
    asked = [comparison for comparison in explanation.questions if comparison.kept]
    if not asked:
        if not options.q2.fallback:
            return result
        whole = yield from reader(request, options, role_info)
        return replace(whole, name=name, explanation=explanation, unsupported=())
    evidence = yield from open_knowledge(request, NEAR)
    read = yield [
        ReadAnswer(
            ROLE, select_evidence(request, evidence, item.span, item.question), (), text, sentences=((0, len(text)),)
        )
        for item in asked
        for text in (f"{item.question} {item.span.text}.",)
    ]
    supported = iter([consistency(answer, role_info) for answer in read])
    comparisons = tuple(
        _add_support(comparison, next(supported)) if comparison.kept else comparison
        for comparison in explanation.questions
    )
    values = [comparison.value for comparison in comparisons if comparison.value is not None]
    return replace(
        result,
        value=sum(values) / len(values),
        explanation=replace(explanation, questions=comparisons),
        unsupported=find_unsupported(name, comparisons),
        message=evidence.message or result.message,
        coverage=min(result.coverage or 0.0, evidence.share * min(answer.read.share for answer in read)),
    )


def select_evidence(
    request: ReadRequest, evidence: SelectedKnowledge, span: TextSpan, question: str
) -> tuple[str, ...]:
    """What a question is answered from: the knowledge, or what of it the question and its span's sentence are about."""
    readings = request.readings
    sentence = next((item for item in readings if item.start <= span.start < item.end), readings[0])
    return evidence.select_for(f"{sentence.text}\n{question}")


def find_spans(
    request: ReadRequest, ranges: Sequence[tuple[int, int]] | None, claims: Sequence[Sentence]
) -> Steps[tuple[TextSpan, ...]]:
    """Named entities and noun phrases of the sentences to check, or the caller's own ranges."""
    if ranges is None:
        whole = request.whole
        (spans,) = yield [FindSpans(whole.text)]
        positions = ((span, whole.locate(span.start, span.end)) for span in spans)
        located = {
            position: TextSpan(span.text, *position, span.kind) for span, position in positions if position is not None
        }
        return keep_overlapping(tuple(located.values()), claims)
    check_spans(ranges, len(request.original.response))
    shown = [request.rendered_response.find(start, end) for start, end in ranges]
    return tuple(TextSpan(request.response[start:end], start, end) for start, end in shown if start < end)


def generate_questions(
    request: ReadRequest, spans: Sequence[TextSpan], decoding: Decoding
) -> Steps[tuple[list[str], list[tuple[GeneratedQuestion, ...]]]]:
    """The context of each span, and its questions, best first.

    The context is the response, or the window of its sentences with the span where the model cannot read it at once.
    """
    whole = request.whole
    size: int | None = None
    while True:
        parts = [whole] if size is None else cut_reading(whole, size)
        contexts = [_find_context(parts, span) for span in spans]
        calls = [GenerateQuestions(span.text, text, decoding) for span, text in zip(spans, contexts, strict=True)]
        alone = 1 if count_pieces(whole.text) > WINDOW_SIZE else 0  # what cannot be read is refused once
        try:
            first = (yield calls[:alone]) if alone else []
            return contexts, [*first, *(yield calls[alone:])]
        except TooLong as error:
            if isinstance(error, Unreadable) or size == LEAST_SIZE:
                raise
            size = WINDOW_SIZE if size is None else size // 2


def _find_context(parts: Sequence[ReadText], span: TextSpan) -> str:
    return next((part.text for part in parts if part.start <= span.start < part.end), parts[0].text)


def ask_response(
    contexts: Sequence[str],
    spans: Sequence[TextSpan],
    beams: Sequence[tuple[GeneratedQuestion, ...]],
    settings: Q2Options,
) -> Steps[list[SpanQuestion]]:
    """Ask each span's context its questions; a question is valid when the answer is the span it was made for.

    With ``single``, questions of a span are asked in beam order until one is valid, ``questions_at_once`` per
    round; the others are never asked.
    """
    most = max(map(len, beams), default=1)
    step = settings.questions_at_once or 1 if settings.questions == "single" else most
    questions: list[list[SpanQuestion]] = [[] for _ in spans]
    waiting = [i for i, generated in enumerate(beams) if generated]
    while waiting:
        batch = [
            (i, rank, beams[i][rank].text)
            for i in waiting
            for rank in range(len(questions[i]), min(len(questions[i]) + step, len(beams[i])))
        ]
        asked = [Answer(text, (contexts[i],), settings.rule) for i, _, text in batch]
        filtered = [IsPersonal(text) for _, _, text in batch] if settings.personal_filter else []
        results = yield [*asked, *filtered]
        answers, personal = results[: len(batch)], results[len(batch) :] or [False] * len(batch)
        for (i, rank, text), answer, about_speakers in zip(batch, answers, personal, strict=True):
            reason = discard_reason(spans[i], answer, about_speakers, settings.fold_accents)
            questions[i].append(SpanQuestion(spans[i], rank, text, answer.text, reason))
        waiting = [i for i in waiting if len(questions[i]) < len(beams[i]) and not _is_settled(questions[i], settings)]
    if settings.questions == "single":
        questions = [_cut_after_valid(of_span) for of_span in questions]
    return [question for of_span in questions for question in of_span]


def discard_reason(span: TextSpan, answer: Answered, personal: bool, fold_accents: bool = True) -> Discarded:
    """Why a question is discarded; "" when it is valid."""
    if personal:
        return "personal"
    if answer.status != "answered":
        return "no_answer_in_response"
    return "" if match_answers(answer.text, span.text, fold_accents) else "other_answer_in_response"


def compare_answers(
    asked: Sequence[SpanQuestion], answers: Sequence[Answered], f1s: Sequence[float], nli: bool
) -> Steps[list[Classified | None]]:
    """Inference labels for the answers that are there but are not word for word the span; None where not needed."""
    unequal = [nli and answer.text != "" and f1 < 1 for answer, f1 in zip(answers, f1s, strict=True)]
    labels = yield [
        Classify("nli", (f"{question.text} {answer.text}.",), f"{question.text} {question.span.text}.")
        for question, answer, differs in zip(asked, answers, unequal, strict=True)
        if differs
    ]
    remaining = iter(labels)
    return [next(remaining) if differs else None for differs in unequal]


def build_result(
    name: str,
    spans: Sequence[TextSpan],
    questions: Sequence[SpanQuestion],
    answers: Sequence[Answered],
    f1s: Sequence[float],
    labels: Sequence[Classified | None],
) -> MetricResult:
    """The score and its explanation, from the results of all stages."""
    answered = iter(zip(answers, f1s, labels, strict=True))
    comparisons = tuple(
        _describe_discarded(question) if question.discarded else _compare(question, *next(answered))
        for question in questions
    )
    values = [comparison.value for comparison in comparisons if comparison.value is not None]
    return MetricResult(
        name,
        "scored",
        sum(values) / len(values),
        explanation=Q2Explanation(tuple(spans), comparisons),
        unsupported=find_unsupported(name, comparisons),
        coverage=min(answer.read.share for answer in answers),
    )


def find_unsupported(name: str, comparisons: Sequence[Comparison]) -> tuple[UnsupportedSpan, ...]:
    """Spans whose questions score below 0.5 on average, each with its lowest comparison as the reason."""
    by_span: dict[TextSpan, list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.value is not None:
            by_span.setdefault(comparison.span, []).append(comparison)
    out = []
    for span, group in sorted(by_span.items(), key=lambda item: item[0].start):
        worst = min(group, key=lambda comparison: comparison.value or 0.0)
        if sum(comparison.value or 0.0 for comparison in group) / len(group) < SUPPORTED:
            reason: Reason = "mismatch"
            if worst.knowledge_answer is None:
                reason = "no_answer"
            elif worst.nli == "contradiction":
                reason = "contradiction"
            says = worst.knowledge_answer or ""
            out.append(UnsupportedSpan(span.text, span.start, span.end, reason, says, name))
    return tuple(out)


def classify_response(
    evidence: SelectedKnowledge,
    whole: ReadText,
    settings: Q2Options,
    name: str,
    spans: Sequence[TextSpan],
    questions: Sequence[SpanQuestion],
) -> Steps[MetricResult]:
    """Without a valid question: classify the ``whole`` against the knowledge, both lower-cased."""
    comparisons = tuple(map(_describe_discarded, questions))
    if not settings.fallback:
        message = "No valid question could be asked about the response; turn the fallback on to classify it as a whole."
        return MetricResult(
            name, "nothing_to_verify", message=message, explanation=Q2Explanation(tuple(spans), comparisons)
        )
    (answers,) = yield from ask_in_parts(
        [whole], lambda part: Classify("nli", lower(evidence.select(part)), part.text.lower())
    )
    answer = min(answers, key=expected_value)
    return MetricResult(
        name,
        "scored",
        LABEL_VALUE[answer.label],
        message=evidence.message,
        explanation=Q2Explanation(tuple(spans), comparisons, answer.label, answer.probabilities),
        coverage=evidence.share * least_coverage(answers),
    )


def _is_settled(questions: Sequence[SpanQuestion], settings: Q2Options) -> bool:
    return settings.questions == "single" and any(not question.discarded for question in questions)


def _cut_after_valid(questions: list[SpanQuestion]) -> list[SpanQuestion]:
    # Asking several at once must not change what is kept or explained.
    valid = next((i for i, question in enumerate(questions) if not question.discarded), len(questions))
    return questions[: valid + 1]


def _describe_discarded(question: SpanQuestion) -> Comparison:
    return Comparison(question.span, question.text, question.rank, False, question.discarded, question.response_answer)


def _compare(question: SpanQuestion, answer: Answered, f1: float, label: Classified | None) -> Comparison:
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
        value=decided.get(label.label, f1) if label else f1,
        answer_status=answer.status,
        evidence=None if answer.start < 0 else PassageRange(answer.passage, answer.start, answer.end),
    )


def _add_support(comparison: Comparison, supported: float) -> Comparison:
    return replace(comparison, supported=supported, value=((comparison.f1 or 0.0) + supported) / 2)


def _features(explanation: Q2Explanation) -> dict[str, float]:
    asked = [comparison for comparison in explanation.questions if comparison.kept]
    if not asked:
        return {"asked": 0.0}
    return {
        "asked": 1.0,
        "worst": min(comparison.value or 0.0 for comparison in asked),
        "no_answer": sum(comparison.knowledge_answer is None for comparison in asked) / len(asked),
    }


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    explanation = result.explanation
    if not isinstance(explanation, Q2Explanation):
        return {}
    asked = [
        comparison
        for comparison in explanation.questions
        if comparison.kept and start <= comparison.span.start and comparison.span.end <= end
    ]
    if not asked:  # the fallback is about the whole response
        return {}
    value = sum(comparison.value or 0.0 for comparison in asked) / len(asked)
    return {"": value, **_features(Q2Explanation((), tuple(asked)))}


def _details(result: MetricResult) -> Details | None:
    explanation = result.explanation
    if not isinstance(explanation, Q2Explanation):
        return None
    notes = []
    if explanation.fallback is not None:
        shares = ", ".join(
            f"{label} {share:.2f}" for label, share in (explanation.fallback_probabilities or {}).items()
        )
        notes.append(f"No valid question: the whole response was classified as {explanation.fallback} ({shares}).")
    for comparison in explanation.questions:
        if comparison.discarded:
            answered = f" (“{comparison.response_answer}”)" if comparison.response_answer else ""
            why = f"{DISCARDED[comparison.discarded]}{answered}"
            notes.append(f"discarded: “{comparison.question}” for “{comparison.span.text}”: {why}")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            comparison.span.text,
            comparison.question,
            comparison.knowledge_answer or "– no answer –",
            _describe_comparison(comparison),
            comparison.value or 0.0,
        )
        for comparison in explanation.questions
        if comparison.kept
    )
    return Details(("span", "question", "answer in the knowledge", "comparison", "score"), rows, tuple(notes))


def _describe_comparison(comparison: Comparison) -> str:
    if comparison.supported is not None:
        return f"supported {comparison.supported:.2f}, F1 {comparison.f1 or 0:.2f}"
    if comparison.nli is not None:
        return f"{comparison.nli}, F1 {comparison.f1 or 0:.2f}"
    return "same words" if comparison.f1 == 1 else f"F1 {comparison.f1 or 0:.2f}"


_ROLES = frozenset({"spans", "qg", "qa", "nli"})


def ask_all_at_once(options: Options) -> Options:
    """Return the options with which all questions of a span are asked in one round, unless the caller chose."""
    if options.q2.questions_at_once is not None:
        return options
    return replace(options, q2=replace(options.q2, questions_at_once=ALL_QUESTIONS))


METRICS = (
    Metric(
        name="q2",
        title="Q²",
        description="questions about the response, answered from it and from the knowledge, and the answers compared",
        compute=q2,
        roles=_ROLES,
        use_spare_time=ask_all_at_once,
        groups=frozenset({"paper"}),
        order=1,
        words=WordEvidence(1.0, precision=1, family="q2"),
        features=_features,
        part=_part,
        numbers=(
            MetricNumber(is_evidence=True),
            MetricNumber("no_answer", is_evidence=True, is_lower_better=True),
            MetricNumber("asked", about="amount"),
        ),
        details=_details,
    ),
    Metric(
        name="q2_no_nli",
        title="Q² w/o NLI",
        description="questions as Q² asks them, with the answers compared by their words alone",
        compute=partial(q2, name="q2_no_nli", nli=False),
        roles=_ROLES,
        use_spare_time=ask_all_at_once,
        groups=frozenset({"paper"}),
        order=2,
        words=WordEvidence(1.0, precision=1, family="q2"),
        features=_features,
        part=_part,
        numbers=(MetricNumber("no_answer", is_lower_better=True), MetricNumber("asked", about="amount")),
        details=_details,
    ),
    Metric(
        name="q2_reader",
        title="Q² with the reader",
        description="questions as Q² asks them, with the answers compared by their words and by the reader",
        compute=q2_reader,
        roles=frozenset({"spans", "qg", "qa", ROLE}),
        use_spare_time=ask_all_at_once,
        order=3,
        words=WordEvidence(1.0, precision=1, family="q2"),
        features=_features,
        part=_part,
        numbers=(MetricNumber("no_answer", is_lower_better=True), MetricNumber("asked", about="amount")),
        details=_details,
    ),
)
