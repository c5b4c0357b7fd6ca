"""Reads amounts: numbers with their unit, currency or counted noun, percentages, ordinals, ages, and their hedges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..schema.explanations import ValueKind
from ..text.normalization import FUNCTION_WORDS
from .numbers import PLURAL_SCALES, Number, read_fraction, read_number, read_ordinal
from .records import Hedge, Measure
from .tokens import Token, read_table, text_at, touches
from .units import AREAS, CURRENCY_SIGNS, MONEY, ONE_LETTER, PER_HOUR, UNITS, VOLUMES, Unit, cube, square

_HEDGES: dict[tuple[str, ...], Hedge] = {
    ("more", "than"): "more", ("over",): "more", ("above",): "more", ("exceeding",): "more", ("beyond",): "more",
    ("at", "least"): "at_least", ("no", "fewer", "than"): "at_least", ("no", "less", "than"): "at_least",
    ("minimum", "of"): "at_least", ("less", "than"): "less", ("fewer", "than"): "less", ("under",): "less",
    ("below",): "less", ("at", "most"): "at_most", ("up", "to"): "at_most", ("no", "more", "than"): "at_most",
    ("maximum", "of"): "at_most", ("about",): "about", ("around",): "about", ("approximately",): "about",
    ("approx",): "about", ("roughly",): "about", ("some",): "about", ("circa",): "about", ("~",): "about",
    ("≈",): "about", ("estimated",): "about", ("close", "to"): "about", ("almost",): "almost", ("nearly",): "almost",
    ("just", "under"): "almost", ("not", "quite"): "almost", ("just", "over"): "about",
}  # fmt: skip
_LAST_WORDS = frozenset(words[-1] for words in _HEDGES)
_SOFT = frozenset({"a", "an", "the", "an estimated"})
_DETERMINERS = frozenset(read_table("the his her its their our my your this that only"))
_NOT_RANKS = frozenset(read_table("time times of half , . ! ? ; :"))
_PER_HOUR = (("per", "hour"), ("an", "hour"), ("/", "h"))
STEM = 5
"""Letters of a word that must agree for it to be the same noun or content word: "found" and "founded" do."""


class ReadMeasure(NamedTuple):
    """An amount, its kind, and the index after its last token."""

    kind: ValueKind
    measure: Measure
    end: int
    first: int
    """Index of its first token: a currency's sign may precede the number."""


def stem(word: str) -> str:
    """The beginning of a lower-case word, by which words are compared: "string" for "strings".

    >>> stem("founded") == stem("foundation"), stem("cat") == stem("cats"), stem("six")
    (True, True, 'six')
    """
    return word[:STEM] if len(word) > STEM else word.rstrip("s") or word


def read_measure(tokens: Sequence[Token], index: int) -> ReadMeasure | None:
    """The amount that begins at ``tokens[index]``, or None."""
    token = tokens[index]
    if token.lower in PLURAL_SCALES:
        return _read_plural_scale(tokens, index)
    fraction = read_fraction(tokens, index)
    if fraction is not None:
        return ReadMeasure(
            "percentage", Measure("share", fraction[0], 0.0, _find_hedge(tokens, index)), fraction[1], index
        )
    ordinal = read_ordinal(tokens, index)
    if ordinal is not None:
        return _read_ordinal(tokens, index, *ordinal)
    number = read_number(tokens, index)
    if number is None or not _may_count(tokens, index, number):
        return None
    return _read_with_unit(tokens, index, number)


def _read_plural_scale(tokens: Sequence[Token], index: int) -> ReadMeasure | None:
    """Hundreds of thousands of people: at least that many."""
    factor, at = PLURAL_SCALES[tokens[index].lower], index + 1
    if text_at(tokens, at) == "of" and text_at(tokens, at + 1) in PLURAL_SCALES:
        factor, at = factor * PLURAL_SCALES[text_at(tokens, at + 1)], at + 2
    if text_at(tokens, at) != "of":
        return None
    return ReadMeasure(
        "number", Measure("count", float(factor), float(factor), "at_least", _read_nouns(tokens, at + 1)), at, index
    )


def _read_ordinal(tokens: Sequence[Token], index: int, rank: int, end: int) -> ReadMeasure | None:
    """An ordinal that ranks something: "the second album", but not "the first time" or "secondly"."""
    spelled = not tokens[index].text[0].isdecimal()
    before = text_at(tokens, index - 1)
    determined = before in _DETERMINERS or before.endswith(("'s", "s'")) or before == "'"
    if spelled and not determined:
        return None
    if spelled and text_at(tokens, end) in _NOT_RANKS and not (rank > 2 and text_at(tokens, end) == "of"):
        return None
    return ReadMeasure("ordinal", Measure("rank", float(rank), 0.0, "exact", _read_nouns(tokens, end)), end, index)


def _may_count(tokens: Sequence[Token], index: int, number: Number) -> bool:
    """Whether a number is an amount and no part of a word, a name or a list."""
    token, before, following = tokens[index], text_at(tokens, index - 1), text_at(tokens, number.end)
    spelled = token.text.isalpha()
    if token.lower == "one" and number.end == index + 1:
        return following in UNITS and following != "second"
    if spelled and before in ("the", "these", "those") and (not following[:1].isalpha() or following in FUNCTION_WORDS):
        return False  # "the two": who was named before
    if touches(tokens, index) and (before.isalpha() or before in ("#", "/", "_", "@")):
        return False  # U2, 24/7, #1
    if before == "-" and touches(tokens, index - 1) and text_at(tokens, index - 2).isalpha():
        # COVID-19, but mid-1980s and "ten-fifteen"
        return spelled or not touches(tokens, index) or text_at(tokens, index - 2) in ("mid", "pre", "post")
    if touches(tokens, number.end):
        if following in ("/", "_"):
            return False
        if following in (".", ")") and token.opens and token.text.isdecimal() and len(token.text) < 3:
            at = number.end + 1  # "1. A list"; a sentence may end with a number, too
            return at == len(tokens) or tokens[at].sentence != token.sentence
    # "Two" inside a name: World War Two.
    return token.opens or not (
        spelled and token.text[0].isupper() and index > 0 and tokens[index - 1].text[0].isupper()
    )


def _read_with_unit(tokens: Sequence[Token], index: int, number: Number) -> ReadMeasure:
    before = text_at(tokens, index - 1)
    if before in CURRENCY_SIGNS:
        return _read_money(tokens, index, number)
    hedge = _find_hedge(tokens, index)
    unit_end = _read_unit(tokens, number.end)
    if unit_end is not None:
        unit, end = unit_end
        kind: ValueKind = "quantity"
        if unit.measure == "share":
            kind = "percentage"
        elif unit.measure in MONEY:
            kind = "money"
        elif unit.measure == "duration":
            kind, end = _read_age(tokens, end)
        amount, step = number.value * unit.factor + unit.offset, number.step * unit.factor
        hedge = _hedge_after(tokens, end, hedge)
        return ReadMeasure(kind, Measure(unit.measure, amount, step, hedge, factor=unit.factor), end, index)
    if before in ("aged", "age") or (before == "of" and text_at(tokens, index - 2) == "age"):
        year = UNITS["year"].factor
        return ReadMeasure("age", Measure("duration", number.value * year, year, hedge, factor=year), number.end, index)
    hedge = _hedge_after(tokens, number.end, hedge)
    nouns = _read_nouns(tokens, number.end)
    return ReadMeasure("number", Measure("count", number.value, number.step, hedge, nouns), number.end, index)


def _read_money(tokens: Sequence[Token], index: int, number: Number) -> ReadMeasure:
    """$25 million, US$25m, €20."""
    first = index - 1
    first -= touches(tokens, first) and text_at(tokens, first - 1) in ("us", "a", "c", "nz")
    factor, end = 1.0, number.end
    if touches(tokens, end) and text_at(tokens, end) in ("m", "mn", "b"):
        factor, end = (1e9 if text_at(tokens, end) == "b" else 1e6), end + 1
    amount, step = number.value * factor, number.step * factor
    end += text_at(tokens, end) in ("usd", "eur", "gbp", "dollars", "euros")
    measure = UNITS[tokens[index - 1].text].measure
    return ReadMeasure("money", Measure(measure, amount, step, _find_hedge(tokens, first)), end, first)


def _read_unit(tokens: Sequence[Token], at: int) -> tuple[Unit, int] | None:
    """The unit that begins at a token, and the index after it."""
    if at >= len(tokens):
        return None
    at += tokens[at].text == "-" and touches(tokens, at) and at + 1 < len(tokens)
    token = tokens[at]
    if token.lower in AREAS or token.lower in VOLUMES:
        side = UNITS.get(text_at(tokens, at + 1))
        power = None if side is None else square(side) if token.lower in AREAS else cube(side)
        return (power, at + 2) if power else None
    if token.lower == "per" and text_at(tokens, at + 1) == "cent":
        return UNITS["percent"], at + 2
    following = text_at(tokens, at + 1)
    if token.lower in ("us", "american", "canadian", "australian") and following in ("dollars", "dollar", "$"):
        return UNITS["dollars"], at + 2
    unit = UNITS.get(token.lower)
    if unit is None:
        return None
    written = token.text in ONE_LETTER and tokens[at - 1].text[-1].isdecimal()
    if len(token.text) == 1 and token.text.isalpha() and not written:
        return None
    if token.lower in PER_HOUR and (following, text_at(tokens, at + 2)) in _PER_HOUR:
        return PER_HOUR[token.lower], at + 3
    if unit.measure == "degree":
        scale = {"c": "celsius", "f": "fahrenheit"}.get(following, following)
        if scale in ("celsius", "fahrenheit"):
            return UNITS[scale], at + 2
    if unit.measure == "pound" and following == "sterling":
        return UNITS["£"], at + 2
    if token.lower == "percentage" and following in ("point", "points"):
        return unit, at + 2
    return unit, at + 1


def _read_age(tokens: Sequence[Token], end: int) -> tuple[ValueKind, int]:
    """Whether a duration is an age ("34 years old", "a 34-year-old"), and the index after it."""
    at = end + (text_at(tokens, end) == "-")
    if text_at(tokens, at) in ("old", "olds"):
        return "age", at + 1
    if text_at(tokens, at) == "of" and text_at(tokens, at + 1) == "age":
        return "age", at + 2
    return "duration", end


def _read_nouns(tokens: Sequence[Token], at: int) -> frozenset[str]:
    """Stems of up to three content words that follow a number without a break."""
    nouns: list[str] = []
    at += at < len(tokens) and tokens[at].text == "-"
    if text_at(tokens, at) == "and" and text_at(tokens, at + 1) in ("final", "last", "only", "most"):
        at += 2  # the seventh and final season
    while at < len(tokens) and len(nouns) < 3:
        token = tokens[at]
        if (
            not token.text[0].isalpha()
            or token.lower in FUNCTION_WORDS
            or (token.text[0].isupper() and not token.opens)
        ):
            break
        nouns.append(stem(token.lower))
        at += 1
    return frozenset(nouns)


def _find_hedge(tokens: Sequence[Token], index: int) -> Hedge:
    at = index - 1
    if at >= 0 and tokens[at].lower in _SOFT:
        at -= 1
    if at < 0 or tokens[at].lower not in _LAST_WORDS:
        return "exact"
    for length in (3, 2, 1):
        words = tuple(token.lower for token in tokens[at - length + 1 : at + 1]) if at + 1 >= length else ()
        if words in _HEDGES:
            return _HEDGES[words]
    return "exact"


def _hedge_after(tokens: Sequence[Token], end: int, hedge: Hedge) -> Hedge:
    if hedge != "exact" or end >= len(tokens):
        return hedge
    following = (text_at(tokens, end), text_at(tokens, end + 1))
    plus = following[0] == "+" and touches(tokens, end)
    if plus or following in (("or", "more"), ("and", "above"), ("and", "over")):
        return "at_least"
    if following in (("or", "less"), ("or", "fewer")):
        return "at_most"
    return "about" if following == ("or", "so") else hedge
