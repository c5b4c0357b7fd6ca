"""Whose value is it? Structure alone says so: the row, object, line or clause in which the knowledge has a value.

A value belongs to the words before it in its line, object or sentence, up to the value of its kind before it, and to
the words after it up to the next comma, bracket or "and". A heading belongs to the lines after it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from itertools import takewhile
from typing import NamedTuple

from groundwire.runtime.texts.characters import is_letters

from ..schema.explanations import ValueKind
from ..text.normalization import FUNCTION_WORDS
from .comparing import relate
from .knowledge import Location, ValueText
from .numbers import stem
from .tokens import Token, Value
from .units import COUNTRY_OF

_SEGMENT_ENDS = frozenset("};")
_LONGEST_SEGMENT = 200
"""Tokens of a line, object or sentence, at most."""
_CLAUSE_ENDS = frozenset({",", "(", ")", "and", "but", "while", "|", "]", "–", "—"})
_RANGE = frozenset({"to", "-", "–", "until", "till", "and"})
_HEADING = re.compile(r"[ \t]*(?:#{1,6}[ \t]+\S.*|.*:[ \t*_]*)\Z")
_PRONOUNS = frozenset(
    {"it", "he", "she", "they", "this", "that", "these", "those", "his", "her", "its", "their", "then"}
)


class OwnedValue(NamedTuple):
    """A value of the knowledge, and stems of the words that it belongs to."""

    location: Location
    value: Value
    words: frozenset[str]


def list_words(tokens: Sequence[Token]) -> set[str]:
    """Stems of the words of some tokens that are no function words."""
    return {
        stem(COUNTRY_OF.get(token.lower, token.lower.removesuffix("'s")))
        for token in tokens
        if is_letters(token.text[0]) and token.lower not in FUNCTION_WORDS
    }


def list_owned(passages: Sequence[ValueText]) -> list[OwnedValue]:
    """The values of the knowledge but for names, with the words that they belong to."""
    owned: list[OwnedValue] = []
    for passage, text in enumerate(passages):
        heading: set[str] = set()
        for segment, is_heading in _split(text):
            if is_heading:
                heading = list_words(segment)
            owned += _own(passage, segment, text.amounts[0], heading)
    return owned


def _split(text: ValueText) -> Iterator[tuple[list[Token], bool]]:
    """The tokens of each line, object or sentence, and whether it is a heading."""
    segment: list[Token] = []
    line_start = 0
    for token in text.tokens:
        last = segment[-1] if segment else None
        if last is not None:
            gap = text.text[last.end : token.start]
            ends_line = "\n" in gap
            is_full = len(segment) == _LONGEST_SEGMENT
            if ends_line or is_full or last.text in _SEGMENT_ENDS or token.sentence != last.sentence:
                yield segment, ends_line and _HEADING.match(text.text[line_start : last.end]) is not None
                segment = []
        if not segment:
            line_start = token.start
        segment.append(token)
    if segment:
        yield segment, False


def _own(passage: int, segment: Sequence[Token], values: Sequence[Value], heading: Set[str]) -> Iterator[OwnedValue]:
    start, end = segment[0].start, segment[-1].end
    last: dict[ValueKind, tuple[int, frozenset[str]]] = {}
    prefixes: dict[ValueKind, set[str]] = {}
    for value in values[bisect_left(values, start, key=_start) : bisect_left(values, end, key=_start)]:
        if value.kind not in prefixes:
            prefixes[value.kind] = {*heading} | list_words([token for token in segment if token.end <= value.start])
        last_end, last_words = last.get(value.kind, (start, frozenset()))
        between = [token for token in segment if last_end <= token.start and token.end <= value.start]
        following = [token for token in segment if token.start >= value.end]
        after = list(takewhile(lambda token: token.lower not in _CLAUSE_ENDS, following))
        if last_words and between and all(token.lower in _RANGE for token in between):
            words = last_words  # the other end of a range
        else:
            words = frozenset(prefixes[value.kind] | list_words(between) | list_words(after))
        opens_range = bool(following) and following[0].lower in _RANGE
        last[value.kind] = (after[-1].end if after and not opens_range else value.end, words)
        yield OwnedValue(Location(passage, value.start, value.end, value.sentence), value, words)


def _start(value: Value) -> int:
    return value.start


class Owners:
    """Who has which values of some knowledge."""

    def __init__(self, passages: Sequence[ValueText]) -> None:
        """Read the values and their words."""
        self.values = list_owned(passages)
        self._known = frozenset[str]().union(*(item.words for item in self.values))

    def find(
        self, value: Value, sentence: Sequence[Token], before: Sequence[Token]
    ) -> tuple[list[OwnedValue], list[OwnedValue]]:
        """Find the values that support one of a response, and those that differ from it.

        The response speaks of the words of its sentence; of those before it, too, where the sentence has a pronoun, or
        no word that a value belongs to. If all of these that the knowledge knows are about a value that differs, and
        not all of them about a value that is equal, the equal value is somebody else's.

        Args:
            value: A value of the response, no name.
            sentence: The tokens of its sentence.
            before: The tokens of the question, and of the sentences before it.

        Returns:
            The values that support it and are its subject's, and the values of its kind that differ from it.
        """
        subject = list_words(sentence)
        if any(token.lower in _PRONOUNS for token in sentence) or not subject & self._known:
            subject |= list_words(before)
        subject &= self._known
        related = [(relate(value, item.value), item) for item in self.values]
        differing = [item for relation, item in related if relation == "differs" and item.value.kind == value.kind]
        is_of_another = any(subject <= item.words for item in differing)
        supporting = [
            item
            for relation, item in related
            if relation == "supports" and (subject <= item.words or not is_of_another)
        ]
        return supporting, differing
