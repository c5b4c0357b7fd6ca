"""The reader: one model that reads knowledge and response once, and labels the response, its sentences and its words.

A sentence is read within its response, so a pronoun has what it refers to. A long response is read in windows of
sentences, each with sentences before it as context (docs/metrics/reader.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from groundwire.runtime.calls import AnswerRead, ReadAnswer
from groundwire.runtime.manifest import ReaderHead

from ..scheduling.steps import Steps
from ..schema.explanations import ClassifiedSpan, FlaggedToken, ReaderExplanation, ReadWindow, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult, Request
from ..text.retrieval import KnowledgeIndex
from ..text.sentences import Sentence
from ..text.windows import WINDOW_SIZE, count_pieces, cut_text, group_texts
from .base import Details, Metric, RoleInfos, within
from .claims import describe_spans, find_claims, nothing_to_verify
from .token_classifier import join_ranges

Range: TypeAlias = tuple[int, int]
"""Characters of the response, from the first to the one after the last."""
ROLE = "reader"
CONSISTENCY, INFERENCE, VERIFIABILITY = "consistency", "nli", "verifiability"
"""The heads of whole answers."""
CONTEXT = 3
"""Sentences before a window that are read with it."""
WHOLE = 4_000
"""Characters of knowledge that are read whole: about three windows of the model. Of longer knowledge, each window of
sentences is read against an excerpt."""
EXCERPT = 480
"""Size of an excerpt in pieces (``groundwire.engine.text.windows``): about two windows of the model."""
DOUBTED = 0.5
"""Probability of support below which a sentence or a word is doubted."""


class SentenceWindow(NamedTuple):
    """Sentences that are labelled in one pass, and where the text of the pass begins."""

    start: int
    sentences: tuple[Range, ...]

    @property
    def end(self) -> int:
        """Where its text ends."""
        return self.sentences[-1][1]


def reader(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The probability, 0–1, that the response is consistent: by its least consistent window."""
    claims = yield from find_claims(request, options)
    if not claims:
        return nothing_to_verify("reader")
    windows = cut_windows(request.response, claims)
    total = sum(map(len, request.knowledge))
    passages = [request.knowledge] * len(windows)
    if total > WHOLE:
        index = KnowledgeIndex(request.knowledge)
        for _ in index.read():
            yield []
        passages = [index.find(_list_texts(request, window), EXCERPT).passages for window in windows]
    answers: list[AnswerRead] = yield [
        _make_call(request, window, of_window) for window, of_window in zip(windows, passages, strict=True)
    ]
    heads = role_info(ROLE).heads
    read = [_describe(window, answer, heads) for window, answer in zip(windows, answers, strict=True)]
    explanation = ReaderExplanation(
        tuple(of_window for of_window, _, _ in read),
        tuple(span for _, spans, _ in read for span in spans),
        tuple(token for _, _, tokens in read for token in tokens),
    )
    return MetricResult(
        "reader",
        "scored",
        min(window.consistent for window in explanation.windows),
        explanation=explanation,
        unsupported=tuple(_list_unsupported(request, explanation)),
        coverage=min(min(answer.read.characters, total) / total for answer in answers),
    )


def cut_windows(response: str, claims: Sequence[Sentence]) -> list[SentenceWindow]:
    """Windows that share no sentence, in order; a sentence longer than a window is cut at the ends of clauses."""
    parts = [
        (claim.start + start, claim.start + end)
        for claim in claims
        for start, end in (cut_text(claim.text) if count_pieces(claim.text) > WINDOW_SIZE else ((0, len(claim.text)),))
    ]
    groups = group_texts([response[start:end] for start, end in parts], context=CONTEXT)
    return [SentenceWindow(parts[group.context][0], tuple(parts[group.start : group.end])) for group in groups]


def _list_texts(request: Request, window: SentenceWindow) -> list[str]:
    return [request.response[start:end] for start, end in window.sentences]


def _make_call(request: Request, window: SentenceWindow, passages: Sequence[str]) -> ReadAnswer:
    return ReadAnswer(
        ROLE,
        tuple(passages),
        request.history,
        request.response[window.start : window.end],
        tuple((start - window.start, end - window.start) for start, end in window.sentences),
    )


def _describe(
    window: SentenceWindow, answer: AnswerRead, heads: Mapping[str, ReaderHead]
) -> tuple[ReadWindow, list[ClassifiedSpan], list[FlaggedToken]]:
    by_unit = {head.unit: head for head in heads.values()}
    labels = {
        name: dict(zip(heads[name].labels, probabilities, strict=True)) for name, probabilities in answer.heads.items()
    }
    shares = {name: _add_up(labels[name], heads[name].supported) for name in labels}
    start = window.sentences[0][0]
    of_window = ReadWindow(start, window.end, shares[CONSISTENCY], shares[VERIFIABILITY], labels[INFERENCE])
    sentence_head, token_head = by_unit["sentence"], by_unit["token"]
    spans = []
    for bounds, probabilities in zip(window.sentences, answer.sentences, strict=True):
        if not probabilities:
            continue  # characters that the model reads nothing of
        by_label = dict(zip(sentence_head.labels, probabilities, strict=True))
        spans.append(
            ClassifiedSpan(
                *bounds,
                max(by_label, key=by_label.__getitem__),
                by_label,
                _add_up(by_label, sentence_head.supported),
                _add_up(by_label, sentence_head.nothing),
            )
        )
    tokens = [
        FlaggedToken(
            token.start + window.start,
            token.end + window.start,
            1.0 - _add_up(dict(zip(token_head.labels, token.probabilities, strict=True)), token_head.supported),
        )
        for token in answer.tokens
        if token.start + window.start >= start
    ]
    return of_window, spans, tokens


def _add_up(by_label: Mapping[str, float], labels: Sequence[str]) -> float:
    return min(1.0, sum(by_label[label] for label in labels))


def _list_unsupported(request: Request, explanation: ReaderExplanation) -> Iterator[UnsupportedSpan]:
    """The doubted words of doubted sentences; of a sentence without any, the word that is doubted most."""
    for sentence in explanation.sentences:
        tokens = within(explanation.tokens, sentence.start, sentence.end)
        if sentence.supported + sentence.nothing >= DOUBTED or not tokens:
            continue
        least = min(DOUBTED, max(token.probability for token in tokens))
        for start, end in join_ranges((token.start, token.end) for token in tokens if token.probability >= least):
            yield UnsupportedSpan(request.response[start:end], start, end, "detected", "", "reader")


def _features(explanation: ReaderExplanation) -> dict[str, float]:
    return {
        **_measure_sentences(explanation.sentences, explanation.tokens),
        "entailment": min(window.inference["entailment"] for window in explanation.windows),
    }


def _measure_sentences(sentences: Sequence[ClassifiedSpan], tokens: Sequence[FlaggedToken]) -> dict[str, float]:
    """The worst sentence and word, of the sentences that state something if any does; and how verifiable they are."""
    stated = [sentence for sentence in sentences if sentence.nothing < DOUBTED] or sentences
    doubts = [token.probability for sentence in stated for token in within(tokens, sentence.start, sentence.end)]
    return {
        "worst": min((sentence.supported for sentence in stated), default=1.0),
        "token": 1.0 - max(doubts, default=0.0),
        "verifiable": max((1.0 - sentence.nothing for sentence in sentences), default=0.0),
    }


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, ReaderExplanation):
        return {}
    inside = within(result.explanation.sentences, start, end)
    if not inside:
        return {}
    numbers = _measure_sentences(inside, within(result.explanation.tokens, start, end))
    if len(result.explanation.sentences) == 1 and result.value is not None:
        return {"": result.value, **_features(result.explanation)}
    return {"": numbers["worst"], **numbers}


def _details(result: MetricResult) -> Details | None:
    return describe_spans(result.explanation.sentences) if isinstance(result.explanation, ReaderExplanation) else None


METRICS = (
    Metric(
        name="reader",
        title="Reader",
        description="a model that reads knowledge and response once and labels response, sentences and words",
        compute=reader,
        roles=frozenset({ROLE}),
        order=3,
        word_weight=1.0,
        precision=2,
        features=_features,
        part=_part,
        evidence=("", "worst", "entailment"),
        probabilities=("", "worst", "token", "entailment"),
        uninformative=("verifiable",),
        verifiability="verifiable",
        details=_details,
    ),
)
