"""Whether a text has anything to read: a character that leaves a mark where it is printed."""

from __future__ import annotations

import unicodedata

_UNMARKED = frozenset("MZ")
"""Unicode categories: marks, which need a letter to stand on (variation selectors are some), and separators."""
_CONTROLS = frozenset({"Cc", "Cf"})
"""Controls, and format characters such as zero-width spaces and joiners, soft hyphens and byte order marks."""
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are blank: fillers of Korean syllables, and the Braille pattern without dots."""


def is_blank(text: str) -> bool:
    r"""Whether ``text`` is empty, or has nothing but spaces and characters that are not shown.

    >>> is_blank(" \u200b\ufeff\u3164"), is_blank("\u200bno")
    (True, False)
    """
    return all(map(_is_unmarked, text))


def _is_unmarked(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in _UNMARKED or category in _CONTROLS or character in _FILLERS
