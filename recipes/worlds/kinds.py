"""Kinds of values: how a value of each is drawn, compared, and written in a knowledge and in an answer."""

# ruff: noqa: D102 - the base class documents the methods of all kinds.
from __future__ import annotations

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from . import names
from .numerals import (
    ABBREVIATIONS,
    convert_measure,
    name_singular,
    spell_cardinal,
    to_base,
    write_measure,
    write_number,
)

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
CURRENCIES = {"£": ("GBP", "pound"), "$": ("USD", "dollar"), "€": ("EUR", "euro")}
CONVERTED = 0.4
"""Share of the measures of an answer that are in another form than the knowledge's, where there is one."""


@dataclass(frozen=True, slots=True)
class Style:
    """How the values of a record are written in its knowledge."""

    currency: str
    clock: int
    date: int
    site: str
    mark_currency: int = 0


def draw_style(site: str, rng: random.Random) -> Style:
    """Draw how a knowledge writes its values."""
    letters = "".join(letter for letter in site.lower() if letter in string.ascii_lowercase + string.digits)
    currency = rng.choice("£$€")
    return Style(currency, rng.randrange(4), rng.choice((0, 0, 1, 2, 3, 4)), letters, rng.choice((0, 0, 0, 0, 1)))


class FieldKind:
    """Values of a kind; the base writes them as they are."""

    group: str = ""
    """Values of one group can be exchanged."""
    reason: str = "entity"
    change: str = "value"
    """The name of the change to another value from outside."""

    def draw(self, rng: random.Random) -> Any:
        """Draw a value."""
        raise NotImplementedError

    def draw_other(self, value: Any, rng: random.Random) -> Any | None:
        """Draw another value of the same distribution, or one near to it; None where there is none."""
        for _ in range(12):
            other = self.draw(rng)
            if self.identify(other) != self.identify(value):
                return other
        return None

    def identify(self, value: Any) -> object:
        """Return what is equal for equal values, whatever their unit."""
        return value

    def write(self, value: Any, style: Style, rng: random.Random, answer: bool) -> str:
        """Write a value; in an answer perhaps in another form than in the knowledge."""
        return str(value)

    def write_cell(self, value: Any, style: Style, rng: random.Random) -> str:
        """Write a value for a table or an info-box."""
        return self.write(value, style, rng, answer=False)


@dataclass(frozen=True, slots=True)
class ClockKind(FieldKind):
    """A time of day, in minutes."""

    times: Sequence[int]
    group = "clock"
    reason = "date"

    def draw(self, rng: random.Random) -> int:
        return rng.choice(self.times)

    def write(self, value: int, style: Style, rng: random.Random, answer: bool) -> str:
        return write_clock(value, style.clock if not answer else rng.randrange(4), rng, answer)


def write_clock(value: int, form: int, rng: random.Random, answer: bool) -> str:
    """Write a time of day: 19:00 (forms 0 and 1), 7 pm (2), 7 p.m. (3), in answers also in words."""
    value %= 1440
    hour, minute = divmod(value, 60)
    if answer and rng.random() < 0.22:
        words = _spell_clock(hour, minute)
        if words:
            return words
    if form < 2:
        return f"{hour:02d}:{minute:02d}"
    half = ("am" if hour < 12 else "pm") if form == 2 else ("a.m." if hour < 12 else "p.m.")
    hour = hour % 12 or 12
    if minute or (answer and rng.random() < 0.2):
        return f"{hour}:{minute:02d} {half}"
    return f"{hour} {half}"


def _spell_clock(hour: int, minute: int) -> str:
    if (hour, minute) == (12, 0):
        return "noon"
    if (hour, minute) == (0, 0):
        return "midnight"
    part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
    if hour >= 22 or hour < 5:
        part = "at night"
    if minute == 0:
        return f"{spell_cardinal(hour % 12 or 12)} {part}"
    if minute == 30:
        return f"half past {spell_cardinal(hour % 12 or 12)} {part}"
    if minute == 15:
        return f"quarter past {spell_cardinal(hour % 12 or 12)} {part}"
    if minute == 45 and hour % 12 != 11:
        return f"quarter to {spell_cardinal((hour + 1) % 12 or 12)} {part}"
    return ""


@dataclass(frozen=True, slots=True)
class Money(FieldKind):
    """An amount, in hundredths."""

    low: int
    high: int
    group = "money"
    reason = "number"

    def draw(self, rng: random.Random) -> int:
        whole = rng.randint(self.low, self.high)
        if self.high >= 200:
            return 100 * (whole if rng.random() < 0.4 else max(self.low, whole // 5 * 5))
        return 100 * whole + rng.choice((0, 0, 0, 50, 95, 99, 20, 75) if self.high < 60 else (0, 0, 0, 0, 50, 99))

    def write(self, value: int, style: Style, rng: random.Random, answer: bool) -> str:
        return write_money(value, style, rng, answer)


def write_money(value: int, style: Style, rng: random.Random, answer: bool) -> str:
    """Write an amount."""
    code, noun = CURRENCIES[style.currency]
    digits = f"{value // 100:,}" if value % 100 == 0 else f"{value / 100:,.2f}"
    if not answer:
        digits = f"{value / 100:,.2f}" if value % 100 == 0 and style.clock % 2 and value < 10000 else digits
        return f"{code} {digits}" if style.mark_currency else f"{style.currency}{digits}"
    form = rng.random()
    if form < 0.14:
        whole = value % 100 == 0
        amount = spell_cardinal(value // 100) if whole and 100 < value <= 2000 and rng.random() < 0.5 else digits
        return f"{amount} {noun if value == 100 else noun + 's'}"
    if form < 0.18:
        return f"{digits} {code}"
    if form < 0.35 and value < 10000:
        return f"{style.currency}{value / 100:,.2f}"
    return f"{style.currency}{digits}"


@dataclass(frozen=True, slots=True)
class Quantity(FieldKind):
    """A number of a unit; several units where a record may have either."""

    choices: Sequence[tuple[float, str]]
    reason = "number"

    @property
    def group(self) -> str:  # type: ignore[override]
        """What the unit measures."""
        return to_base(*self.choices[0])[0]

    def draw(self, rng: random.Random) -> tuple[float, str]:
        return rng.choice(self.choices)

    def identify(self, value: tuple[float, str]) -> object:
        return to_base(*value)

    def draw_other_unit(self, value: tuple[float, str], rng: random.Random) -> tuple[float, str] | None:
        """Return the same number of another unit; None where the kind has none."""
        others = [choice for choice in self.choices if choice[0] == value[0] and choice[1] != value[1]]
        return rng.choice(others) if others else None

    def write(self, value: tuple[float, str], style: Style, rng: random.Random, answer: bool) -> str:
        if answer and (rng.random() < CONVERTED or (value[1] == "minutes" and value[0] > 120)):
            converted = convert_measure(*value, rng)
            if converted is not None:
                return converted
        return write_measure(*value, rng)

    def write_cell(self, value: tuple[float, str], style: Style, rng: random.Random) -> str:
        number, unit = value
        if unit in ABBREVIATIONS and rng.random() < 0.5:
            return f"{number:g} {ABBREVIATIONS[unit]}"
        return write_measure(number, unit, rng)

    def write_attribute(self, value: tuple[float, str], rng: random.Random) -> str:
        """Write a measure for the position before a noun: "14-day"."""
        return f"{write_number(value[0], rng, 0.5)}-{name_singular(value[1])}"


@dataclass(frozen=True, slots=True)
class Count(FieldKind):
    """A number of things, which the wording names."""

    numbers: Sequence[int]
    group = "count"
    reason = "number"

    def draw(self, rng: random.Random) -> int:
        return rng.choice(self.numbers)

    def write(self, value: int, style: Style, rng: random.Random, answer: bool) -> str:
        return write_number(value, rng, 0.45 if answer else 0.2)

    def write_cell(self, value: int, style: Style, rng: random.Random) -> str:
        return f"{value:,}"


@dataclass(frozen=True, slots=True)
class Percent(FieldKind):
    """A share in percent."""

    numbers: Sequence[int]
    group = "percent"
    reason = "number"

    def draw(self, rng: random.Random) -> int:
        return rng.choice(self.numbers)

    def write(self, value: int, style: Style, rng: random.Random, answer: bool) -> str:
        if not answer:
            return f"{value}%" if style.clock % 2 else f"{value} %"
        spelled = spell_cardinal(value) if value < 100 else value
        return rng.choice((f"{value}%", f"{value} percent", f"{value}%", f"{value} per cent", f"{spelled} percent"))


class Day(FieldKind):
    """A weekday."""

    group = "day"
    reason = "date"
    change = "day"

    def draw(self, rng: random.Random) -> int:
        return rng.randrange(7)

    def write(self, value: int, style: Style, rng: random.Random, answer: bool) -> str:
        return f"{DAYS[value]}s"

    def write_cell(self, value: int, style: Style, rng: random.Random) -> str:
        return DAYS[value]


@dataclass(frozen=True, slots=True)
class DateKind(FieldKind):
    """A day of a year."""

    low: int
    high: int
    group = "date"
    reason = "date"

    def draw(self, rng: random.Random) -> date:
        return date(rng.randint(self.low, self.high), 1, 1) + timedelta(rng.randrange(365))

    def draw_other(self, value: date, rng: random.Random) -> date | None:
        choice = rng.random()
        if choice < 0.3 and value.day <= 12 and value.day != value.month:
            return date(value.year, value.day, value.month)
        if choice < 0.6:
            return value + timedelta(rng.choice((-14, -7, -3, -2, -1, 1, 2, 3, 7, 14)))
        return FieldKind.draw_other(self, value, rng)

    def write(self, value: date, style: Style, rng: random.Random, answer: bool) -> str:
        return write_date(value, rng.choice((0, 1, 5, 6, 7, 8)) if answer else style.date)


def write_date(value: date, form: int) -> str:
    """Write a date: forms 3 and 4 are numbers, 7 and 8 leave the year out."""
    month = MONTHS[value.month - 1]
    ordinal = f"{value.day}{'th' if 10 < value.day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(value.day % 10, 'th')}"
    return (
        f"{value.day} {month} {value.year}",
        f"{month} {value.day}, {value.year}",
        f"{value.day} {month[:3]} {value.year}",
        f"{value.day:02d}/{value.month:02d}/{value.year}",
        value.isoformat(),
        f"{month} {ordinal}, {value.year}",
        f"the {ordinal} of {month} {value.year}",
        f"{value.day} {month}",
        f"{month} {ordinal}",
    )[form]


@dataclass(frozen=True, slots=True)
class Year(FieldKind):
    """A year."""

    low: int
    high: int
    group = "year"
    reason = "date"

    def draw(self, rng: random.Random) -> int:
        return rng.randint(self.low, self.high)

    def draw_other(self, value: int, rng: random.Random) -> int | None:
        if rng.random() < 0.5:
            return value + rng.choice((-10, -3, -2, -1, 1, 2, 3, 10))
        return FieldKind.draw_other(self, value, rng)


class PersonKind(FieldKind):
    """A person."""

    group = "person"
    change = "person"

    def draw(self, rng: random.Random) -> names.Person:
        return names.draw_person(rng)


@dataclass(frozen=True, slots=True)
class Words(FieldKind):
    """One of some words, such as materials; words of one group can be exchanged."""

    words: Sequence[str]
    group: str

    def draw(self, rng: random.Random) -> str:
        return rng.choice(self.words)


class Code(FieldKind):
    """Letters and digits by a pattern: ``9`` any digit, ``#`` a digit above zero, ``A`` a capital."""

    reason = "number"

    def __init__(self, patterns: Sequence[str], group: str) -> None:
        self._patterns = patterns
        self.group = group

    def draw(self, rng: random.Random) -> str:
        return "".join(_draw_letter(letter, rng) for letter in rng.choice(self._patterns))

    def draw_other(self, value: str, rng: random.Random) -> str | None:
        digits = [index for index, letter in enumerate(value) if letter.isdigit() and index > 1]
        if not digits or rng.random() < 0.3:
            return FieldKind.draw_other(self, value, rng)
        index = rng.choice(digits)
        digit = rng.choice([letter for letter in "123456789" if letter != value[index]])
        return value[:index] + digit + value[index + 1 :]

    def write(self, value: str, style: Style, rng: random.Random, answer: bool) -> str:
        if self.group == "phone" and answer and rng.random() < 0.3:
            return value.replace(" ", "-") if rng.random() < 0.5 else value.replace(" ", "")
        return value


def _draw_letter(letter: str, rng: random.Random) -> str:
    if letter == "9":
        return rng.choice(string.digits)
    if letter == "#":
        return rng.choice("123456789")
    return rng.choice("ABCDEFGHKLMNPRSTWXYZ") if letter == "@" else letter


class Address(FieldKind):
    """The first part of an e-mail address or the last part of a URL; the style has the site."""

    def __init__(self, group: str, words: Sequence[str]) -> None:
        self.group = group
        self._words = words

    def draw(self, rng: random.Random) -> str:
        return f"{rng.choice(self._words)}@{rng.choice(('com', 'org', 'net', 'eu', 'io'))}"

    def write(self, value: str, style: Style, rng: random.Random, answer: bool) -> str:
        word, ending = value.split("@")
        if self.group == "email":
            return f"{word}@{style.site}.{ending}"
        prefix = "https://" if rng.random() < 0.2 else "www." if rng.random() < 0.6 else ""
        return f"{prefix}{style.site}.{ending}/{word}"


class Drawn(FieldKind):
    """A name that a function draws."""

    def __init__(self, group: str, draw: Any) -> None:
        self.group = group
        self._draw = draw

    def draw(self, rng: random.Random) -> str:
        return str(self._draw(rng))


@dataclass(frozen=True, slots=True)
class State:
    """Which of its states a feature is in, and the value that a condition has."""

    state: int
    value: Any = None


@dataclass(frozen=True, slots=True)
class FeatureKind(FieldKind):
    """A feature with two or more states, each with an alternative in the wordings; perhaps with a value."""

    states: int
    inner: FieldKind | None = None
    change: str = "negation"
    group = "feature"
    reason = "negation"

    def draw(self, rng: random.Random) -> State:
        state = rng.randrange(self.states)
        return State(state, None if self.inner is None else self.inner.draw(rng))

    def identify(self, value: State) -> object:
        return value.state


EMAIL_WORDS = [
    "info",
    "hello",
    "service",
    "contact",
    "office",
    "team",
    "support",
    "booking",
    "help",
    "mail",
    "orders",
    "front.desk",
    "enquiries",
]


def _split(words: str) -> list[str]:
    """Split a list of words."""
    return words.split()


URL_WORDS = _split("contact booking help faq apply returns shop plans register prices terms account docs news tickets")
_NAMED: dict[str, FieldKind] = {
    "person": PersonKind(),
    "day": Day(),
    "place": Drawn("place", lambda rng: rng.choice(names.CITIES)),
    "street": Drawn("street", names.draw_street),
    "title": Drawn("title", names.draw_title),
    "brand": Drawn("brand", names.draw_coined),
    "phone": Code(("01#9 496 9999", "0#99 999 99 99", "+44 20 7946 9999", "555-01#9 99", "+49 30 #99 9999"), "phone"),
    "postcode": Code(("@@# 9@@", "#9999", "@# #@@", "@-#999"), "postcode"),
    "version": Code(("#.9.9", "#.#9", "#.9.#9"), "version"),
    "ident": Code(("@@-#999", "#99-@@", "@#9999", "@@@#99"), "ident"),
    "room": Code(("#09", "#1#", "@.#9", "@#9"), "room"),
    "email": Address("email", EMAIL_WORDS),
    "url": Address("url", URL_WORDS),
}


def read_kind(spec: str) -> FieldKind:
    """Make the kind that a schema names.

    Args:
        spec: A name alone: ``person``, ``day``, ``place``, ``street``, ``title``, ``brand``, ``phone``, ``postcode``,
            ``version``, ``ident``, ``room``, ``email``, ``url``. With numbers: ``clock 420-660-15`` (minutes: first,
            last, step), ``money 3-60``, ``date 2025-2026``, ``year 1925-2012``, ``count 2,3,5``, ``percent 5-20``,
            ``quantity days 2,3,14; weeks 2,3``. With words: ``words color red,blue``. With states: ``feature 2``,
            ``feature 3 condition money 5-25`` (the change of its false versions, and the kind of ``{v}``).

    Raises:
        ValueError: The kind is unknown, or a number is none.
        IndexError: An argument is missing.
    """
    name, *arguments = spec.split(" ", 2)
    if name in _NAMED:
        return _NAMED[name]
    if name == "clock":
        low, high, step = (int(number) for number in arguments[0].split("-"))
        return ClockKind(range(low, high + 1, step))
    if name in ("money", "date", "year"):
        low, high = (int(number) for number in arguments[0].split("-"))
        return {"money": Money, "date": DateKind, "year": Year}[name](low, high)
    if name == "quantity":
        measures = [measure.split(" ") for measure in " ".join(arguments).split("; ")]
        return Quantity(
            [(number, unit.replace("_", " ")) for unit, numbers in measures for number in _read_numbers(numbers)]
        )
    if name in ("count", "percent"):
        return {"count": Count, "percent": Percent}[name]([int(number) for number in _read_numbers(arguments[0])])
    if name == "words":
        return Words(arguments[1].split(","), arguments[0])
    if name == "feature":
        states, *rest = " ".join(arguments).split(" ", 2)
        change = rest[0] if rest else "negation"
        return FeatureKind(int(states), read_kind(rest[1]) if len(rest) > 1 else None, change)
    raise ValueError(f"No kind {spec!r}")


def _read_numbers(text: str) -> list[float]:
    if "-" in text:
        low, high = text.split("-")
        return [float(number) for number in range(int(low), int(high) + 1)]
    return [float(number) for number in text.split(",")]
