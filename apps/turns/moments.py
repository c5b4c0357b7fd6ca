"""Dates and times of day that the text of an argument or of a result is, as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

from groundwire.engine.values import Clock, Date, Days, Value, read_values

ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_TIME = re.compile(r"(?<![\d-])(\d\d):(\d\d)")
_MAX_LENGTH = 48
"""Characters of a text that is a date or a time, at most."""
_BESIDE = re.compile(r"(?:at|on|the|of|from|by|sharp|o['’]clock|t|z|(?::|[+-])?[\d:.]*|\W)*", re.IGNORECASE)
"""What may be around dates and times, with seconds and time zones."""
_DATE_LENGTH = len("2026-03-06")
DAY_MINUTES, HALF_DAY = 1440, 720
NO_YEAR = 2001
"""The year of dates where nothing says one: dates of the same year can be compared."""


class Moment(NamedTuple):
    """A date, a time of day, or both."""

    day: Date | None
    """Always with month and day."""
    clock: Clock | None
    weekdays: frozenset[int]
    """Days of the week that are named beside the date, 0 for Monday."""

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Month and day of the date; both orders where it may be read in two ways."""
        if self.day is None or not self.day.month or not self.day.day:
            return ()
        pair = (self.day.month, self.day.day)
        return (pair, pair[::-1]) if self.day.either else (pair,)

    def list_days(self, year: int) -> list[date]:
        """Return the days that the date may be.

        Args:
            year: Of a date that names none.
        """
        of_date = None if self.day is None else self.day.first
        days = (make_date(of_date or year, month, day) for month, day in self.pairs)
        return [day for day in days if day is not None]


def make_date(year: int, month: int, day: int) -> date | None:
    """Return a date; None for one that no calendar has."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def read_date(text: str) -> date | None:
    """Return the date that a text of ISO 8601 begins with; None for another text."""
    match = ISO_DATE.match(text.strip())
    return make_date(*map(int, match.groups())) if match else None


def read_clock(text: str) -> int | None:
    """Return the time in a text of ISO 8601 or ``HH:MM``, in minutes."""
    match = _TIME.search(text)
    return int(match[1]) * 60 + int(match[2]) if match else None


def move(day: date, days: int) -> date | None:
    """Return the date that is a number of days later; None beyond the calendar."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


@lru_cache(maxsize=4096)
def read_moment(text: str) -> Moment | None:
    """Return the date and time that a text is: "Fri 6 March, 7:45 pm"; None for any other text.

    >>> read_moment("7.45pm").clock.minutes, read_moment("06/03/2026").pairs, read_moment("four people at 8")
    (1185, ((3, 6), (6, 3)), None)
    """
    if len(text) > _MAX_LENGTH:
        return None
    if (day := read_date(text)) is not None:
        minutes = read_clock(text.strip()[_DATE_LENGTH:])
        date_of = Date(day.year, day.year, day.month, day.day)
        return Moment(date_of, None if minutes is None else Clock(minutes, half_known=True), frozenset())
    values = [value for value in read_values(text) if isinstance(value.content, Date | Clock | Days)]
    dates = [value.content for value in values if isinstance(value.content, Date) and value.content.day]
    clocks = [value.content for value in values if isinstance(value.content, Clock)]
    if len(dates) > 1 or len(clocks) > 1 or not (dates or clocks) or not _BESIDE.fullmatch(cut_out(text, values)):
        return None
    weekdays = frozenset(day for value in values if isinstance(value.content, Days) for day in value.content.days)
    return Moment(dates[0] if dates else None, clocks[0] if clocks else None, weekdays)


def cut_out(text: str, values: Iterable[Value]) -> str:
    """Return a text with spaces in the place of some of its values, which are in order."""
    parts, start = [], 0
    for value in values:
        parts += [text[start : value.start], " " * (value.end - max(start, value.start))]
        start = max(start, value.end)
    return "".join((*parts, text[start:]))
