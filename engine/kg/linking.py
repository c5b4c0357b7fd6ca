"""Which entities a text mentions, and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from .normalization import ARTICLES, FUNCTION_WORDS, Word, glued, is_possessive, keys, may_be_glued, words
from .records import Linked

MAX_WORDS = 64
"""Longer names are kept in the graph and not linked."""
_SENTENCE_ENDS = frozenset(".!?…。！？")
_SOFT = frozenset("-‐‑‒–—:·・'’ʼ‘`´*/")
"""What a text may have between the words of a mention where the name has something else or nothing."""
_OPENING = frozenset("\"'“‘«„([{*_")
_CLOSING = frozenset("\"'”’»“)]}*_")


class _Surface(NamedTuple):
    """One way to write an entity."""

    text: str
    entity: int
    alias: bool


class _Match(NamedTuple):
    """A candidate; they sort by preference."""

    length: int
    """Negative, so that the longest comes first."""
    start: int
    tier: int
    degree: int
    """Negative: of equal names, the entity of most triples."""
    entity: int
    how: Literal["exact", "normalised", "alias"]


class Linker:
    """An index of the entities' names by their first word.

    A key is the words of a name joined by blanks. Every name has up to four: as it is split, with its hyphens and
    apostrophes closed (``glued``), and both without a leading article. A text is read in the first two ways.
    """

    def __init__(self, names: Sequence[str], degrees: Sequence[int], aliases: Mapping[int, Sequence[str]]) -> None:
        self._names = names
        self._degrees = degrees
        self._surfaces: list[_Surface] = []
        self._keys: dict[str, list[int]] = {}
        """The surfaces of each key; those that lack an article or are glued are -1 - surface."""
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for entity, name in enumerate(names):
            self._add(_Surface(name, entity, False), lengths)
        for entity, others in aliases.items():
            for other in others:
                self._add(_Surface(other, entity, True), lengths)
        self._lengths = {first: tuple(found) for first, found in lengths.items()}

    def _add(self, surface: _Surface, lengths: defaultdict[str, set[int]]) -> None:
        parts = keys(surface.text)
        if not parts or len(parts) > MAX_WORDS:
            return
        entry = len(self._surfaces)
        self._surfaces.append(surface)
        self._enter(parts, entry, lengths)
        others = [parts[1:]] if parts[0] in ARTICLES else []
        if len(parts) > 1 and may_be_glued(surface.text):
            closed = [word.key for word in glued(surface.text, words(surface.text))]
            if len(closed) < len(parts):
                others += [closed, closed[1:]] if closed[0] in ARTICLES else [closed]
        for other in others:
            if not all(part in FUNCTION_WORDS for part in other):  # "The Who" is not every "who"
                self._enter(other, -1 - entry, lengths)

    def _enter(self, parts: list[str], entry: int, lengths: defaultdict[str, set[int]]) -> None:
        self._keys.setdefault(" ".join(parts), []).append(entry)
        lengths[parts[0]].add(len(parts))

    def link(self, text: str) -> tuple[Linked, ...]:
        """The mentions in ``text``, disjoint and in order; of overlapping ones the longest, then the first."""
        split = words(text)
        matches = self._matches(text, split)
        if may_be_glued(text) and len(closed := glued(text, split)) < len(split):
            matches += self._matches(text, closed, closed=True)
        taken: list[Linked] = []
        used = bytearray(len(text))
        for match in sorted(set(matches)):
            end = match.start - match.length
            if not any(used[match.start : end]):
                used[match.start : end] = b"\1" * -match.length
                taken.append(Linked(match.start, end, self._names[match.entity], match.how))
        return tuple(sorted(taken, key=lambda linked: linked.start))

    def _matches(self, text: str, found: list[Word], *, closed: bool = False) -> list[_Match]:
        matches = []
        for first, word in enumerate(found):
            for length in self._lengths.get(word.key, ()):
                mention = found[first : first + length]
                if len(mention) < length:
                    continue
                key = word.key if length == 1 else " ".join([part.key for part in mention])
                entries = self._keys.get(key)
                if entries is None or (closed and is_possessive(text, mention[-1])):
                    continue
                best = [match for entry in entries if (match := self._match(text, mention, entry))]
                if best:
                    matches.append(min(best))
        return matches

    def _match(self, text: str, mention: list[Word], entry: int) -> _Match | None:
        """What the text's words are under one way of writing an entity; None where the text parts them."""
        variant = entry < 0
        surface = self._surfaces[-1 - entry if variant else entry]
        start, end = mention[0].start, mention[-1].end
        degree = -self._degrees[surface.entity]
        # Letter for letter, with the punctuation that begins or ends the name: "(500) Days of Summer", "Airplane!".
        lead = surface.text.find(text[start:end])
        exact = not variant and 0 <= lead <= start and text.startswith(surface.text, start - lead)
        if exact:
            start, end = start - lead, start - lead + len(surface.text)
        if all(word.key in FUNCTION_WORDS for word in mention) and not (
            exact and (len(mention) > 1 or not _begins_sentence(text, start, end))
        ):
            return None
        # Not every "watch" is "The Watch".
        bare = variant and len(mention) == 1 and _is_article_and_word(surface.text)
        if bare and (text[start:end] not in surface.text or _begins_sentence(text, start, end)):
            return None
        if not exact and len(mention) > 1 and not _together(text, mention, surface.text):
            return None
        if surface.alias:
            return _Match(start - end, start, 3 if variant else 1, degree, surface.entity, "alias")
        if exact:
            return _Match(start - end, start, 0, degree, surface.entity, "exact")
        return _Match(start - end, start, 2 if variant else 1, degree, surface.entity, "normalised")


def _is_article_and_word(name: str) -> bool:
    parts = keys(name)
    return len(parts) == 2 and parts[0] in ARTICLES


def _together(text: str, mention: list[Word], name: str) -> bool:
    """Whether nothing between the words of a mention parts them.

    Blanks, hyphens, colons and the like never do. The end of a sentence does, but for a short word before it (Mr.,
    Inc., initials) and where the name has the same; so do a comma, a bracket or a quotation mark that the name does not
    have, and an empty line.
    """
    for before, after in pairwise(mention):
        gap = text[before.end : after.start]
        if gap in (" ", "-", ""):
            continue
        if gap.replace("\r\n", "\n").count("\n") > 1:
            return False
        for at, character in enumerate(gap):
            if character not in _SENTENCE_ENDS:
                parts = not (character.isspace() or character in _SOFT or character in name)
            elif character == "." and (len(before.key) <= 3 or not gap[at + 1 : at + 2].isspace()):
                parts = False
            else:
                parts = text[before.start : before.end + 1].casefold() not in name.casefold()
            if parts:
                return False
    return True


def _begins_sentence(text: str, start: int, end: int) -> bool:
    """Whether a word may owe its capital letter to where it stands.

    A word in quotation marks of its own does not, nor one of several capital letters.
    """
    if text[start:end].isupper() and end - start > 1:
        return False
    if text[start - 1 : start] in _OPENING and text[end : end + 1] in _CLOSING and start and end < len(text):
        return False
    before = text[:start].rstrip()
    return not before or before[-1] in _SENTENCE_ENDS or before[-1] in ":\n" or before[-1] in _OPENING
