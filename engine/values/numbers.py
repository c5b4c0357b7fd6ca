"""Reads numbers in digits and words: 3,000, "three thousand", "1.5 million", "a dozen", "nineteen eighty-four"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .tokens import Token, read_table, text_at, touches

_ONES = read_table("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
""")
_TENS = read_table("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS = read_table("""
    zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
    fifteenth sixteenth seventeenth eighteenth nineteenth
""")
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
_SIGNS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}


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
    if token.text[0].isdecimal():
        return _read_digits(tokens, index)
    if token.lower in _SIGNS:
        return Number(_SIGNS[token.lower], 0.0, index + 1)
    if token.lower in ("a", "an"):
        following = text_at(tokens, index + 1)
        if following in SCALES or following in ("hundred", "dozen"):
            return _multiply(tokens, Number(1, 1, index + 1))
        return None
    if token.lower == "half" and text_at(tokens, index + 1) in ("a", "an"):
        scale = text_at(tokens, index + 2)
        factor = 12 if scale == "dozen" else SCALES.get(scale)
        return Number(factor / 2, factor / 10, index + 3) if factor else None
    if token.lower in PLURAL_SCALES:
        return None
    return _read_words(tokens, index)


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
    if token.text.isdecimal() and len(token.text) < 5:
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
    at = index + 1
    if text_at(tokens, at) == "/":
        below = text_at(tokens, at + 1)
        parts = lower.isdecimal() and below.isdecimal() and len(lower) == 1 and len(below) == 1
        return (int(lower) / int(below), at + 2) if parts and 0 < int(lower) < int(below) else None
    digit = int(lower) if len(lower) == 1 and lower.isdecimal() else 0
    numerator = 1 if lower == "a" else ONES.get(lower) or digit
    if not numerator:
        return None
    at += text_at(tokens, at) == "-"
    denominator = DENOMINATORS.get(text_at(tokens, at))
    if denominator is None or numerator >= denominator:
        return None
    if numerator == 1 and text_at(tokens, at + 1) != "of":
        return None
    return numerator / denominator, at + 1


def _read_digits(tokens: Sequence[Token], index: int) -> Number | None:
    text = tokens[index].text
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    elif not _PLAIN.fullmatch(text):
        return None
    number = Number(float(text), _find_step(text), index + 1)
    fraction = _SIGNS.get(text_at(tokens, index + 1))
    if fraction and touches(tokens, index + 1):
        number = Number(number.value + fraction, fraction, index + 2)
    return _multiply(tokens, number)


def _multiply(tokens: Sequence[Token], number: Number) -> Number:
    """``number`` times the scales and the dozen that follow it."""
    at = number.end
    factor = SCALES.get(text_at(tokens, at)) or {"hundred": 100, "dozen": 12}.get(text_at(tokens, at))
    at += 1
    if factor is None and number.end < len(tokens):
        following = tokens[number.end]
        adjacent = touches(tokens, number.end)
        # "5m" is a length, "$5m" money: ``read_quantity`` looks at that.
        factor = SUFFIXES.get(following.lower) if adjacent and following.lower in ("k", "bn", "tn") else None
    if factor is None:
        return number
    if factor == 100 and text_at(tokens, at) in SCALES:
        factor *= SCALES[text_at(tokens, at)]
        at += 1
    return Number(float(number.value * factor), float(number.step * factor), at)


def _read_words(tokens: Sequence[Token], index: int) -> Number | None:
    """A number in words: groups below a thousand, each with its scale."""
    total = group = at = 0
    last = 0  # what the next small word must be less than: 0 at the beginning of a group
    at, step, used = index, 1, False
    limit = float("inf")
    while at < len(tokens):
        word = tokens[at].lower
        after = at
        if used:
            if (word == "-" and at + 1 < len(tokens) and tokens[at].end == tokens[at + 1].start) or (
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
        at = after + 1
    if not used:
        return None
    if not total and 10 <= group <= 20 and at < len(tokens):
        year = _read_second_pair(tokens, at)
        if year is not None:
            return Number(group * 100 + year[0], 1, year[1], spelled_year=True)
    return Number(float(total + group), float(step), at)


def _read_second_pair(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """The last two digits of a year in words ("eighty-four"), and the index after them."""
    word = text_at(tokens, at)
    if word not in TENS:
        return (ONES[word], at + 1) if ONES.get(word, 0) >= 10 else None
    ones = at + 2 if text_at(tokens, at + 1) == "-" else at + 1
    digit = ONES.get(text_at(tokens, ones), 0)
    return (TENS[word] + digit, ones + 1) if 0 < digit < 10 else (TENS[word], at + 1)


def _find_step(text: str) -> float:
    if "." in text:
        return 10.0 ** -len(text.partition(".")[2])
    return 10.0 ** (len(text) - len(text.rstrip("0")) if text.strip("0") else 0)
