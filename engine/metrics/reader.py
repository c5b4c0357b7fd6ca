"""The reader: one model that reads knowledge and response once, and labels the response, its sentences and its words.

A sentence is read within its response, so a pronoun has what it refers to. A long response is read in windows of
sentences, each with sentences before it as context (docs/metrics/reader.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from groundwire.runtime.bundles.manifest import ReaderHead
from groundwire.runtime.calls import AnswerRead, ReadAnswer
from groundwire.runtime.errors import TooLong, Unreadable

from ..schema.explanations import ClassifiedSpan, FlaggedToken, ReaderExplanation, ReadWindow, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.reading import LEAST_SIZE, ReadText, count_pieces, cut_reading, group_texts
from ..text.retrieval import NEAR
from ..text.words import within
from .base import Details, Metric, MetricNumber, RoleInfos, WordEvidence
from .claims import describe_spans, find_claims, join_claims, nothing_to_verify, read_claims
from .requests import ReadRequest, SelectedKnowledge, open_knowledge
from .token_classifier import join_ranges, locate_tokens

ROLE = "reader"
CONSISTENCY, INFERENCE, VERIFIABILITY = "consistency", "nli", "verifiability"
"""The heads of whole answers."""
ANSWER_SIZE = 192
"""Size of a window of the response in units (``count_pieces``): about 140 words. The embedded reader reads as many
tokens of knowledge beside it in one pass."""
CONTEXT = 1
"""Sentences before a window that are read with it."""
DOUBTED = 0.5
"""Probability of support below which a sentence or a word is doubted."""
LEAST = 0.001
"""Probability below which a sentence weighs no more (as ``runtime.bundles.calibration.MAX_LOGIT``)."""
BETWEEN = " "
"""Between the sentences of a window."""


class AnswerWindow(NamedTuple):
    """Sentences that are read in one pass; those from ``first`` on are labelled, and those before them are context."""

    readings: tuple[ReadText, ...]
    first: int

    @property
    def text(self) -> str:
        """What the model reads."""
        return BETWEEN.join(reading.text for reading in self.readings)

    @property
    def starts(self) -> list[int]:
        """Where each sentence begins in ``text``."""
        return list(accumulate((len(reading.text) + len(BETWEEN) for reading in self.readings[:-1]), initial=0))

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The characters of ``text`` of each sentence that is labelled."""
        pairs = zip(self.starts, self.readings, strict=True)
        return tuple((start, start + len(reading.text)) for start, reading in pairs)[self.first :]


def reader(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The probability, 0–1, that the response is consistent: by its least consistent window."""
    claims = yield from find_claims(request, options)
    if not claims:
        return nothing_to_verify("reader")
    evidence = yield from open_knowledge(request, NEAR)
    readings = read_claims(request, claims) or [join_claims(request, claims)]
    windows, answers = yield from _ask(request, readings, evidence)
    heads = role_info(ROLE).heads
    read = [_describe(window, answer, heads) for window, answer in zip(windows, answers, strict=True)]
    unread = [
        ClassifiedSpan(reading.start, reading.end, reading.stance, {reading.stance: 1.0}, 0.0, 1.0)
        for reading in request.readings
        if reading.unread
    ]
    spans = [span for _, of_window, _ in read for span in of_window]
    explanation = ReaderExplanation(
        tuple(of_window for of_window, _, _ in read),
        tuple(sorted((*spans, *unread), key=lambda span: span.start)),
        tuple(token for _, _, tokens in read for token in tokens),
    )
    return MetricResult(
        "reader",
        "scored",
        min(window.consistent for window in explanation.windows),
        explanation=explanation,
        unsupported=tuple(_list_unsupported(request, explanation)),
        message=evidence.message,
        coverage=evidence.share * min(answer.read.share for answer in answers),
    )


def _ask(
    request: ReadRequest, readings: Sequence[ReadText], evidence: SelectedKnowledge
) -> Steps[tuple[list[AnswerWindow], list[AnswerRead]]]:
    """Ask about all windows, and about smaller ones where the model cannot read one."""
    size = ANSWER_SIZE
    while True:
        windows = cut_windows(readings, size)
        try:
            answers = yield [
                ReadAnswer(ROLE, evidence.select_for(window.text), request.history, window.text, window.ranges)
                for window in windows
            ]
        except TooLong as error:
            if isinstance(error, Unreadable) or size == LEAST_SIZE:
                raise
            size = max(size // 2, LEAST_SIZE)
        else:
            return windows, answers


def cut_windows(readings: Sequence[ReadText], size: int = ANSWER_SIZE) -> list[AnswerWindow]:
    """Windows that label each sentence once, in order; a sentence longer than a window is cut at the ends of clauses.

    Args:
        readings: Sentences.
        size: Pieces of a window at most (``count_pieces``).
    """
    parts = [
        part
        for reading in readings
        for part in (cut_reading(reading, size) if count_pieces(reading.text) > size else [reading])
    ]
    groups = group_texts([part.text for part in parts], size, CONTEXT)
    return [AnswerWindow(tuple(parts[group.context : group.end]), group.start - group.context) for group in groups]


def _describe(
    window: AnswerWindow, answer: AnswerRead, heads: Mapping[str, ReaderHead]
) -> tuple[ReadWindow, list[ClassifiedSpan], tuple[FlaggedToken, ...]]:
    by_unit = {head.unit: head for head in heads.values()}
    labels = {
        name: dict(zip(heads[name].labels, probabilities, strict=True)) for name, probabilities in answer.heads.items()
    }
    shares = {name: _add_up(labels[name], heads[name].supported) for name in labels}
    labelled = window.readings[window.first :]
    of_window = ReadWindow(
        labelled[0].start, labelled[-1].end, shares[CONSISTENCY], shares[VERIFIABILITY], labels[INFERENCE]
    )
    sentence_head, token_head = by_unit["sentence"], by_unit["token"]
    spans = []
    for reading, probabilities in zip(labelled, answer.sentences, strict=True):
        if not probabilities:
            continue  # characters that the model reads nothing of
        by_label = dict(zip(sentence_head.labels, probabilities, strict=True))
        spans.append(
            ClassifiedSpan(
                reading.start,
                reading.end,
                max(by_label, key=by_label.__getitem__),
                by_label,
                _add_up(by_label, sentence_head.supported),
                _add_up(by_label, sentence_head.nothing),
            )
        )
    flags = [
        (
            reading,
            FlaggedToken(
                token.start - start,
                token.end - start,
                1.0 - _add_up(dict(zip(token_head.labels, token.probabilities, strict=True)), token_head.supported),
            ),
        )
        for reading, (start, end) in zip(labelled, window.ranges, strict=True)
        for token in within(answer.tokens, start, end)
    ]
    return of_window, spans, locate_tokens(flags)


def consistency(answer: AnswerRead, role_info: RoleInfos) -> float:
    """The probability, 0–1, that an answer that was read is consistent as a whole."""
    head = role_info(ROLE).heads[CONSISTENCY]
    return _add_up(dict(zip(head.labels, answer.heads[CONSISTENCY], strict=True)), head.supported)


def _add_up(by_label: Mapping[str, float], labels: Sequence[str]) -> float:
    return min(1.0, sum(map(by_label.__getitem__, labels)))


def _list_unsupported(request: ReadRequest, explanation: ReaderExplanation) -> Iterator[UnsupportedSpan]:
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
    """How supported sentences are together, and their worst word, of the sentences that state something if any does;
    and how verifiable they are."""
    stated = _list_stated(sentences)
    doubts = [token.probability for sentence in stated for token in within(tokens, sentence.start, sentence.end)]
    return {
        "sentences": average_odds([sentence.supported for sentence in stated]),
        "token": 1.0 - max(doubts, default=0.0),
        "verifiable": max((1.0 - sentence.nothing for sentence in sentences), default=0.0),
    }


def _list_stated(sentences: Sequence[ClassifiedSpan]) -> Sequence[ClassifiedSpan]:
    return [sentence for sentence in sentences if sentence.nothing < DOUBTED] or sentences


def average_odds(probabilities: Sequence[float]) -> float:
    """The probability whose odds against it are the mean of the odds against each.

    One doubtful sentence weighs most, and every other one counts too, so that of two answers which differ in a single
    sentence the better one has more, whatever their worst sentence is; and the number does not fall with their number.

    >>> round(average_odds([0.9, 0.5]), 3), round(average_odds([0.9, 0.9, 0.9]), 3), average_odds([])
    (0.643, 0.9, 1.0)
    """
    if not probabilities:
        return 1.0
    odds = [1 / max(probability, LEAST) - 1 for probability in probabilities]
    return 1 / (1 + math.fsum(odds) / len(odds))


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, ReaderExplanation):
        return {}
    inside = within(result.explanation.sentences, start, end)
    if not inside:
        return {}
    numbers = _measure_sentences(inside, within(result.explanation.tokens, start, end))
    if len(result.explanation.sentences) == 1 and result.value is not None:
        return {"": result.value, **_features(result.explanation)}
    return {"": min(sentence.supported for sentence in _list_stated(inside)), **numbers}


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
        words=WordEvidence(1.0, precision=2),
        features=_features,
        part=_part,
        reads_sentences="in_response",
        numbers=(
            *(MetricNumber(key, is_evidence=True, is_probability=True) for key in ("", "sentences", "entailment")),
            MetricNumber("token", is_probability=True),
            MetricNumber("verifiable", about="verifiability"),
        ),
        details=_details,
    ),
)
