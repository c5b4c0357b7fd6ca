"""What texts and results mention: words, numbers, times, dates and durations, in one form."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import accumulate
from math import isfinite
from typing import Any, NamedTuple

from groundwire.engine.extend import FUNCTION_WORDS, fold_word
from groundwire.engine.text.calendar import DAYS
from groundwire.engine.values import Clock, Date, Days, Measure, Value, read_values, stem
from groundwire.runtime.texts.characters import is_alphanumeric, is_letters

from .moments import DAY_MINUTES, HALF_DAY, ISO_DATE, cut_out
from .words import MONTHS, NUMBERS

_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_RUN = re.compile(r"[^\W_]+(?:(?<=\d)[.,](?=\d)[^\W_]+)*")
"""Letters and digits, and numbers with their commas and points."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_ONE_OR_TWO = re.compile(r"\b(?:(?:an|one)|(?P<two>couple of)) (?P<unit>minute|hour)(?(two)s)\b", re.IGNORECASE)
"""Durations that are no values."""
_SCALE = re.compile(r"\b(?:hundred|thousand|[mb]illion|dozen)\b", re.IGNORECASE)
_SPAN = re.compile(r"(\d+|[a-z]+) (night|day|week|month)s?\b", re.IGNORECASE)
RELATIVE = {
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
"""Days from today that words name."""
_NOT_NAMED = r"(?!(?:['’]s| is|:) )"
"""After a word whose date is not given beside it: "today is 6 March"."""
_SHARES = {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "double": 2, "twice": 2}
_COMPUTE = re.compile(r"\b(?:how many|work out|enough|calculate|as many)\b", re.IGNORECASE)
_INCLUDED = re.compile(r"\b(?:incl|including|included|of (?:which|whom|them|us)|among)\b", re.IGNORECASE)
MAX_ADDENDS, MAX_COUNT = 200, 31
_HALF = re.compile(r"\bhalf (\d{1,2}|[a-z]+)\b")
_LONGEST = 1e6
"""Minutes or hours that a duration has, at most."""
_EXACT = 1e-6
_HOURS, _DAYS = 24, 31
_ARTICLE = re.compile(r"\ban?\b")
_ONE_MORE = re.compile(
    r"\b(?:me|myself|i) and\b|\b(?:and|plus|with|add|adding) (?:me|myself|i|my|her|his|our|an?|one)\b"
    r"|\b(?:one more|another|extra)\b"
)
"""Words with which one more is meant: "my two sisters and me"."""
_PAIR = re.compile(r"\bmy (?!two|both)\w+ and (?:i|me|myself)\b|\b(?:i|me|myself) and my (?!two|both)\w+\b(?! \w+s\b)")
"""Someone beside whom one more is: "my wife and I"."""
_ROOM = re.compile(r"\b(?:double (?:rooms?|beds?|checks?)|half[ -]board|quarter(?:ly| finals?)|third[ -]party)\b")
"""Words of a share that are none."""
_AT = re.compile(r"(?:\b(?:at|by|after|before|from|to|till|until|around|about|past|since|between)|@|-|–)\s*$")
"""Words before an hour."""


def _is_moment(value: Value) -> bool:
    """Whether a value is a time of day, or a date with a month; a year alone may be another number."""
    return isinstance(value.content, Clock) or (isinstance(value.content, Date) and value.content.month is not None)


def _list_said(text: str) -> Counter[float]:
    """The numbers of a text in digits and words, and how often each is said."""
    said = Counter(abs(number) for word in _NUMBER.findall(text) if (number := read_float(word)) is not None)
    said.update(float(NUMBERS[word]) for word in re.findall(r"[a-z]+", text) if word in NUMBERS)
    return said


class Duration(NamedTuple):
    """Hours or minutes in a text."""

    start: int
    end: int
    minutes: float


def list_durations(text: str, values: Iterable[Value]) -> Iterator[Duration]:
    """Yield the durations in hours or minutes among the values of a text, then "an hour" and "a couple of minutes".

    Args:
        text: The text.
        values: Its values, in order.
    """
    read = [
        (value, value.content.amount * DAY_MINUTES)
        for value in values
        if value.kind == "duration" and isinstance(value.content, Measure) and value.content.factor < 1
    ]
    yield from (Duration(value.start, value.end, minutes) for value, minutes in read if minutes <= _LONGEST)
    for match in _ONE_OR_TWO.finditer(cut_out(text, (value for value, _ in read))):
        yield Duration(*match.span(), (2 if match["two"] else 1) * (60 if match["unit"].lower() == "hour" else 1))


def split_words(text: str) -> list[str]:
    """Return the words and numbers of a text or a key: ``find_roomType`` has three."""
    return _WORD.findall(_CAMEL.sub(" ", text.replace("_", " ")))


def stem_words(text: str, *, content: bool = True) -> set[str]:
    """Return the stems of the words of a text, without function words unless ``content`` is False."""
    return {stem(fold_word(word)) for word in split_words(text) if not content or word.lower() not in FUNCTION_WORDS}


class Mentions:
    """What some texts mention."""

    def __init__(self, texts: Iterable[str], *, has_hours: bool = True) -> None:
        """Read nothing yet.

        Args:
            texts: The texts, oldest first.
            has_hours: Whether bare numbers may be hours.
        """
        self.text = "\n".join(texts)
        self._has_hours = has_hours
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
    def _rest(self) -> str:
        """The texts without dates, times of day and amounts such as "two and a half", whose parts are no numbers of
        their own.
        """
        return cut_out(self.text, (value for value in self._values if _is_moment(value) or self._is_joined(value)))

    def _is_joined(self, value: Value) -> bool:
        """Whether an amount is written with a fraction or a scale in words: "two and a half", "half a dozen"."""
        content = value.content
        if not isinstance(content, Measure) or value.kind == "percentage":
            return False
        is_whole = abs(content.amount / content.factor % 1 - 0.5) > 0.5 - _EXACT
        return not is_whole or _SCALE.search(self.text, value.start, value.end) is not None

    @cached_property
    def numbers(self) -> set[float]:
        """Numbers in digits and words, but those of dates and times of day."""
        return _list_said(self._rest.lower()).keys() | self._amounts

    @cached_property
    def parts(self) -> set[float]:
        """Numbers in digits and words, with those of dates and times of day."""
        return _list_said(self.lower).keys() | self._amounts

    @cached_property
    def _amounts(self) -> set[float]:
        """Numbers with and without a unit, each as it is written and in its base unit."""
        return {
            abs(number)
            for value in self._values
            if isinstance(value.content, Measure)
            for number in (value.content.amount / value.content.factor, value.content.amount)
            if isfinite(number)
        }

    def find_measure(self, measure: str, amount: float) -> bool | None:
        """Whether an amount of a measure is mentioned, in whichever unit; None where none of the measure is."""
        contents = (value.content for value in self._values)
        said = [content.amount for content in contents if isinstance(content, Measure) and content.measure == measure]
        return any(abs(other - amount) <= _EXACT * amount for other in said) if said else None

    @cached_property
    def ordered(self) -> list[float]:
        """``numbers``, the smallest first."""
        return sorted(self.numbers)

    @cached_property
    def addends(self) -> list[float]:
        """The numbers whose sums may be meant, the smallest first; those that an utterance has twice are there twice,
        and one more where someone comes along. None of too many, which add up to anything, nor where one includes
        another.
        """
        if len(self.numbers) > MAX_ADDENDS or _INCLUDED.search(self.text):
            return []
        rest = _ARTICLE.sub(" ", self._rest.lower())
        twice = {number for line in rest.splitlines() for number, count in _list_said(line).items() if count > 1}
        more = [1.0] * (len(_ONE_MORE.findall(self.lower)) + len(_PAIR.findall(self.lower)))
        return sorted((*(_list_said(rest).keys() | self._amounts), *twice, *more))

    @cached_property
    def counts(self) -> list[float]:
        """Whole numbers that may be how many there are of something."""
        return [number for number in self.ordered if 1 < number <= MAX_COUNT and number == int(number)]

    @cached_property
    def shares(self) -> list[float]:
        """Shares that words name: 0.5 for "half"."""
        rest = _ROOM.sub(" ", self._rest.lower())
        return [share for word, share in _SHARES.items() if re.search(rf"\b{word}", rest)]

    @cached_property
    def asks_to_compute(self) -> bool:
        """Whether someone asks to work something out."""
        return _COMPUTE.search(self.text) is not None

    @cached_property
    def times(self) -> set[int]:
        """Times of day in minutes of half a day, as they are written; "half 5" is half past five."""
        return {minutes % HALF_DAY for minutes in self._exact_times | self._loose_times}

    @cached_property
    def _exact_times(self) -> set[int]:
        """Times of day in minutes that are known to be before or after noon."""
        clocks = (value.content for value in self._values if isinstance(value.content, Clock))
        return {clock.minutes for clock in clocks if clock.half_known}

    @cached_property
    def _loose_times(self) -> set[int]:
        """Times of day in minutes of half a day, of which nothing says whether they are before or after noon."""
        halves = {NUMBERS.get(hour, 0) if is_letters(hour) else float(hour) for hour in _HALF.findall(self.lower)}
        clocks = (value.content for value in self._values if isinstance(value.content, Clock))
        written = {clock.minutes % HALF_DAY for clock in clocks if not clock.half_known}
        return written | {int(hour) % 12 * 60 + 30 for hour in halves if 1 <= hour <= _HOURS / 2}

    @cached_property
    def hours(self) -> set[int]:
        """Times of day in minutes of half a day that bare numbers may be: "after 3", not "for 4 people"."""
        hours = (number for number, is_hour, _ in self._bare if is_hour and number <= _HOURS)
        return {int(hour) % 12 * 60 for hour in hours} if self._has_hours else set()

    @cached_property
    def _bare(self) -> list[tuple[float, bool, bool]]:
        """Whole numbers without a unit, whether each may be an hour, and whether it may be a day."""
        numbers = []
        for value in self._values:
            content = value.content
            if value.kind != "number" or not isinstance(content, Measure) or content.amount != int(content.amount):
                continue
            before, after = self.lower[max(0, value.start - 8) : value.start], self.lower[value.end : value.end + 4]
            is_alone = not content.nouns and not after.startswith(" of ")
            is_hour = _AT.search(before) is not None or (is_alone and not (before.endswith("for ") and self.times))
            numbers.append((content.amount, is_hour, is_alone and not _AT.search(before)))
        return numbers

    @cached_property
    def clocks(self) -> set[int]:
        """``times`` and ``hours``."""
        return self.times | self.hours

    def has_clock(self, clock: Clock) -> bool:
        """Whether a time of day is mentioned, as exactly as both are known."""
        if clock.half_known and clock.minutes in self._exact_times:
            return True
        loose = self._loose_times | self.hours if clock.half_known else self.clocks
        return clock.minutes % HALF_DAY in loose

    @cached_property
    def durations(self) -> set[int]:
        """Durations in minutes."""
        return {round(duration.minutes) for duration in list_durations(self.text, self._values)}

    @cached_property
    def months(self) -> set[int]:
        """Months that are named."""
        dates = [value.content for value in self._values if isinstance(value.content, Date)]
        return {date.month for date in dates if date.month} | {
            MONTHS.index(word) + 1 for word in re.findall(r"[a-z]+", self.lower) if word in MONTHS and word != "may"
        }

    @cached_property
    def years(self) -> Mapping[tuple[int, int], frozenset[int]]:
        """The years that are named with each month and day; none for a date without a year."""
        mentioned: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        for value in self._values:
            date = value.content
            if isinstance(date, Date) and date.month and date.day:
                for pair in ((date.month, date.day), (date.day, date.month))[: 1 + date.either]:
                    mentioned[pair] |= {date.first} if date.first and date.first == date.last else set()
        for year, month, day in ISO_DATE.findall(self.text):
            mentioned[int(month), int(day)].add(int(year))
        days = {int(day) for day in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)\b", self._rest.lower())}
        days |= {int(number) for number, _, is_day in self._bare if is_day}
        for pair in ((month, day) for month in self.months for day in days if 1 <= day <= _DAYS):
            mentioned[pair] |= set()
        return {pair: frozenset(of_pair) for pair, of_pair in mentioned.items()}

    @cached_property
    def dates(self) -> set[tuple[int, int]]:
        """Months and days."""
        return set(self.years)

    def has_date(self, day: date) -> bool:
        """Whether a day is mentioned; in its year, where one is said."""
        years = self.years.get((day.month, day.day))
        return years is not None and (not years or day.year in years)

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
    def open_weekdays(self) -> set[int]:
        """Days of the week that are named without their date: not those of "Friday, 6 March"."""
        bound = [
            day
            for before, day, after in zip([None, *self._values], self._values, [*self._values[1:], None], strict=False)
            if isinstance(day.content, Days) and (self._is_beside(before, day) or self._is_beside(day, after))
        ]
        return Mentions([cut_out(self.text, bound)]).weekdays if bound else self.weekdays

    def _is_beside(self, left: Value | None, right: Value | None) -> bool:
        """Whether two values are one date: nothing but a comma or an article is between them."""
        if (
            left is None
            or right is None
            or not any(_is_moment(value) and isinstance(value.content, Date) for value in (left, right))
        ):
            return False
        return re.fullmatch(r"\W*(?:(?:the|on)\W+)?", self.text[left.end : right.start]) is not None

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
        return {offset for word, offset in RELATIVE.items() if re.search(rf"\b{word}\b{_NOT_NAMED}", self.lower)}

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


def list_lengths(value: Any) -> Iterator[int]:
    """Yield the lengths of the lists in JSON."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from list_lengths(inner)
    elif isinstance(value, list | tuple):
        yield len(value)
        for inner in value:
            yield from list_lengths(inner)
