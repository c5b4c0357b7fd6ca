"""What changes a verdict after the fusion: pure functions, in the order in which they apply.

The fusion (``decision.fuse``) adds weighted numbers up. What it cannot say is said here, one adjustment after another:
``ADJUSTMENTS`` of a text by itself, a response or one of its sentences, ``OF_RESPONSES`` of a response by its
sentences, and ``OF_SENTENCES`` of a sentence by its response. An adjustment that moves the probability has its part of
the contributions, so they always add up to the logit; the others change the label alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from msgspec.structs import replace

from ..metrics.base import BoundResult
from ..metrics.nli import NLI
from ..metrics.requests import ReadRequest
from ..metrics.values import VALUES
from ..schema.explanations import StatedValue, UnsupportedSpan, ValuesExplanation
from ..schema.results import SentenceVerdict, Verdict
from ..text.reading import may_deny
from ..text.terms import abstains, admits_ignorance, asserts, states_claim, states_terms
from ..text.words import RangeIndex, Word
from ..values.knowledge import ValueText
from ..values.tokens import NEGATIONS, iterate_tokens
from .fusion import Rule, logit, sigmoid

NO_KNOWLEDGE = "No knowledge was given, so this was not checked; give the texts that it should rest on."
NOTHING_STATED = "The response states nothing that knowledge could confirm."
UNREAD = "People may see another number in {!r} than is read here; write numbers in plain digits."
COMPARED = 50
"""Such words that are looked for in the knowledge, at most."""
UNSTATED = "It says yes or no to a question that states something, and nothing says whether that is so."
DISPROVED = VALUES.name_number("disproved")
REFUTING: Mapping[str, float] = {DISPROVED: 0.2, VALUES.name_number("replaced"): 0.11}
"""Numbers that are proof where they are above 0, with the highest probability that a sentence with one is consistent.

A contradicted value among few is four times as frequent in wrong responses as in right ones. None of 7 responses with
an absent value is right where the knowledge has another value of its kind: by the rule of succession 1 of 9."""
AMOUNTS = VALUES.name_number("amounts")
"""A number above 0 where a text states something that can be checked, whatever a classifier says of it."""
DOUBTED = (VALUES.name_number("contradicted"), VALUES.name_number("absent"))
"""Numbers above 0 where a value of a text is not supported."""
CONFIRMED, CONFIRMED_AND_DISPUTED = 0.4, 0.8
"""What supported values add to the logit where no metric doubts another word, and where some doubt words of the values
themselves: these doubts are refuted. A third of what was likeliest before the reader: enough for a right value of
another form whose sentence is just below the threshold, and more of it ranks worse (recipes/research/reader.md)."""
CONTRADICTION = NLI.name_number("contradiction")
"""The probability that the knowledge says the opposite: what it contradicts surely was stated."""
CONTRADICTED = 0.9
"""Probability of a contradiction from which a sentence stated something. Small talk beside the knowledge reaches 0.85:
"Poor birds, though." (recipes/research/measured.md)."""


class ResponseEvidence:
    """What metrics say about the words of a response, by place: made once for all of its sentences."""

    def __init__(self, request: ReadRequest, results: Sequence[BoundResult]) -> None:
        """Take the results of metrics about the whole response."""
        self._request = request
        self._scored = [bound for bound in results if bound.result.value is not None]

    @cached_property
    def doubting(self) -> list[BoundResult]:
        """The results that doubt words, but for the values'."""
        return [bound for bound in self._scored if bound.metric.words is not None and bound.metric is not VALUES]

    @cached_property
    def supported(self) -> RangeIndex[StatedValue] | None:
        """The supported values; None where values were not compared."""
        explanation = next((result.explanation for metric, result in self._scored if metric is VALUES), None)
        if not isinstance(explanation, ValuesExplanation):
            return None
        return RangeIndex(value for value in explanation.values if value.outcome in ("supported", "derived"))

    @cached_property
    def doubts(self) -> RangeIndex[UnsupportedSpan]:
        """The parts of the response that these doubt."""
        return RangeIndex(span for metric, result in self.doubting for span in metric.list_spans(result))

    @cached_property
    def content(self) -> RangeIndex[Word]:
        """The content words of the response."""
        return RangeIndex(self._request.content)


@dataclass(frozen=True)
class VerdictContext:
    """What a verdict on a text is adjusted by."""

    text: str
    """A response, or one of its sentences."""
    numbers: Mapping[str, float]
    """The numbers of metrics about it, by name."""
    rule: Rule
    silent: Verdict
    """The verdict on the text if it states nothing."""
    request: ReadRequest
    """The request whose response the text is, or is a sentence of."""
    start: int = 0
    """Start of the text in the response, in characters."""
    is_sentence: bool = False
    """Whether the text is a sentence of the response, and not the response itself."""
    evidence: ResponseEvidence | None = None
    """What the metrics that the fusion asks for say about the words of the response; None without knowledge."""
    sentences: tuple[SentenceVerdict, ...] = ()
    """The sentences of a response, as soon as they are decided; none where the response has no verdict."""
    whole: Verdict | None = None
    """The verdict on the response, as soon as it is decided."""

    @property
    def end(self) -> int:
        """End of the text in the response."""
        return self.start + len(self.text)

    @cached_property
    def doubtful(self) -> Verdict | None:
        """The verdict on the sentence that probably is the least consistent, if none is inconsistent; else None.

        The model that reads sentences in their response finds it most often: of 184 wrong twins of several sentences in
        119, where the lowest probability has it in 102.
        """
        stated = [part.verdict for part in self.sentences if part.verdict.label != "unverifiable"]
        if any(verdict.label == "inconsistent" for verdict in stated):
            return None
        rated = [verdict for verdict in stated if verdict.probability is not None]
        return min(rated, key=self._measure_support, default=None)

    def _measure_support(self, verdict: Verdict) -> tuple[float, float]:
        contributions = verdict.contributions or {}
        return sum(contributions.get(name, 0.0) for name in self.rule.weights.in_response), verdict.probability or 0.0


Adjustment: TypeAlias = Callable[[Verdict, VerdictContext], Verdict]


def adjust(verdict: Verdict, context: VerdictContext, adjustments: Sequence[Adjustment]) -> Verdict:
    """Apply adjustments one after another.

    Args:
        verdict: What the fusion says of a text.
        context: What is known about the text.
        adjustments: One of the lists of this module.

    Returns:
        The adjusted verdict, which says whether its label is sure.
    """
    for adjustment in adjustments:
        verdict = adjustment(verdict, context)
    return replace(verdict, sure=context.rule.is_sure(verdict))


def state_nothing(verdict: Verdict, context: VerdictContext) -> Verdict:
    """Call a text unverifiable that states nothing which knowledge could confirm."""
    return context.silent if states_nothing(context) else verdict


def compare_with_nothing(verdict: Verdict, context: VerdictContext) -> Verdict:
    """Say why what is stated without knowledge is unknown."""
    if context.request.knowledge or verdict.label != "unknown":
        return verdict
    return replace(verdict, threshold=None, message=NO_KNOWLEDGE)


def confirm_values(verdict: Verdict, context: VerdictContext) -> Verdict:
    """Raise the probability of a text with supported values in which no metric doubts another content word.

    A bare "no" to a value that the knowledge contradicts keeps that share of its doubt which a text with such a value
    keeps of its probability.
    """
    if verdict.probability is None or verdict.threshold is None or verdict.label == "unverifiable":
        return verdict
    if denies_contradicted(context):
        doubt = (1 - verdict.probability) * REFUTING[DISPROVED]
        return _move(verdict, context, AMOUNTS, 1 - doubt)
    added = find_confirmation(context)
    return _move(verdict, context, AMOUNTS, sigmoid(logit(verdict.probability) + added)) if added else verdict


def refute_values(verdict: Verdict, context: VerdictContext) -> Verdict:
    """Leave a text that has a number of ``REFUTING`` only that share of its probability.

    So refuted responses keep their order: thresholds can be drawn between them.
    """
    refuted_by = find_refutation(context.numbers, context.rule.weighed)
    if refuted_by is None or verdict.probability is None or verdict.threshold is None:
        return verdict
    return _move(verdict, context, refuted_by, verdict.probability * REFUTING[refuted_by])


def doubt_unread(verdict: Verdict, context: VerdictContext) -> Verdict:
    """Call a text unknown where people read more of it than the metrics do.

    It has a number for the eye which nothing here reads and which the knowledge lacks; or it says yes or no to a
    question that states something, and has no other verdict than that it states nothing.
    """
    if verdict.label in ("unknown", "inconsistent"):
        return verdict
    message = ""
    answer = context.request.bare_answer
    if verdict.label == "unverifiable" and answer is not None and answer[0] < context.end and context.start < answer[1]:
        message = UNSTATED
    unread = context.request.unread_numbers.find_overlapping(context.start, context.end)
    for count, word in enumerate(dict.fromkeys(number.text for number in unread)):
        if count == COMPARED or not any(word in passage for passage in context.request.knowledge):
            message = UNREAD.format(word)
            break
    return (
        replace(verdict, label="unknown", probability=None, contributions=None, message=message) if message else verdict
    )


def doubt_unread_sentence(verdict: Verdict, context: VerdictContext) -> Verdict:
    """``doubt_unread`` of a sentence, or of a response that is one: of several, each is doubted first."""
    is_sentence = context.is_sentence or len(context.request.sentences) == 1
    return doubt_unread(verdict, context) if is_sentence else verdict


def let_silent_sentences_decide(verdict: Verdict, context: VerdictContext) -> Verdict:
    """Call a response of sentences that state nothing unverifiable, whatever a classifier says of it as a whole."""
    if context.sentences and all(part.verdict.label == "unverifiable" for part in context.sentences):
        return replace(verdict, label="unverifiable", message=NOTHING_STATED)
    return verdict


def let_worst_sentence_decide(verdict: Verdict, context: VerdictContext) -> Verdict:
    """Replace the verdict by the worst verdict on a sentence that states something, if all sentences have a verdict.

    With a fusion that scores responses as a whole, only sentences count that a feature speaks against which counts
    nothing else, such as values that the knowledge contradicts: among many values of a response one is little.

    The bound on false positives is about responses, so it stays, as does what the response lacks.
    """
    if verdict.probability is None or any(part.verdict.label == "unknown" for part in context.sentences):
        return verdict
    verdicts = [part.verdict for part in context.sentences if part.verdict.probability is not None]
    if context.rule.fusion.whole:
        counts = [bound.feature.name for bound in context.rule.features if bound.feature.mean == 0]
        verdicts = [item for item in verdicts if any((item.contributions or {}).get(name, 0) < 0 for name in counts)]
        verdicts += [verdict] if verdicts else []
    if not verdicts:
        return verdict
    worst = min(verdicts, key=lambda item: item.probability or 0.0)
    return replace(worst, max_false_positive_rate=verdict.max_false_positive_rate, absent=verdict.absent)


def follow_response(verdict: Verdict, context: VerdictContext) -> Verdict:
    """Let sentences agree with a response that was scored as a whole.

    The doubted sentences of a consistent response have its verdict. So has the worst sentence of an inconsistent
    response, if no sentence is inconsistent by itself.
    """
    whole = context.whole
    if whole is None or not context.rule.fusion.whole:
        return verdict
    is_doubted = verdict.label == "inconsistent" if whole.label == "consistent" else verdict is context.doubtful
    if not is_doubted or whole.label not in ("consistent", "inconsistent"):
        return verdict
    return replace(whole, max_false_positive_rate=None)


ADJUSTMENTS: tuple[Adjustment, ...] = (
    state_nothing,
    compare_with_nothing,
    confirm_values,
    refute_values,
    doubt_unread_sentence,
)
"""Of a text by itself: a response, or a sentence of one, whole or streamed, with knowledge or without."""
OF_RESPONSES: tuple[Adjustment, ...] = (
    let_silent_sentences_decide,
    let_worst_sentence_decide,
    doubt_unread,
)
"""Of a response, by its sentences."""
OF_SENTENCES: tuple[Adjustment, ...] = (follow_response,)
"""Of a sentence, by its response."""


def states_nothing(context: VerdictContext) -> bool:
    """Return whether a text neither states something by its words nor, in a classifier's view, as a whole.

    What all classifiers call chat, or one of them where the text says that there is no answer, states something
    nevertheless if it has a claim, values or terms; with knowledge also by what that surely contradicts, and a sentence
    by a value that the knowledge has otherwise.
    """
    text, numbers = context.text, context.numbers
    is_chat = context.rule.is_chat(numbers, of_all=not admits_ignorance(text))
    if not context.request.knowledge:
        is_silent = is_chat or abstains(text)
        terms = states_terms(text, amounts=bool(ValueText(text).find_values()))
        return is_silent and not (terms or states_claim(text))
    if not is_chat or (context.is_sentence and find_refutation(numbers) is not None):
        return False
    if states_terms(text, amounts=numbers.get(AMOUNTS, 0) > 0) or states_claim(text):
        return False
    return not (is_contradicted(numbers) and asserts(text))


def is_contradicted(numbers: Mapping[str, float]) -> bool:
    """Return whether a model is sure that the knowledge says the opposite."""
    return numbers.get(CONTRADICTION, 0) >= CONTRADICTED


def find_refutation(numbers: Mapping[str, float], weighed: Collection[str] = ()) -> str | None:
    """Return the number of ``REFUTING`` that leaves least of a text's probability; None if it has none.

    Args:
        numbers: The numbers of a response or of a sentence, by name.
        weighed: Numbers that the fusion reads: it weighs them, so they refute nothing by themselves.
    """
    refuting = [name for name in REFUTING if numbers.get(name, 0) > 0 and name not in weighed]
    return min(refuting, key=REFUTING.__getitem__, default=None)


def find_confirmation(context: VerdictContext) -> float:
    """Return what a text's supported values add to its logit; 0 where there are none, or another word is doubted.

    A negation, or a word that calls something false, turns words that the knowledge has into what the text denies, so
    nothing speaks for it.

    Doubts are about words (``Metric.words``). The fusion has the number of a metric that doubts whole sentences.
    """
    numbers, start, end = context.numbers, context.start, context.end
    if not numbers.get(AMOUNTS) or any(numbers.get(name) for name in DOUBTED):
        return 0.0
    evidence = context.evidence
    if evidence is None or evidence.supported is None or not evidence.doubting:
        return 0.0
    if may_deny(context.text) or any(token.lower in NEGATIONS for token in iterate_tokens(context.text)):
        return 0.0
    confirmed = RangeIndex(evidence.supported.find_from(start, end))
    is_disputed = False
    for doubt in evidence.doubts.find_overlapping(start, end):
        for word in evidence.content.find_overlapping(doubt.start, doubt.end):
            if not confirmed.overlaps(word):
                return 0.0
            is_disputed = True
    return CONFIRMED_AND_DISPUTED if is_disputed else CONFIRMED


def denies_contradicted(context: VerdictContext) -> bool:
    """Return whether a text is a bare "no" to a value that the knowledge contradicts, and nothing else."""
    answer, evidence = context.request.bare_answer, context.evidence
    if not context.request.denied or answer is None or evidence is None or evidence.supported is None:
        return False
    if context.start < answer[0] or context.end > answer[1]:
        return False
    return any((value.start, value.end) == answer for value in evidence.supported.find_overlapping(*answer))


def _move(verdict: Verdict, context: VerdictContext, name: str, probability: float) -> Verdict:
    """The verdict with another probability, for the sake of a number."""
    assert verdict.probability is not None
    contributions = {**(verdict.contributions or {}), name: logit(probability) - logit(verdict.probability)}
    return replace(
        verdict,
        label=context.rule.label(probability),
        probability=probability,
        contributions=contributions,
        message="" if verdict.label == "unverifiable" else verdict.message,
    )
