"""Derives a time or a date from another and a duration ("30 minutes before closing"), and a duration from two such."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import permutations

from .operands import Operand, are_linked, go_together, list_durations
from .records import Clock, Date, Measure
from .units import UNITS

_DAY_MINUTES = 1440
_YEAR_DAYS = UNITS["year"].factor
_LEAP_YEAR = 2024
"""The year of dates without one."""
_ONE_DAY = Measure("duration", 1.0, 1.0)


def measure_time(target: Measure, items: Sequence[Operand]) -> Iterator[str]:
    """Ages and spans of time: the years between two dates, the hours between two times of day."""
    if target.measure != "duration" and (target.measure != "count" or target.nouns):
        return
    factor = target.factor if target.measure == "duration" else _YEAR_DAYS
    days = target.amount if target.measure == "duration" else target.amount * _YEAR_DAYS
    dates = [(item, item.value.content) for item in items if isinstance(item.value.content, Date)]
    for (left, start), (right, end) in permutations(dates, 2):
        if not go_together(left, right):
            continue
        years = start.first is not None and end.first is not None and start.first == start.last
        if not (years and end.first == end.last) and (start.day is None or end.day is None):
            continue
        between = _days_between(start, end)
        if between is None:
            continue
        whole = abs(between - days) < 1e-6 or abs(between + 1 - days) < 1e-6
        in_years = factor >= _YEAR_DAYS and start.first is not None and end.first is not None
        passed = in_years and end.first is not None and start.first is not None and end.first - start.first
        if (factor < _YEAR_DAYS and whole) or (
            in_years and passed and days > 0 and round(days / _YEAR_DAYS, 6) in (passed, passed - _has_more(start, end))
        ):
            yield f"{right.text} - {left.text}"
    if target.measure != "duration":
        return
    clocks = [(item, item.value.content) for item in items if isinstance(item.value.content, Clock)]
    for (left, opens), (right, closes) in permutations(clocks, 2):
        if not go_together(left, right):
            continue
        period = _DAY_MINUTES if opens.half_known and closes.half_known else _DAY_MINUTES // 2
        if abs((closes.minutes - opens.minutes) % period - days * _DAY_MINUTES) < 1e-6:
            yield f"{right.text} - {left.text}"


def _has_more(start: Date, end: Date) -> int:
    """1 where a birthday of the later year may not have come."""
    return int(start.month is None or end.month is None or (end.month, end.day or 0) < (start.month, start.day or 0))


def _days_between(start: Date, end: Date) -> int | None:
    left, right = _make_date(start), _make_date(end)
    return None if left is None or right is None else (right - left).days


def _make_date(content: Date) -> date | None:
    try:
        return date(content.first or _LEAP_YEAR, content.month or 1, content.day or 1)
    except ValueError:
        return None


def derive_clock(target: Clock, items: Sequence[Operand], *, passing: bool) -> Iterator[str]:
    """How a time follows from another and a duration; any duration will do if words say that time is ``passing``."""
    for item, duration in list_durations(items):
        if not (passing or item.related):
            continue
        minutes = round(duration.amount * _DAY_MINUTES)
        if not 0 < minutes < _DAY_MINUTES:
            continue
        for other in items:
            content = other.value.content
            if not isinstance(content, Clock) or not are_linked(item, other):
                continue
            period = _DAY_MINUTES if content.half_known and target.half_known else _DAY_MINUTES // 2
            for operator, sum_minutes in (("-", content.minutes - minutes), ("+", content.minutes + minutes)):
                if (sum_minutes - target.minutes) % period == 0:
                    yield f"{other.text} {operator} {item.text}"


def derive_date(target: Date, items: Sequence[Operand], *, again: bool) -> Iterator[str]:
    """How a date follows from another; ``again``: whether words say that something begins after a period."""
    dates = [(item, item.value.content) for item in items if isinstance(item.value.content, Date)]
    for other, content in dates:
        # The day after a period, on which something opens again.
        day = [(" 1 day", _ONE_DAY)] if again and content.days is not None else []
        steps = [(f" {item.text}", step) for item, step in list_durations(items) if are_linked(item, other)]
        for text, duration in [*day, *steps]:
            for direction in (1, -1):
                if _is_after(target, content, duration, direction):
                    yield f"{other.text} {'+' if direction > 0 else '-'}{text}"


def _is_after(target: Date, start: Date, duration: Measure, direction: int) -> bool:
    """Whether a date is a duration after another, as coarse as both are."""
    months = duration.amount / UNITS["month"].factor
    if target.month is not None and target.day is None and start.month is not None:
        # "Until February 2026", of 20 February 2024 and 24 months; "in June", of March and three months
        apart = target.month - start.month
        if target.first is None or start.first is None:
            return round(months, 6).is_integer() and months < 12 and (direction * months - apart) % 12 < 1e-6
        return start.first == start.last and abs(direction * months - 12 * (target.first - start.first) - apart) < 1e-6
    if target.month is None or start.month is None or target.day is None or start.day is None:
        years = duration.amount / _YEAR_DAYS
        are_years = target.first is not None and start.first is not None and target.first == target.last
        same = target.month is None and are_years and start.first == start.last
        return same and abs((target.first or 0) - (start.first or 0) - direction * years) < 1e-6
    if duration.factor >= UNITS["month"].factor:
        apart = (target.month - start.month) % 12
        return target.day == start.day and round(direction * months) % 12 == apart
    begun = _make_date(start)
    if begun is None or abs(duration.amount - round(duration.amount)) > 1e-6 or duration.amount > 10_000:
        return False
    try:
        end = begun + timedelta(days=direction * round(duration.amount))
    except OverflowError:
        return False
    same_year = target.first is None or start.first is None or target.first == end.year
    return same_year and (end.month, end.day) == (target.month, target.day)
