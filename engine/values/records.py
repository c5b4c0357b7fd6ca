"""What a value in a text is: a measure, a date, a time of day, a code or a name, with its range of characters."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from ..schema.explanations import ValueKind

NameType: TypeAlias = Literal["name", "person", "place", "organisation", "nationality"]
Hedge: TypeAlias = Literal["exact", "about", "almost", "more", "at_least", "less", "at_most"]


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
    """Number of its sentence in the text, from 0."""
    content: Content
