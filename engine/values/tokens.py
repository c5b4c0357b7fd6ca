"""What values are made of: records of what a value is, and the tokens and sentences of a text.

A text is split in one pass of a regular expression. spaCy's words and sentences would take three microseconds per
character, which alone is more than a request's values may cost; and values need digits apart from letters ("5km").
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from groundwire.runtime.texts.characters import is_alphanumeric, is_digits

from ..schema.explanations import SpanType, ValueKind

NameType: TypeAlias = Literal["name", "person", "place", "organisation", "nationality"]
Hedge: TypeAlias = Literal["exact", "about", "almost", "more", "at_least", "less", "at_most", "within"]
Side: TypeAlias = Literal["none", "lower", "upper"]


class Measure(NamedTuple):
    """An amount of something, exact or as a range."""

    measure: str
    """What is measured; "count" for a number without a unit."""
    amount: float
    """In the measure's base unit."""
    step: float
    """The place of the last digit that was written, in the base unit."""
    hedge: Hedge = "exact"
    nouns: frozenset[str] = frozenset()
    """Stems of the words after a number or an ordinal: what is counted."""
    span: tuple[float, float] | None = None
    """Lowest and highest amount of the range that it is an end of."""
    factor: float = 1.0
    """Size of the unit that was written, in the base unit."""
    limit: Side = "none"
    """On which side it is what is allowed or required: "up to 5", "within 5 days", "the minimum age is 5"."""


class Date(NamedTuple):
    """A date as far as it is known: years from ``first`` to ``last`` (one, a decade, a century), month and day."""

    first: int | None
    last: int | None
    month: int | None = None
    day: int | None = None
    span: tuple[int, int] | None = None
    """First and last year of the period that it is an end of."""
    either: bool = False
    """Whether month and day may be the other way round: 5/11/2025."""
    days: tuple[int, int] | None = None
    """First and last day of the period that it is an end of, as ``month * 32 + day``."""


ClockRole: TypeAlias = Literal["", "opens", "closes"]


class Clock(NamedTuple):
    """A time of day in minutes, 0 to 1439."""

    minutes: int
    half_known: bool
    """Whether it is known to be before or after noon."""
    role: ClockRole = ""
    """Whether something opens or begins then, or closes or ends."""
    days: frozenset[int] = frozenset()
    """The days of the week that it belongs to, 0 for Monday; empty where the sentence names none."""
    span: tuple[int, int] | None = None
    """The times that it is one of, from the first to the last: "9–6"."""


class Days(NamedTuple):
    """Days of the week: "Saturday", "Mon–Fri", "weekends"."""

    days: frozenset[int]
    """0 for Monday."""


class ExactCode(NamedTuple):
    """What differs letter by letter, and not by size: a phone number, an address, a version, a room."""

    key: str
    """As it is compared."""
    label: str = ""
    """What it numbers ("room", "order"), or the product of a version; empty where nothing says so."""
    hedge: Hedge = "exact"
    """Whether a version is exact or a limit: "3.8 or later"."""


class Name(NamedTuple):
    """A name as it is compared."""

    words: tuple[str, ...]
    """Folded, without titles and connecting words; a nationality is its country."""
    type: NameType
    """``name`` when neither a title nor a word in it says more."""
    role: tuple[str, str]
    """The preposition before it, and the stem of the content word before that; empty strings for none."""
    optional: int = 0
    """Characters before the second word, if the first begins a sentence and may be no part of the name."""
    opens: bool = False
    """Whether it begins its sentence, as its subject may."""
    title: tuple[str, ...] = ()
    """All of its words in lower case, where "of" or the like is between them, as in titles of works."""


Content: TypeAlias = Measure | Date | Clock | Days | ExactCode | Name


class Value(NamedTuple):
    """A value that a text states: ``text[start:end]``."""

    kind: ValueKind
    start: int
    end: int
    sentence: int
    """Number of its sentence in the text, from 0; of one that corrects another, the other's."""
    content: Content
    corrects: bool = False
    """Whether it is said in the place of the value before it: "24 months; sorry, 36"."""

    @property
    def type(self) -> SpanType:
        """What its words are, as unsupported spans name it."""
        return _TYPES.get(self.kind, "number")

    @property
    def is_amount(self) -> bool:
        """Whether it is a number, a date or a time of day."""
        return isinstance(self.content, Measure | Date | Clock)


_TYPES: dict[ValueKind, SpanType] = {
    "date": "date",
    "time": "date",
    "weekday": "date",
    "name": "entity",
    "person": "entity",
    "place": "entity",
    "organisation": "entity",
    "nationality": "entity",
}
"""Types of kinds of values; other kinds are numbers."""


def read_table(words: str) -> list[str]:
    """The words of a table that is written as text with spaces."""
    return words.split()


_TABLES = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))


def load_table(name: str) -> list[str]:
    """The words of a table of ``tables.toml``, in its order."""
    words: str = _TABLES[name]["words"]
    return words.split()


def load_names(name: str) -> Mapping[str, str]:
    """The entries of a table of ``tables.toml`` that has other names for each of its words."""
    names: Mapping[str, str] = _TABLES[name]["names"]
    return names


TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_](?:['’]?[^\W\d_]|[\u0300-\u036f])*|\S")
"""A number in digits, a word, or a single other character."""
_ENDS = frozenset(".!?…")
_OPENING = frozenset("'‘*•-–—(")
_QUOTES = frozenset('"“«:')
_AFTER_ITEM = frozenset(".)")
"""What is after the number of an item."""
_CLOSING = frozenset("\"'”’)]»")
_ABBREVIATIONS = frozenset(load_table("abbreviations"))


NEGATIONS = frozenset(load_table("negations"))


class Token(NamedTuple):
    """A number in digits, a word or a single other character: ``text == whole[start:end]``."""

    text: str
    lower: str
    """In lower case, with straight apostrophes."""
    start: int
    end: int
    sentence: int
    """Number of its sentence in the text, from 0."""
    opens: bool
    """Whether it begins a sentence, or a quotation or line in it, where a capital says nothing."""


def text_at(tokens: Sequence[Token], index: int) -> str:
    """The token at ``index`` in lower case; empty before the first and after the last."""
    return tokens[index].lower if 0 <= index < len(tokens) else ""


def touches(tokens: Sequence[Token], index: int) -> bool:
    """Whether there is a token at ``index``, and one before it without a space between."""
    return 0 < index < len(tokens) and tokens[index].start == tokens[index - 1].end


def tokenize(text: str) -> list[Token]:
    """The tokens of ``text``, in order; takes time in proportion to its length.

    >>> [(token.text, token.sentence) for token in tokenize("It's 5km. Dr. Dre ran 1,000.5 of them!")]
    ... # doctest: +NORMALIZE_WHITESPACE
    [("It's", 0), ('5', 0), ('km', 0), ('.', 0), ('Dr', 1), ('.', 1), ('Dre', 1), ('ran', 1), ('1,000.5', 1),
     ('of', 1), ('them', 1), ('!', 1)]
    """
    return list(iterate_tokens(text))


def iterate_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of ``text``, reading it as far as they are asked for."""
    sentence, ended, opens, last_end = 0, False, True, 0
    last_lower, numbered = "", False
    for match in TOKEN.finditer(text):
        start, end = match.span()
        token = match[0]
        if start > last_end and (ended or "\n" in text[last_end:start]):
            sentence += last_end > 0
            opens, ended = True, False
        lower = token.lower() if token.isascii() else token.lower().replace("’", "'")
        yield Token(token, lower, start, end, sentence, opens)
        is_item = numbered and start == last_end and token in _AFTER_ITEM
        numbered = opens and is_digits(token)
        if is_alphanumeric(token[0]):
            ended = opens = False
        elif token in _ENDS:
            is_initial = len(last_lower) == 1 and is_alphanumeric(last_lower)
            ended = ended or not (token == "." and (is_initial or last_lower in _ABBREVIATIONS))
        else:
            ended = ended and token in _CLOSING
            opens = (opens and token in _OPENING) or token in _QUOTES
        opens = opens or is_item  # "1. Open the lid"
        last_end, last_lower = end, lower
