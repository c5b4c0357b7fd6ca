"""Reads dates, times of day, days of the week and opening hours.

A date is as coarse as it is written ("May 1887", "the 1880s", "the 19th century"). A number is a time of day where the
words about it say so ("until 8", "opens at 9"), and a time belongs to the days that its part of the sentence names
("Mon–Fri 9–6, Sat 10–4").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from groundwire.runtime.texts.characters import is_digits, is_letters, is_lower_case, starts_upper

from ..text.calendar import DAYS, SHORT_DAYS, SHORT_MONTHS
from ..text.calendar import MONTHS as MONTH_NAMES
from .numbers import ONES, TENS, read_number, read_ordinal, stem
from .tokens import Clock, ClockRole, Date, Days, Measure, Token, Value, load_table, read_table, text_at, touches

MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, 1)} | SHORT_MONTHS
_WORDS_TOO = frozenset({"may", "march", "mar", "jan", "jun", "dec", "sep"})
"""Names of months that are other words too, and count with a capital only."""
_BEFORE_YEAR = frozenset(load_table("before_year"))
_BEFORE_MONTH = frozenset({"in", "since", "until", "by", "early", "late", "last", "next"})
_BETWEEN_MONTHS = frozenset({"-", "–", "to", "until", "till", "through", "and", ",", "/", "|"})
_ERAS = {"bc": -1, "bce": -1, "ad": 1, "ce": 1}
_DECADES = {word[:-1] + "ies": number for word, number in TENS.items()}
_FULL = re.compile(r"[12]\d{3}|20\d\d")
_NOON = {"noon": 720, "midday": 720, "midnight": 0}
_NIGHT, _MORNING = 240, 420
"""What opens from 7 am on and closes, as written, between 4 and 7 am is meant to close after noon: "09:00–05:00"."""
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
    if is_digits(token.text[0]):
        return (
            _read_numeric(tokens, index)
            or _read_day_first(tokens, index)
            or _read_decade(tokens, index)
            or _read_century(tokens, index)
            or _read_year(tokens, index)
        )
    if token.lower in MONTHS and (token.lower not in _WORDS_TOO or starts_upper(token.text)):
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
    if text_at(tokens, index - 1) == ":" and touches(tokens, index) and is_digits(text_at(tokens, index - 2)):
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
    hour = int(token.text) if is_digits(token.text) and len(token.text) <= 2 else ONES.get(token.lower)
    if hour is None or hour > 24:
        return None
    next_index, minutes, certain = index + 1, 0, False
    if is_digits(token.text) and text_at(tokens, next_index) == ":" and _is_minutes(tokens, next_index + 1):
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
    hour = int(following.text) if is_digits(following.text) and len(following.text) <= 2 else ONES.get(following.lower)
    word = is_letters(tokens[index].text) and tokens[index].lower in ("half", "quarter")
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
    return (int(text), index + 1) if is_digits(text) and len(text) <= 2 and 1 <= int(text) <= 31 else (0, index)


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
    if len(parts) == 3 and all(is_digits(part) and len(part) <= 4 for part in parts):
        return _check_date(int(parts[2]), int(parts[1]), int(parts[0]), index + 1)
    separator = text_at(tokens, index + 1)
    if separator not in ("-", "/", "–") or text_at(tokens, index + 3) != separator or index + 4 >= len(tokens):
        return None
    texts = [tokens[index + offset].text for offset in (0, 2, 4)]
    if (
        not all(is_digits(part) and len(part) <= 4 for part in texts)
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
    if following is None or not is_digits(token.text) or len(token.text) > 4:
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
    if era and is_digits(token.text) and len(token.text) <= 4:
        year = era * int(token.text)
        return ReadDate(Date(year, year), index + 2)
    if before == "ad" and is_digits(token.text) and len(token.text) <= 4:
        return ReadDate(Date(int(token.text), int(token.text)), index + 1)
    if not _FULL.fullmatch(token.text) or int(token.text) >= 2100:
        return None
    year = int(token.text)
    preceded = before in _BEFORE_YEAR or (before in MONTHS)
    is_plural = is_letters(following) and following[-1] == "s"
    counted = following in _COUNTED or (is_plural and following not in _NOT_COUNTED)
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
        if token.lower == "may" and not starts_upper(token.text) and text_at(tokens, index - 1) != "of"
        else MONTHS.get(token.lower)
    )


def _skip_point(tokens: Sequence[Token], index: int) -> int:
    """The index after the point of an abbreviated month."""
    short = 0 < index <= len(tokens) and len(tokens[index - 1].text) <= 4
    return index + (
        short and text_at(tokens, index) == "." and index + 1 < len(tokens) and is_digits(tokens[index + 1].text[0])
    )


def _is_minutes(tokens: Sequence[Token], index: int) -> bool:
    text = text_at(tokens, index)
    return len(text) == 2 and is_digits(text) and int(text) < 60 and touches(tokens, index)


NAMED_DAYS = {
    **{name: frozenset({number}) for name, number in SHORT_DAYS.items()},
    **{form: frozenset({number}) for number, name in enumerate(DAYS) for form in (name, f"{name}s")},
    **dict.fromkeys(("weekday", "weekdays"), frozenset(range(5))),
    **dict.fromkeys(("weekend", "weekends"), frozenset(range(5, 7))),
    **dict.fromkeys(("daily", "day"), frozenset(range(7))),
}
"""The days of the week that a word may name; "day" after "every"."""
_HOLIDAYS = frozenset({"black", "cyber", "easter", "good"})
"""Words that make a name of a day: "Black Friday"."""
_DASHES = frozenset("-–—")
_THROUGH = frozenset({*_DASHES, "to", "until", "till", "through", "thru"})
_TOGETHER = frozenset({",", "and", "&", "/", ", and", "or", "+"})
_CONTRASTS = frozenset({"but", "while", "whereas", ";"})
_HALVES = frozenset({"am", "pm", ".", "on"})
_EXCEPT = frozenset({"except", "excluding", "excl", "but"})
_OPEN = frozenset(load_table("open"))
_UNTIL = frozenset({"until", "till", "til"})
_AT = frozenset({"at", "from", "by", "before", "after", "since", "around"})
_CLOSES = _UNTIL | frozenset(load_table("closes"))
_OPENS = frozenset(load_table("opens"))
_IS = ("is", "are", "be", "'re", "'s")
_AFTER_HOURS = frozenset(map(stem, ("daily", "weekdays", "weekends", "sharp", "latest", *DAYS)))
"""Stems of words after an hour that it does not count."""


class _Group(NamedTuple):
    """Days of the week as a text names them."""

    first: int
    end: int
    """Index after its last token."""
    days: frozenset[int]


def read_hours(tokens: Sequence[Token], values: Sequence[Value], taken: set[int]) -> list[Value]:
    """The values of a text in order, with days of the week and with times of day instead of the numbers that are such.

    ``taken``: indices of the tokens of ``values``, to which the tokens of the days are added.

    >>> from .tokens import tokenize
    >>> from .knowledge import find_amounts
    >>> text = "Open Mon-Fri 9-6, until 8 on Saturday."
    >>> [(text[value.start : value.end], *value.content) for value in find_amounts(tokenize(text))[0]]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('Mon-Fri', frozenset({0, 1, 2, 3, 4})),
     ('9', 540, False, 'opens', frozenset({0, 1, 2, 3, 4}), (540, 1080)),
     ('6', 1080, False, 'closes', frozenset({0, 1, 2, 3, 4}), (540, 1080)),
     ('8', 480, False, 'closes', frozenset({5}), None), ('Saturday', frozenset({5}))]
    """
    values = _settle_halves(tokens, values)
    groups = list(_find_groups(tokens, taken))
    about_hours = {tokens[group.first].sentence for group in groups}
    about_hours |= {value.sentence for value in values if isinstance(value.content, Clock)}
    until: set[int] = set()
    for token in tokens:
        if token.lower in _OPEN:
            about_hours.add(token.sentence)
        elif token.lower in _UNTIL:
            until.add(token.sentence)
    if not about_hours | until:
        return list(values)
    indices = {token.start: index for index, token in enumerate(tokens) if token.sentence in about_hours | until}
    hours = _read_clocks(tokens, values, indices, about_hours)
    hours = _attach(tokens, hours, groups, indices)
    days = [_make(tokens, group) for group in groups if len(group.days) < 7]
    for group in groups:
        taken.update(range(group.first, group.end))
    return sorted([*hours, *days], key=lambda value: value.start)


def _settle_halves(tokens: Sequence[Token], values: Sequence[Value]) -> Sequence[Value]:
    """The values, with "9:30" before noon in a text that writes "21:30" too, and nothing like "9 pm"."""
    if not any(isinstance(value.content, Clock) and not value.content.half_known for value in values):
        return values
    numbers = {
        token.start: (token.text, text_at(tokens, index + 1) == ":")
        for index, token in enumerate(tokens)
        if is_digits(token.text)
    }
    clocks = [
        (value.content.half_known, *numbers[value.start])
        for value in values
        if isinstance(value.content, Clock) and value.start in numbers
    ]
    in_full = any(colon and int(hour) > 12 for _, hour, colon in clocks)
    in_halves = any(half_known and int(hour) <= 12 and not hour.startswith("0") for half_known, hour, _ in clocks)
    if not in_full or in_halves:
        return values
    return [
        value._replace(content=value.content._replace(half_known=True))
        if isinstance(value.content, Clock) and numbers.get(value.start, ("", False))[1]
        else value
        for value in values
    ]


def _make(tokens: Sequence[Token], group: _Group) -> Value:
    first = tokens[group.first]
    return Value("weekday", first.start, tokens[group.end - 1].end, first.sentence, Days(group.days))


def _find_groups(tokens: Sequence[Token], taken: set[int]) -> Iterator[_Group]:
    group: _Group | None = None
    for index, token in enumerate(tokens):
        if token.lower.removesuffix("'s") not in NAMED_DAYS:
            continue
        days = _read_days(tokens, index)
        if days is None or index in taken or (group is not None and index < group.end):
            continue
        if group is not None and tokens[group.first].sentence == token.sentence:
            between = [part.lower for part in tokens[group.end : index]]
            timed = is_digits(tokens[group.first - 1].text[0]) or text_at(tokens, group.first - 1) in _HALVES
            own_times = group.first > 0 and timed and is_digits(text_at(tokens, index + 1)[:1])
            if " ".join(between) in _TOGETHER and not own_times:
                group = group._replace(end=index + 1, days=group.days | days)
                continue
            if len(between) == 1 and between[0] in _THROUGH and len(days) == len(group.days) == 1:
                first, last = min(group.days), min(days)
                inside = range(first, last + 1 if last >= first else last + 8)
                group = group._replace(end=index + 1, days=frozenset(day % 7 for day in inside))
                continue
            if between and between[0] in _EXCEPT and len(between) <= 2:
                group = group._replace(end=index + 1, days=group.days - days)
                continue
        if group is not None:
            yield group
        group = _Group(index, index + 1, days)
    if group is not None:
        yield group


def _read_days(tokens: Sequence[Token], index: int) -> frozenset[int] | None:
    """The day or days that a word names, or None."""
    token, before = tokens[index], text_at(tokens, index - 1)
    name = token.lower.removesuffix("'s")
    if before in _HOLIDAYS or (name == "day" and before != "every"):
        return None
    if name in SHORT_DAYS and not starts_upper(token.text):
        return None
    if name in ("sat", "sun"):
        following = text_at(tokens, index + 1)
        beside = following in _DASHES or following in (":", "&", "/") or is_digits(following[:1])
        if not (beside or before in _DASHES or before in ("&", "/", "on")):
            return None
    return NAMED_DAYS.get(name)


def _read_clocks(
    tokens: Sequence[Token], values: Sequence[Value], indices: dict[int, int], about_hours: set[int]
) -> list[Value]:
    """The values, with a time of day for each number that is one, and the ranges of times."""
    read = list(values)
    for number, value in enumerate(read):
        if value.sentence not in about_hours and text_at(tokens, indices.get(value.start, 0) - 1) not in _UNTIL:
            continue
        first = indices.get(value.start)
        if first is None:
            continue
        clock = _as_clock(tokens, value)
        if clock is None or _is_address(tokens, value, first):
            continue
        left = read[number - 1] if number else None
        joined = left is not None and _is_range(tokens, left, first)
        if joined and left is not None:
            low = left.content if isinstance(left.content, Clock) else _as_clock(tokens, left)
            if low is not None:
                padded = tokens[first].text.startswith("0") and value.end == tokens[first + 2].end
                if padded and _MORNING <= low.minutes < 720 and _NIGHT <= clock.minutes < _MORNING:
                    clock = clock._replace(minutes=clock.minutes + 720)
                start, end = _order(low, clock)
                span = (start.minutes, end.minutes)
                read[number - 1] = left._replace(kind="time", content=start._replace(role="opens", span=span))
                read[number] = value._replace(kind="time", content=end._replace(role="closes", span=span))
                continue
        before = text_at(tokens, first - 1)
        if isinstance(value.content, Clock) or before in _UNTIL or (before in _AT and value.sentence in about_hours):
            role = _find_role(tokens, first)
            read[number] = value._replace(kind="time", content=clock._replace(role=role))
    return read


def _as_clock(tokens: Sequence[Token], value: Value) -> Clock | None:
    """A time of day, or a number that may be one."""
    content = value.content
    if isinstance(content, Clock):
        return content
    if not isinstance(content, Measure) or content.measure != "count" or content.hedge not in ("exact", "about"):
        return None
    if not content.nouns <= _AFTER_HOURS or value.end - value.start > 6:
        return None
    hour, rest = divmod(content.amount, 1)
    minutes = round(rest * 100)
    if not 0 < hour <= 24 or (rest and (content.step > 0.1 or minutes > 59)):
        return None
    return Clock(int(hour) % 24 * 60 + minutes, hour > 12)


def _is_address(tokens: Sequence[Token], value: Value, first: int) -> bool:
    """Whether a bare number has a name after it, as a house has: "at 2 Church Row"."""
    if isinstance(value.content, Clock):
        return False
    following = next((token for token in tokens[first : first + 4] if token.start >= value.end), None)
    if following is None or following.sentence != value.sentence or len(following.text) < 2:
        return False
    is_name = starts_upper(following.text) and is_lower_case(following.text[1:])
    return is_name and following.lower not in DAYS and following.lower not in SHORT_DAYS


def _is_range(tokens: Sequence[Token], left: Value, right: int) -> bool:
    dash = tokens[right - 1]
    return right > 1 and dash.lower in _THROUGH and tokens[right - 2].end == left.end and left.sentence == dash.sentence


def _order(start: Clock, end: Clock) -> tuple[Clock, Clock]:
    """The ends of a range, with the half of the day that follows from the other end."""
    if end.half_known and not start.half_known:
        earlier = start.minutes % 720 + end.minutes // 720 * 720
        start = start._replace(minutes=earlier if earlier < end.minutes else (earlier + 720) % 1440)
    elif not end.half_known and end.minutes <= start.minutes:
        end = end._replace(minutes=(end.minutes + 720) % 1440)
    return start, end


def _find_role(tokens: Sequence[Token], first: int) -> ClockRole:
    for index in range(first - 1, max(first - 5, -1), -1):
        token = tokens[index]
        if token.sentence != tokens[first].sentence or token.text in ",;:":
            break
        if token.lower in _CLOSES:
            return "closes"
        if token.lower in _OPENS:
            is_state = token.lower == "open" and text_at(tokens, first - 1) == "at"
            return "" if is_state and text_at(tokens, index - 1).endswith(_IS) else "opens"  # "we're open at 10"
        if is_digits(token.text[0]):
            break
    return ""


def _attach(
    tokens: Sequence[Token], values: Sequence[Value], groups: Sequence[_Group], indices: dict[int, int]
) -> list[Value]:
    """The values, with each time's days of the week.

    Days before times have the times up to the next days, days after times those since the last. Days that directly
    follow a time are the time's, and days after "but" or "while" are none of the times before it.
    """
    if not groups:
        return list(values)
    attached = list(values)
    events: list[tuple[int, int, _Group | None]] = [
        (indices[value.start], number, None)
        for number, value in enumerate(values)
        if isinstance(value.content, Clock) and value.start in indices
    ]
    events += [(group.first, -1, group) for group in groups if not _is_compared(tokens, group)]
    events.sort(key=lambda event: event[0])
    current: _Group | None = None
    last: _Group | None = None
    pending: list[int] = []
    sentence = -1
    for position, (first, number, group) in enumerate(events):
        if tokens[first].sentence != sentence:
            _give(attached, pending, last)
            current = last = None
            pending, sentence = [], tokens[first].sentence
        if position and any(token.lower in _CONTRASTS for token in tokens[events[position - 1][0] : first]):
            pending = []
        if group is None:
            pending.append(number)
            if current is not None and not _has_own_days(tokens, attached[number], groups, first):
                _give(attached, pending, current)
                pending = []
        else:
            current = last = group
            following = events[position + 1] if position + 1 < len(events) else None
            is_timed = following is not None and following[2] is None and tokens[following[0]].sentence == sentence
            if pending and is_timed and _is_apart(tokens, values[pending[-1]], group):
                pending = []  # "9–6; on Sundays 10–4"
            elif pending:
                _give(attached, pending, group)
                pending, current = [], None
    _give(attached, pending, last)
    return attached


def _is_compared(tokens: Sequence[Token], group: _Group) -> bool:
    """Whether days are what others are compared with: "later than on weekdays"."""
    return "than" in (text_at(tokens, group.first - 1), text_at(tokens, group.first - 2))


def _is_apart(tokens: Sequence[Token], value: Value, group: _Group) -> bool:
    """Whether a bracket, a comma or a semicolon is between a time and the days after it."""
    index = group.first - 1
    while index >= 0 and tokens[index].start >= value.end:
        if tokens[index].text in "(;,":
            return True
        index -= 1
    return False


def _has_own_days(tokens: Sequence[Token], value: Value, groups: Sequence[_Group], first: int) -> bool:
    """Whether days follow a time directly ("at 10 on Sundays") and no time of their own follows them."""
    index = first
    while index < len(tokens) and tokens[index].start < value.end:
        index += 1
    index += text_at(tokens, index) == "on"
    if index >= len(tokens) or _read_days(tokens, index) is None:
        return False
    following = index + 1
    while (
        following < len(tokens)
        and following < index + 4
        and (text_at(tokens, following) in _DASHES or _read_days(tokens, following) is not None)
    ):
        following += 1
    after = text_at(tokens, following)
    return not (after == ":" or is_digits(after[:1]))


def _give(values: list[Value], numbers: Sequence[int], group: _Group | None) -> None:
    if group is None:
        return
    for number in numbers:
        content = values[number].content
        assert isinstance(content, Clock)
        values[number] = values[number]._replace(content=content._replace(days=group.days))
