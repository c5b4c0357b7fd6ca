"""The reader: one model that reads knowledge and response once, and labels the response, its sentences and its words.

A sentence is read within its response, so a pronoun has what it refers to. A long response is read in windows of
sentences, each with sentences before it as context (docs/metrics/reader.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from groundwire.runtime.calls import AnswerRead, ReadAnswer
from groundwire.runtime.manifest import ReaderHead

from ..scheduling.steps import Steps
from ..schema.explanations import ClassifiedSpan, FlaggedToken, ReaderExplanation, ReadWindow, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult, Request
from ..text.sentences import Sentence
from .base import Details, Metric, RoleInfos, within
from .claims import describe_spans, find_claims, nothing_to_verify
from .token_classifier import join_ranges

ROLE = "reader"
CONSISTENCY, INFERENCE, VERIFIABILITY = "consistency", "nli", "verifiability"
"""The heads of whole answers."""
WINDOW_CHARACTERS, CONTEXT_CHARACTERS = 480, 240
"""Characters of the sentences that one pass labels, and of those before them: with the marks between them, less than
two thirds of the model's 320 tokens."""
WINDOW_SENTENCES = 16
"""Sentences that one pass labels."""
DOUBTED = 0.5
"""Probability of support below which a sentence or a word is doubted."""


class SentenceWindow(NamedTuple):
    """Sentences that are labelled in one pass, and where the text of the pass begins."""

    start: int
    sentences: tuple[Sentence, ...]

    @property
    def end(self) -> int:
        """Where its text ends."""
        return self.sentences[-1].end


def reader(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The probability, 0–1, that the response is consistent: by its least consistent window."""
    claims = yield from find_claims(request, options)
    if not claims:
        return nothing_to_verify("reader")
    windows = tuple(cut_windows(claims))
    answers: list[AnswerRead] = yield [_make_call(request, window) for window in windows]
    heads = role_info(ROLE).heads
    read = tuple(_describe(window, answer, heads) for window, answer in zip(windows, answers, strict=True))
    explanation = ReaderExplanation(
        tuple(part[0] for part in read),
        tuple(span for part in read for span in part[1]),
        tuple(token for part in read for token in part[2]),
    )
    return MetricResult(
        "reader",
        "scored",
        min(window.consistent for window in explanation.windows),
        explanation=explanation,
        unsupported=tuple(_list_unsupported(request, explanation)),
        coverage=min(answer.read.characters / answer.read.total for answer in answers),
    )


def cut_windows(claims: Sequence[Sentence]) -> Iterator[SentenceWindow]:
    """Windows that share no sentence, in order; a sentence longer than a window is one by itself."""
    first = 0
    while first < len(claims):
        last = first + 1
        while (
            last < len(claims)
            and last - first < WINDOW_SENTENCES
            and claims[last].end - claims[first].start <= WINDOW_CHARACTERS
        ):
            last += 1
        before = first
        while before and claims[first].start - claims[before - 1].start <= CONTEXT_CHARACTERS:
            before -= 1
        yield SentenceWindow(claims[before].start, tuple(claims[first:last]))
        first = last


def _make_call(request: Request, window: SentenceWindow) -> ReadAnswer:
    return ReadAnswer(
        ROLE,
        request.knowledge,
        request.history,
        request.response[window.start : window.end],
        tuple((sentence.start - window.start, sentence.end - window.start) for sentence in window.sentences),
    )


def _describe(
    window: SentenceWindow, answer: AnswerRead, heads: Mapping[str, ReaderHead]
) -> tuple[ReadWindow, list[ClassifiedSpan], list[FlaggedToken]]:
    by_unit = {head.unit: head for head in heads.values()}
    labels = {
        name: dict(zip(heads[name].labels, probabilities, strict=True)) for name, probabilities in answer.heads.items()
    }
    shares = {name: _add_up(labels[name], heads[name].supported) for name in labels}
    of_window = ReadWindow(
        window.sentences[0].start, window.end, shares[CONSISTENCY], shares[VERIFIABILITY], labels[INFERENCE]
    )
    sentence_head, token_head = by_unit["sentence"], by_unit["token"]
    spans = []
    for sentence, probabilities in zip(window.sentences, answer.sentences, strict=True):
        if not probabilities:
            continue  # characters that the model reads nothing of
        by_label = dict(zip(sentence_head.labels, probabilities, strict=True))
        spans.append(
            ClassifiedSpan(
                sentence.start,
                sentence.end,
                max(by_label, key=by_label.__getitem__),
                by_label,
                _add_up(by_label, (*sentence_head.supported, *sentence_head.nothing)),
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
        if token.start + window.start >= window.sentences[0].start
    ]
    return of_window, spans, tokens


def _add_up(by_label: Mapping[str, float], labels: Sequence[str]) -> float:
    return min(1.0, sum(by_label[label] for label in labels))


def _list_unsupported(request: Request, explanation: ReaderExplanation) -> Iterator[UnsupportedSpan]:
    """The doubted words of doubted sentences; of a sentence without any, the word that is doubted most."""
    for sentence in explanation.sentences:
        tokens = within(explanation.tokens, sentence.start, sentence.end)
        if sentence.supported >= DOUBTED or not tokens:
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
    """The worst sentence, the worst word, and how verifiable the most verifiable sentence is."""
    return {
        "worst": min((sentence.supported for sentence in sentences), default=1.0),
        "token": 1.0 - max((token.probability for token in tokens), default=0.0),
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
        evidence=("", "worst", "token", "entailment"),
        probabilities=("", "worst", "token", "entailment"),
        uninformative=("verifiable",),
        verifiability="verifiable",
        details=_details,
    ),
)
