"""Full stops that belong to an abbreviation: what may follow one says whether it ends its sentence too.

spaCy's tokenizer knows "Dr.", "Ltd.", "e.g." and "a.m." as words with a full stop. Of these, titles and "e.g." never
end a sentence; the others do before a word with a capital that opens sentences ("The", "It"). A lower-case letter alone
says nothing: people write whole messages without capitals.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

from .calendar import MONTHS, SHORT_DAYS, SHORT_MONTHS

Abbreviation: TypeAlias = Literal["number", "leading", "trailing", "unit", "day", "closing"]
"""What goes on after it: a number; whatever it announces; a number or a word in lower case; only such a word, after the
unit of a number; a number, such a word or a date, after the day of a week; whatever does not open sentences, after one
that its full stop is a part of."""

_NUMBER = frozenset((
    "no", "nos", "nr", "nrs", "fig", "figs", "vol", "vols", "ch", "chap", "sect", "para", "paras", "eq", "eqs",
    "ext", "rm", "ver", "pp", "pg", "pgs", "tel", "fax", "pos", "apt", "bldg",
))  # fmt: skip
_LEADING = frozenset((
    "approx", "aprox", "appr", "ca", "incl", "excl", "exc", "esp", "cf", "viz", "eg", "ie", "misc",
))  # fmt: skip
_DAYS = frozenset(SHORT_DAYS) - {"wed"}
_MONTHS = frozenset(SHORT_MONTHS) - {"may"}
_TRAILING = _MONTHS | frozenset((
    "min", "mins", "sec", "secs", "hr", "hrs", "yr", "yrs", "wk", "wks", "mos", "ft", "yd", "yds", "lb", "lbs",
    "oz", "tsp", "tsps", "tbsp", "tbsps", "pt", "pts", "qt", "qts", "gal", "gals", "doz", "pkg", "pkgs", "pkt",
    "pkts", "pcs", "mph", "rpm", "kmh", "kph", "sq", "cu", "max", "avg", "etc", "dept", "depts", "govt", "univ",
    "assn", "assoc", "temp", "temps", "mtg", "appt", "appts", "adv", "ave", "blvd", "hwy", "rd", "arr", "dep",
    "cert", "std", "est", "orig", "intl", "natl", "inc", "corp", "ltd", "bros", "jr", "sr", "prof", "ref",
    "refs", "reg", "cont", "contd", "ed", "eds",
))  # fmt: skip
_ANY = _NUMBER | _LEADING | _TRAILING | _DAYS
_MEASURED = re.compile(
    r"(?!(?:st|nd|rd|th|tvs?|cds?|dvds?|pc)\Z)(?:in|mi|ea|am|doz|gals?|mins?|secs?|[b-df-hj-np-tv-xz]{2,4})\Z"
)
"""What is a unit after a number: "12 in. wide", "3 pkts. of seeds"; not the end of "15th", nor "2 tvs"."""
_DIVIDED = frozenset({"hr", "hrs", "ft", "lb", "lbs", "yr", "yrs"})
"""Units after which a number of smaller ones may follow: "2 hrs. 30 min."."""
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_LAST_LETTERS = re.compile(r"[^\W\d_]+\Z")
_OPENERS = frozenset((
    "i", "it", "he", "she", "we", "they", "you", "this", "there", "these", "those", "the", "what", "why", "how",
    "do", "did", "does", "yes", "yeah", "yep", "my", "his", "its", "our", "your", "their", "ok", "okay", "hi",
    "oh", "lol", "maybe", "thanks", "thank", "so", "also", "when", "where", "who", "which", "can", "could",
    "would", "should",
))  # fmt: skip
"""Words that begin a sentence rather than go on with one, also without a capital."""
_CAPITAL_OPENERS = _OPENERS | frozenset((
    "a", "an", "her", "if", "in", "on", "at", "for", "from", "after", "before", "please", "each", "all", "no", "not",
    "then", "but", "and", "as", "to", "with", "until", "is", "are", "however", "otherwise", "your",
))  # fmt: skip
"""Words that begin a sentence where they have a capital."""
_DATED = _DAYS | _MONTHS | frozenset(MONTHS)
"""Words of a date that may follow a day."""
_CLOSING = _MONTHS | frozenset(("inc", "ltd", "co", "corp", "bros", "jr", "°c", "°f"))
"""Words with a full stop of their own that may be the last of a sentence."""
_DOTTED_CLOSING = re.compile(r"(?:\d*[ap]\.m|ph\.d|(?!e\.g|i\.e|v\.s)(?:[^\W\d_]\.)+[^\W\d_])\Z")
"""Others of their kind: "9 a.m.", "U.S."."""


def find_abbreviation(word: str, before: str) -> Abbreviation | None:
    """What abbreviation ``word`` is, without its full stop; ``before`` is the token before it in the sentence, or "".

    >>> find_abbreviation("min", "45"), find_abbreviation("Sat", "on"), find_abbreviation("sweet", "is")
    ('unit', 'day', None)
    """
    if _DOTTED.match(word):
        return "trailing"
    match = _LAST_LETTERS.search(word)
    if match is None:
        return None
    letters = match[0]
    name = letters.lower()
    if (word[0].isdigit() or before[-1:].isdigit()) and _MEASURED.match(letters):
        return "trailing" if name in _DIVIDED else "unit"
    if name == letters or letters.istitle():
        return None if word[0].isdigit() else _find_known(name, letters.istitle(), before)
    return "number" if name in _ANY else None  # the SAT is a test, but "SAT. 10–5" is a day


def find_closing(word: str) -> Abbreviation | None:
    """What a word is whose full stop is a part of it, and may end a sentence; None for one that never does.

    A word with capitals inside, such as "GmbH", has no full stop of its own: it ends its sentence as any other does.

    >>> find_closing("Ltd."), find_closing("a.m."), find_closing("GmbH."), find_closing("Dr.")
    ('closing', 'closing', 'trailing', None)
    """
    stem, name = word[:-1], word[:-1].lower()
    if name in _CLOSING or _DOTTED_CLOSING.match(name):
        return "closing"
    is_mixed = stem.isalpha() and len(stem) > _TITLE and not (stem.istitle() or stem.islower() or stem.isupper())
    return "trailing" if is_mixed else None


_TITLE = 3
"""Letters of a title with a full stop, at most: "PhD."."""


def _find_known(name: str, titled: bool, before: str) -> Abbreviation | None:
    if name in _DAYS:
        if name == "sun" and before.lower() == "the":
            return None
        return "day" if titled else "number"  # "sat" is a verb as well
    if name == "no" and not before:
        return None  # an answer: "No. 20 minutes are enough."
    if name == "al" and before.lower() == "et":
        return "trailing"
    if name in _NUMBER or (name in ("art", "arts") and titled):  # not "I love art. 5 years ago I …"
        return "number"
    if name in _LEADING:
        return "leading"
    return "trailing" if name in _TRAILING else None


def goes_on(abbreviation: Abbreviation, following: str) -> bool:
    """Whether the sentence goes on after the abbreviation with the token ``following``, which is not punctuation.

    >>> goes_on("trailing", "in"), goes_on("trailing", "Then"), goes_on("trailing", "it")
    (True, False, False)
    """
    first, name = following[0], following.lower()
    if abbreviation == "number" or not first.isalpha():
        if abbreviation == "unit" or (abbreviation == "day" and any(map(str.isalpha, following))):
            return False
        numbered = any(map(str.isnumeric, following))
        return numbered or unicodedata.category(first) == "Sc" or first in "~≈±+−≤≥"
    if abbreviation == "leading":
        return name not in _OPENERS or first.islower()
    if abbreviation == "closing":
        return name not in _CAPITAL_OPENERS or not first.isupper()
    if abbreviation == "day":
        return first.islower() or name.rstrip(".") in _DATED
    return first.islower() and name not in _OPENERS
