"""Compares lines of a key and its values ("Monday: 9–17"), and rows of tables, with what the knowledge has for the key.

A value that the knowledge has in another line does not support this one. A key that both texts have word by word says
what is compared, so that nothing is guessed; where the knowledge has the key more than once, any of its values will do.
A sentence that names one row and one column of a table of the knowledge is compared with that cell alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..text.normalization import FUNCTION_WORDS
from ..text.sentences import sentences
from ..text.words import WORD
from .comparing import compare
from .knowledge import find_values
from .names import fold_name, split_by_case
from .numbers import stem
from .records import Clock, Content, Measure, Name, Value
from .roles import Exchanged
from .tokens import NEGATIONS, tokenize

MAX_CHARS = 60_000
"""Characters of response and knowledge, at most, whose lines are compared."""
MAX_TABLE_CHARS = 20_000
"""Characters of response and knowledge, at most, whose tables are compared cell by cell."""
MAX_BESIDE = 64
"""Cells of a row and a column, at most, that a value is looked for in."""
MAX_KEY_WORDS = 5
_LINE = re.compile(
    r"^[ \t]*(?:[-*•+–][ \t]+|\d{1,3}[.)][ \t]+)?(?P<key>[^:|\n]{2,60}):[*_]*[ \t]+(?P<value>\S[^\n]*)$", re.MULTILINE
)
_ROW = re.compile(r"^[ \t]*\|(?P<key>[^|\n]{2,60})\|(?P<value>[^\n]*\S)$", re.MULTILINE)
_TABLE_LINE = re.compile(r"^[ \t]*\|[^\n]*\|[ \t]*$", re.MULTILINE)
_CELL = re.compile(r"[^|\n]+")
_RULE = re.compile(r"[\s|:-]+")
_OTHERWISE = NEGATIONS | {"than", "twice", "half", "as", "unlike", "instead", "except", "rather"}
"""Words with which a sentence may name a cell and give the value of another."""
_DAYS = {day[:length]: day for day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
         for length in (3, 4, 5)}  # fmt: skip


class _Item(NamedTuple):
    """The words of a key, and the characters of what is after it."""

    key: frozenset[str]
    start: int
    end: int


class _Cell(NamedTuple):
    """The words of the row and the column of a cell of a table, and its characters."""

    row: frozenset[str]
    column: frozenset[str]
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
    size = len(response) + sum(map(len, passages))
    if size > MAX_CHARS:
        return
    if size <= MAX_TABLE_CHARS:
        yield from _find_in_tables(response, passages)
    items = list(_read_items(response))
    keys = {item.key for item in items}
    known_items = [
        known_item for passage, text in enumerate(passages) for known_item in _read_known(passage, text, keys)
    ]
    values = _find(response) if known_items else []
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


def _find_in_tables(response: str, passages: Sequence[str]) -> Iterator[Exchanged]:
    """The values of the response that a table of the knowledge has in another cell than the named cell."""
    tables = [(passage, _Table(text)) for passage, text in enumerate(passages) if _TABLE_LINE.search(text)]
    if not any(table.cells for _, table in tables):
        return
    values = _find(response)
    starts = [value.start for value in values]
    cells = list(_read_cells(response))
    parts: list[tuple[int, int, _Cell | None]] = [(cell.start, cell.end, cell) for cell in cells]
    parts += [(part.start, part.end, None) for part in sentences(response) if "|" not in part.text]
    for start, end, cell in parts:
        stated = values[bisect_left(starts, start) : bisect_left(starts, end)]
        for passage, table in tables if stated else ():
            named = table.cells.get((cell.row, cell.column), []) if cell else table.find_named(response[start:end])
            if len(named) == 1:
                for value, theirs in table.find_elsewhere(named[0], stated):
                    yield Exchanged(value.start, value.end, passage, theirs.start, theirs.end)


class _Table:
    """The cells of the tables of a text, and the values in them."""

    def __init__(self, text: str) -> None:
        self.cells: dict[tuple[frozenset[str], frozenset[str]], list[_Cell]] = {}
        self._lines: dict[frozenset[str], list[_Cell]] = {}
        for cell in _read_cells(text):
            self.cells.setdefault((cell.row, cell.column), []).append(cell)
            for header in (cell.row, cell.column):
                self._lines.setdefault(header, []).append(cell)
        self._rows, self._columns = {row for row, _ in self.cells}, {column for _, column in self.cells}
        self._values = _find(text)
        self._starts = [value.start for value in self._values]

    def find_named(self, sentence: str) -> list[_Cell]:
        """The cells of the only row and the only column that a sentence names."""
        if any(word.lower().replace("’", "'") in _OTHERWISE for word in WORD.findall(sentence)):
            return []
        words = _read_words(sentence, opens=True)
        rows, columns = _choose_longest(self._rows, words), _choose_longest(self._columns, words)
        return self.cells.get((rows[0], columns[0]), []) if len(rows) == len(columns) == 1 else []

    def find_elsewhere(self, cell: _Cell, stated: Sequence[Value]) -> Iterator[tuple[Value, Value]]:
        """The values of a response that another cell of the row or column has, each with what this one has."""
        inside = self._list_values(cell)
        for value in stated:
            rivals = [theirs for theirs in inside if _is_rival(value, theirs)]
            is_alone = sum(other.kind == value.kind for other in stated) == 1
            if not rivals or not is_alone or any(_allows(value.content, theirs.content) for theirs in rivals):
                continue
            beside = (self._lines[cell.row] + self._lines[cell.column])[:MAX_BESIDE]
            others = (theirs for other in beside for theirs in self._list_values(other) if theirs.kind == value.kind)
            if any(compare(value.content, theirs.content) == "supports" for theirs in others):
                yield value, rivals[0]

    def _list_values(self, cell: _Cell) -> Sequence[Value]:
        return self._values[bisect_left(self._starts, cell.start) : bisect_left(self._starts, cell.end)]


def _is_rival(ours: Value, theirs: Value) -> bool:
    return not isinstance(theirs.content, Name) and _is_comparable(ours, theirs)


def _choose_longest(keys: set[frozenset[str]], words: frozenset[str]) -> list[frozenset[str]]:
    """The keys that a text has all words of, without keys that are a part of another."""
    named = [key for key in keys if key <= words]
    return [key for key in named if not any(key < other for other in named)]


def _read_cells(text: str) -> Iterator[_Cell]:
    """The cells of a text's tables that have a header in their row and their column."""
    header: list[frozenset[str]] = []
    end = 0
    for line in _TABLE_LINE.finditer(text):
        if text[end : line.start()].strip():
            header = []
        end = line.end()
        if _RULE.fullmatch(line[0]):
            continue
        cells = list(_CELL.finditer(line[0].strip()))
        offset = line.start() + len(line[0]) - len(line[0].lstrip())
        words = [_read_words(cell[0]) for cell in cells]
        if not header:
            header = words
            continue
        for column, cell in zip(header[1:], cells[1:], strict=False):
            if words[0] and column:
                yield _Cell(words[0], column, offset + cell.start(), offset + cell.end())


def _read_words(text: str, *, opens: bool = False) -> frozenset[str]:
    """The words of a header or a sentence as they are compared; a single capital, "zone A", is one."""
    written = WORD.findall(text)
    capitals = [word for word in written[opens:] if len(word) == 1 and word.isupper() and word != "I"]
    lower = [_DAYS.get(word.lower(), word.lower()) for word in written]
    return frozenset([*capitals, *(stem(word) for word in lower if word not in FUNCTION_WORDS)])


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
