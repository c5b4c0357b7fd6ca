"""Finds the values that a text states: numbers, dates and names, in one pass over its tokens."""

from __future__ import annotations

from collections.abc import Sequence, Set

from .dates import MONTHS, read_clock, read_date
from .names import find_names
from .numbers import DENOMINATORS, ONES, ORDINALS, PLURAL_SCALES, SCALES, TENS
from .quantities import ReadMeasure, read_measure
from .records import Date, Measure, Value
from .tokens import Token, text_at
from .units import CURRENCY_SIGNS

_DECADES = frozenset(f"{word[:-1]}ies" for word in TENS)
_STARTS = frozenset({*ONES, *TENS, *ORDINALS, *DENOMINATORS, *PLURAL_SCALES, *MONTHS, *_DECADES}) | {
    "a", "an", "half", "noon", "midnight", "½", "¼", "¾", "⅓", "⅔",
}  # fmt: skip
"""Words that a number or date may begin with, in lower case."""
_AFTER_ARTICLE = frozenset({"hundred", "dozen", *SCALES, *DENOMINATORS})
_RANGE_SIGNS = frozenset({"-", "–", "—", "to", "and", "until", "till", "through"})


def find_values(
    tokens: Sequence[Token], capitalised: Set[str] = frozenset(), lower: Set[str] = frozenset()
) -> list[Value]:
    """The values that a text states, in order and disjoint; takes time in proportion to the number of its tokens.

    ``capitalised`` and ``lower``: words that are, and are not, written as names elsewhere (``find_names``).

    >>> from .tokens import tokenize
    >>> text = "It opened in May 1887, is 3,000 feet long, and Bob Ross painted it."
    >>> [(value.kind, text[value.start : value.end]) for value in find_values(tokenize(text))]
    [('date', 'May 1887'), ('quantity', '3,000 feet'), ('name', 'Bob Ross')]
    """
    amounts, taken = find_amounts(tokens)
    values = [*amounts, *find_names(tokens, taken, capitalised, lower)]
    values.sort(key=lambda value: value.start)
    return values


def find_amounts(tokens: Sequence[Token]) -> tuple[list[Value], set[int]]:
    """The values that are no names, in order, and the indices of their tokens."""
    values: list[Value] = []
    taken: set[int] = set()
    end = 0
    starts = [index for index, token in enumerate(tokens) if token.lower in _STARTS or token.text[0].isdecimal()]
    for index in starts:
        token = tokens[index]
        article = token.lower in ("a", "an") and text_at(tokens, index + 1) not in _AFTER_ARTICLE
        if index < end or article:
            continue
        value, end = _read_value(tokens, index)
        if value is None:
            continue
        if values and value.start < values[-1].end:  # "1$½": the sign belongs to the first
            value = value._replace(start=token.start)
        joined = _join_range(tokens, values[-1], value, index) if values else None
        values[-1:] = joined or (*values[-1:], value)
        taken.update(at for at in range(max(index - 2, 0), end) if tokens[at].start >= value.start)
    return values, taken


def _read_value(tokens: Sequence[Token], index: int) -> tuple[Value | None, int]:
    token = tokens[index]
    clock = read_clock(tokens, index)
    if clock is not None:
        return Value("time", token.start, tokens[clock[1] - 1].end, token.sentence, clock[0]), clock[1]
    currency = index > 0 and tokens[index - 1].text in CURRENCY_SIGNS
    date = None if currency else read_date(tokens, index)
    if date is not None:
        return Value("date", token.start, tokens[date.end - 1].end, token.sentence, date.date), date.end
    measure = read_measure(tokens, index)
    if measure is None:
        return None, index + 1
    return _make(tokens, measure), measure.end


def _make(tokens: Sequence[Token], read: ReadMeasure) -> Value:
    first = tokens[read.first]
    return Value(read.kind, first.start, tokens[read.end - 1].end, first.sentence, read.measure)


def _join_range(tokens: Sequence[Token], left: Value, right: Value, index: int) -> tuple[Value, Value] | None:
    """Both values with the range that they are the ends of ("from 1939 to 1945", "5–10 km"), or None."""
    at = index - 1 - (tokens[index - 1].text in CURRENCY_SIGNS)
    sign = tokens[at]
    if at < 1 or sign.lower not in _RANGE_SIGNS or tokens[at - 1].end != left.end:
        return None
    if sign.lower == "and" and not any(token.lower == "between" for token in tokens[max(0, at - 8) : at]):
        return None
    low, high = left.content, right.content
    if isinstance(low, Measure) and isinstance(high, Measure):
        if low.measure == "count" and not low.nouns and high.measure != "rank":
            factor = high.factor
            low = low._replace(
                measure=high.measure,
                amount=low.amount * factor,
                step=low.step * factor,
                nouns=high.nouns,
                factor=factor,
            )
            left = left._replace(kind=right.kind)
        if low.measure != high.measure or low.amount >= high.amount:
            return None
        span = (low.amount, high.amount)
        return left._replace(content=low._replace(span=span)), right._replace(content=high._replace(span=span))
    if isinstance(low, Date) and isinstance(high, Measure) and high.measure == "count" and low.first is not None:
        # 1939–45
        year = low.first - low.first % 100 + int(high.amount)
        if not (sign.text in "-–" and right.end - right.start == 2 and year > low.first and low.month is None):
            return None
        right, high = right._replace(kind="date"), Date(year, year)
    if isinstance(low, Date) and isinstance(high, Date) and low.first is not None and high.last is not None:
        if low.first > high.last:
            return None
        years = (low.first, high.last)
        return left._replace(content=low._replace(span=years)), right._replace(content=high._replace(span=years))
    return None
