"""Finds names by their capitals; one at the beginning of a sentence says nothing, unless the word has one elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence, Set
from functools import lru_cache

from groundwire.runtime.texts.characters import is_alphanumeric, is_letters, starts_lower, starts_upper
from groundwire.runtime.texts.unread import ENGLISH

from ..text.normalization import FUNCTION_WORDS, fold_word
from .dates import MONTHS
from .numbers import stem
from .tokens import Name, NameType, Token, Value, load_table, text_at, touches
from .units import COUNTRY_OF, SAFE_IN_LOWER_CASE

_CONNECTING = frozenset(load_table("connecting"))
_TITLES = frozenset(load_table("titles"))
_NOT_NAMES = frozenset(load_table("not_names"))
PLACES = frozenset(load_table("places"))
ORGANISATIONS = frozenset(load_table("organisations"))
_NO_TITLES = frozenset(load_table("no_titles"))
"""Words of many names with "of" that are not titles of works: "the Battle of Hastings"."""
_PREPOSITIONS = frozenset(load_table("prepositions"))
PHRASES = {
    ("united", "states"): ["america"],
    ("united", "states", "america"): ["america"],
    ("united", "kingdom"): ["britain"],
    ("great", "britain"): ["britain"],
}
"""Names of two words for a country that has another."""
_MAX_WORDS = 8
"""Words of a name; a longer run of capitals is a heading."""


@lru_cache(maxsize=65_536)
def fold_name(word: str) -> str:
    """A word of a name without case, accents and possessive; the country of a nationality.

    >>> fold_name("Beyoncé's"), fold_name("French"), fold_name("Germans")
    ('beyonce', 'france', 'germany')
    """
    folded = fold_word(word.replace("’", "'").removesuffix("'s")).replace("'", "")
    return COUNTRY_OF.get(folded, folded)


def split_by_case(tokens: Sequence[Token]) -> tuple[set[str], set[str]]:
    """The words with a capital that does not begin a sentence, and the words without a capital, in lower case."""
    capitalised: set[str] = set()
    lower: set[str] = set()
    for token in tokens:
        if starts_lower(token.text):
            lower.add(token.lower)
        elif not token.opens and starts_upper(token.text):
            capitalised.add(token.lower.removesuffix("'s"))
    return capitalised, lower


def find_names(
    tokens: Sequence[Token], taken: Collection[int], capitalised: Set[str], lower: Set[str] = frozenset()
) -> list[Value]:
    """The names in a text, in order.

    ``taken``: indices of tokens that are part of other values. ``capitalised``: words with a capital inside a sentence,
    here or in the other text. ``lower``: words that are written without one.
    """
    headings = _find_headings(tokens)
    names: list[Value] = []
    end = 0
    for index, token in enumerate(tokens):
        if index < end or not (starts_upper(token.text) or token.lower in SAFE_IN_LOWER_CASE):
            continue
        if index in taken or token.sentence in headings:
            continue
        if starts_lower(token.text):
            names.append(_make(tokens, index, index + 1, False))
        elif _is_capital(token):
            end = _find_end(tokens, index, taken)
            start, optional = _choose_start(tokens, index, end, capitalised, lower)
            if start < end and end - start <= 2 * _MAX_WORDS:
                name = _make(tokens, start, end, optional)
                if isinstance(name.content, Name) and name.content.words:
                    names.append(name)
    return names


def _find_headings(tokens: Sequence[Token]) -> set[int]:
    """Sentences in capitals, or of capitalised words alone, in which a capital says nothing."""
    capitals = Counter([token.sentence for token in tokens if starts_upper(token.text)])
    many = {sentence for sentence, count in capitals.items() if count > 4}
    return many and many - {
        token.sentence for token in tokens if starts_lower(token.text) and token.lower not in FUNCTION_WORDS
    }


def _is_capital(token: Token) -> bool:
    return starts_upper(token.text) and token.lower not in _NOT_NAMES


def _find_end(tokens: Sequence[Token], index: int, taken: Collection[int]) -> int:
    """The index after the name that begins at ``index``."""
    end = index + 1
    while end < len(tokens) and not tokens[end - 1].lower.endswith(("'s", "s'")):
        last, next_index = tokens[end - 1], end
        abbreviated = len(last.text) == 1 or last.lower in _TITLES or last.lower == "jr"
        if tokens[next_index].text in ("-", "&") or (
            tokens[next_index].text == "." and touches(tokens, next_index) and abbreviated
        ):
            next_index += 1  # J. R. R. Tolkien, Dr. Dre, Jean-Luc
        for _ in range(2):  # of the
            next_index += text_at(tokens, next_index) in _CONNECTING and starts_lower(tokens[next_index].text)
        if next_index >= len(tokens) or next_index in taken or tokens[next_index].sentence != last.sentence:
            break
        initial = len(tokens[next_index].text) == 1 and starts_upper(tokens[next_index].text)
        model = initial and text_at(tokens, next_index + 1) == "-" and touches(tokens, next_index + 1)  # F-35
        if model or not (initial or _is_capital(tokens[next_index])):
            break
        end = next_index + 1
    return end


def _choose_start(
    tokens: Sequence[Token], index: int, end: int, capitalised: Set[str], lower: Set[str]
) -> tuple[int, bool]:
    """Where a run of capitals begins as a name, and whether its first word may be none; ``end`` when it is not a
    name."""
    token = tokens[index]
    plain = token.lower.removesuffix("'s")
    if plain in FUNCTION_WORDS or plain in MONTHS or (token.opens and plain in ENGLISH and plain not in COUNTRY_OF):
        start = index + 1
        while start < end and not _is_capital(tokens[start]):
            start += 1
        return start, False
    if not token.opens:
        return index, False
    if plain in COUNTRY_OF or (plain in capitalised and plain not in lower):
        return index, False
    if end - index > 1:
        return index, not set(tokens[index + 1].text) <= set("IVX.")  # Henry II, J. K.
    return end, False


def _make(tokens: Sequence[Token], start: int, end: int, optional: bool) -> Value:
    first, last = tokens[start], tokens[end - 1]
    inner = [token for token in tokens[start:end] if is_alphanumeric(token.text[0])]
    titles = [fold_name(token.text) for token in inner if token.lower in _TITLES]
    others = [token for token in inner if token.lower not in _CONNECTING and token.lower not in _TITLES]
    folded = [fold_name(token.text) for token in others] or (titles if len(inner) > 1 else [])
    words = tuple(PHRASES.get(tuple(folded), folded))
    second = next((token.start for token in inner[1:] if _is_capital(token)), first.start)
    name = Name(
        words,
        _find_type([token.lower for token in inner], bool(titles) and len(inner) > 1, words),
        _find_role(tokens, start),
        optional=second - first.start if optional else 0,
        opens=first.opens or (start > 0 and tokens[start - 1].opens),
        title=_find_title(inner),
    )
    possessive = 2 if last.lower.endswith("'s") else 1 if last.lower.endswith("'") else 0
    return Value(name.type, first.start, last.end - possessive, first.sentence, name)


def _find_title(inner: Sequence[Token]) -> tuple[str, ...]:
    """The words of a name that may be a work's title: "The Joy of Painting", but no office, place or organisation."""
    words = tuple(token.lower for token in inner)
    if len(words) < 3 or not any(word in _CONNECTING for word in words[1:-1]):
        return ()
    named = any(word in PLACES or word in ORGANISATIONS or word in _TITLES or word in _NO_TITLES for word in words)
    return () if named else words


def differ_as_titles(ours: Name, theirs: Name) -> bool:
    """Whether two titles of works have all words but one in common: "The Joy of Cooking", "The Joy of Painting".

    >>> from .tokens import tokenize
    >>> ours, theirs = (
    ...     find_names(tokenize(text), (), set())[0].content
    ...     for text in ("She hosts Joy of Cooking.", "She hosts Joy of Painting.")
    ... )
    >>> differ_as_titles(ours, theirs), differ_as_titles(ours, ours)
    (True, False)
    """
    if not ours.title or len(ours.title) != len(theirs.title):
        return False
    differing = [left for left, right in zip(ours.title, theirs.title, strict=True) if left != right]
    return len(differing) == 1 and differing[0] not in _CONNECTING


def _find_role(tokens: Sequence[Token], start: int) -> tuple[str, str]:
    """The preposition before a name, and the stem of the content word before that; empty for none."""
    preposition = ""
    for index in range(start - 1, max(start - 5, -1), -1):
        token = tokens[index]
        if token.sentence != tokens[start].sentence:
            break
        if token.lower not in FUNCTION_WORDS:
            return preposition, stem(token.lower) if is_letters(token.text[0]) else ""
        if token.lower in _PREPOSITIONS:
            preposition = token.lower
    return preposition, ""


def _find_type(lower: Sequence[str], titled: bool, words: Sequence[str]) -> NameType:
    if len(words) == 1 and words[0] in COUNTRY_OF.values():
        return "nationality"
    if lower[-1] in ORGANISATIONS:
        return "organisation"
    if lower[-1] in PLACES or lower[0] in PLACES:
        return "place"
    return "person" if titled else "name"
