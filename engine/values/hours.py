"""Reads days of the week and opening hours: "Mon–Fri 9–6, Sat 10–4", "open until 8", "closed on Sundays".

A number is a time of day where the words about it say so ("until 8", "opens at 9"), and a time belongs to the days that
its part of the sentence names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .dates import WEEKDAYS
from .numbers import stem
from .records import Clock, ClockRole, Days, Measure, Value
from .tokens import Token, read_table, text_at

_SHORT = {
    "mon": 0,
    "tue": 1,
    "tues": 1,
    "wed": 2,
    "weds": 2,
    "thu": 3,
    "thur": 3,
    "thurs": 3,
    "fri": 4,
    "sat": 5,
    "sun": 6,
}
_GROUPS = {
    "weekday": range(5), "weekdays": range(5), "weekend": range(5, 7), "weekends": range(5, 7), "daily": range(7),
}  # fmt: skip
_HOLIDAYS = frozenset({"black", "cyber", "easter", "good"})
"""Words that make a name of a day: "Black Friday"."""
_DASHES = frozenset("-–—")
_THROUGH = frozenset({*_DASHES, "to", "until", "till", "through", "thru"})
_TOGETHER = frozenset({",", "and", "&", "/", ", and", "or", "+"})
_CONTRASTS = frozenset({"but", "while", "whereas", ";"})
_HALVES = frozenset({"am", "pm", ".", "on"})
_EXCEPT = frozenset({"except", "excluding", "excl", "but"})
_OPEN = frozenset(
    read_table("""
    open opens opened opening openings close closes closed closing hours shut shuts
""")
)
_UNTIL = frozenset({"until", "till", "til"})
_AT = frozenset({"at", "from", "by", "before", "after", "since", "around"})
_CLOSES = _UNTIL | frozenset(read_table("by before close closes closing shut shuts end ends ending finish finishes"))
_OPENS = frozenset(read_table("from since open opens opening start starts starting begin begins"))
_AFTER_HOURS = frozenset(map(stem, ("daily", "weekdays", "weekends", "sharp", "latest", *WEEKDAYS)))
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
        if token.text.isdecimal()
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
        days = _read_days(tokens, index)
        if days is None or index in taken or (group is not None and index < group.end):
            continue
        if group is not None and tokens[group.first].sentence == token.sentence:
            between = [part.lower for part in tokens[group.end : index]]
            timed = tokens[group.first - 1].text[0].isdecimal() or text_at(tokens, group.first - 1) in _HALVES
            own_times = group.first > 0 and timed and text_at(tokens, index + 1)[:1].isdecimal()
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
    token = tokens[index]
    if text_at(tokens, index - 1) in _HOLIDAYS:
        return None
    lower = token.lower.removesuffix("'s")
    day = WEEKDAYS.get(lower)
    if day is None:
        day = WEEKDAYS.get(lower.removesuffix("s"))
    if day is not None:
        return frozenset({day})
    if lower in _GROUPS:
        return frozenset(_GROUPS[lower])
    if lower == "day" and text_at(tokens, index - 1) == "every":
        return frozenset(range(7))
    if lower not in _SHORT or not token.text[0].isupper():
        return None
    if lower in ("sat", "sun"):
        following, before = text_at(tokens, index + 1), text_at(tokens, index - 1)
        beside = following in _DASHES or following in (":", "&", "/") or following[:1].isdecimal()
        if not (beside or before in _DASHES or before in ("&", "/", "on")):
            return None
    return frozenset({_SHORT[lower]})


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
    is_name = following.text[0].isupper() and following.text[1:].islower()
    return is_name and following.lower not in WEEKDAYS and following.lower not in _SHORT


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
            return "opens"
        if token.text[0].isdecimal():
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
    return not (after == ":" or after[:1].isdecimal())


def _give(values: list[Value], numbers: Sequence[int], group: _Group | None) -> None:
    if group is None:
        return
    for number in numbers:
        content = values[number].content
        assert isinstance(content, Clock)
        values[number] = values[number]._replace(content=content._replace(days=group.days))
