"""Fits unsupported spans to what a reader would underline: a value, a noun phrase, a negated word.

The evidence about single words ends where a model's tokens or a question's span do, so that "7" of "7 pm" is marked,
or "can" alone. Here a mark that cuts a value is extended to the whole of it, and a negation or an adverb of degree
("very") to the word that it is about. A mark ends with its line, and after a label ("Monday:"). Function words at its
ends are left out, and a mark of nothing else is given up, or moved to the unsupported value after it. A metric that is
asked alone is reported as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from msgspec.structs import replace

from ..metrics.base import BoundResult
from ..schema.explanations import Reason, StatedValue, UnsupportedSpan, ValuesExplanation
from ..text.normalization import FUNCTION_WORDS
from ..text.requests import ReadRequest
from ..text.words import WORD
from ..values.knowledge import find_values
from ..values.names import fold_name
from ..values.numbers import stem
from ..values.tokens import NEGATIONS, read_table, tokenize

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
NEGATION_REACH = 3
"""Words before a word of the knowledge in which a negation denies it."""
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


def is_negation(word: str) -> bool:
    """Whether a lower-case word negates."""
    return word in NEGATIONS or word.endswith("n't")


def fit_marks(
    request: ReadRequest, spans: Sequence[UnsupportedSpan], results: Sequence[BoundResult]
) -> tuple[UnsupportedSpan, ...]:
    """The spans of a response, fitted; disjoint and in order.

    Args:
        request: The response that is marked, and the knowledge: words that it denies are marked where the response
            affirms them.
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
    vague = {metric.name for metric, _ in results if metric.precision == 0}  # evidence about whole sentences
    response, read = request.response, [_list_words(text) for text in request.knowledge]
    known_stems = {stem(fold_name(text)) for text in {word.text for words in read for word in words}}
    denied = _list_denied(read)
    fitted: list[UnsupportedSpan] = []
    for sentence in request.sentences:
        inside = [
            _end_with(response, span, sentence.end) for span in spans if sentence.start <= span.start < sentence.end
        ]
        if not inside:
            continue
        # Of the sentence alone, as a stream reads it: a word of the response may go on beyond it ("end.Then").
        words = [word.shift(sentence.start) for word in _list_words(sentence.text)]
        amounts = [
            (value.start + sentence.start, value.end + sentence.start) for value in find_values(tokenize(sentence.text))
        ]
        values = [value for value in stated if sentence.start <= value.start < sentence.end]
        fitted += _fit_sentence(response, inside, words, values, amounts, known_stems, denied, vague)
    return tuple(fitted)


def _fit_sentence(
    response: str,
    spans: Sequence[UnsupportedSpan],
    words: Sequence[_Word],
    values: Sequence[StatedValue],
    amounts: Sequence[tuple[int, int]],
    known_stems: set[str],
    denied_words: Set[str],
    vague: Set[str],
) -> Iterator[UnsupportedSpan]:
    denied = _find_denied(words, denied_words)
    contradicted = [value for value in values if value.outcome == "contradicted"]
    marks = [
        mark
        for span in _join(response, spans, contradicted)
        for mark in _fit(response, span, words, values, amounts, vague)
    ]
    if denied is not None and not contradicted:
        marks = [_cut(response, spans[0], denied.start, denied.end)]
    if contradicted:
        marks = [mark for mark in marks if _has_value(mark, values) or mark.metric not in vague] or marks
        marks = [mark for mark in marks if _has_value(mark, values) or not _goes_on(response, mark, contradicted)]
    supported = [value for value in values if value.outcome in ("supported", "derived")]
    unknown = [mark for mark in marks if _has_value(mark, values) or not _is_known(mark, known_stems, supported)]
    marks = unknown or marks
    if not contradicted:
        marks = _bridge(response, marks, words, amounts)
    marks = [_trim(response, mark, words, values, known_stems) for mark in marks]
    marks = [_complete(response, _explain(mark, contradicted), words) for mark in marks]
    last = -1
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start >= last:
            yield mark
            last = mark.end


def _join(
    response: str, spans: Sequence[UnsupportedSpan], contradicted: Sequence[StatedValue]
) -> Iterator[UnsupportedSpan]:
    """The spans, joined where only spaces separate them; a value that the knowledge contradicts stays by itself."""
    joined: list[UnsupportedSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        alone = any(value.start < span.end and span.start < value.end for value in contradicted)
        if (
            last is not None
            and not alone
            and not response[last.end : span.start].strip()
            and not any(value.start < last.end and last.start < value.end for value in contradicted)
        ):
            joined[-1] = _cut(response, last, last.start, span.end)
        else:
            joined.append(span)
    yield from joined


def _fit(
    response: str,
    span: UnsupportedSpan,
    words: Sequence[_Word],
    values: Sequence[StatedValue],
    amounts: Sequence[tuple[int, int]],
    vague: Set[str],
) -> Iterator[UnsupportedSpan]:
    """A span with whole values and without light words at its ends, or nothing."""
    start, end = span.start, span.end
    for first, last in amounts:
        if first < end and start < last and (last - first) > 1:
            start, end = min(start, first), max(end, last)
    inside = [word for word in words if word.start < end and start < word.end]
    is_divided = span.metric in vague or span.reason in BY_WORD
    phrases = list(_split(response, inside, amounts, COMMA if is_divided else BREAK))
    if len(phrases) > 1:
        for phrase in phrases:
            part = _cut(response, span, max(start, phrase[0].start), min(end, phrase[-1].end))
            yield from _fit(response, part, words, values, amounts, vague)
        return
    while inside and inside[0].light and not _in_value(inside[0], amounts):
        inside = inside[1:]
    while inside and inside[-1].light and not _in_value(inside[-1], amounts):
        inside = inside[:-1]
    if inside:
        first, last = inside[0].start, inside[-1].end
        for low, high in (*amounts, (span.start, span.end)):
            if low < last and first < high:  # a sign or a quotation mark beside the first or last word
                first = min(first, low) if not any(low <= word.start < first for word in words) else first
                last = max(last, high) if not any(last < word.end <= high for word in words) else last
        first, last = max(first, start), min(last, end)
        yield _cut(response, span, first, first + len(response[first:last].rstrip(":;,")))
        return
    following = next((value for value in values if value.start >= span.end and value.outcome != "supported"), None)
    if following is not None and all(word.light for word in words if span.end <= word.start < following.start):
        yield _cut(response, span, following.start, following.end)


def _goes_on(response: str, mark: UnsupportedSpan, contradicted: Sequence[StatedValue]) -> bool:
    """Whether a long mark is right beside a contradicted value, which then is why its words were doubted."""
    sides = ((value.end, mark.start) if value.end <= mark.start else (mark.end, value.start) for value in contradicted)
    beside = any(start <= end and not response[start:end].strip() for start, end in sides)
    return beside and len(_list_words(mark.text)) > BRIDGED


def _split(
    response: str, words: Sequence[_Word], amounts: Sequence[tuple[int, int]], separator: re.Pattern[str]
) -> Iterator[list[_Word]]:
    """The words as phrases that no separator divides; a value is not divided."""
    phrase: list[_Word] = []
    for word in words:
        if phrase and separator.search(response, phrase[-1].end, word.start):
            gap = phrase[-1].end
            if not any(start < gap < end for start, end in amounts):
                yield phrase
                phrase = []
        phrase.append(word)
    if phrase:
        yield phrase


def _explain(mark: UnsupportedSpan, contradicted: Sequence[StatedValue]) -> UnsupportedSpan:
    """The mark with what the knowledge says of the value in it: an answer of a model may be of another kind."""
    value = next((item for item in contradicted if _overlap(mark, item)), None)
    if value is None or not value.knowledge_says or not mark.knowledge_says:
        return mark
    return replace(mark, knowledge_says=value.knowledge_says)


def _trim(
    response: str, mark: UnsupportedSpan, words: Sequence[_Word], values: Sequence[StatedValue], known_stems: set[str]
) -> UnsupportedSpan:
    """The mark; around a value that the knowledge does not have, without words at its ends that the knowledge has."""
    inside = [word for word in words if _overlap(mark, word)]
    unknown = [
        (min([word.start, *(value.start for value in about)]), max([word.end, *(value.end for value in about)]))
        for word in inside
        if (about := [value for value in values if value.outcome == "absent" and _overlap(word, value)])
        or is_negation(word.text)
        or word.text in TELLING
        or not (word.light or stem(fold_name(word.text)) in known_stems)
    ]
    if not unknown or not any(value.outcome == "absent" and _overlap(mark, value) for value in values):
        return mark
    return _cut(response, mark, max(mark.start, unknown[0][0]), min(mark.end, unknown[-1][1]))


def _complete(response: str, mark: UnsupportedSpan, words: Sequence[_Word]) -> UnsupportedSpan:
    """The mark; of a negation or an adverb of degree alone, with the word that it is about."""
    inside = [word for word in words if _overlap(mark, word)]
    if not inside or not all(word.text in DEPENDENT or is_negation(word.text) for word in inside):
        return mark
    following = [word for word in words if word.start >= mark.end]
    index = next((index for index, word in enumerate(following) if not word.light), None)
    if index is None or index > BRIDGED or SEPARATOR.search(response, mark.end, following[index].start):
        return mark
    return _cut(response, mark, mark.start, following[index].end)


def _bridge(
    response: str, marks: Sequence[UnsupportedSpan], words: Sequence[_Word], amounts: Sequence[tuple[int, int]]
) -> list[UnsupportedSpan]:
    """The marks; as one where nearly all that the sentence says is marked, and more than its values."""
    content = [word for word in words if not word.light]
    marked = [word for word in content if any(_overlap(mark, word) for mark in marks)]
    plain = [word for word in marked if not _in_value(word, amounts)]
    if len(marks) < 2 or len(plain) < BRIDGED or len(marked) < MOSTLY * len(content):
        return list(marks)
    bridged = [marks[0]]
    for mark in marks[1:]:
        between = [word for word in words if bridged[-1].end <= word.start and word.end <= mark.start]
        is_phrase = not SEPARATOR.search(response, bridged[-1].end, mark.start)
        if is_phrase and len(between) <= BRIDGED and all(word.light for word in between):
            bridged[-1] = _cut(response, bridged[-1], bridged[-1].start, mark.end)
        else:
            bridged.append(mark)
    if len(bridged) == 1 and len(marked) == len(content):
        return [_cut(response, bridged[0], bridged[0].start, words[-1].end)]
    return bridged


def _list_denied(texts: Iterable[Sequence[_Word]]) -> set[str]:
    """The words that the knowledge, given by the words of its texts, has and always denies."""
    denied: dict[str, bool] = {}
    for words in texts:
        negations = [index for index, word in enumerate(words) if is_negation(word.text)]
        near = {index + step for index in negations for step in range(1, NEGATION_REACH + 1)}
        for index, word in enumerate(words):
            denied[word.text] = denied.get(word.text, True) and index in near
    return {text for text, always in denied.items() if always}


def _find_denied(words: Sequence[_Word], denied: Set[str]) -> _Word | None:
    """The word of a sentence without negation that the knowledge has, and always denies; None if there is none."""
    if any(is_negation(word.text) for word in words):
        return None
    content = {word.text: word for word in words if not word.light and word.text not in TELLING}
    denials = [word for text, word in content.items() if text in denied]
    return denials[0] if len(denials) == 1 else None


def _list_words(text: str) -> list[_Word]:
    return [_Word(match[0].lower().replace("’", "'"), *match.span()) for match in WORD.finditer(text)]


def _end_with(response: str, span: UnsupportedSpan, end: int) -> UnsupportedSpan:
    """The span as far as its sentence goes, which ends at ``end``."""
    if span.end <= end:
        return span
    return _cut(response, span, span.start, span.start + len(response[span.start : end].rstrip(".!?")))


def _cut(response: str, span: UnsupportedSpan, start: int, end: int) -> UnsupportedSpan:
    return replace(span, text=response[start:end], start=start, end=end)


def _overlap(item: UnsupportedSpan | _Word, other: StatedValue | _Word) -> bool:
    return item.start < other.end and other.start < item.end


def _in_value(word: _Word, amounts: Sequence[tuple[int, int]]) -> bool:
    return any(start <= word.start and word.end <= end for start, end in amounts)


def _has_value(mark: UnsupportedSpan, values: Sequence[StatedValue]) -> bool:
    """Whether a mark has a value that the knowledge does not support."""
    return any(value.outcome != "supported" and _overlap(mark, value) for value in values)


def _is_known(mark: UnsupportedSpan, known_stems: set[str], supported: Sequence[StatedValue]) -> bool:
    """Whether the knowledge has all content words and values of a mark, and none is a negation or in ``TELLING``."""
    words = [word.shift(mark.start) for word in _list_words(mark.text) if not word.light]
    words = [word for word in words if not any(_overlap(word, value) for value in supported)]
    return not any(is_negation(word.text) or word.text in TELLING for word in words) and all(
        stem(fold_name(word.text)) in known_stems for word in words
    )
