r"""What a character is, for all that reads texts: each has one kind, and no other module asks ``str``.

Expressions ask by ``\d`` (digits), ``[^\W\d_]`` (letters and numerals) and ``\s`` (spaces); a test compares them with
the kinds of all characters. The methods of ``str`` differ among themselves: for ``isdigit`` "²" is a digit that ``int``
does not read, and for ``isupper`` "🅿" is a capital that is no letter.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal, TypeAlias

CharacterKind: TypeAlias = Literal[
    "digit", "numeral", "letter", "mark", "space", "hidden", "bracket", "joiner", "currency", "sign"
]

_KINDS: dict[str, CharacterKind] = {
    **dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo"), "letter"),
    **dict.fromkeys(("Mn", "Mc", "Me"), "mark"),
    **dict.fromkeys(("Cc", "Cf"), "hidden"),
    **dict.fromkeys(("Ps", "Pe", "Pi", "Pf"), "bracket"),
    **dict.fromkeys(("Pd", "Pc"), "joiner"),
    "Nd": "digit",
    "Sc": "currency",
}


@lru_cache(maxsize=65_536)
def classify_character(character: str) -> CharacterKind:
    """Return what a character is.

    >>> [classify_character(character) for character in "7²é—)🅿"]
    ['digit', 'numeral', 'letter', 'joiner', 'bracket', 'sign']

    Args:
        character: A single character.

    Returns:
        ``digit`` (of decimal numbers, in any script), ``numeral`` (another sign for a number: "½", "Ⅳ", "③"),
        ``letter``, ``mark`` (an accent, or another part of the character before it), ``space``, ``hidden`` (controls,
        zero-width joiners, direction marks), ``bracket`` (and quotation marks that open or close), ``joiner`` (dashes
        and underscores), ``currency`` or ``sign``.
    """
    if character.isspace():
        return "space"
    kind = _KINDS.get(unicodedata.category(character), "sign")
    return "numeral" if kind == "sign" and character.isnumeric() else kind


is_digits = str.isdecimal
"""Whether a text is digits alone, which ``int`` reads."""
is_numeric = str.isnumeric
"""Whether a text is digits, numerals and ideographs of numbers alone: numbers for the eye."""
is_letters = str.isalpha
"""Whether a text is letters alone."""
is_alphanumeric = str.isalnum
"""Whether a text is letters, digits and numerals alone."""
is_space = str.isspace
"""Whether a text is spaces and ends of lines alone."""
is_upper_case = str.isupper
"""Whether a word has capitals and no small letters."""
is_lower_case = str.islower
"""Whether a word has small letters and no capitals."""
is_title_case = str.istitle
"""Whether each word of a text has one capital, and begins with it."""


def starts_upper(text: str) -> bool:
    """Return whether a text begins with a capital letter.

    >>> starts_upper("Åse"), starts_upper("🅿"), starts_upper("")
    (True, False, False)
    """
    first = text[:1]
    return first.istitle() and first.isalpha()


def starts_lower(text: str) -> bool:
    """Return whether a text begins with a small letter."""
    first = text[:1]
    return first.islower() and first.isalpha()
