"""Says a claim in other words that mean the same, or a little less: what supports the claim supports the result.

Responses say "almost 5,000" of 4,987, "in the 1880s" of 1887, "Fleming" of Alexander Fleming, "it" of what the passage
is about, and "began" where the passage has "started". A model that has read only copied claims takes each of these for
unsupported.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TypeAlias

from .typed_names import NameTypes

Rewording: TypeAlias = Callable[[str, "RewordingContext", random.Random], str | None]
"""Rewords a claim; None where it does not apply."""
SMALL_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SMALL_WORD = re.compile(rf"\b(?:{'|'.join(SMALL_NUMBERS[2:])})\b(?!-)")
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|Jan\.|Feb\.|Aug\.|Sept\.|"
    r"Oct\.|Nov\.|Dec\.)"
)
_DAY_MONTH = re.compile(rf"\b(?:[Oo]n )?(\d{{1,2}}) ({_MONTH}),? (\d{{4}})\b")
_MONTH_DAY = re.compile(rf"\b(?:[Oo]n )?({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b")
_IN_YEAR = re.compile(r"\b([Ii]n) (1[0-9]\d\d|20\d\d)\b(?![-–]|s\b)")
_INTEGER = re.compile(r"(?<![\w.,$£€%°-])(\d{1,3}(?:,\d{3})+|\d+)(?![\w%°]|[.,:]\d|-)")
_PERCENT = re.compile(r"\b(\d+(?:\.\d+)?)(%| percent| per cent)(?!\w)")
_SHARES = {"50": "half", "25": "a quarter", "75": "three quarters", "33": "about a third", "66": "about two thirds"}
MOST_ROUNDED = 0.08
"""The share of a number that rounding may add or take away."""
_COUNTED_AFTER = re.compile(r" (?!AD|BC|CE|am|pm|and|or|to|in|on|at|of|by|was|is|were|the)[a-z]{3,}")
_IS_PERSON = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")
_PRONOUNS = re.compile(r"\b(?:he|she|it|they)\b", re.IGNORECASE)
_SYNONYMS = """
began started
begin start
begins starts
beginning start
ended finished
constructed built
purchased bought
founded established
also too
large big
larger bigger
largest biggest
huge very large
tiny very small
children kids
film movie
films movies
movie film
automobile car
automobiles cars
assist help
assisted helped
requires needs
required needed
received got
obtained got
attempted tried
attempt try
resides lives
resided lived
died passed away
located situated
usually normally
usually mostly
often frequently
frequently often
approximately about
approximately around
roughly about
around about
nearly almost
almost nearly
however but
therefore so
various different
several some
numerous many
many lots of
primarily mainly
mainly mostly
mostly mainly
entire whole
entirely completely
famous well-known
well-known famous
well known famous
rapidly quickly
quickly fast
important significant
significant important
main chief
principal main
child kid
physician doctor
physicians doctors
attorney lawyer
difficult hard
simple easy
created made
produced made
manufactured made
made up of composed of
consists of is made up of
consist of are made up of
comprises consists of
contains has
contain have
contained had
possesses has
includes has
occurred happened
occurs happens
occur happen
took place happened
takes place happens
became turned into
permits allows
permitted allowed
prohibited forbidden
banned forbidden
well-liked popular
returned came back
departed left
arrived came
reached got to
remained stayed
remains is still
remain are still
ill sick
wealthy rich
rich wealthy
aged old
elderly old
initially at first
currently now
presently now
previously before
formerly in the past
annually every year
annual yearly
yearly annual
each year every year
every year each year
daily every day
weekly every week
the United States the US
the United States America
the United Kingdom the UK
United States U.S.
people persons
named called
called named
known as called
due to because of
because of due to
in order to to
prior to before
as well as and also
both of them the two
whole entire
discovered found
defeated beat
ancient very old
ocean sea
weapons arms
employment work
employed used
utilized used
uses makes use of
selected chosen
chosen picked
chose picked
appeared was seen
portrays plays
portrayed played
depicts shows
displays shows
demonstrates shows
exhibits shows
worldwide all over the world
throughout all over
across all over
"""


class RewordingContext:
    """What a rewording may use beside the claim."""

    def __init__(self, knowledge: str, topic: str, names: NameTypes) -> None:
        self.knowledge = knowledge
        self.topic = topic
        self.names = names


def reword(claim: str, context: RewordingContext, rng: random.Random, most: int = 2) -> str:
    """``claim`` with up to ``most`` of the rewordings that apply, drawn at random; unchanged where none does.

    >>> reword("The museum is famous.", RewordingContext("", "", NameTypes({})), random.Random(1))
    'The museum is well-known.'
    """
    done = 0
    for rewording in rng.sample(REWORDINGS, len(REWORDINGS)):
        changed = rewording(claim, context, rng)
        if changed is not None and changed != claim:
            claim, done = changed, done + 1
            if done == most:
                break
    return claim


def spell_number(claim: str, _: RewordingContext, rng: random.Random) -> str | None:
    """A number in words instead of digits, or the other way round."""
    numbers = [
        match for match in _find_counts(claim) if int(match[1].replace(",", "")) <= 100 or match[1][-3:] == "000"
    ]
    if numbers:
        number = rng.choice(numbers)
        return _replace(claim, number, spell(int(number[1].replace(",", ""))))
    words = list(_SMALL_WORD.finditer(claim))
    if not words:
        return None
    word = rng.choice(words)
    return _replace(claim, word, str(SMALL_NUMBERS.index(word[0])))


def round_number(claim: str, _: RewordingContext, rng: random.Random) -> str | None:
    """A count rounded to one or two digits, with a word that says in which direction."""
    numbers = [match for match in _find_counts(claim) if int(match[1].replace(",", "")) >= 110]
    if not numbers:
        return None
    chosen = rng.choice(numbers)
    number = int(chosen[1].replace(",", ""))
    unit = 10 ** (len(str(number)) - rng.choice((1, 2)))
    below, above = number // unit * unit, -(-number // unit) * unit
    near_above = above - number < number - below
    if below == above or min(above - number, number - below) > MOST_ROUNDED * number:
        return None
    hedge = rng.choice(("almost", "nearly", "just under") if near_above else ("more than", "over"))
    if rng.random() < 0.4:
        hedge = rng.choice(("about", "around", "roughly"))
    return _replace(claim, chosen, f"{hedge} {above if near_above else below:,}")


def say_share(claim: str, _: RewordingContext, rng: random.Random) -> str | None:
    """A percentage as a fraction, or with the other sign for it."""
    match = _PERCENT.search(claim)
    if match is None:
        return None
    fraction = _SHARES.get(match[1])
    if fraction and claim[match.end() :].startswith(" of "):
        return _replace(claim, match, fraction)
    return _replace(claim, match, match[1] + (rng.choice((" percent", " per cent")) if match[2] == "%" else "%"))


def coarsen_date(claim: str, _: RewordingContext, rng: random.Random) -> str | None:
    """A month or a year instead of a day, or a decade or a century instead of a year."""
    for pattern, month, day in ((_DAY_MONTH, 2, 1), (_MONTH_DAY, 1, 2)):
        match = pattern.search(claim)
        if match is not None:
            dates = (
                f"in {match[month]} {match[3]}",
                f"in {match[3]}",
                f"on {match[month]} {match[day]}",
                f"on the {match[day]}{_find_suffix(int(match[day]))} of {match[month]}",
            )
            text = rng.choice(dates)
            return _replace(claim, match, text if match.start() else text[:1].upper() + text[1:])
    match = _IN_YEAR.search(claim)
    if match is None:
        return None
    year = int(match[2])
    century, within = year // 100 + 1, year % 100
    if within == 0:
        return None
    part = "early " if within <= 30 else "late " if within >= 70 else "mid-" if 40 <= within <= 60 else ""
    texts = (
        f"{match[1]} the {year // 10}0s",
        f"{match[1]} the {century}{_find_suffix(century)} century",
        f"{match[1]} the {part}{century}{_find_suffix(century)} century",
    )
    return _replace(claim, match, rng.choice(texts))


def shorten_name(claim: str, context: RewordingContext, rng: random.Random) -> str | None:
    """The last name of a person alone."""
    people = [name for name in context.names.find(claim) if name.type == "PERSON" and _IS_PERSON.fullmatch(name.text)]
    if not people:
        return None
    person = rng.choice(people)
    return claim[: person.start] + person.text.split()[-1] + claim[person.end :]


def use_pronoun(claim: str, context: RewordingContext, _: random.Random) -> str | None:
    """A pronoun for the topic at the beginning of the claim: the knowledge's pronoun, where it is clear."""
    topic = re.sub(r" ?\(.*\)", "", context.topic)
    begins = next((text for text in (f"The {topic}", topic) if topic and claim.startswith(f"{text} ")), None)
    if begins is None:
        return None
    counts: dict[str, int] = {}
    for match in _PRONOUNS.finditer(context.knowledge):
        counts[match[0].lower()] = counts.get(match[0].lower(), 0) + 1
    if len(counts) != 1:
        return None
    (pronoun,) = counts
    return f"{pronoun.capitalize()}{claim[len(begins) :]}"


def use_synonym(claim: str, _: RewordingContext, rng: random.Random) -> str | None:
    """A word or phrase replaced by another with the same meaning here in most sentences."""
    matches = [
        match
        for match in _WORDS.finditer(claim)
        if match.start() == 0 or match[0].islower() or match[0].startswith(("the United", "United"))
    ]
    if not matches:
        return None
    match = rng.choice(matches)
    new = rng.choice(_OF_WORD[match[0].lower()])
    return _replace(claim, match, f"{new[:1].upper()}{new[1:]}" if match[0][:1].isupper() else new)


REWORDINGS: tuple[Rewording, ...] = (
    spell_number,
    round_number,
    say_share,
    coarsen_date,
    shorten_name,
    use_pronoun,
    use_synonym,
)


def spell(number: int) -> str:
    """A number below 10^12 in words.

    >>> spell(24_000), spell(95), spell(110)
    ('twenty-four thousand', 'ninety-five', 'one hundred and ten')
    """
    for scale, word in ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= scale:
            count, rest = divmod(number, scale)
            joint = " and " if 0 < rest < 100 else " " if rest else ""
            return f"{spell(count)} {word}{joint}{spell(rest) if rest else ''}"
    if number < len(SMALL_NUMBERS):
        return SMALL_NUMBERS[number]
    tens = _TENS[number // 10 - 2]
    return tens if number % 10 == 0 else f"{tens}-{SMALL_NUMBERS[number % 10]}"


def _read_synonyms() -> dict[str, list[str]]:
    """The replacements of each word or phrase: a line has them in two halves, each a known phrase or one word."""
    table: dict[str, list[str]] = {}
    for line in _SYNONYMS.strip().splitlines():
        old, _, new = line.partition(" ")
        for phrase in _PHRASES:
            if line.startswith(f"{phrase} "):
                old, new = phrase, line.removeprefix(f"{phrase} ")
        table.setdefault(old.lower(), []).append(new)
    return table


_PHRASES = (
    *("well known", "made up of", "consists of", "consist of", "took place", "takes place", "each year", "every year"),
    *("the United States", "the United Kingdom", "United States", "known as", "due to", "because of", "in order to"),
    *("prior to", "as well as", "both of them"),
)
_OF_WORD = _read_synonyms()
_WORDS = re.compile(
    rf"(?<![\w'’-])(?:{'|'.join(re.escape(word) for word in sorted(_OF_WORD, key=len, reverse=True))})(?![\w'’-])",
    re.IGNORECASE,
)


def _find_counts(claim: str) -> list[re.Match[str]]:
    """The whole numbers that count something; years and ordinals are none."""
    return [
        match
        for match in _INTEGER.finditer(claim)
        if _COUNTED_AFTER.match(claim, match.end())
        and not re.search(r"[A-Z]\w* $", claim[: match.start()])
        and not (len(match[1]) == 4 and match[1].isdigit() and 1000 <= int(match[1]) < 2100)
        and int(match[1].replace(",", "")) < 10**12
    ]


def _find_suffix(number: int) -> str:
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number // 10 % 10 != 1 else 0, "th")


def _replace(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]
