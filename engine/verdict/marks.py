"""Fits unsupported spans to what a reader would underline: a value, a noun phrase, a negated word.

The evidence about single words ends where a model's tokens or a question's span do, so that "7" of "7 pm" is marked,
or "can" alone. Here a mark that cuts a value is extended to the whole of it, and a negation or an adverb of degree
("very") to the word that it is about. A mark ends with its line, and after a label ("Monday:"). Function words at its
ends are left out, and a mark of nothing else is given up, or moved to the unsupported value after it. A metric that is
asked alone is reported as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from groundwire.runtime.texts.characters import is_space

from ..metrics.base import BoundResult
from ..metrics.requests import ReadRequest
from ..schema.explanations import (
    FlaggedToken,
    ReaderExplanation,
    Reason,
    StatedValue,
    UnsupportedSpan,
    ValuesExplanation,
)
from ..text.normalization import FUNCTION_WORDS
from ..text.sentences import Sentence
from ..text.words import WORD, Range, RangeIndex, starting_in, within
from ..values.knowledge import ValueText
from ..values.names import fold_name
from ..values.numbers import stem
from ..values.tokens import NEGATIONS, read_table

TELLING = frozenset(
    read_table("""
    one all every each both no none nor not never neither without most many few more less same other another only once
    ever still now before after above below under over against until while during up down off out very too again
    between
""")
)
"""Function words that may be what is wrong by themselves."""
MODALS = read_table("""
    can could may might must shall should will would within per via upon onto toward towards lol yes hi hello
    though although however there's
""")
DEPENDENT = frozenset(
    read_table("""
    very too quite rather so only just even still ever never not again once now before after less more
    """)
)
"""Words that are marked together with the word after them, as negations are: "very acidic", "can't swim"."""
LIGHT = (FUNCTION_WORDS | frozenset(MODALS)) - TELLING
"""Words that do not begin or end a mark."""
SEPARATOR = re.compile(r"[^\w\s'’-]")
"""A character that ends a phrase."""
BREAK = re.compile(r"\n|[:;](?=\s)")
"""What separates a label from its item, or a line from the next; no mark goes on beyond it."""
COMMA = re.compile(r"\n|[:;,](?=\s)")
"""What separates words that are marked one by one, too."""
BY_WORD: frozenset[Reason] = frozenset({"not_in_knowledge", "less_likely"})
"""Reasons that are given word by word."""
BRIDGED = 2
"""Function words between two marks that are marked too, where most of a sentence is."""
MOSTLY = 0.75
"""Share of the content words of a sentence from which it is marked without gaps."""


class _Amount(NamedTuple):
    start: int
    end: int


class _Word(NamedTuple):
    text: str
    start: int
    end: int

    @property
    def light(self) -> bool:
        return self.text in LIGHT and not is_negation(self.text)

    def shift(self, offset: int) -> _Word:
        """The same word, ``offset`` characters later."""
        return self._replace(start=self.start + offset, end=self.end + offset)


class _Sentence:
    """A sentence of the response and what it has, by place in the response."""

    def __init__(
        self, response: str, sentence: Sentence, values: Sequence[StatedValue], tokens: Sequence[FlaggedToken]
    ) -> None:
        self.response = response
        most = max([token.probability for token in tokens], default=0.0)
        self.most_doubted = RangeIndex(token for token in tokens if token.probability == most)
        # Of the sentence alone, as a stream reads it: a word of the response may go on beyond it ("end.Then").
        self.words = RangeIndex(word.shift(sentence.start) for word in _list_words(sentence.text))
        self.amounts = RangeIndex(
            _Amount(value.start + sentence.start, value.end + sentence.start)
            for value in ValueText(sentence.text).find_values()
        )
        self.contradicted = RangeIndex(value for value in values if value.outcome == "contradicted")
        self.absent = RangeIndex(value for value in values if value.outcome == "absent")
        self.supported = RangeIndex(value for value in values if value.outcome in ("supported", "derived"))
        self.doubtful = RangeIndex(value for value in values if value.outcome != "supported")

    def is_in_amount(self, word: _Word) -> bool:
        """Whether a word is a part of a value."""
        amounts = self.amounts.find_overlapping(word.start, word.end)
        return any(amount.start <= word.start and word.end <= amount.end for amount in amounts)


def is_negation(word: str) -> bool:
    """Whether a lower-case word negates."""
    return word in NEGATIONS or word.endswith("n't")


def fit_marks(
    request: ReadRequest, spans: Sequence[UnsupportedSpan], results: Sequence[BoundResult]
) -> tuple[UnsupportedSpan, ...]:
    """The spans of a response, fitted; disjoint and in order.

    Args:
        request: The response that is marked, and the knowledge.
        spans: What ``fuse_spans`` finds in the sentences that are doubted.
        results: The results of all metrics.

    Returns:
        The marks.
    """
    if not spans or sum(result.status == "scored" for _, result in results) < 2:
        return tuple(spans)
    stated = [
        value
        for _, result in results
        if isinstance(result.explanation, ValuesExplanation)
        for value in result.explanation.values
    ]
    tokens = [
        token
        for _, result in results
        if isinstance(result.explanation, ReaderExplanation)
        for token in result.explanation.tokens
    ]
    vague = {metric.name for metric, _ in results if metric.precision == 0}  # evidence about whole sentences
    response, read = request.response, [_list_words(text) for text in request.knowledge]
    known_stems = {stem(fold_name(text)) for text in {word.text for words in read for word in words}}
    fitted: list[UnsupportedSpan] = []
    for sentence in request.sentences:
        request.check_time()
        inside = [_end_with(response, span, sentence.end) for span in starting_in(spans, sentence.start, sentence.end)]
        if not inside:
            continue
        values = starting_in(stated, sentence.start, sentence.end)
        doubts = starting_in(tokens, sentence.start, sentence.end)
        about = _Sentence(response, sentence, values, doubts)
        fitted += _fit_sentence(inside, about, known_stems, vague)
    return tuple(fitted)


def _fit_sentence(
    spans: Sequence[UnsupportedSpan],
    sentence: _Sentence,
    known_stems: set[str],
    vague: Set[str],
) -> Iterator[UnsupportedSpan]:
    contradicted = sentence.contradicted.items
    has_value = sentence.doubtful.overlaps

    def is_unknown(mark: UnsupportedSpan) -> bool:
        return has_value(mark) or not _is_known(mark, known_stems, sentence)

    marks = [mark for span in _join(spans, sentence) for mark in _fit(span, sentence, vague)]
    if contradicted:
        marks = [mark for mark in marks if has_value(mark) or mark.metric not in vague] or marks
        marks = [mark for mark in marks if has_value(mark) or not _goes_on(mark, sentence)]
    if any(is_unknown(mark) for mark in marks):
        # Words that the knowledge has are not what is wrong beside others, unless the reader doubts them most.
        marks = [mark for mark in marks if is_unknown(mark) or sentence.most_doubted.overlaps(mark)]
    if not contradicted:
        marks = _bridge(marks, sentence)
    marks = [_trim(mark, sentence, known_stems) for mark in marks]
    marks = [_complete(_explain(mark, sentence), sentence) for mark in marks]
    last = -1
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start >= last:
            yield mark
            last = mark.end


def _join(spans: Sequence[UnsupportedSpan], sentence: _Sentence) -> Iterator[UnsupportedSpan]:
    """The spans, joined where only spaces separate them; a value that the knowledge contradicts stays by itself."""
    response, is_contradicted = sentence.response, sentence.contradicted.overlaps
    joined: list[UnsupportedSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is None or response[last.end : span.start].strip() or is_contradicted(span) or is_contradicted(last):
            joined.append(span)
        else:
            joined[-1] = _cut(response, last, last.start, span.end)
    yield from joined


def _fit(span: UnsupportedSpan, sentence: _Sentence, vague: Set[str]) -> Iterator[UnsupportedSpan]:
    """A span with whole values and without light words at its ends, or nothing."""
    response, words, amounts = sentence.response, sentence.words, sentence.amounts
    start, end = span.start, span.end
    for amount in amounts.find_overlapping(start, end):
        if amount.end - amount.start > 1:
            start, end = min(start, amount.start), max(end, amount.end)
    inside = list(words.find_overlapping(start, end))
    is_divided = span.metric in vague or span.reason in BY_WORD
    phrases = list(_split(inside, sentence, COMMA if is_divided else BREAK))
    if len(phrases) > 1:
        for phrase in phrases:
            part = _cut(response, span, max(start, phrase[0].start), min(end, phrase[-1].end))
            yield from _fit(part, sentence, vague)
        return
    heavy = [index for index, word in enumerate(inside) if not word.light or sentence.is_in_amount(word)]
    if heavy:
        first, last = inside[heavy[0]].start, inside[heavy[-1]].end
        sides: list[Range] = [*amounts.find_overlapping(first, last), span]
        for side in sides:  # a sign or a quotation mark beside the first or last word
            first = min(first, side.start) if not any(words.find_from(side.start, first)) else first
            ends_later = any(word.end <= side.end for word in words.find_overlapping(last, side.end))
            last = max(last, side.end) if not ends_later else last
        first, last = max(first, start), min(last, end)
        yield _cut(response, span, first, first + len(response[first:last].rstrip(":;,")))
        return
    following = next(sentence.doubtful.find_from(span.end), None)
    if following is not None and all(word.light for word in words.find_from(span.end, following.start)):
        yield _cut(response, span, following.start, following.end)


def _goes_on(mark: UnsupportedSpan, sentence: _Sentence) -> bool:
    """Whether a long mark is right beside a contradicted value, which then is why its words were doubted."""
    response, start, end = sentence.response, mark.start, mark.end
    while start > 0 and is_space(response[start - 1]):
        start -= 1
    while end < len(response) and is_space(response[end]):
        end += 1
    near = sentence.contradicted.find_overlapping(start - 1, end + 1)
    beside = any(start <= value.end <= mark.start or mark.end <= value.start <= end for value in near)
    return beside and len(_list_words(mark.text)) > BRIDGED


def _split(words: Sequence[_Word], sentence: _Sentence, separator: re.Pattern[str]) -> Iterator[list[_Word]]:
    """The words as phrases that no separator divides; a value is not divided."""
    phrase: list[_Word] = []
    for word in words:
        if phrase and separator.search(sentence.response, phrase[-1].end, word.start):
            gap = phrase[-1].end
            if not any(sentence.amounts.find_overlapping(gap, gap)):
                yield phrase
                phrase = []
        phrase.append(word)
    if phrase:
        yield phrase


def _explain(mark: UnsupportedSpan, sentence: _Sentence) -> UnsupportedSpan:
    """The mark with what the knowledge says of the value in it: an answer of a model may be of another kind."""
    value = next(sentence.contradicted.find_overlapping(mark.start, mark.end), None)
    if value is None or not value.knowledge_says or not mark.knowledge_says:
        return mark
    return replace(mark, knowledge_says=value.knowledge_says)


def _trim(mark: UnsupportedSpan, sentence: _Sentence, known_stems: set[str]) -> UnsupportedSpan:
    """The mark; around a value that the knowledge does not have, without words at its ends that the knowledge has."""
    unknown = []
    words = sentence.words.find_overlapping(mark.start, mark.end) if sentence.absent.overlaps(mark) else ()
    for word in words:
        about = list(sentence.absent.find_overlapping(word.start, word.end))
        is_known = word.light or stem(fold_name(word.text)) in known_stems
        if about or is_negation(word.text) or word.text in TELLING or not is_known:
            parts: list[Range] = [word, *about]
            unknown.append((min(part.start for part in parts), max(part.end for part in parts)))
    if not unknown:
        return mark
    return _cut(sentence.response, mark, max(mark.start, unknown[0][0]), min(mark.end, unknown[-1][1]))


def _complete(mark: UnsupportedSpan, sentence: _Sentence) -> UnsupportedSpan:
    """The mark; of a negation or an adverb of degree alone, with the word that it is about."""
    response, inside = sentence.response, list(sentence.words.find_overlapping(mark.start, mark.end))
    if not inside or not all(word.text in DEPENDENT or is_negation(word.text) for word in inside):
        return mark
    following = islice(sentence.words.find_from(mark.end), BRIDGED + 1)
    word = next((word for word in following if not word.light), None)
    if word is None or SEPARATOR.search(response, mark.end, word.start):
        return mark
    return _cut(response, mark, mark.start, word.end)


def _bridge(marks: Sequence[UnsupportedSpan], sentence: _Sentence) -> list[UnsupportedSpan]:
    """The marks; as one where nearly all that the sentence says is marked, and more than its values."""
    response, words = sentence.response, sentence.words
    is_marked = RangeIndex(marks).overlaps
    content = [word for word in words.items if not word.light]
    marked = [word for word in content if is_marked(word)]
    plain = [word for word in marked if not sentence.is_in_amount(word)]
    if len(marks) < 2 or len(plain) < BRIDGED or len(marked) < MOSTLY * len(content):
        return list(marks)
    bridged = [marks[0]]
    for mark in marks[1:]:
        between = within(words.items, bridged[-1].end, mark.start)
        is_phrase = not SEPARATOR.search(response, bridged[-1].end, mark.start)
        if is_phrase and len(between) <= BRIDGED and all(word.light for word in between):
            bridged[-1] = _cut(response, bridged[-1], bridged[-1].start, mark.end)
        else:
            bridged.append(mark)
    if len(bridged) == 1 and len(marked) == len(content):
        return [_cut(response, bridged[0], bridged[0].start, words.items[-1].end)]
    return bridged


def _list_words(text: str) -> list[_Word]:
    return [_Word(match[0].lower().replace("’", "'"), *match.span()) for match in WORD.finditer(text)]


def _end_with(response: str, span: UnsupportedSpan, end: int) -> UnsupportedSpan:
    """The span as far as its sentence goes, which ends at ``end``."""
    if span.end <= end:
        return span
    return _cut(response, span, span.start, span.start + len(response[span.start : end].rstrip(".!?")))


def _cut(response: str, span: UnsupportedSpan, start: int, end: int) -> UnsupportedSpan:
    return replace(span, text=response[start:end], start=start, end=end)


def _is_known(mark: UnsupportedSpan, known_stems: set[str], sentence: _Sentence) -> bool:
    """Whether the knowledge has all content words and values of a mark, and none is a negation or in ``TELLING``."""
    words = [word.shift(mark.start) for word in _list_words(mark.text) if not word.light]
    words = [word for word in words if not sentence.supported.overlaps(word)]
    return not any(is_negation(word.text) or word.text in TELLING for word in words) and all(
        stem(fold_name(word.text)) in known_stems for word in words
    )
