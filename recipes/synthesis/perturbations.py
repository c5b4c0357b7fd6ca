"""Perturbations that change what a text says: another number, another name, another word of a set.

Each takes a text and a random source and returns the changed text, or None where it does not apply. Kryscinski et al.
2020 find names with a named-entity recogniser; patterns suffice here, because the training texts are edited and well
spelled.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

Change: TypeAlias = Callable[[str, random.Random], str | None]

_SETS = """
january february april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
north south east west
northern southern eastern western
red blue green yellow black white brown orange purple pink
one two three four five six seven eight nine ten eleven twelve
first second third fourth fifth sixth last
hundred thousand million billion
king queen
father mother
son daughter
brother sister
husband wife
men women
male female
boy girl
largest smallest
biggest smallest
highest lowest
higher lower
larger smaller
longest shortest
oldest youngest newest
older younger
earlier later
early late
before after
above below
increase decrease
increased decreased
more less
most least
always never
best worst
won lost
began ended
begins ends
upper lower
major minor
majority minority
public private
urban rural
summer winter spring autumn
american british french german italian spanish japanese chinese canadian indian russian
english french german spanish italian latin greek
actor singer writer painter musician politician scientist lawyer
book film song album play poem
city village town island
"""
GROUPS: dict[str, list[str]] = {}
"""The other words of the sets of a word."""
for _line in _SETS.strip().splitlines():
    for _word in _line.split():
        GROUPS.setdefault(_word, []).extend(other for other in _line.split() if other != _word)
_MEMBER = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(GROUPS, key=len, reverse=True))})(?![\w-])", re.IGNORECASE)
NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?!\d)")
"""A number in digits."""
_NAME = re.compile(r"(?<=[\w,;] )(?!I\b)[A-Z][\w'’-]*(?:(?: of| of the| de| von| van)? [A-Z][\w'’-]*)*")


def replace_number(text: str, rng: random.Random) -> str | None:
    """``text`` with one number in digits replaced by another; a year changes by at most sixty years.

    >>> replace_number("It opened in 1854.", random.Random(1))
    'It opened in 1837.'
    """
    matches = list(NUMBER.finditer(text))
    if not matches:
        return None
    chosen = rng.choice(matches)
    return text[: chosen.start()] + vary_number(chosen.group(), rng) + text[chosen.end() :]


def vary_number(number: str, rng: random.Random) -> str:
    """A number in digits that differs from ``number`` and looks like it."""
    if len(number) == 4 and number.isdigit() and "1000" <= number <= "2100":
        return str(int(number) + rng.choice((-1, 1)) * rng.randint(1, 60))
    while True:
        digits = [rng.choice("0123456789") if c.isdigit() and rng.random() < 0.5 else c for c in number]
        if digits[0] == "0" and number[0] != "0":
            digits[0] = rng.choice("123456789")
        if "".join(digits) != number:
            return "".join(digits)


def replace_word(text: str, rng: random.Random) -> str | None:
    """``text`` with one word of a closed set (months, colours, opposites) replaced by another of its set.

    >>> replace_word("the largest hall", random.Random(0))
    'the smallest hall'
    """
    matches = list(_MEMBER.finditer(text))
    if not matches:
        return None
    chosen = rng.choice(matches)
    new = rng.choice(GROUPS[chosen.group().lower()])
    new = new.capitalize() if chosen.group()[:1].isupper() else new
    return text[: chosen.start()] + new + text[chosen.end() :]


def find_names(text: str) -> list[str]:
    """Runs of capitalised words after a word or comma, where a capital does not begin a sentence.

    >>> find_names("The band met John of Gaunt in New York, where Ed lived. It rained.")
    ['John of Gaunt', 'New York', 'Ed']
    """
    return [match.group() for match in _NAME.finditer(text)]


def replace_name(text: str, alternatives: Sequence[str], rng: random.Random) -> str | None:
    """``text`` with one of its names replaced everywhere by an alternative that shares no word with the text."""
    names = find_names(text)
    return replace_text(text, rng.choice(names), alternatives, rng) if names else None


def replace_text(text: str, old: str, alternatives: Sequence[str], rng: random.Random) -> str | None:
    """``text`` with ``old`` replaced everywhere by an alternative that shares no word with the text."""
    present = set(re.findall(r"\w+", text.lower()))
    usable = [
        alternative
        for alternative in dict.fromkeys(alternatives)
        if not present & set(re.findall(r"\w{3,}|\d+", alternative.lower()))
    ]
    if not usable or not old:
        return None
    new = rng.choice(usable)
    changed = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda match: new, text)
    return changed if changed != text else None
