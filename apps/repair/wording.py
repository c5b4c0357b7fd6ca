"""Replaces names in a sentence: adapts the article and the capitals, and changes nothing else.

>>> replace_names("Is it an Alien?", [Replacement(9, 14, "Gladiator", "Alien")])
('Is it a Gladiator?', (EditRange(start=6, end=14, new_start=6, new_end=17),))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from groundwire.runtime.texts.characters import is_alphanumeric, is_upper_case, starts_lower, starts_upper

_ARTICLE = re.compile(r"\b(an?|the)(\s+)$", re.IGNORECASE)
_VOWEL_SOUND = re.compile(
    r"""(?ix) ^(?:
        (?!eu|ewe|one\b|once\b|uni(?!n|m)|u[bfkst][aeiou]|ut[aeiou]|ural|uru|ukr|ouija) [aeiouàáâäåæèéêëìíîïòóôöøùúûü]
      | (?:heir|hono|hour|honest)
      | (?:8|11(?:\b|th)|18(?:\b|th|\d\d\b))
    )"""
)
_SPELT = re.compile(r"^[A-Z]{2,}(?![a-z])|^[A-Z](?![a-z'’])")
"""Letters that are pronounced one by one: an FBI agent, a UN envoy, an X-ray."""
_SPELT_VOWEL = frozenset("AEFHILMNORSX")
_SENTENCE_END = re.compile(r"[.!?…]['\"”’)\]]*\s+|\n")
_POSSESSIVE_APOSTROPHE = re.compile(r"['’](?!\w)")


class Replacement(NamedTuple):
    """A name to put at ``text[start:end]``."""

    start: int
    end: int
    name: str
    """As the graph writes it."""
    old_entity: str | None = None
    """The entity that the name replaces, as the graph writes it; None if the graph has no such node."""


class EditRange(NamedTuple):
    """The range of one replacement, in characters of the old text and of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


def replace_names(text: str, replacements: Sequence[Replacement]) -> tuple[str, tuple[EditRange, ...]]:
    """Return the text with all replacements made, and their edits; everything outside the edits is unchanged.

    The replacements must be disjoint and in the order of the text. An edit covers more than the name if an article
    before it ("a", "an", a doubled "the") or a bare possessive apostrophe after it no longer fits.
    """
    replaced, position = "", 0
    has_capitals = any(map(starts_upper, text))  # in a text without capitals, names have none
    edits: list[EditRange] = []
    for replacement in replacements:
        start, end = replacement.start, replacement.end
        name = replacement.name.lower() if not has_capitals else _match_case(text, replacement)
        article = _ARTICLE.search(text[position:start])
        if article is not None:
            word, space = article.groups()
            new_word = _fit_article(word, name)
            if word.lower() == "the" and re.match(r"the\s", name, re.IGNORECASE):
                start -= len(article[0])  # "the The Who" has one article too many
                name = word + name[3:]
            elif new_word != word:
                start -= len(article[0])
                name = new_word + space + name
        quoted = replacement.start > 0 and text[replacement.start - 1] in "'‘"
        possessive = not quoted and _POSSESSIVE_APOSTROPHE.match(text, end) is not None
        if possessive and text[end - 1] in "sS" and name[-1] not in "sS":
            name += text[end] + "s"
            end += 1
        replaced += text[position:start]
        edits.append(EditRange(start, end, len(replaced), len(replaced) + len(name)))
        replaced += name
        position = end
    return replaced + text[position:], tuple(edits)


def choose_article(name: str) -> str:
    """Return ``a`` or ``an``, by the sound that a name begins with.

    >>> names = ("Epic", "European", "hour", "FBI agent", "UFO", "8-bit game", "Uncle", "Uniform")
    >>> [choose_article(name) for name in names]
    ['an', 'a', 'an', 'an', 'a', 'an', 'an', 'a']
    """
    plain = name.lstrip("\"'“‘«([")
    if _SPELT.match(plain) and not re.match(r"A\b", plain):
        return "an" if plain[0] in _SPELT_VOWEL else "a"
    return "an" if _VOWEL_SOUND.match(plain) else "a"


def _fit_article(word: str, name: str) -> str:
    """The article for ``name`` that replaces the article ``word``, with its capitals."""
    if word.lower() == "the":
        return word
    article = choose_article(name)
    if is_upper_case(word) and len(word) > 1:
        return article.upper()
    return article.capitalize() if starts_upper(word) else article


def _match_case(text: str, replacement: Replacement) -> str:
    """The new name with the capitals that the text gave to the old one.

    A common noun ("Science fiction" in a graph) is in lower case if the old one was; a proper name keeps the graph's
    capitals, apart from the first letter of a sentence.
    """
    old, name = text[replacement.start : replacement.end], replacement.name
    old_entity = replacement.old_entity
    if len(old) > 3 and is_upper_case(old) and not is_upper_case(old_entity or ""):
        return name.upper()
    is_lower = starts_lower(old)
    was_common = old_entity is None or _is_common_noun(old_entity) or starts_lower(old_entity)
    if is_lower and _is_common_noun(name) and was_common:
        name = name[:1].lower() + name[1:]
    if not is_lower and _starts_sentence(text, replacement.start):
        name = name[:1].upper() + name[1:]
    return name


def _starts_sentence(text: str, start: int) -> bool:
    """Whether the last characters before ``start`` that are not of a word end a sentence, or no word precedes it."""
    gap = start
    while gap > 0 and not (is_alphanumeric(text[gap - 1]) or text[gap - 1] == "_"):
        gap -= 1
    return gap == 0 or _SENTENCE_END.search(text, gap, start) is not None


def _is_common_noun(name: str) -> bool:
    """Whether only the first letter may be a capital, as in a graph's common nouns; one word may also be a name."""
    return not any(map(starts_upper, name[1:]))
