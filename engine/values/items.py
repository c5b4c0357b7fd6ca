"""Compares lines of a key and its values ("Monday: 9–17"), and rows of tables, with what the knowledge has for the key.

A value that the knowledge has in another line does not support this one. A key that both texts have word by word says
what is compared, so that nothing is guessed; where the knowledge has the key more than once, any of its values will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..text.normalization import FUNCTION_WORDS
from ..text.words import WORD
from .comparing import compare
from .knowledge import find_values
from .names import fold_name, split_by_case
from .numbers import stem
from .records import Clock, Content, Measure, Name, Value
from .roles import Exchanged
from .tokens import tokenize

MAX_CHARS = 60_000
"""Characters of response and knowledge, at most, whose lines are compared."""
MAX_KEY_WORDS = 5
_LINE = re.compile(
    r"^[ \t]*(?:[-*•+–][ \t]+|\d{1,3}[.)][ \t]+)?(?P<key>[^:|\n]{2,60}):[*_]*[ \t]+(?P<value>\S[^\n]*)$", re.MULTILINE
)
_ROW = re.compile(r"^[ \t]*\|(?P<key>[^|\n]{2,60})\|(?P<value>[^\n]*\S)$", re.MULTILINE)
_DAYS = {day[:length]: day for day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
         for length in (3, 4, 5)}  # fmt: skip


class _Item(NamedTuple):
    """The words of a key, and the characters of what is after it."""

    key: frozenset[str]
    start: int
    end: int


class _KnownItem(NamedTuple):
    passage: int
    item: _Item
    values: Sequence[Value]
    words: frozenset[str]


def find_misplaced(response: str, passages: Sequence[str]) -> Iterator[Exchanged]:
    """The values of lines and rows of ``response`` for whose key the knowledge has other values of their kind.

    >>> hours = ["Monday: 9–17\\nTuesday: 10–18"]
    >>> [(item.start, item.end) for item in find_misplaced("- **Monday:** 10–18", hours)]
    [(14, 16), (17, 19)]
    >>> list(find_misplaced("- **Monday:** 9–17", hours))
    []
    """
    items = list(_read_items(response))
    if not items or len(response) + sum(map(len, passages)) > MAX_CHARS:
        return
    keys = {item.key for item in items}
    known_items = [
        known_item for passage, text in enumerate(passages) for known_item in _read_known(passage, text, keys)
    ]
    if not known_items:
        return
    values = _find(response)
    for item in items:
        same = [known_item for known_item in known_items if known_item.item.key == item.key]
        for value in values if same else ():
            if item.start <= value.start < item.end:
                yield from _compare(value, same)


def _compare(value: Value, same: Sequence[_KnownItem]) -> Iterator[Exchanged]:
    if isinstance(value.content, Name):
        words = {*value.content.words}
        rivals = [
            (known_item, theirs)
            for known_item in same
            for theirs in known_item.values
            if isinstance(theirs.content, Name)
        ]
        differ = not any(words & known_item.words for known_item in same)
    else:
        rivals = [
            (known_item, theirs)
            for known_item in same
            for theirs in known_item.values
            if not isinstance(theirs.content, Name) and _is_comparable(value, theirs)
        ]
        differ = not any(_allows(value.content, theirs.content) for _, theirs in rivals)
    if rivals and differ:
        known_item, theirs = min(rivals, key=lambda item: _get_role(item[1]) != _get_role(value))
        yield Exchanged(value.start, value.end, known_item.passage, theirs.start, theirs.end)


def _is_comparable(ours: Value, theirs: Value) -> bool:
    """Whether one value could stand for the other; counts only where they count the same thing."""
    if ours.kind != theirs.kind or compare(ours.content, theirs.content) is None:
        return False
    if isinstance(ours.content, Measure) and isinstance(theirs.content, Measure) and ours.content.measure == "count":
        return ours.content.nouns == theirs.content.nouns or bool(ours.content.nouns & theirs.content.nouns)
    return True


def _allows(ours: Content, theirs: Content) -> bool:
    """Whether a value of the knowledge supports another, or leaves it open; an hour of opening is equal or wrong."""
    if isinstance(ours, Clock) and isinstance(theirs, Clock) and ours.span is not None:
        return compare(ours._replace(span=None), theirs._replace(span=None)) == "supports"
    return compare(ours, theirs) != "differs"


def _get_role(value: Value) -> str:
    """Whether a time is the beginning or the end of something; empty for other values."""
    return value.content.role if isinstance(value.content, Clock) else ""


def _read_items(text: str) -> Iterator[_Item]:
    for pattern in (_LINE, _ROW):
        for match in pattern.finditer(text):
            key = _read_key(match["key"])
            if key:
                yield _Item(key, *match.span("value"))


def _read_key(text: str) -> frozenset[str]:
    """The words of a key as they are compared; none where the text is too long for one."""
    words = [word.lower() for word in WORD.findall(text)]
    content = [_DAYS.get(word, word) for word in words if word not in FUNCTION_WORDS]
    return frozenset(map(stem, content)) if len(words) <= MAX_KEY_WORDS else frozenset()


def _read_known(passage: int, text: str, keys: set[frozenset[str]]) -> Iterator[_KnownItem]:
    items = [item for item in _read_items(text) if item.key in keys]
    values = _find(text) if items else []
    for item in items:
        inside = [value for value in values if item.start <= value.start < item.end]
        words = frozenset(fold_name(word) for word in WORD.findall(text[item.start : item.end]))
        yield _KnownItem(passage, item, inside, words)


def _find(text: str) -> list[Value]:
    tokens = tokenize(text)
    return find_values(tokens, *split_by_case(tokens))
