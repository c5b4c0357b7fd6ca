"""The words of names and texts in the form in which they are linked: the same functions normalise both.

Scripts that are written without spaces (Han, Hiragana, Thai, Lao, Khmer, Burmese) are split into single characters, so
that a word may begin and end anywhere.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from groundwire.engine.extend import fold_word
from groundwire.runtime.texts.characters import classify_character, is_alphanumeric

_SEPARATOR, _LETTER, _SINGLE, _MARK = range(4)
_SINGLE_RANGES = (
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
_ASCII = re.compile(r"[A-Za-z0-9]+|&")
_JOINERS = frozenset("'’ʼ‘`´-‐‑")
_JOINER = re.compile("[-.'’ʼ‘`´‐‑]")


class NormalizedWord(NamedTuple):
    """A word of a text: ``text[start:end]``, and its normalised form."""

    key: str
    """The normalised form."""
    start: int
    end: int


def normalize_words(text: str) -> list[NormalizedWord]:
    """Return the words of ``text`` in order: runs of letters and digits, and ``&`` as "and".

    >>> [word.key for word in normalize_words("Amélie & the Ｇodfather: Spider-Man’s")]
    ['amelie', 'and', 'the', 'godfather', 'spider', 'man', 's']
    """
    if text.isascii():
        lower = text.lower()
        return [
            NormalizedWord("and" if lower[a:b] == "&" else lower[a:b], a, b)
            for a, b in map(re.Match.span, _ASCII.finditer(text))
        ]
    found_words: list[NormalizedWord] = []
    start: int | None = None
    for offset, character in enumerate(text):
        kind = _kind(character)
        if start is not None and kind in (_SEPARATOR, _SINGLE):
            _append_word(found_words, text, start, offset)
            start = None
        if kind == _SINGLE:
            start = offset
        elif kind == _LETTER:
            if start is None:
                start = offset
            elif _kind(text[start]) == _SINGLE:
                _append_word(found_words, text, start, offset)
                start = offset
    if start is not None:
        _append_word(found_words, text, start, len(text))
    return found_words


def normalize_name(text: str) -> list[str]:
    """Return the keys of ``normalize_words(text)``, faster: a graph may have a million names."""
    if text.isascii() and "&" not in text:
        return _ASCII.findall(text.lower())
    return [word.key for word in normalize_words(text)]


def has_joiner(text: str) -> bool:
    """Whether ``text`` has a character that ``join_parts`` may remove."""
    return _JOINER.search(text) is not None


def join_parts(text: str, parts: list[NormalizedWord]) -> list[NormalizedWord]:
    """Join words that only an apostrophe, a hyphen or the point between initials separates.

    >>> text = "Spider-Man, U.S. and O'Brien"
    >>> [word.key for word in join_parts(text, normalize_words(text))]
    ['spiderman', 'us', 'and', 'obrien']
    """
    joined: list[NormalizedWord] = []
    last_length = 0  # letters of the last part
    for part in parts:
        gap = text[joined[-1].end : part.start] if joined else ""
        if gap in _JOINERS or (gap == "." and last_length == 1 and len(part.key) == 1):
            joined[-1] = NormalizedWord(joined[-1].key + part.key, joined[-1].start, part.end)
        else:
            joined.append(part)
        last_length = len(part.key)
    return joined


def is_possessive(text: str, word: NormalizedWord) -> bool:
    """Whether a joined word ends in an apostrophe and an s, which may belong to the sentence and not to the name."""
    return word.end - word.start > 2 and text[word.end - 1] in "sS" and text[word.end - 2] in "'’ʼ‘`´"


def _append_word(found_words: list[NormalizedWord], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    if key := "and" if piece == "&" else fold_word(piece):
        found_words.append(NormalizedWord(key, start, end))


@lru_cache(maxsize=65_536)
def _kind(character: str) -> int:
    if character == "&":
        return _SINGLE
    if classify_character(character) in ("mark", "hidden"):  # accents, vowel signs, joiners: a part of the word
        return _MARK
    if not is_alphanumeric(character):
        return _SEPARATOR
    code = ord(character)
    return _SINGLE if any(low <= code <= high for low, high in _SINGLE_RANGES) else _LETTER
