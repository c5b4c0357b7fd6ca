"""Words and dates that can be replaced by others of their kind, and the reason why the result is unsupported.

The sets of ``perturbations`` are used, and further ones whose words change what is said of something.
"""

from __future__ import annotations

import random
import re

from . import perturbations

_FURTHER = """
born died
directed produced wrote
written directed produced
founded dissolved
joined left
opened closed
open closed
started stopped
starts stops
begin end
gained lost
accepted rejected
supported opposed
allowed prohibited
approved rejected
bought sold
arrived departed
rose fell
rises falls
win lose
winning losing
married divorced
hired fired
enter leave
entered left
defeated joined
attacked defended
buy sell
built destroyed
created destroyed
appointed dismissed
legal illegal
possible impossible
successful unsuccessful
positive negative
strong weak
stronger weaker
hot cold
warm cold
long short
longer shorter
tall short
high low
deep shallow
rich poor
same different
many few
several no
old new
oldest newest
inside outside
left right
front back
top bottom
eastern western central
inner outer
partly entirely
often rarely
usually rarely
sometimes never
always rarely never
slightly very extremely
somewhat extremely
mildly severely
moderately extremely
hardly fully
most few
hotter colder
warmer cooler
heavier lighter
louder quieter
faster slower
cheaper dearer
still formerly
current former
first last
full-time part-time
professional amateur
domestic foreign
national local
temporary permanent
modern ancient
simple complex
easy difficult
common rare
famous unknown
parent child
wives husbands
sons daughters
brothers sisters
parents children
uncle aunt
nephew niece
teacher student
lead supporting
debut final
north south
import export
imports exports
winners losers
author editor publisher
director producer screenwriter
album single
drummer guitarist bassist vocalist
football basketball baseball hockey
novel poem
"""
_DATE_WORDS_TEXT = """
january february april june july august september october november december monday tuesday wednesday thursday
friday saturday sunday summer winter spring
"""
_DATE_WORDS = frozenset(_DATE_WORDS_TEXT.split())
_NUMBER_WORDS_TEXT = """
one two three four five six seven eight nine ten eleven twelve first second third fourth fifth sixth hundred
thousand million billion
"""
_NUMBER_WORDS = frozenset(_NUMBER_WORDS_TEXT.split())
_NAMES_TEXT = """
american british french german italian spanish japanese chinese canadian indian russian english
"""
_NAMES = frozenset(_NAMES_TEXT.split())
_GROUPS: dict[str, set[str]] = {word: set(others) for word, others in perturbations.GROUPS.items()}
for _line in _FURTHER.strip().splitlines():
    for _word in _line.split():
        _GROUPS.setdefault(_word, set()).update(set(_line.split()) - {_word})
MEMBER = re.compile(
    rf"(?<![\w-])(?:{'|'.join(sorted(_GROUPS, key=len, reverse=True))})(?![\w-])(?!'s? \w+ \w+ of)", re.IGNORECASE
)
"""A word of a set."""
_UNITS = """
miles kilometres feet metres
mile kilometre
kilometers meters miles
metres feet
pounds dollars euros
kilograms pounds
kg lb
km mi
days weeks months years
hours minutes
years decades
percent million
inches feet
acres hectares
"""
_UNIT_GROUPS: dict[str, set[str]] = {}
for _line in _UNITS.strip().splitlines():
    for _word in _line.split():
        _UNIT_GROUPS.setdefault(_word, set()).update(set(_line.split()) - {_word})
UNIT = re.compile(rf"(?<=[\w\d] )(?:{'|'.join(sorted(_UNIT_GROUPS, key=len, reverse=True))})(?!\w)")
"""A unit after a word."""
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(
    rf"(?<=\b\d\d\d\d[–-])\d{{2,4}}\b|\b(?:1\d|20)\d0s\b|\b\d{{1,2}}(?:st|nd|rd|th)(?=[ -]centur)"
    rf"|(?<![\w.,$£€-])(?:1[0-9]|20)\d\d(?![\w%]|[.,]\d|[–-]\d| (?:people|men|copies|miles|km|metres|feet|troops))"
    rf"|\b{_MONTH}(?= (?:\d|of \d))|(?<=\d ){_MONTH}\b"
)
_MONTHS_TEXT = """
January February March April May June July August September October November December
"""
_MONTHS = _MONTHS_TEXT.split()


def find_dates(text: str) -> list[re.Match[str]]:
    """Years, decades, centuries, and months beside a day or year.

    >>> [match.group() for match in find_dates("On 4 March 1821, late in the 1820s, 1,200 men, 19th century.")]
    ['March', '1821', '1820s', '19th']
    """
    return list(_DATE.finditer(text))


def vary_date(date: str, rng: random.Random) -> str:
    """Another date of the same form; a year changes by at most sixty years, half of the time by at most five."""
    if date in _MONTHS:
        return rng.choice([month for month in _MONTHS if month != date])
    digits = re.match(r"\d+", date)
    assert digits is not None, date
    number, rest = int(digits.group()), date[digits.end() :]
    if rest in ("st", "nd", "rd", "th"):
        return _make_ordinal(max(1, number + rng.choice((-3, -2, -1, 1, 2)) if number > 3 else number + 1))
    if rest == "s":
        return f"{number + 10 * rng.choice((-4, -3, -2, -1, 1, 2))}s"
    if len(digits.group()) < 4:
        return f"{(number + rng.randint(1, 30)) % 100:02d}"
    return str(number + rng.choice((-1, 1)) * rng.randint(1, 5 if rng.random() < 0.5 else 60))


def is_number_word(text: str) -> bool:
    """Whether the text begins with a number in words."""
    return text.split(" ", 1)[0].lower() in _NUMBER_WORDS


def replace_member(word: str, rng: random.Random) -> tuple[str, str]:
    """Another word of the set of ``word``, with its capital, and the reason why it is unsupported."""
    lowered = word.lower()
    new = rng.choice(sorted(_GROUPS[lowered]))
    reason = "date" if lowered in _DATE_WORDS else "number" if lowered in _NUMBER_WORDS else "relation"
    return (new.capitalize() if word[:1].isupper() else new), "entity" if lowered in _NAMES else reason


def replace_unit(word: str, rng: random.Random) -> str:
    """Another unit of the same set."""
    return rng.choice(sorted(_UNIT_GROUPS[word]))


def is_part_of_name(text: str, match: re.Match[str]) -> bool:
    """Whether a matched word seems to belong to a name: "North Sea", "Supreme Court of the United States"."""
    if match.group()[:1].islower() or match.group().lower() in _DATE_WORDS | _NAMES:
        return False
    return match.start() > 0 and bool(
        re.match(r" [A-Z]", text[match.end() :]) or re.search(r"[A-Z]\S* $", text[: match.start()])
    )


def _make_ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
