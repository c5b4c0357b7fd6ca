"""What texts and results mention: words, numbers, times, dates and durations, in one form."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cached_property
from itertools import accumulate
from math import isfinite
from typing import Any

from groundwire.engine.extend import FUNCTION_WORDS, fold_word
from groundwire.engine.text.calendar import DAYS
from groundwire.engine.values import Clock, Date, Days, Measure, Value, read_values, stem
from groundwire.runtime.texts.characters import is_alphanumeric, is_letters

from .words import MONTHS, NUMBERS

_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_RUN = re.compile(r"[^\W_]+(?:(?<=\d)[.,](?=\d)[^\W_]+)*")
"""Letters and digits, and numbers with their commas and points."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_TIME = re.compile(r"(?<![\d-])(\d\d):(\d\d)")
_DURATIONS = {
    "half an hour": 30,
    "half hour": 30,
    "an hour and a half": 90,
    "hour and a half": 90,
    "quarter of an hour": 15,
    "an hour": 60,
    "one hour": 60,
    "hours notice": 60,
}
_LENGTH = re.compile(r"(?<!half )\b(\d+(?:\.\d+)?|[a-z]+)[ -]?(minutes?|mins?|hours?|hrs?|h)\b", re.IGNORECASE)
_SPAN = re.compile(r"(\d+|[a-z]+) (night|day|week|month)s?\b", re.IGNORECASE)
_RELATIVE = {
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "tomorrow": 1,
    "tmrw": 1,
    "tmr": 1,
    "yesterday": -1,
    "day after tomorrow": 2,
}
_SHARES = {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "double": 2, "twice": 2}
_COMPUTE = re.compile(r"\b(?:how many|work out|enough|calculate|as many)\b", re.IGNORECASE)
_INCLUDED = re.compile(r"\b(?:incl|including|included|of (?:which|whom|them|us)|among)\b", re.IGNORECASE)
MAX_ADDENDS, MAX_COUNT = 200, 31
_HALF = re.compile(r"\bhalf (\d{1,2}|[a-z]+)\b")
DAY_MINUTES, HALF_DAY = 1440, 720
_LONGEST = 1e6
"""Minutes or hours that a duration has, at most."""
_EXACT = 1e-6
_HOURS = 24


def split_words(text: str) -> list[str]:
    """Return the words and numbers of a text or a key: ``find_roomType`` has three."""
    return _WORD.findall(_CAMEL.sub(" ", text.replace("_", " ")))


def stem_words(text: str, *, content: bool = True) -> set[str]:
    """Return the stems of the words of a text, without function words unless ``content`` is False."""
    return {stem(fold_word(word)) for word in split_words(text) if not content or word.lower() not in FUNCTION_WORDS}


class Mentions:
    """What some texts mention."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Read texts, oldest first."""
        self.text = "\n".join(texts)
        self.lower = self.text.lower()

    @cached_property
    def _values(self) -> list[Value]:
        return read_values(self.text)

    @cached_property
    def stems(self) -> set[str]:
        """Stems of all words."""
        return stem_words(self.text, content=False)

    @cached_property
    def _squeezed(self) -> tuple[str, frozenset[int]]:
        """Letters and digits alone, in lower case, and where words begin and end."""
        words = [squeeze(match[0]) for match in _RUN.finditer(self.lower)]
        return "".join(words), frozenset((0, *accumulate(map(len, words))))

    def has_squeezed(self, text: str) -> bool:
        """Whether whole words are those of a text, but for spaces, punctuation and capitals."""
        (words, bounds), wanted = self._squeezed, squeeze(text)
        start = words.find(wanted) if wanted else -1
        while start >= 0 and not (start in bounds and start + len(wanted) in bounds):
            start = words.find(wanted, start + 1)
        return start >= 0

    @cached_property
    def numbers(self) -> set[float]:
        """Numbers in digits and words."""
        mentioned = {abs(number) for text in _NUMBER.findall(self.text) if (number := read_float(text)) is not None}
        mentioned |= {
            abs(number)
            for value in self._values
            if isinstance(value.content, Measure)
            for number in (value.content.amount / value.content.factor, value.content.amount)
            if isfinite(number)
        }
        return mentioned | {float(NUMBERS[word]) for word in re.findall(r"[a-z]+", self.lower) if word in NUMBERS}

    @cached_property
    def ordered(self) -> list[float]:
        """``numbers``, the smallest first."""
        return sorted(self.numbers)

    @cached_property
    def addends(self) -> list[float]:
        """The numbers, and one, whose sums may be meant: none of too many, which add up to anything, nor where a number
        is said to include another."""
        if len(self.numbers) > MAX_ADDENDS or _INCLUDED.search(self.text):
            return []
        return sorted(self.numbers | {1.0})

    @cached_property
    def counts(self) -> list[float]:
        """Whole numbers that may be how many there are of something."""
        return [number for number in self.ordered if 1 < number <= MAX_COUNT and number == int(number)]

    @cached_property
    def shares(self) -> list[float]:
        """Shares that words name: 0.5 for "half"."""
        return [share for word, share in _SHARES.items() if word in self.lower]

    @cached_property
    def asks_to_compute(self) -> bool:
        """Whether someone asks to work something out."""
        return _COMPUTE.search(self.text) is not None

    @cached_property
    def times(self) -> set[int]:
        """Times of day in minutes of half a day, as they are written; "half 5" is half past five."""
        halves = {NUMBERS.get(hour, 0) if is_letters(hour) else float(hour) for hour in _HALF.findall(self.lower)}
        written = {value.content.minutes % HALF_DAY for value in self._values if isinstance(value.content, Clock)}
        return written | {int(hour) % 12 * 60 + 30 for hour in halves if 1 <= hour <= _HOURS / 2}

    @cached_property
    def clocks(self) -> set[int]:
        """``times``, and those that bare numbers may be: "after 3"."""
        hours = {int(number) for number in self.numbers if number == int(number) and 0 <= number <= _HOURS}
        return self.times | {hour % 12 * 60 for hour in hours}

    @cached_property
    def durations(self) -> set[int]:
        """Durations in minutes."""
        mentioned = {minutes for words, minutes in _DURATIONS.items() if re.search(rf"(?<!half ){words}", self.lower)}
        for amount, unit in _LENGTH.findall(self.lower):
            number = NUMBERS.get(amount) if is_letters(amount) else read_float(amount)
            if number is not None and number <= _LONGEST:
                mentioned.add(int(number * (60 if unit.startswith("h") else 1)))
        return mentioned

    @cached_property
    def months(self) -> set[int]:
        """Months that are named."""
        dates = [value.content for value in self._values if isinstance(value.content, Date)]
        return {date.month for date in dates if date.month} | {
            MONTHS.index(word) + 1 for word in re.findall(r"[a-z]+", self.lower) if word in MONTHS and word != "may"
        }

    @cached_property
    def dates(self) -> set[tuple[int, int]]:
        """Months and days."""
        mentioned = set()
        for value in self._values:
            if isinstance(value.content, Date) and value.content.month and value.content.day:
                mentioned.add((value.content.month, value.content.day))
                if value.content.either:
                    mentioned.add((value.content.day, value.content.month))
        mentioned |= {(int(month), int(day)) for _, month, day in _ISO.findall(self.text)}
        days = [int(day) for day in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", self.lower) if 1 <= int(day) <= 31]
        return mentioned | {(month, day) for month in self.months for day in days}

    @cached_property
    def days_alone(self) -> set[int]:
        """Days of a month that are named without it: "on the 12th"."""
        return {int(day) for day in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)\b", self.lower)}

    @cached_property
    def weekdays(self) -> set[int]:
        """Days of the week, 0 for Monday."""
        mentioned = {day for value in self._values if isinstance(value.content, Days) for day in value.content.days}
        return mentioned | {
            number for number, name in enumerate(DAYS) if re.search(rf"\b{name}|\b{name[:3]}s?\b", self.lower)
        }

    @cached_property
    def spans(self) -> set[int]:
        """Lengths in days: "three nights"."""
        mentioned = set()
        for amount, unit in _SPAN.findall(self.lower):
            number = NUMBERS.get(amount) if is_letters(amount) else read_float(amount)
            if number is not None and number == int(number):
                mentioned.add(int(number) * {"night": 1, "day": 1, "week": 7, "month": 30}[unit])
        return mentioned

    @cached_property
    def today(self) -> tuple[int, int] | None:
        """Month and day of a date that is said to be today."""
        for match in re.finditer(r"\btoday\b|\bnow\b", self.lower):
            near = self.text[max(0, match.start() - 40) : match.end() + 40]
            dates = Mentions([near]).dates
            if dates:
                return min(
                    dates,
                    key=lambda item: abs(self.lower.find(str(item[1]), max(0, match.start() - 40)) - match.start()),
                )
        return None

    @cached_property
    def relatives(self) -> set[int]:
        """Days from today that words name: 1 for "tomorrow"."""
        return {offset for word, offset in _RELATIVE.items() if re.search(rf"\b{word}\b", self.lower)}

    def has_number(self, number: float) -> bool:
        """Whether a number is mentioned."""
        return has_near(self.ordered, abs(number), _EXACT)


def squeeze(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(filter(is_alphanumeric, text.lower()))


def read_float(value: Any) -> float | None:
    """Return a number, or the one that a text is in digits; None for another text and for what is too large.

    >>> read_float("1,200.5"), read_float("192.168.0.7")
    (1200.5, None)
    """
    try:
        number = float(value.replace(",", "") if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def has_near(ordered: Sequence[float], number: float, margin: float) -> bool:
    """Whether one of some numbers, the smallest first, is so near."""
    index = bisect_left(ordered, number - margin)
    return index < len(ordered) and ordered[index] <= number + margin


def has_other(ordered: Sequence[float], index: int, low: float, high: float) -> bool:
    """Whether one of some numbers, the smallest first, but the one at an index, lies between two."""
    count = bisect_right(ordered, high) - bisect_left(ordered, low)
    return count > (low <= ordered[index] <= high)


def read_date(text: str) -> date | None:
    """Return the date that a text of ISO 8601 begins with; None for another text."""
    match = _ISO.match(text.strip())
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def read_clock(text: str) -> int | None:
    """Return the time in a text of ISO 8601 or ``HH:MM``, in minutes."""
    match = _TIME.search(text)
    return int(match[1]) * 60 + int(match[2]) if match else None


def list_leaves(value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the values in JSON that are not objects or lists: path, last key, value."""
    stack: list[tuple[str, str, Any]] = [(path, "", value)]
    while stack:
        where, key, item = stack.pop()
        if isinstance(item, dict):
            stack.extend((f"{where}.{name}", str(name), inner) for name, inner in reversed(item.items()))
        elif isinstance(item, list | tuple):
            stack.extend((f"{where}[{index}]", key, inner) for index, inner in reversed(list(enumerate(item))))
        else:
            yield where, key, item
