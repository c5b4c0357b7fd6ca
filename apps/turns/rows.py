"""Lists of records, and what follows from their rows: how many there are of a kind, minima, maxima and sums.

The rows are all of a list, or those that a sentence describes. A figure that follows from them exactly is right; a
figure that does not is not wrong for that.
"""

from __future__ import annotations

import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, cached_property
from itertools import combinations, islice
from math import fsum, nan
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from groundwire.engine.schema.knowledge import split_key
from groundwire.engine.values import Clock, Date, Measure, Value, read_values

from .mentions import list_leaves, read_float, stem_words
from .moments import HALF_DAY, read_clock, read_date
from .words import ID_KEY

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]
_ANY_CURRENCY = "¤"
_BOUNDS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {
        r"(?:under|below|(?:less|cheaper|fewer|shorter) than) $": operator.lt,
        r"(?:over|above|(?:more|longer) than) $": operator.gt,
        r"(?:at most|up to|no more than|within) $": operator.le,
        r"(?:at least|no less than) $": operator.ge,
    }
)
"""What is before a bound, and how a number that keeps it compares with it."""
_BOUNDS_AFTER: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {r" or (?:less|lower|below|under|cheaper)\b": operator.le, r" or (?:more|higher|above|better)\b": operator.ge}
)
LEAST = "cheapest|lowest|least|shortest|nearest|closest|smallest|minimum|fewest"
GREATEST = "dearest|most expensive|highest|longest|farthest|furthest|largest|biggest|maximum|greatest"
_EXTREME = re.compile(
    rf"[,(]\s*(?:the )?(?:(?P<least>{LEAST})|{GREATEST})\b"
    r"(?: [\w'’]+){0,4} (?:is|was|are|costs?|being|starts?)\b[^,;]*$",
    re.IGNORECASE,
)
"""Before an extreme that has a verb of its own: "Marina, the cheapest, is €72" is about Marina."""
_QUANTITY = frozenset({"quantity", "qty", "pieces", "units", "nights"})
"""Keys of numbers by which the others of a row are multiplied."""
_OTHERS = re.compile(r"\b(?:not|no|without|others?|rest|neither|none|non)\b|n['’]t\b", re.IGNORECASE)
_EXACT = 0.005
"""By how much a sum may differ in the unit that a text states, for the errors of its floats."""
_BOUND_SIZE = 20
"""Characters before a value in which the words of a bound are."""
_MAX_DESCRIPTIONS = 8
"""Descriptions of rows in a sentence of which two are combined, at most."""
_FLAG_WORDS = frozenset(
    stem_words("has have is included includes include allowed available offered provided free active")
)
"""Words of keys that say nothing of what is there."""
_TITLE_WORDS = 6
_STATE_KEYS = frozenset({"status", "state"})
_NUMBER = re.compile(
    r"-?[€£$]?(?P<number>-?(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*)(?:\.\d+)?)(?: ?(?:€|EUR|GBP|USD|CHF))?"
)
"""A text that is a number or an amount of money; with a zero before it, it is a code."""
_IDENTIFIER = re.compile(r"(?=[\w-]*\d)[\w-]{2,24}")


class Mention(NamedTuple):
    """Where a text names a record."""

    start: int
    record: Row
    group: RecordGroup
    key: str
    """Of the time or date that names it; empty for a name."""


class RecordGroup:
    """The records of a list of a result."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Count nothing yet."""
        self.records = records
        self.ids = frozenset(map(id, records))

    @cached_property
    def leaves(self) -> list[tuple[Mapping[str, Any], list[tuple[str, Any]]]]:
        """Each record with its values, by their paths."""
        return [(record, list_values(record)) for record in self.records]

    @cached_property
    def names(self) -> list[tuple[Mapping[str, Any], list[set[str]]]]:
        """Each record with the words of each of its values that may name it: no other record has them."""
        words = Counter(word for record in self.records for word in stem_words(" ".join(map(str, record.values()))))
        return [
            (
                record,
                [
                    {word for word in stem_words(value) if len(word) > 2 and words[word] == 1}
                    for key, value in texts
                    if _may_name(value) and key.lower() not in _STATE_KEYS
                ],
            )
            for record, texts in self._texts
        ]

    @cached_property
    def titles(self) -> list[tuple[Mapping[str, Any], str]]:
        """Each record with a name of several words that no other record has as a whole, in lower case; the words may be
        others' too, as in lists of a thousand."""
        return [
            (record, value.lower())
            for (record, texts), (_, names) in zip(self._texts, self.names, strict=True)
            if not any(names)
            for key, value in texts
            if _may_name(value) and key.lower() not in _STATE_KEYS and 1 < len(value.split()) <= _TITLE_WORDS
        ]

    @cached_property
    def flags(self) -> Mapping[str, frozenset[str]]:
        """The words of each key that is true or false in some record, and whose words no other key has."""
        keys = dict.fromkeys(key for record in self.records for key in record)
        words = {key: frozenset(stem_words(key) - _FLAG_WORDS) for key in keys}
        counts = Counter(word for of_key in words.values() for word in of_key)
        return {
            key: words[key]
            for key in keys
            if words[key]
            and all(counts[word] == 1 for word in words[key])
            and all(isinstance(record.get(key), bool | None) for record in self.records)
        }

    @cached_property
    def identifiers(self) -> list[tuple[Mapping[str, Any], str]]:
        """Each record with the codes under its first key, or the key of an identifier, that no other record has."""
        return [(record, code) for record, key, code in self._codes if self._is_identifier(record, key)]

    @cached_property
    def codes(self) -> list[tuple[Mapping[str, Any], str, str]]:
        """The other codes, such as those of rooms and gates: record, key, code."""
        return [item for item in self._codes if not self._is_identifier(*item[:2])]

    @property
    def _codes(self) -> Iterator[tuple[Mapping[str, Any], str, str]]:
        pairs = ((record, key, value) for record, texts in self._texts for key, value in texts)
        return (item for item in pairs if _IDENTIFIER.fullmatch(item[2]) and read_date(item[2]) is None)

    def _is_identifier(self, record: Row, key: str) -> bool:
        return key == next(iter(record), "") or ID_KEY.search(key.lower()) is not None

    @cached_property
    def dates(self) -> list[tuple[Mapping[str, Any], str, date]]:
        """Each date that no other value of its key says: record, key, date."""
        dates = ((record, key, read_date(value)) for record, texts in self._texts for key, value in texts)
        return [(record, key, day) for record, key, day in dates if day is not None]

    @cached_property
    def clocks(self) -> list[tuple[Mapping[str, Any], str, int]]:
        """Each time of day of half a day that no other value of its key says: record, key, time."""
        clocks = ((record, key, read_clock(value)) for record, texts in self._texts for key, value in texts)
        return [(record, key, clock % HALF_DAY) for record, key, clock in clocks if clock is not None]

    @cached_property
    def _texts(self) -> list[tuple[Mapping[str, Any], list[tuple[str, str]]]]:
        held = Counter(
            (key, value) for record in self.records for key, value in record.items() if isinstance(value, str)
        )
        return [
            (
                record,
                [(key, value) for key, value in record.items() if isinstance(value, str) and held[key, value] == 1],
            )
            for record in self.records
        ]

    @cached_property
    def states(self) -> Mapping[str, frozenset[str]]:
        """The texts of each key of a state, and of others at most half as many as there are records; two or more."""
        states: dict[str, set[str]] = {}
        for record in self.records:
            for key, value in record.items():
                if isinstance(value, str) and read_leaf(value) is None:
                    states.setdefault(key, set()).add(value)
        return {
            key: frozenset(of_key)
            for key, of_key in states.items()
            if len(of_key) > 1 and (len(of_key) <= len(self.records) / 2 or key.lower() in _STATE_KEYS)
        }

    @cached_property
    def _holders(self) -> Mapping[str, Mapping[str, frozenset[int]]]:
        """The indices of the rows with a text, by key and text in words."""
        holders: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for index, record in enumerate(self.records):
            for key, value in record.items():
                if isinstance(value, str) and value:
                    holders[key][value.replace("_", " ").lower()].add(index)
        return {key: {text: frozenset(rows) for text, rows in of_key.items()} for key, of_key in holders.items()}

    def select(self, text: str) -> list[Rows]:
        """Return the rows that a sentence may be about: all, those that it describes ("refundable", "under €100")
        and those of two descriptions; where it denies something, the others.

        >>> rooms = RecordGroup([{"price": price, "sea_view": price > 50} for price in (40, 60, 80)])
        >>> [len(rows) for rows in rooms.select("Two have a sea view, one of them for under €70.")]
        [3, 2, 2, 1]
        """
        everything = frozenset(range(len(self.records)))
        described = list(islice(self._describe(text), _MAX_DESCRIPTIONS))
        if _OTHERS.search(text):
            selections = [everything, *(everything - rows for rows in described)]
        else:
            selections = [everything, *described, *(left & right for left, right in combinations(described, 2))]
        return [[self.records[index] for index in sorted(rows)] for rows in dict.fromkeys(selections) if rows]

    def _describe(self, text: str) -> Iterator[frozenset[int]]:
        lower, stems = text.lower(), stem_words(text)
        for key, words in self.flags.items():
            if words <= stems:
                yield frozenset(index for index, record in enumerate(self.records) if record.get(key) is True)
        for holders in self._holders.values():
            said = [rows for value, rows in holders.items() if value in lower and _has_words(lower, value)]
            yield from said
            if len(said) > 1:
                yield frozenset[int]().union(*said)
        for value in read_values(text):
            if keeps := _find_bound(text, value):
                for key in dict.fromkeys(key for record in self.records for key in record):
                    yield frozenset(
                        index
                        for index, record in enumerate(self.records)
                        if (number := _convert(record, key, value)) is not None and keeps(number, _read_amount(value))
                    )


def _has_words(text: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(words)}\b", text) is not None


def _find_bound(text: str, value: Value) -> Callable[[float, float], bool] | None:
    before, after = text[max(0, value.start - _BOUND_SIZE) : value.start].lower(), text[value.end :].lower()
    for pattern, keeps in _BOUNDS.items():
        if re.search(pattern, before):
            return keeps
    return next((keeps for pattern, keeps in _BOUNDS_AFTER.items() if re.match(pattern, after)), None)


@cache
def read_unit(unit: str) -> tuple[str, float]:
    """Return the measure of a unit, and its factor; an empty measure for another word."""
    return next(
        (
            (value.content.measure, float(value.content.factor))
            for value in read_values(f"1 {unit}")
            if isinstance(value.content, Measure)
        ),
        ("", 1.0),
    )


def _read_amount(value: Value) -> float:
    return value.content.amount if isinstance(value.content, Measure) else nan


def _is_same(number: float, value: Value) -> bool:
    return isinstance(value.content, Measure) and abs(number - value.content.amount) < _EXACT * value.content.factor


def _convert(row: Row, key: str, value: Value) -> float | None:
    """The number of a row in the unit of ``_read_amount``; None for no number, and for one of another measure."""
    number, content = read_leaf(row.get(key)), value.content
    if number is None or not isinstance(content, Measure):
        return None
    currency = row.get("currency", row.get("currency_code"))
    _, unit = split_key(key, number, currency if isinstance(currency, str) else _ANY_CURRENCY)
    if unit == _ANY_CURRENCY:
        return number * content.factor if value.kind in ("money", "number") else None
    if not unit:
        return number if value.kind == "number" else None
    measure, factor = read_unit(unit)
    return number * factor if measure == content.measure else number if value.kind == "number" else None


def has_sum(value: Value, selections: Sequence[Rows]) -> bool:
    """Return whether the numbers of a key in two or more rows add up to a value, as they are or times a quantity."""
    return any(_is_same(total, value) for rows in selections for total in _list_sums(rows, value))


def _list_sums(rows: Rows, value: Value) -> Iterator[float]:
    for key in rows[0] if len(rows) > 1 else ():
        numbers = [_convert(row, key, value) for row in rows]
        if None in numbers:
            continue
        of_key = [number for number in numbers if number is not None]
        yield fsum(of_key)
        for quantity in _QUANTITY.intersection(rows[0]) - {key}:
            counts = [read_leaf(row.get(quantity)) or 0.0 for row in rows]
            yield fsum(count * number for count, number in zip(counts, of_key, strict=True))


def has_extreme(value: Value, selections: Sequence[Rows], before: str) -> bool:
    """Return whether a value is the minimum or maximum of a key that the words before it state: "the cheapest is €59".

    Args:
        value: The value.
        selections: Rows that it may be of.
        before: The text before it, from what it would be a value of otherwise.
    """
    stated = _EXTREME.search(before)
    return stated is not None and any(
        extreme.is_value for extreme in list_extremes(value, selections, is_least=bool(stated["least"]))
    )


class Extreme(NamedTuple):
    """The minimum or maximum of a key, beside a value of a text."""

    key: str
    number: float
    is_value: bool
    """Whether it is the value."""
    is_held: bool
    """Whether a row has the value."""


def list_extremes(value: Value, selections: Sequence[Rows], *, is_least: bool) -> list[Extreme]:
    """Return the minimum or maximum of each key of some rows that may have a value.

    Args:
        value: The value.
        selections: The rows, by what they may be.
        is_least: Whether minima are meant, not maxima.
    """
    choose = min if is_least else max
    return [
        Extreme(key, choose(numbers), _is_same(choose(numbers), value), any(_is_same(n, value) for n in numbers))
        for rows in selections
        for key in rows[0]
        if (numbers := [number for row in rows if (number := _convert(row, key, value)) is not None])
    ]


def list_mentions(text: str, group: RecordGroup) -> Iterator[Mention]:
    """Yield where a text names records of a list: by a name, a code, a date or a time of day."""
    stems = {word: match.start() for match in re.finditer(r"[^\W\d_]+", text) for word in stem_words(match[0])}
    if not stems:
        return
    for record, names in group.names:
        for wanted in names:
            said = [stems[word] for word in wanted if word in stems]
            if wanted and len(said) * 2 >= len(wanted):
                yield Mention(min(said), record, group, "")
                break
    lower = text.lower()
    for record, title in group.titles:
        if (match := re.search(rf"\b{re.escape(title)}\b", lower) if title in lower else None) is not None:
            yield Mention(match.start(), record, group, "")
    for record, code in group.identifiers:
        if code in text and (match := re.search(rf"(?<![\w-]){re.escape(code)}(?![\w-])", text)) is not None:
            yield Mention(match.start(), record, group, "")
    for value in read_values(text) if group.clocks or group.dates else ():
        content = value.content
        if isinstance(content, Clock):
            for record, key, clock in group.clocks:
                if content.minutes % HALF_DAY == clock:
                    yield Mention(value.start, record, group, key)
        elif isinstance(content, Date):
            for record, key, day in group.dates:
                if is_day(content, day):
                    yield Mention(value.start, record, group, key)


def is_day(content: Date, day: date) -> bool:
    """Return whether a date of a text, with or without its year, is a day."""
    pairs = ((content.month, content.day), (content.day, content.month))[: 1 + content.either]
    return (day.month, day.day) in pairs and content.first in (None, day.year)


def _may_name(value: str) -> bool:
    return re.search(r"[^\W\d_]{3}", value) is not None and read_clock(value) is None and read_date(value) is None


def list_values(record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the values of a record that are neither true nor false, with their paths."""
    return [(path.lstrip("."), leaf) for path, leaf in flatten(record).items() if not isinstance(leaf, bool)]


def read_leaf(leaf: Any) -> float | None:
    """The number that a value of a result is, or its text: 12, "£12.50"; None for another value, and for a code."""
    if isinstance(leaf, str):
        match = _NUMBER.fullmatch(leaf)
        return read_float(match["number"]) if match else None
    return read_float(leaf) if isinstance(leaf, int | float) and not isinstance(leaf, bool) else None


def flatten(record: Row) -> dict[str, Any]:
    """Return the values of a record and of the objects in it, by their paths."""
    return {path: value for path, _, value in list_leaves(record, "") if value is not None}
