"""Values of worlds: what an answer says in another form is read back by an independent parser, and relations add up."""

from __future__ import annotations

import random
import re
from datetime import date, datetime
from typing import Any

import pytest

from groundwire.recipes.worlds.kinds import (
    ClockKind,
    Count,
    DateKind,
    FieldKind,
    Money,
    Percent,
    Quantity,
    draw_style,
    read_kind,
)
from groundwire.recipes.worlds.schema import read_domains
from groundwire.recipes.worlds.wording import Filled, join, mark_difference, parse

DRAWS = 2000
ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
FACTORS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "month": 1, "year": 12, "g": 1}
FACTORS |= {"kg": 1000, "ml": 1, "litre": 1000, "mm": 1, "cm": 10, "metre": 1000, "km": 1e6}


def read_number(text: str) -> float:
    if text in ("a", "an"):
        return 1
    if text in ONES:
        return ONES.index(text)
    tens, _, ones = text.partition("-")
    if tens in TENS:
        return TENS[tens] + (ONES.index(ones) if ones else 0)
    return float(text.replace(",", ""))


def read_clock(text: str) -> int:
    if text in ("noon", "midnight"):
        return 720 if text == "noon" else 0
    spelled = re.fullmatch(r"(?:(half past|quarter past|quarter to) )?(\w+) (?:in the|at) (\w+)", text)
    if spelled:
        shift, hour, part = spelled.groups()
        minutes = int(read_number(hour)) % 12 * 60
        minutes += {"half past": 30, "quarter past": 15, "quarter to": -15, None: 0}[shift]
        late = part in ("afternoon", "evening") or (part == "night" and minutes >= 6 * 60)
        return (minutes + 720 * late) % 1440
    hour, minute, half = re.fullmatch(r"(\d+)(?::(\d\d))?(?: ([ap])\.?m\.?)?", text).groups()  # type: ignore[union-attr]
    hours = int(hour) if half is None else int(hour) % 12 + 12 * (half == "p")
    return hours * 60 + int(minute or 0)


def read_date(text: str, year: int) -> date:
    text = re.sub(r"(\d)(st|nd|rd|th)", r"\1", text.replace("the ", "").replace(" of ", " ").replace(",", ""))
    if not re.search(r"\d{4}", text):
        text += f" {year}"
    for form in ("%d %B %Y", "%B %d %Y"):
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    raise AssertionError(text)


def read_measure(text: str) -> float:
    phrases = {"half an hour": 1800, "three quarters of an hour": 2700, "an hour and a half": 5400, "half a year": 6}
    phrases |= {"one and a half hours": 5400, "a year and a half": 18, "one and a half years": 18}
    if text in phrases:
        return phrases[text]
    total = 0.0
    for part in text.split(" and "):
        number, unit = part.split(" ", 1)
        total += read_number(number) * FACTORS.get(unit, FACTORS.get(unit.removesuffix("s"), 1))
    return total


def read_money(text: str) -> int:
    number = re.sub(r"[£$€]|\b(GBP|USD|EUR|pounds?|dollars?|euros?)\b", "", text).strip()
    return round(read_number(number) * 100)


def read_percent(text: str) -> float:
    return read_number(re.sub(r"\s*(%|per ?cent)$", "", text))


def read_value(kind: FieldKind, value: Any, text: str) -> object:
    if isinstance(kind, ClockKind):
        return read_clock(text)
    if isinstance(kind, DateKind):
        return read_date(text, value.year)
    if isinstance(kind, Money):
        return read_money(text)
    if isinstance(kind, Percent):
        return read_percent(text)
    if isinstance(kind, Count):
        return read_number(text)
    return read_measure(text)


TYPED = [
    field.kind
    for domain in read_domains().values()
    for field in domain.fields.values()
    if isinstance(field.kind, ClockKind | DateKind | Money | Percent | Count | Quantity)
]


def test_what_an_answer_says_is_the_value_of_the_record() -> None:
    rng = random.Random(5)
    for _ in range(DRAWS):
        kind = rng.choice(TYPED)
        value = kind.draw(rng)
        text = kind.write(value, draw_style("x", rng), rng, answer=True)
        expected = value
        if isinstance(kind, Quantity):
            number, unit = value
            expected = number * FACTORS.get(unit, FACTORS.get(unit.removesuffix("s"), 1))
        assert (
            read_value(kind, value, text) == pytest.approx(expected)
            if isinstance(expected, float)
            else (read_value(kind, value, text) == expected)
        ), text


def test_another_value_is_another_one() -> None:
    rng = random.Random(6)
    for _ in range(DRAWS):
        kind = rng.choice(TYPED)
        value = kind.draw(rng)
        other = kind.draw_other(value, rng)
        assert other is None or kind.identify(other) != kind.identify(value)


def test_a_measure_in_another_unit_is_the_same_measure() -> None:
    kind = read_kind("quantity days 14; weeks 2,3")
    assert kind.identify((14.0, "days")) == kind.identify((2.0, "weeks"))
    assert kind.identify((14.0, "days")) != kind.identify((3.0, "weeks"))


@pytest.mark.parametrize(
    ("template", "state", "expected"),
    [
        ("It is {v}.", 0, "It is 5 kg."),
        ("Dogs [may|may not] enter.", 1, "Dogs may not enter."),
        ("Free [from {v}|for all].", 0, "Free from 5 kg."),
        ("Free [from {v}|for all].", 1, "Free for all."),
        ("(Sure|Sure), it is.", 0, "Sure, it is."),
    ],
)
def test_a_template_is_filled(template: str, state: int, expected: str) -> None:
    assert join(parse(template).resolve(random.Random(0)).fill(Filled({"v": "5 kg"}, state))) == expected


def test_an_unbalanced_template_is_refused() -> None:
    with pytest.raises(ValueError, match="Unbalanced"):
        parse("Free from {v}|for all].")


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("30 days", "45 days", "45"),
        ("24 hours", "24 days", "days"),
        ("30 minutes", "half an hour", "half an hour"),
        ("7 am", "9 am", "9 am"),
        ("Lena Hart", "Marco Hart", "Marco Hart"),
        ("5 May 2025", "6 May 2025", "6 May 2025"),
    ],
)
def test_the_words_that_differ_are_marked(old: str, new: str, marked: str) -> None:
    parts = mark_difference(old, new, "number")
    assert "".join(part.text for part in parts) == new
    assert [part.text for part in parts if part.wrong] == [marked]
