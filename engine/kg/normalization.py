"""The words of names and texts in the form in which they are compared.

Names and texts are split and folded by the same function, so whatever one leaves out, the other leaves out too. Scripts
that are written without blanks (Han, Hiragana, Thai, Lao, Khmer, Burmese) are split into single characters, so that any
place is a word's boundary.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_APART, _WITHIN, _ALONE, _MARK = range(4)
_ALONE_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # Han: repetition, closing, zero
    (0x3040, 0x309F),  # Hiragana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t"}
)
"""Letters that English texts spell without their stroke or ligature, but that Unicode does not decompose."""
_ASCII = re.compile(r"[A-Za-z0-9]+|&")
_GLUE = frozenset("'’ʼ‘`´-‐‑")
_MAY_GLUE = re.compile("[-.'’ʼ‘`´‐‑]")

_FUNCTION_WORDS = """
a an the this that these those some any each every all both no not none nor and or but if then than so as
because i me my mine you your yours he him his she her hers it its we us our ours they them their theirs one
who whom whose which what when where why how am is are was were be been being do does did done have has had
having will would shall should can could may might must ought of in on at by to from for with without about
above after again against before behind below between during into near off out over through under until up
down upon yes oh ok okay well too very just only also even now here there more most much many few such same
other another own once ever never still while s t m d re ll ve don isn aren wasn weren doesn didn won
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that alone say little about what is meant: a name made of them is linked letter for letter only."""
ARTICLES = frozenset(("the", "a", "an"))


class Word(NamedTuple):
    """A word of a text: ``text[start:end]``, and the form in which it is compared."""

    key: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """The words of ``text`` in order; what is neither letter nor digit stands between them, but ``&`` is "and".

    >>> [word.key for word in words("Amélie & the Ｇodfather: Spider-Man’s")]
    ['amelie', 'and', 'the', 'godfather', 'spider', 'man', 's']
    """
    if text.isascii():
        lower = text.lower()
        return [
            Word("and" if lower[a:b] == "&" else lower[a:b], a, b) for a, b in map(re.Match.span, _ASCII.finditer(text))
        ]
    found: list[Word] = []
    start: int | None = None
    for at, character in enumerate(text):
        kind = _kind(character)
        if start is not None and kind in (_APART, _ALONE):
            _add(found, text, start, at)
            start = None
        if kind == _ALONE:
            start = at
        elif kind == _WITHIN:
            if start is None:
                start = at
            elif _kind(text[start]) == _ALONE:
                _add(found, text, start, at)
                start = at
    if start is not None:
        _add(found, text, start, len(text))
    return found


def keys(text: str) -> list[str]:
    """The keys of ``words(text)``, for names, of which there may be a million."""
    if text.isascii() and "&" not in text:
        return _ASCII.findall(text.lower())
    return [word.key for word in words(text)]


def may_be_glued(text: str) -> bool:
    """False if there is nothing in ``text`` that ``glued`` closes."""
    return _MAY_GLUE.search(text) is not None


def glued(text: str, found: list[Word]) -> list[Word]:
    """The words with those made one that only an apostrophe, a hyphen or the point between initials parts.

    >>> text = "Spider-Man, U.S. and O'Brien"
    >>> [word.key for word in glued(text, words(text))]
    ['spiderman', 'us', 'and', 'obrien']
    """
    out: list[Word] = []
    last = 0  # letters of the last piece
    for word in found:
        gap = text[out[-1].end : word.start] if out else ""
        if gap in _GLUE or (gap == "." and last == 1 and len(word.key) == 1):
            out[-1] = Word(out[-1].key + word.key, out[-1].start, word.end)
        else:
            out.append(word)
        last = len(word.key)
    return out


def is_possessive(text: str, word: Word) -> bool:
    """Whether a glued word ends in an apostrophe and an s, which may belong to the sentence and not to the name."""
    return word.end - word.start > 2 and text[word.end - 1] in "sS" and text[word.end - 2] in "'’ʼ‘`´"


def _add(found: list[Word], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    if key := "and" if piece == "&" else fold(piece):
        found.append(Word(key, start, end))


@lru_cache(maxsize=65_536)
def _kind(character: str) -> int:
    if character == "&":
        return _ALONE
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf":  # accents, vowel signs, joiners: part of the word they follow
        return _MARK
    if not character.isalnum():
        return _APART
    code = ord(character)
    return _ALONE if any(low <= code <= high for low, high in _ALONE_RANGES) else _WITHIN


@lru_cache(maxsize=65_536)
def fold(word: str) -> str:
    """One word without case, Unicode form and the accents of Latin and Greek letters; empty if nothing is left.

    Marks of other scripts are vowels or tell letters apart, and stay.
    """
    if word.isascii():
        return word.lower()
    out: list[str] = []
    accented = False
    for character in unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold()):
        if "\u0300" <= character <= "\u036f":
            if not accented:
                out.append(character)
        elif character.isalnum() or unicodedata.category(character)[0] == "M":
            accented = unicodedata.name(character, "").startswith(("LATIN", "GREEK"))
            out.append(character)
    return unicodedata.normalize("NFC", "".join(out)).translate(_LETTERS)
