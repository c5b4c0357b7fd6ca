"""Entity linking: finds the entities that a text mentions, and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from groundwire.engine.extend import FUNCTION_WORDS
from groundwire.runtime.texts.characters import is_space, is_upper_case

from .normalization import NormalizedWord, has_joiner, is_possessive, join_parts, normalize_name, normalize_words
from .records import Linked

ARTICLES = frozenset(("the", "a", "an"))
MAX_WORDS = 64
"""Words of a name, at most; longer names are in the graph but are not linked."""
_SENTENCE_ENDS = frozenset(".!?…。！？")
_IGNORED = frozenset("-‐‑‒–—:·・'’ʼ‘`´*/")
"""Characters that may differ from the name between the words of a mention."""
_OPENING = frozenset("\"'“‘«„([{*_")
_CLOSING = frozenset("\"'”’»“)]}*_")


class _SurfaceForm(NamedTuple):
    """A name or an alias of an entity, as written."""

    text: str
    entity: int
    alias: bool


class _Match(NamedTuple):
    """A candidate mention. Candidates sort by preference."""

    length: int
    """Negative, so that the longest mention comes first."""
    start: int
    tier: int
    degree: int
    """Negative, so the entity with most triples comes first among equal names."""
    entity: int
    how: Literal["exact", "normalised", "alias"]


class EntityLinker:
    """An index of the entities' names by their normalised words.

    A key is the words of a name joined by spaces. Every name has up to four keys: its words, its words with hyphens and
    apostrophes removed (``join_parts``), and both without a leading article. A text is read in the first two ways.
    """

    def __init__(self, names: Sequence[str], degrees: Sequence[int], aliases: Mapping[int, Sequence[str]]) -> None:
        self._names = names
        self._degrees = degrees
        self._surfaces: list[_SurfaceForm] = []
        self._keys: dict[str, list[int]] = {}
        """The indices of the surface forms of each key; -1 - index where the key has no article or is joined."""
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for entity, name in enumerate(names):
            self._add(_SurfaceForm(name, entity, False), lengths)
        for entity, alias_names in aliases.items():
            for alias in alias_names:
                self._add(_SurfaceForm(alias, entity, True), lengths)
        self._lengths = {first_word: tuple(counts) for first_word, counts in lengths.items()}
        """The numbers of words of the keys that begin with a word."""

    def _add(self, surface: _SurfaceForm, lengths: defaultdict[str, set[int]]) -> None:
        parts = normalize_name(surface.text)
        if not parts or len(parts) > MAX_WORDS:
            return
        entry = len(self._surfaces)
        self._surfaces.append(surface)
        self._enter(parts, entry, lengths)
        variants = [parts[1:]] if parts[0] in ARTICLES else []
        if len(parts) > 1 and has_joiner(surface.text):
            joined = [word.key for word in join_parts(surface.text, normalize_words(surface.text))]
            if len(joined) < len(parts):
                variants += [joined, joined[1:]] if joined[0] in ARTICLES else [joined]
        for variant in variants:
            if not all(part in FUNCTION_WORDS for part in variant):  # "who" alone does not mean "The Who"
                self._enter(variant, -1 - entry, lengths)

    def _enter(self, parts: list[str], entry: int, lengths: defaultdict[str, set[int]]) -> None:
        self._keys.setdefault(" ".join(parts), []).append(entry)
        lengths[parts[0]].add(len(parts))

    def link(self, text: str) -> tuple[Linked, ...]:
        """Return the mentions in ``text``, disjoint and in order; of overlapping ones the longest, then the first."""
        parts = normalize_words(text)
        matches = self._find_matches(text, parts)
        if has_joiner(text) and len(joined := join_parts(text, parts)) < len(parts):
            matches += self._find_matches(text, joined, are_joined=True)
        links: list[Linked] = []
        used = bytearray(len(text))
        for match in sorted(set(matches)):
            end = match.start - match.length
            if not any(used[match.start : end]):
                used[match.start : end] = b"\1" * -match.length
                links.append(Linked(match.start, end, self._names[match.entity], match.how))
        return tuple(sorted(links, key=lambda link: link.start))

    def _find_matches(self, text: str, text_words: list[NormalizedWord], *, are_joined: bool = False) -> list[_Match]:
        matches = []
        for first, word in enumerate(text_words):
            for length in self._lengths.get(word.key, ()):
                mention = text_words[first : first + length]
                if len(mention) < length:
                    continue
                key = word.key if length == 1 else " ".join([part.key for part in mention])
                entries = self._keys.get(key)
                if entries is None or (are_joined and is_possessive(text, mention[-1])):
                    continue
                best = [match for entry in entries if (match := self._match(text, mention, entry))]
                if best:
                    matches.append(min(best))
        return matches

    def _match(self, text: str, mention: list[NormalizedWord], entry: int) -> _Match | None:
        """Match the words of a mention with a surface form; None if the text separates them or they are too common."""
        variant = entry < 0
        surface = self._surfaces[-1 - entry if variant else entry]
        start, end = mention[0].start, mention[-1].end
        degree = -self._degrees[surface.entity]
        # An exact match includes the punctuation at the ends of the name: "(500) Days of Summer", "Airplane!".
        lead = surface.text.find(text[start:end])
        exact = not variant and 0 <= lead <= start and text.startswith(surface.text, start - lead)
        if exact:
            start, end = start - lead, start - lead + len(surface.text)
        if all(word.key in FUNCTION_WORDS for word in mention) and not (
            exact and (len(mention) > 1 or not _begins_sentence(text, start, end))
        ):
            return None
        # "watch" alone does not mean "The Watch".
        bare = variant and len(mention) == 1 and _is_article_and_word(surface.text)
        if bare and (text[start:end] not in surface.text or _begins_sentence(text, start, end)):
            return None
        if not exact and len(mention) > 1 and not _is_unbroken(text, mention, surface.text):
            return None
        if surface.alias:
            return _Match(start - end, start, 3 if variant else 1, degree, surface.entity, "alias")
        if exact:
            return _Match(start - end, start, 0, degree, surface.entity, "exact")
        return _Match(start - end, start, 2 if variant else 1, degree, surface.entity, "normalised")


def _is_article_and_word(name: str) -> bool:
    parts = normalize_name(name)
    return len(parts) == 2 and parts[0] in ARTICLES


def _is_unbroken(text: str, mention: list[NormalizedWord], name: str) -> bool:
    """Whether nothing between the words of a mention separates them.

    Spaces, hyphens, colons and the like do not. The end of a sentence does, except after a short word (Mr., Inc.,
    initials) and where the name has it too; so do an empty line, and a comma, a bracket or a quotation mark that the
    name does not have.
    """
    for before, after in pairwise(mention):
        gap = text[before.end : after.start]
        if gap in (" ", "-", ""):
            continue
        if gap.replace("\r\n", "\n").count("\n") > 1:
            return False
        for index, character in enumerate(gap):
            if character not in _SENTENCE_ENDS:
                separates = not (is_space(character) or character in _IGNORED or character in name)
            elif character == "." and (len(before.key) <= 3 or not is_space(gap[index + 1 : index + 2])):
                separates = False
            else:
                separates = text[before.start : before.end + 1].casefold() not in name.casefold()
            if separates:
                return False
    return True


def _begins_sentence(text: str, start: int, end: int) -> bool:
    """Whether a word may be capitalised only because it begins a sentence.

    A word in quotation marks is not, nor one in capital letters.
    """
    if is_upper_case(text[start:end]) and end - start > 1:
        return False
    if text[start - 1 : start] in _OPENING and text[end : end + 1] in _CLOSING and start and end < len(text):
        return False
    before = text[:start].rstrip()
    return not before or before[-1] in _SENTENCE_ENDS or before[-1] in ":\n" or before[-1] in _OPENING
