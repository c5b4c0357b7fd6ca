"""A graph's name in the place of another one: its article, its capitals, and nothing else of the sentence.

>>> put("Is it an Alien?", [Replacement(9, 14, "Gladiator", "Alien")])
('Is it a Gladiator?', (Edit(start=6, end=14, new_start=6, new_end=17),))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_ARTICLE = re.compile(r"\b(an?|the)(\s+)$", re.IGNORECASE)
_VOWEL_SOUND = re.compile(
    r"""(?ix) ^(?:
        (?!eu|ewe|one\b|once\b|uni(?!n|m)|u[bfkst][aeiou]|ut[aeiou]|ural|uru|ukr|ouija) [aeiouàáâäåæèéêëìíîïòóôöøùúûü]
      | (?:heir|hono|hour|honest)
      | (?:8|11(?:\b|th)|18(?:\b|th|\d\d\b))
    )"""
)
_SPELT = re.compile(r"^[A-Z]{2,}(?![a-z])|^[A-Z](?![a-z'’])")
"""Letters said one by one: an FBI agent, a UN envoy, an X-ray."""
_SPELT_VOWEL = frozenset("AEFHILMNORSX")
_BEGINS = re.compile(r"(?:^|[.!?…]['\"”’)\]]*\s+|\n)\W*$")


class Replacement(NamedTuple):
    """A name to put at ``text[start:end]``."""

    start: int
    end: int
    name: str
    """As the graph writes it."""
    was: str | None = None
    """The name of the node that stood there, as the graph writes it; None when the graph has no such node."""


class Edit(NamedTuple):
    """What one replacement changed: characters of the old text, and of the new."""

    start: int
    end: int
    new_start: int
    new_end: int


def put(text: str, replacements: Sequence[Replacement]) -> tuple[str, tuple[Edit, ...]]:
    """The text with all replacements, which are disjoint and in its order; everything outside the edits is the same.

    An edit covers more than the name where an article before it ("a", "an", a doubled "the") or a bare apostrophe of
    possession behind it no longer fits.
    """
    out, at = "", 0
    edits: list[Edit] = []
    for one in replacements:
        start, end = one.start, one.end
        begins = _BEGINS.search(text[:start]) is not None
        name = _cased(text, one, begins)
        article = _ARTICLE.search(text[at:start])
        if article is not None:
            word, blank = article.groups()
            fitting = _fitting(word, name)
            if word.lower() == "the" and re.match(r"the\s", name, re.IGNORECASE):
                start -= len(article[0])  # "the The Who" has one article too many
                name = word + name[3:]
            elif fitting != word:
                start -= len(article[0])
                name = fitting + blank + name
        quoted = one.start > 0 and text[one.start - 1] in "'‘"
        if not quoted and re.match(r"['’](?!\w)", text[end:]) and text[end - 1] in "sS" and name[-1] not in "sS":
            name += text[end] + "s"
            end += 1
        out += text[at:start]
        edits.append(Edit(start, end, len(out), len(out) + len(name)))
        out += name
        at = end
    return out + text[at:], tuple(edits)


def article(name: str) -> str:
    """``a`` or ``an``, by the sound that a name begins with.

    >>> [article(name) for name in ("Epic", "European", "hour", "FBI agent", "UFO", "8-bit game", "Uncle", "Uniform")]
    ['an', 'a', 'an', 'an', 'a', 'an', 'an', 'a']
    """
    plain = name.lstrip("\"'“‘«([")
    if _SPELT.match(plain) and not re.match(r"A\b", plain):
        return "an" if plain[0] in _SPELT_VOWEL else "a"
    return "an" if _VOWEL_SOUND.match(plain) else "a"


def _fitting(word: str, name: str) -> str:
    """The article in the place of ``word``, with its capital."""
    if word.lower() == "the":
        return word
    wanted = article(name)
    return wanted.upper() if word.isupper() and len(word) > 1 else wanted.capitalize() if word[0].isupper() else wanted


def _cased(text: str, one: Replacement, begins: bool) -> str:
    """The name with the capitals that the text gave to what stood there.

    A text without capitals gets none. A common noun ("Science fiction" in a graph) is written small where the old one
    was; a proper name keeps the capitals that the graph gives it, but for the first letter of a sentence.
    """
    old, name = text[one.start : one.end], one.name
    if not any(map(str.isupper, text)):
        return name.lower()
    if len(old) > 3 and old.isupper() and not (one.was or "").isupper():
        return name.upper()
    small = old[:1].islower()
    if small and _common(name) and (one.was is None or _common(one.was) or one.was[:1].islower()):
        name = name[:1].lower() + name[1:]
    if begins and not small:
        name = name[:1].upper() + name[1:]
    return name


def _common(name: str) -> bool:
    """Whether no word but the first has a capital, as in a graph's common nouns; a name of one word may be either."""
    return not any(map(str.isupper, name[1:]))
