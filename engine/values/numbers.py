"""Reads amounts: numbers in digits and words, with unit, currency or counted noun, and percentages, ordinals, ages.

Numbers are 3,000, "three thousand", "1.5 million", "a dozen", "nineteen eighty-four"; hedges are "about", "at most".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import numeric

from groundwire.runtime.texts.characters import is_digits, is_letters, starts_upper

from ..schema.explanations import ValueKind
from ..text.normalization import FUNCTION_WORDS
from .hedges import read_hedge
from .tokens import Measure, Token, load_table, text_at, touches
from .units import (
    AREAS,
    COUNTRY_OF,
    CURRENCY_CODES,
    CURRENCY_SIGNS,
    MONEY,
    ONE_LETTER,
    PER_HOUR,
    UNITS,
    VOLUMES,
    Unit,
    cube,
    square,
)

_ONES = load_table("ones")
_TENS = load_table("tens")
_ORDINALS = load_table("ordinals")
ONES = {word: number for number, word in enumerate(_ONES)}
TENS = {word: 10 * number for number, word in enumerate(_TENS, 2)}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
SUFFIXES = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9, "b": 10**9, "tn": 10**12}
ORDINALS = {word: number for number, word in enumerate(_ORDINALS)} | {
    word[:-1] + "ieth": number for word, number in TENS.items()
}
DENOMINATORS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourths": 4} | {
    f"{word}{plural}": ORDINALS[word] for word in ("fifth", "sixth", "eighth", "tenth") for plural in ("", "s")
}
PLURAL_SCALES = {"dozens": 12, "hundreds": 100, "thousands": 10**3, "millions": 10**6, "billions": 10**9}
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_PLAIN = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
FRACTIONS = {sign: numeric(sign) for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"}
"""Fractions that are one sign."""


class Number(NamedTuple):
    """A number and where its tokens end."""

    value: float
    step: float
    """The place of its last digit that is not a trailing zero: 1,000 for 5,000; 0.1 for 4.5; half of it may be
    rounded off."""
    end: int
    """Index after its last token."""
    spelled_year: bool = False
    """Whether it is two pairs of digits in words, as years are read."""


def read_number(tokens: Sequence[Token], index: int) -> Number | None:
    """The cardinal number that begins at ``tokens[index]``, or None.

    >>> from .tokens import tokenize
    >>> texts = ("3,000", "two hundred and fifty", "a dozen", "half a million")
    >>> [read_number(tokenize(text), 0).value for text in texts]
    [3000.0, 250.0, 12.0, 500000.0]
    """
    token = tokens[index]
    if is_digits(token.text[0]):
        return _read_digits(tokens, index)
    if token.lower in FRACTIONS:
        return Number(FRACTIONS[token.lower], 0.0, index + 1)
    if token.lower in ("a", "an"):
        following = text_at(tokens, index + 1)
        if following in SCALES or following in ("hundred", "dozen"):
            return _multiply(tokens, Number(1, 1, index + 1))
        return Number(1.0, 1.0, index + 1) if is_one(tokens, index) else None
    if token.lower == "half" and text_at(tokens, index + 1) in ("a", "an"):
        scale = text_at(tokens, index + 2)
        factor = 12 if scale == "dozen" else SCALES.get(scale)
        return Number(factor / 2, factor / 10, index + 3) if factor else None
    if token.lower in PLURAL_SCALES:
        return None
    number = _read_words(tokens, index)
    whole = None if number is None else _add_fraction(tokens, number)
    return number if whole is None else _multiply(tokens, whole)


def is_one(tokens: Sequence[Token], index: int) -> bool:
    """Whether an article counts one unit: "takes an hour", "an hour and a half"; not "£5 an hour"."""
    unit = UNITS.get(text_at(tokens, index + 1))
    if unit is None:
        return False
    is_measured = text_at(tokens, index - 1) in _MEASURING and unit.measure in _DIVIDED
    return is_measured or _add_fraction(tokens, Number(1.0, 1.0, index + 2)) is not None


def _add_fraction(tokens: Sequence[Token], number: Number) -> Number | None:
    """``number`` and the fraction after it: "two and a half", "2 1/2", "a dozen and a half"; None without one."""
    end = number.end
    last = text_at(tokens, end - 1)
    scale = 12 if last == "dozen" else SCALES.get(last, 1)
    above, below = text_at(tokens, end), text_at(tokens, end + 2)
    if text_at(tokens, end + 1) == "/" and len(above) == len(below) == 1 and is_digits(above) and is_digits(below):
        is_part = 0 < int(above) < int(below) and touches(tokens, end + 1) and touches(tokens, end + 2)
        return Number(number.value + int(above) / int(below), 0.0, end + 3) if is_part else None
    end += above == "-" and touches(tokens, end)
    if text_at(tokens, end) != "and":
        return None
    end += 1 + (text_at(tokens, end + 1) == "-")
    numerator = 1 if text_at(tokens, end) == "a" else ONES.get(text_at(tokens, end), 0)
    end += 1 + (text_at(tokens, end + 1) == "-")
    denominator = DENOMINATORS.get(text_at(tokens, end), 0) if text_at(tokens, end) in _PARTS else 0
    of_another = text_at(tokens, end + 1) == "of" and text_at(tokens, end + 2) in FUNCTION_WORDS
    if not 0 < numerator < denominator or of_another:
        return None
    return Number(number.value + scale * numerator / denominator, _PART_STEP * scale, end + 1)


_PARTS = frozenset({"half", "quarter", "quarters"})
_NOT_HALVED = FUNCTION_WORDS | {"dozen", "hundred"}
_MEASURING = frozenset({"for", "last", "lasts", "take", "takes", "add", "use", "within", "than", "least", "most"})
"""Words before one of a unit: "for an hour", "add a cup"."""
_PART_STEP = 0.1
"""The place to which halves and quarters in words are read."""
_DIVIDED = frozenset({"duration", "length", "mass", "volume", "area", "pound"})
"""What a half of may be named without an article: "a half-hour lesson"."""


def _read_part(tokens: Sequence[Token], index: int) -> Number | None:
    """A part of one unit up to the unit: "half an hour", "three quarters of an hour", "half-hour"; or None."""
    alone = tokens[index].lower in _PARTS
    part = (1 / DENOMINATORS[tokens[index].lower], index + 1) if alone else read_fraction(tokens, index)
    if part is None:
        return None
    value, end = part
    of = text_at(tokens, end) == "of"
    if text_at(tokens, end + of) in ("a", "an"):
        noun = text_at(tokens, end + of + 1)
        counts = (alone or of) and is_letters(noun[:1]) and noun not in SCALES and noun not in _NOT_HALVED
        return Number(value, _PART_STEP, end + of + 1) if noun in UNITS or counts else None
    unit = UNITS.get(text_at(tokens, end + (text_at(tokens, end) == "-")))
    written = alone or text_at(tokens, index + 1) == "/"
    is_divided = written and unit is not None and unit.measure in _DIVIDED
    return Number(value, _PART_STEP, end) if is_divided else None


def read_ordinal(tokens: Sequence[Token], index: int) -> tuple[int, int] | None:
    """The ordinal number that begins at ``tokens[index]`` and the index after it, or None.

    >>> from .tokens import tokenize
    >>> [read_ordinal(tokenize(text), 0) for text in ("2nd", "thirty-first", "twentieth", "two")]
    [(2, 2), (31, 3), (20, 1), None]
    """
    token = tokens[index]
    if token.lower in ORDINALS:
        return ORDINALS[token.lower], index + 1
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if following is None:
        return None
    if is_digits(token.text) and len(token.text) < 5:
        adjacent = following.start == token.end and following.lower in ("st", "nd", "rd", "th")
        return (int(token.text), index + 2) if adjacent else None
    if token.lower in TENS:
        ones = index + 2 if following.text == "-" else index + 1
        ordinal = ORDINALS.get(text_at(tokens, ones), 0)
        return (TENS[token.lower] + ordinal, ones + 1) if 0 < ordinal < 10 else None
    return None


def read_fraction(tokens: Sequence[Token], index: int) -> tuple[float, int] | None:
    """The fraction that begins at ``tokens[index]`` and the index after it: "half of", "two thirds", "a quarter of".

    >>> from .tokens import tokenize
    >>> [read_fraction(tokenize(text), 0) for text in ("half of", "three-quarters", "a third", "1/4 of")]
    [(0.5, 1), (0.75, 3), None, (0.25, 3)]
    """
    lower = tokens[index].lower
    if lower == "half":
        return (0.5, index + 1) if text_at(tokens, index + 1) in ("of", "the", "its", "their", "all") else None
    next_index = index + 1
    if text_at(tokens, next_index) == "/":
        below = text_at(tokens, next_index + 1)
        parts = is_digits(lower) and is_digits(below) and len(lower) == 1 and len(below) == 1
        return (int(lower) / int(below), next_index + 2) if parts and 0 < int(lower) < int(below) else None
    digit = int(lower) if len(lower) == 1 and is_digits(lower) else 0
    numerator = 1 if lower == "a" else ONES.get(lower) or digit
    if not numerator:
        return None
    next_index += text_at(tokens, next_index) == "-"
    denominator = DENOMINATORS.get(text_at(tokens, next_index))
    if denominator is None or numerator >= denominator:
        return None
    if numerator == 1 and text_at(tokens, next_index + 1) != "of":
        return None
    return numerator / denominator, next_index + 1


def _read_digits(tokens: Sequence[Token], index: int) -> Number | None:
    text = tokens[index].text
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    elif not _PLAIN.fullmatch(text):
        return None
    number = Number(float(text), _find_step(text), index + 1)
    fraction = FRACTIONS.get(text_at(tokens, index + 1))
    if fraction and touches(tokens, index + 1):
        number = Number(number.value + fraction, fraction, index + 2)
    return _multiply(tokens, _add_fraction(tokens, number) or number)


def _multiply(tokens: Sequence[Token], number: Number) -> Number:
    """``number`` times the scales and the dozen that follow it."""
    end = number.end
    factor = SCALES.get(text_at(tokens, end)) or {"hundred": 100, "dozen": 12}.get(text_at(tokens, end))
    end += 1
    if factor is None and number.end < len(tokens):
        following = tokens[number.end]
        adjacent = touches(tokens, number.end)
        # "5m" is a length, "$5m" money: ``read_quantity`` looks at that.
        factor = SUFFIXES.get(following.lower) if adjacent and following.lower in ("k", "bn", "tn") else None
    if factor is None:
        return number
    if factor == 100 and text_at(tokens, end) in SCALES:
        factor *= SCALES[text_at(tokens, end)]
        end += 1
    scaled = Number(float(number.value * factor), float(number.step * factor), end)
    return _add_fraction(tokens, scaled) or scaled


def _read_words(tokens: Sequence[Token], index: int) -> Number | None:
    """A number in words: groups below a thousand, each with its scale."""
    total = group = end = 0
    last = 0  # what the next small word must be less than: 0 at the beginning of a group
    end, step, used = index, 1, False
    limit = float("inf")
    while end < len(tokens):
        word = tokens[end].lower
        after = end
        if used:
            if (word == "-" and end + 1 < len(tokens) and tokens[end].end == tokens[end + 1].start) or (
                word == "and" and last in (100, 1000)
            ):
                after += 1
            word = text_at(tokens, after)
        small = ONES.get(word, TENS.get(word))
        if small is not None:
            fits = not used or (last == 10 and 0 < small < 10) or (last >= 100 and small > 0)
            if not fits:
                break
            group += small
            last = 10 if small >= 20 else 1
            step = 10 if small >= 20 else 1
        elif word == "hundred" and used and 0 < group < 100 and last < 100:
            group *= 100
            last = step = 100
        elif word in SCALES and used and group and SCALES[word] < limit:
            limit = SCALES[word]
            total += group * SCALES[word]
            group, last, step = 0, 1000, SCALES[word]
        elif word == "dozen" and used and 0 < group < 10 and not total:
            return Number(group * 12.0, 12, after + 1)
        else:
            break
        used = True
        end = after + 1
    if not used:
        return None
    if not total and 10 <= group <= 20 and end < len(tokens):
        year = _read_second_pair(tokens, end)
        if year is not None:
            return Number(group * 100 + year[0], 1, year[1], spelled_year=True)
    return Number(float(total + group), float(step), end)


def _read_second_pair(tokens: Sequence[Token], index: int) -> tuple[int, int] | None:
    """The last two digits of a year in words ("eighty-four"), and the index after them."""
    word = text_at(tokens, index)
    if word not in TENS:
        return (ONES[word], index + 1) if ONES.get(word, 0) >= 10 else None
    ones = index + 2 if text_at(tokens, index + 1) == "-" else index + 1
    digit = ONES.get(text_at(tokens, ones), 0)
    return (TENS[word] + digit, ones + 1) if 0 < digit < 10 else (TENS[word], index + 1)


def _find_step(text: str) -> float:
    if "." in text:
        return 10.0 ** -len(text.partition(".")[2])
    return 10.0 ** (len(text) - len(text.rstrip("0")) if text.strip("0") else 0)


_DETERMINERS = frozenset(load_table("determiners"))
_NOT_RANKS = frozenset(load_table("not_ranks"))
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
    part = _read_part(tokens, index)
    if part is not None:
        return _read_with_unit(tokens, index, part)
    fraction = read_fraction(tokens, index)
    if fraction is not None:
        hedge, limit = read_hedge(tokens, index, fraction[1])
        return ReadMeasure("percentage", Measure("share", fraction[0], 0.0, hedge, limit=limit), fraction[1], index)
    ordinal = read_ordinal(tokens, index)
    if ordinal is not None:
        return _read_ordinal(tokens, index, *ordinal)
    number = read_number(tokens, index)
    if number is None or not _may_count(tokens, index, number):
        return None
    return _read_with_unit(tokens, index, number)


def _read_plural_scale(tokens: Sequence[Token], index: int) -> ReadMeasure | None:
    """Hundreds of thousands of people: at least that many."""
    factor, end = PLURAL_SCALES[tokens[index].lower], index + 1
    if text_at(tokens, end) == "of" and text_at(tokens, end + 1) in PLURAL_SCALES:
        factor, end = factor * PLURAL_SCALES[text_at(tokens, end + 1)], end + 2
    if text_at(tokens, end) != "of":
        return None
    return ReadMeasure(
        "number", Measure("count", float(factor), float(factor), "at_least", _read_nouns(tokens, end + 1)), end, index
    )


def _read_ordinal(tokens: Sequence[Token], index: int, rank: int, end: int) -> ReadMeasure | None:
    """An ordinal that ranks something: "the second album", but not "the first time" or "secondly"."""
    spelled = not is_digits(tokens[index].text[0])
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
    spelled = is_letters(token.text)
    if token.lower == "one" and number.end == index + 1:
        unit = text_at(tokens, number.end + 1) if following in _WORKING else following
        return unit in UNITS and unit != "second"
    is_alone = not is_letters(following[:1]) or following in FUNCTION_WORDS
    if spelled and before in ("the", "these", "those") and is_alone:
        return False  # "the two": who was named before
    if touches(tokens, index) and (is_letters(before) or before in ("#", "/", "_", "@")):
        return False  # U2, 24/7, #1
    if before == "-" and touches(tokens, index - 1) and is_letters(text_at(tokens, index - 2)):
        # COVID-19, but mid-1980s and "ten-fifteen"
        return spelled or not touches(tokens, index) or text_at(tokens, index - 2) in ("mid", "pre", "post")
    if touches(tokens, number.end):
        if following == "_" or (following == "/" and not is_letters(text_at(tokens, number.end + 1)[:1])):
            return False  # 24/7, but €2/min
        if following in (".", ")") and token.opens and is_digits(token.text) and len(token.text) < 3:
            next_index = number.end + 1  # "1. A list"; a sentence may end with a number, too
            return next_index == len(tokens) or tokens[next_index].sentence != token.sentence
    # "Two" inside a name: World War Two.
    return token.opens or not (
        spelled and starts_upper(token.text) and index > 0 and starts_upper(tokens[index - 1].text)
    )


def _read_with_unit(tokens: Sequence[Token], index: int, number: Number) -> ReadMeasure:
    before = text_at(tokens, index - 1)
    if before in CURRENCY_SIGNS or before in CURRENCY_CODES:
        return _read_money(tokens, index, number)
    unit_end = _read_unit(tokens, number.end)
    if unit_end is not None:
        unit, end = unit_end
        number = _add_fraction(tokens, number._replace(end=end)) or number._replace(end=end)
        end = number.end
        kind: ValueKind = "quantity"
        if unit.measure == "share":
            kind = "percentage"
        elif unit.measure in MONEY:
            kind = "money"
        elif unit.measure == "duration":
            kind, end = _read_age(tokens, end)
        amount, step = number.value * unit.factor + unit.offset, number.step * unit.factor
        hedge, limit = read_hedge(tokens, index, end)
        measure = Measure(unit.measure, amount, step, hedge, factor=unit.factor, limit=limit)
        return ReadMeasure(kind, measure, end, index)
    hedge, limit = read_hedge(tokens, index, number.end)
    if before in ("aged", "age") or (before == "of" and text_at(tokens, index - 2) == "age"):
        year = UNITS["year"].factor
        age = Measure("duration", number.value * year, year, hedge, factor=year, limit=limit)
        return ReadMeasure("age", age, number.end, index)
    nouns = _read_nouns(tokens, number.end)
    count = Measure("count", number.value, number.step, hedge, nouns, limit=limit)
    return ReadMeasure("number", count, number.end, index)


def _read_money(tokens: Sequence[Token], index: int, number: Number) -> ReadMeasure:
    """$25 million, US$25m, €20."""
    first = index - 1
    first -= touches(tokens, first) and text_at(tokens, first - 1) in ("us", "a", "c", "nz")
    factor, end = 1.0, number.end
    if touches(tokens, end) and text_at(tokens, end) in ("m", "mn", "b"):
        factor, end = (1e9 if text_at(tokens, end) == "b" else 1e6), end + 1
    amount, step = number.value * factor, number.step * factor
    end += text_at(tokens, end) in ("usd", "eur", "gbp", "dollars", "euros")
    measure = UNITS[tokens[index - 1].lower].measure
    hedge, limit = read_hedge(tokens, first, end)
    return ReadMeasure("money", Measure(measure, amount, step, hedge, limit=limit), end, first)


def _read_unit(tokens: Sequence[Token], index: int) -> tuple[Unit, int] | None:
    """The unit that begins at a token, and the index after it."""
    if index >= len(tokens):
        return None
    index += tokens[index].text == "-" and touches(tokens, index) and index + 1 < len(tokens)
    token = tokens[index]
    if token.lower in AREAS or token.lower in VOLUMES:
        side = UNITS.get(text_at(tokens, index + 1))
        power = None if side is None else square(side) if token.lower in AREAS else cube(side)
        return (power, index + 2) if power else None
    if token.lower == "per" and text_at(tokens, index + 1) == "cent":
        return UNITS["percent"], index + 2
    following = text_at(tokens, index + 1)
    if token.lower == "us" and following in ("dollars", "dollar", "$"):
        return UNITS["dollars"], index + 2
    if token.lower in COUNTRY_OF and following in UNITS and UNITS[following].measure in MONEY:
        return UNITS[following], index + 2  # "Swiss francs"
    unit = UNITS.get(token.lower)
    if unit is None:
        return None
    written = token.text in ONE_LETTER and is_digits(tokens[index - 1].text[-1])
    if len(token.text) == 1 and is_letters(token.text) and not written:
        return None
    if token.lower in PER_HOUR and (following, text_at(tokens, index + 2)) in _PER_HOUR:
        return PER_HOUR[token.lower], index + 3
    if unit.measure == "degree":
        scale = {"c": "celsius", "f": "fahrenheit"}.get(following, following)
        if scale in ("celsius", "fahrenheit"):
            return UNITS[scale], index + 2
    if unit.measure == "pound" and following == "sterling":
        return UNITS["£"], index + 2
    if token.lower == "percentage" and following in ("point", "points"):
        return unit, index + 2
    return unit, index + 1


def _read_age(tokens: Sequence[Token], end: int) -> tuple[ValueKind, int]:
    """Whether a duration is an age ("34 years old", "a 34-year-old"), and the index after it."""
    index = end + (text_at(tokens, end) == "-")
    if text_at(tokens, index) in ("old", "olds"):
        return "age", index + 1
    if text_at(tokens, index) == "of" and text_at(tokens, index + 1) == "age":
        return "age", index + 2
    return "duration", end


def _read_nouns(tokens: Sequence[Token], index: int) -> frozenset[str]:
    """Stems of up to three content words that follow a number without a break."""
    nouns: list[str] = []
    sentence = tokens[index - 1].sentence
    index += index < len(tokens) and tokens[index].text == "-"
    if text_at(tokens, index) == "and" and text_at(tokens, index + 1) in ("final", "last", "only", "most"):
        index += 2  # the seventh and final season
    while index < len(tokens) and len(nouns) < 3:
        token = tokens[index]
        if (
            not is_letters(token.text[0])
            or token.lower in FUNCTION_WORDS
            or token.lower == "per"
            or (starts_upper(token.text) and (not token.opens or token.sentence != sentence))  # or a line begins
        ):
            break
        nouns.append(stem(token.lower))
        index += 1
    return frozenset(nouns)


_WORKING = frozenset({"working", "business"})
"""Words before "day": "one working day"."""
