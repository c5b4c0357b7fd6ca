"""Reads dates, as coarse as they are written ("May 1887", "the 1880s", "the 19th century"), and times of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .numbers import ONES, TENS, read_number, read_ordinal
from .records import Clock, Date
from .tokens import Token, read_table, text_at, touches

_MONTHS = read_table("january february march april may june july august september october november december")
MONTHS = {name: number for number, name in enumerate(_MONTHS, 1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
_DAYS = read_table("monday tuesday wednesday thursday friday saturday sunday")
WEEKDAYS = {name: number for number, name in enumerate(_DAYS)}
_WORDS_TOO = frozenset({"may", "march", "mar", "jan", "jun", "dec", "sep"})
"""Names of months that are other words too, and count with a capital only."""
_BEFORE_YEAR = frozenset(
    read_table("""
    in since by from to until till of after before between during circa c ca around and about early late mid year
    summer winter spring fall autumn through - – — ( , / '
""")
)
_BEFORE_MONTH = frozenset({"in", "since", "until", "by", "early", "late", "last", "next"})
_BETWEEN_MONTHS = frozenset({"-", "–", "to", "until", "till", "through", "and", ",", "/", "|"})
_ERAS = {"bc": -1, "bce": -1, "ad": 1, "ce": 1}
_DECADES = {word[:-1] + "ies": number for word, number in TENS.items()}
_FULL = re.compile(r"[12]\d{3}|20\d\d")
_NOON = {"noon": 720, "midday": 720, "midnight": 0}
_PARTS_OF_DAY = {"morning": 0, "afternoon": 12, "evening": 12, "night": 12}
_SPOKEN_MINUTES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}
_POINTED = re.compile(r"(\d{1,2})\.([0-5]\d)")
ZONE = re.compile(
    r"\b(?:(?:UTC|GMT)(?:[+−-]\d+)?|BST|CES?T|[ECMP][SD]T|[Tt]ime zones?|clock there"
    r"|(?:Eastern|Central|Mountain|Pacific|[Ll]ocal) (?:Standard |Daylight )?[Tt]ime)\b"
)
"""What names a zone in which times of day are given."""


class ReadDate(NamedTuple):
    """A date and the index after its last token."""

    date: Date
    end: int


def read_date(tokens: Sequence[Token], index: int) -> ReadDate | None:
    """The date that begins at ``tokens[index]``, or None.

    >>> from .tokens import tokenize
    >>> [read_date(tokenize(text), 0).date[:4] for text in ("12 May 1887", "May 1887", "1880s", "19th century")]
    [(1887, 1887, 5, 12), (1887, 1887, 5, None), (1880, 1889, None, None), (1800, 1899, None, None)]
    """
    token = tokens[index]
    if token.text[0].isdecimal():
        return (
            _read_numeric(tokens, index)
            or _read_day_first(tokens, index)
            or _read_decade(tokens, index)
            or _read_century(tokens, index)
            or _read_year(tokens, index)
        )
    if token.lower in MONTHS and (token.lower not in _WORDS_TOO or token.text[0].isupper()):
        return _read_month_first(tokens, index)
    if token.lower in _DECADES:
        first = 1900 + _DECADES[token.lower]
        before = text_at(tokens, index - 1)
        return ReadDate(Date(first, first + 9), index + 1) if before in ("the", "early", "late", "mid", "-") else None
    if token.lower in ONES or token.lower in TENS or token.lower.endswith(("th", "st", "nd", "rd")):
        spelled = _read_century(tokens, index) or _read_day_first(tokens, index)
        if spelled is not None:
            return spelled
        number = read_number(tokens, index)
        year = number is not None and (number.spelled_year or 2000 <= number.value < 2100)
        if number is not None and year and text_at(tokens, index - 1) in _BEFORE_YEAR:
            return ReadDate(Date(int(number.value), int(number.value)), number.end)
    return None


def read_clock(tokens: Sequence[Token], index: int) -> tuple[Clock, int] | None:
    """The time of day that begins at ``tokens[index]`` and the index after it, or None.

    >>> from .tokens import tokenize
    >>> [read_clock(tokenize(text), 0)[0].minutes for text in ("7:30 pm", "9 a.m.", "17:45", "noon")]
    [1170, 540, 1065, 720]
    >>> [read_clock(tokenize(text), 0)[0].minutes for text in ("7.30pm", "seven in the evening", "half past six")]
    [1170, 1140, 390]
    """
    token = tokens[index]
    if text_at(tokens, index - 1) == ":" and touches(tokens, index) and text_at(tokens, index - 2).isdecimal():
        return None  # the minutes of a time that is not one of day
    if token.lower in _NOON:
        return Clock(_NOON[token.lower], True), index + 1
    if token.text == "12" and text_at(tokens, index + 1) in _NOON:
        return Clock(_NOON[tokens[index + 1].lower], True), index + 2
    spoken = _read_spoken(tokens, index)
    if spoken is not None:
        return spoken
    pointed = _POINTED.fullmatch(token.text)
    if pointed is not None:
        half, next_index = _read_half(tokens, index + 1)
        if not half or not 0 < int(pointed[1]) <= 12:
            return None
        minutes = int(pointed[1]) % 12 * 60 + int(pointed[2])
        return Clock(minutes + 720 * (half == "pm"), True), next_index
    hour = int(token.text) if token.text.isdecimal() and len(token.text) <= 2 else ONES.get(token.lower)
    if hour is None or hour > 24:
        return None
    next_index, minutes, certain = index + 1, 0, False
    if token.text.isdecimal() and text_at(tokens, next_index) == ":" and _is_minutes(tokens, next_index + 1):
        minutes, next_index, certain = int(tokens[next_index + 1].text), next_index + 2, True
        if text_at(tokens, next_index) == ":" and _is_minutes(tokens, next_index + 1):
            # Seconds too, as in a log; "2:05:30" is the time of a race.
            return (Clock(hour % 24 * 60 + minutes, True), next_index + 2) if len(token.text) == 2 else None
    half, after = _read_half(tokens, next_index)
    if half and 0 < hour <= 12:
        return Clock((hour % 12 + 12 * (half == "pm")) * 60 + minutes, True), after
    if text_at(tokens, next_index) == "o'clock":
        part, after = _read_part_of_day(tokens, next_index + 1)
        return _make_clock(hour, 0, part), after
    part, after = _read_part_of_day(tokens, next_index)
    if part and 0 < hour <= 12:
        return _make_clock(hour, minutes, part), after
    half_known = hour > 12 or token.text.startswith("0")  # 09:00 and 0:30 are of a clock of 24 hours
    return (Clock(hour % 24 * 60 + minutes, half_known), next_index) if certain else None


def _read_half(tokens: Sequence[Token], index: int) -> tuple[str, int]:
    """Whether a time is before or after noon ("am", "p.m."), and the index after that; empty for neither."""
    half = text_at(tokens, index)
    if half in ("a", "p") and text_at(tokens, index + 1) == "." and text_at(tokens, index + 2) == "m":
        return half + "m", index + 3 + (text_at(tokens, index + 3) == ".")
    return (half, index + 1) if half in ("am", "pm") else ("", index)


def _read_part_of_day(tokens: Sequence[Token], index: int) -> tuple[str, int]:
    """The part of the day after an hour, and the index after it: "in the evening", "at night"; empty for none."""
    in_the = text_at(tokens, index) == "in" and text_at(tokens, index + 1) == "the"
    word = text_at(tokens, index + 2) if in_the else text_at(tokens, index + 1)
    if word in _PARTS_OF_DAY and (in_the or (word == "night" and text_at(tokens, index) == "at")):
        return word, index + 3 if in_the else index + 2
    return "", index


def _make_clock(hour: int, minutes: int, part: str) -> Clock:
    """The time of an hour in a part of the day; of either half of the day without one."""
    if not part or hour > 12:
        return Clock(hour % 24 * 60 + minutes, hour > 12)
    late = part == "night" and (hour == 12 or hour < 5)  # "one at night"
    return Clock((hour % 12 + (0 if late else _PARTS_OF_DAY[part])) * 60 + minutes, True)


def _read_spoken(tokens: Sequence[Token], index: int) -> tuple[Clock, int] | None:
    """Half past six, quarter to seven, ten past eight in the evening."""
    minutes = _SPOKEN_MINUTES.get(tokens[index].lower) or _SPOKEN_DIGITS.get(tokens[index].text)
    side = text_at(tokens, index + 1)
    if minutes is None or side not in ("past", "to") or index + 2 >= len(tokens):
        return None
    following = tokens[index + 2]
    hour = int(following.text) if following.text.isdecimal() and len(following.text) <= 2 else ONES.get(following.lower)
    word = tokens[index].text.isalpha() and tokens[index].lower in ("half", "quarter")
    if hour is None or not 0 < hour <= 12:
        return None
    half, end = _read_half(tokens, index + 3)
    part, end = ({"am": "morning", "pm": "evening"}[half], end) if half else _read_part_of_day(tokens, index + 3)
    if not (word or part or side == "past"):
        return None  # "five to ten people"
    clock = _make_clock(hour, 0, part)
    return clock._replace(minutes=(clock.minutes + (minutes if side == "past" else -minutes)) % 1440), end


_SPOKEN_DIGITS = {str(number): number for number in (5, 10, 15, 20, 25)}


def _read_day_first(tokens: Sequence[Token], index: int) -> ReadDate | None:
    """12 May 1887, 12th of May, 1887."""
    day, next_index = _read_day(tokens, index)
    next_index += text_at(tokens, next_index) == "of"
    month = _find_month(tokens, next_index)
    if not day or month is None:
        return None
    year, end = _read_year_after(tokens, _skip_point(tokens, next_index + 1))
    return ReadDate(Date(year, year, month, day), end)


def _read_month_first(tokens: Sequence[Token], index: int) -> ReadDate | None:
    """May 12, 1887; May 1887; May."""
    month = MONTHS[tokens[index].lower]
    next_index = _skip_point(tokens, index + 1)
    next_index += text_at(tokens, next_index) == "the"
    day, after_day = _read_day(tokens, next_index)
    if day:
        year, end = _read_year_after(tokens, after_day)
        return ReadDate(Date(year, year, month, day), end)
    year, end = _read_year_after(tokens, _skip_point(tokens, index + 1) + (text_at(tokens, index + 1) == "of"))
    if year is not None:
        return ReadDate(Date(year, year, month), end)
    before = text_at(tokens, index - 1)
    sure = len(tokens[index].lower) > 3 and tokens[index].lower not in _WORDS_TOO
    if not sure and before not in _BEFORE_MONTH and not _is_beside_month(tokens, index):
        return None
    return ReadDate(Date(None, None, month), index + 1)


def _is_beside_month(tokens: Sequence[Token], index: int) -> bool:
    """Whether another month is before or after a month: "May–Sept", "May and June"."""
    return any(
        text_at(tokens, index + step) in _BETWEEN_MONTHS and text_at(tokens, index + 2 * step) in MONTHS
        for step in (1, -1)
    )


def _read_day(tokens: Sequence[Token], index: int) -> tuple[int, int]:
    """A day of a month and the index after it; 0 for none."""
    if index >= len(tokens):
        return 0, index
    ordinal = read_ordinal(tokens, index)
    if ordinal is not None and 1 <= ordinal[0] <= 31:
        return ordinal
    text = tokens[index].text
    return (int(text), index + 1) if text.isdecimal() and len(text) <= 2 and 1 <= int(text) <= 31 else (0, index)


def _read_year_after(tokens: Sequence[Token], next_index: int) -> tuple[int | None, int]:
    """The year after a day or month, and the index after it; None and ``next_index`` without a year."""
    number = next_index + (text_at(tokens, next_index) in (",", "of"))
    if number < len(tokens) and _FULL.fullmatch(tokens[number].text):
        return int(tokens[number].text), number + 1
    return None, next_index


def _read_numeric(tokens: Sequence[Token], index: int) -> ReadDate | None:
    """1887-05-12, 12.5.1887, 12/05/1887."""
    text = tokens[index].text
    parts = text.split(".")
    if len(parts) == 3 and all(part.isdecimal() and len(part) <= 4 for part in parts):
        return _check_date(int(parts[2]), int(parts[1]), int(parts[0]), index + 1)
    separator = text_at(tokens, index + 1)
    if separator not in ("-", "/", "–") or text_at(tokens, index + 3) != separator or index + 4 >= len(tokens):
        return None
    texts = [tokens[index + offset].text for offset in (0, 2, 4)]
    if (
        not all(part.isdecimal() and len(part) <= 4 for part in texts)
        or tokens[index + 4].end - tokens[index].start > 10
    ):
        return None
    first, second, third = map(int, texts)
    if first > 999:
        return _check_date(first, second, third, index + 5)
    if third < 1000:
        if separator != "/" or len(texts[2]) != 2:
            return None
        third += 2000
    day, month = (first, second) if second <= 12 else (second, first)
    read = _check_date(third, month, day, index + 5)
    if read is not None and first <= 12 and second <= 12 and first != second:
        return ReadDate(read.date._replace(either=True), read.end)  # day and month may be either
    return read


def _check_date(year: int, month: int, day: int, end: int) -> ReadDate | None:
    valid = 1 <= month <= 12 and 1 <= day <= 31 and 1000 <= year < 3000
    return ReadDate(Date(year, year, month, day), end) if valid else None


def _read_decade(tokens: Sequence[Token], index: int) -> ReadDate | None:
    """1880s, 1880's, 80s; the 1800s are a century."""
    token = tokens[index]
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if following is None or not token.text.isdecimal() or len(token.text) > 4:
        return None
    if following.start != token.end and (following.text, text_at(tokens, index + 2)) != ("'", "s"):  # "the 1970 's"
        return None
    end = index + 2
    if following.lower in ("'", "’") and text_at(tokens, index + 2) == "s":
        end = index + 3
    elif following.lower != "s":
        return None
    first = int(token.text)
    if len(token.text) == 2 and first % 10 == 0 and first >= 20:
        return ReadDate(Date(1900 + first, 1909 + first), end)
    if len(token.text) != 4 or first % 10 or not 1000 <= first < 2100:
        return None
    return ReadDate(Date(first, first + (99 if first % 100 == 0 and first < 2000 else 9)), end)


def _read_century(tokens: Sequence[Token], index: int) -> ReadDate | None:
    """19th century, as people count: 1800 to 1899."""
    ordinal = read_ordinal(tokens, index)
    if ordinal is None or ordinal[0] > 30:
        return None
    next_index = ordinal[1] + (text_at(tokens, ordinal[1]) == "-")
    if text_at(tokens, next_index) not in ("century", "centuries"):
        return None
    era = _ERAS.get(text_at(tokens, next_index + 1), 0)
    first = max(100 * (ordinal[0] - 1), 1)
    last = 100 * ordinal[0] - 1
    if era < 0:
        return ReadDate(Date(-last, -first), next_index + 2)
    return ReadDate(Date(first, last), next_index + 1 + bool(era))


def _read_year(tokens: Sequence[Token], index: int) -> ReadDate | None:
    token = tokens[index]
    before, following = text_at(tokens, index - 1), text_at(tokens, index + 1)
    era = _ERAS.get(following, 0)
    if era and token.text.isdecimal() and len(token.text) <= 4:
        year = era * int(token.text)
        return ReadDate(Date(year, year), index + 2)
    if before == "ad" and token.text.isdecimal() and len(token.text) <= 4:
        return ReadDate(Date(int(token.text), int(token.text)), index + 1)
    if not _FULL.fullmatch(token.text) or int(token.text) >= 2100:
        return None
    year = int(token.text)
    preceded = before in _BEFORE_YEAR or (before in MONTHS)
    counted = following in _COUNTED or (following.isalpha() and following[-1] == "s" and following not in _NOT_COUNTED)
    return ReadDate(Date(year, year), index + 1) if preceded or not counted else None


_NOT_COUNTED = frozenset(read_table("was is as has his this us its does"))
"""Words in s that are not plurals, so that a number before them is a year."""
_COUNTED = frozenset({"of", "people", "men", "women", "children", "thousand", "million", "billion", "percent", "%"})


def _find_month(tokens: Sequence[Token], index: int) -> int | None:
    if index >= len(tokens):
        return None
    token = tokens[index]
    return (
        None
        if token.lower == "may" and not token.text[0].isupper() and text_at(tokens, index - 1) != "of"
        else MONTHS.get(token.lower)
    )


def _skip_point(tokens: Sequence[Token], index: int) -> int:
    """The index after the point of an abbreviated month."""
    short = 0 < index <= len(tokens) and len(tokens[index - 1].text) <= 4
    return index + (
        short and text_at(tokens, index) == "." and index + 1 < len(tokens) and tokens[index + 1].text[0].isdecimal()
    )


def _is_minutes(tokens: Sequence[Token], index: int) -> bool:
    text = text_at(tokens, index)
    return len(text) == 2 and text.isdecimal() and int(text) < 60 and touches(tokens, index)
