"""Reads quotations, and finds their words in the knowledge: all of them, or all but a few in the same places.

A quotation of a few words may be a title or a word that is only mentioned, so shorter ones are not read. A mark of
omission divides a quotation, and each part is looked up by itself. Who says it is what the quotation belongs to
(``roles``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..text.words import WORD
from .records import Quotation, Value
from .tokens import Token

LEAST_WORDS = 4
"""Words of a quotation, at least."""
MAX_WORDS = 80
"""Words of a quotation that are looked up, at most."""
ALIKE = 0.7
"""Share of the words of a quotation that the knowledge has in one place, at least, if it is quoted with other words."""
MAX_OCCURRENCES = 2_000
"""Occurrences of a word in the knowledge that are compared with a quotation, at most."""
QUOTATION = re.compile(r'"([^"\n]{8,600})"|“([^“”\n]{8,600})”|«([^«»\n]{8,600})»|„([^„“”\n]{8,600})[“”]')
_OMISSION = re.compile(r"\s*(?:\[(?:…|\.\.\.)\]|…|\.\.\.)\s*")


class QuotedRange(NamedTuple):
    """Where the knowledge has the words of a quotation, or nearly."""

    passage: int
    start: int
    end: int
    changed: tuple[int, int] | None
    """Characters of the response with other words than the knowledge's; None where there are none."""


class _Word(NamedTuple):
    key: str
    start: int
    end: int


def find_quotations(text: str, tokens: Sequence[Token]) -> list[Value]:
    """The quotations of a text, in order, each part between marks of omission by itself.

    >>> from .tokens import tokenize
    >>> text = 'She said: "It is … a chance for the harbour".'
    >>> [text[value.start : value.end] for value in find_quotations(text, tokenize(text))]
    ['a chance for the harbour']
    """
    values = []
    for match in QUOTATION.finditer(text):
        group = match.lastindex or 1
        for start, end in _split(text, *match.span(group)):
            keys = tuple(word.key for word in _list_words(text, start, end))
            if LEAST_WORDS <= len(keys) <= MAX_WORDS:
                sentence = next((token.sentence for token in tokens if token.end > start), 0)
                values.append(Value("quotation", start, end, sentence, Quotation(keys)))
    return values


def find_quoted(response: str, quotations: Sequence[Value], passages: Sequence[str]) -> Iterator[QuotedRange | None]:
    """Where the knowledge has each quotation; None for a quotation that it does not have, or much changed."""
    if not quotations:
        return
    known_words = [_list_words(text, 0, len(text)) for text in passages]
    occurrences: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for passage, words in enumerate(known_words):
        for index, word in enumerate(words):
            occurrences[word.key].append((passage, index))
    for value in quotations:
        ours = _list_words(response, value.start, value.end)
        yield _find_quoted(ours, known_words, occurrences)


def _find_quoted(
    ours: Sequence[_Word], known_words: Sequence[Sequence[_Word]], occurrences: defaultdict[str, list[tuple[int, int]]]
) -> QuotedRange | None:
    best: tuple[int, int, int] | None = None
    # One of three words in a row is unchanged, or more is changed than a few words; the rarest is looked up first.
    anchors = sorted(range(len(ours)), key=lambda index: (len(occurrences.get(ours[index].key, ())), index))[:3]
    for anchor in anchors:
        for passage, index in occurrences.get(ours[anchor].key, ())[:MAX_OCCURRENCES]:
            first = index - anchor
            theirs = known_words[passage][max(first, 0) : first + len(ours)] if first >= 0 else ()
            if len(theirs) < len(ours):
                continue
            equal = sum(left.key == right.key for left, right in zip(ours, theirs, strict=True))
            if best is None or equal > best[0]:
                best = (equal, passage, first)
    if best is None or best[0] < ALIKE * len(ours):
        return None
    _, passage, first = best
    theirs = known_words[passage][first : first + len(ours)]
    differing = [index for index, word in enumerate(ours) if word.key != theirs[index].key]
    if not differing:
        return QuotedRange(passage, theirs[0].start, theirs[-1].end, None)
    low, high = differing[0], differing[-1]
    return QuotedRange(passage, theirs[low].start, theirs[high].end, (ours[low].start, ours[high].end))


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts between marks of omission."""
    for match in _OMISSION.finditer(text, start, end):
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    if start < end:
        yield start, end


def _list_words(text: str, start: int, end: int) -> list[_Word]:
    return [
        _Word(match[0].casefold().replace("’", "'"), *match.span())
        for match in WORD.finditer(text, start, end)
    ]  # fmt: skip
