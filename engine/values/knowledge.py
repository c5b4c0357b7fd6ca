"""The passages of a request, read once: what they state, and which words their sentences have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple, TypeAlias

from ..kg.normalization import FUNCTION_WORDS
from .demonyms import COUNTRY_OF
from .finding import find_values
from .names import ORGANISATIONS, PHRASES, PLACES, fold_name
from .quantities import stem
from .records import Name, Value
from .tokens import Token, split_words

SentenceKey: TypeAlias = tuple[int, int]
"""Numbers of a passage and of a sentence in it."""
_GENERIC = PLACES | ORGANISATIONS
_PRONOUNS = frozenset(split_words("he she it they his her its their this these"))


class Location(NamedTuple):
    """Characters ``start`` to ``end`` of a passage, in one of its sentences."""

    passage: int
    start: int
    end: int
    sentence: int

    @property
    def key(self) -> SentenceKey:
        """Its sentence."""
        return self.passage, self.sentence


class Knowledge:
    """What the passages state, and where."""

    def __init__(self, passages: Sequence[Sequence[Token]], capitalised: Set[str], lower: Set[str]) -> None:
        """Read the tokens of each passage; ``capitalised`` and ``lower`` as for ``find_values``."""
        self.values: list[tuple[Location, Value]] = []
        """All values but names."""
        self.names: list[tuple[Location, Name]] = []
        self.content: dict[SentenceKey, Set[str]] = {}
        """Stems of the content words of each sentence."""
        self.opens_without_name = any(map(_opens_without_name, passages))
        """Whether a passage begins with whom it speaks of, but not by name: "she", "the film"."""
        self._words: dict[str, dict[SentenceKey, Location]] = {}
        self._initials: dict[str, Location] = {}
        for passage, tokens in enumerate(passages):
            values = find_values(tokens, capitalised, lower)
            self.content |= {(passage, key): words for key, words in list_content(tokens, values).items()}
            self._read_words(passage, tokens)
            for value in values:
                self._add(Location(passage, value.start, value.end, value.sentence), value)

    def find_name(self, words: Sequence[str]) -> Location | None:
        """Where a sentence has all words of a name, or its acronym, or the name of which it is the acronym.

        Words that only say of what kind something is are left out: Yale University is Yale.
        """
        specific = [word for word in words if word not in _GENERIC]
        by_word = [self._look_up(word) for word in specific or words]
        if by_word and all(by_word):
            for key in min(by_word, key=len):
                if all(key in locations for locations in by_word):
                    return by_word[-1][key]
        if len(words) == 1:
            return self._initials.get(words[0])
        acronym = self._words.get("".join(word[:1] for word in words), {})
        return next(iter(acronym.values()), None)

    def _look_up(self, word: str) -> Mapping[SentenceKey, Location]:
        words = self._words
        return words.get(word) or words.get(word.removesuffix("s")) or words.get(f"{word}s") or {}

    def _read_words(self, passage: int, tokens: Sequence[Token]) -> None:
        previous = initials = ""
        for token in tokens:
            if token.text[0].isupper() and token.lower not in FUNCTION_WORDS:
                initials += token.lower[0]
                if 1 < len(initials) < 8:
                    location = Location(passage, token.start, token.end, token.sentence)
                    self._initials.setdefault(initials, location)
            elif token.lower not in ("of", "the", "and", "for", "&"):
                initials = ""
            if token.text[0].isalnum():
                word = fold_name(token.text)
                location = Location(passage, token.start, token.end, token.sentence)
                for key in (word, *PHRASES.get((previous, word), ())):
                    self._words.setdefault(key, {}).setdefault(location.key, location)
                previous = word

    def _add(self, location: Location, value: Value) -> None:
        name = value.content
        if not isinstance(name, Name):
            self.values.append((location, value))
            return
        self.names.append((location, name))
        if len(name.words) > 1 and name.words[0] in COUNTRY_OF:
            # "Chinese BAFTA nominee" has a nationality, too.
            self.names.append((location, name._replace(words=name.words[:1], type="nationality")))


def list_content(tokens: Sequence[Token], values: Sequence[Value]) -> Mapping[int, Set[str]]:
    """Stems of the content words of each sentence, without its amounts and dates."""
    content: dict[int, set[str]] = defaultdict(set)
    amounts = [value for value in values if value.kind != "name"]
    at = 0
    for token in tokens:
        while at < len(amounts) and amounts[at].end <= token.start:
            at += 1
        words = content[token.sentence]
        if at < len(amounts) and amounts[at].start <= token.start:
            continue
        if token.text[0].isalpha() and len(token.text) > 2 and token.lower not in FUNCTION_WORDS:
            words.add(stem(COUNTRY_OF.get(token.lower, token.lower)))
    return content


def _opens_without_name(tokens: Sequence[Token]) -> bool:
    if not tokens:
        return False
    described = tokens[0].lower == "the" and len(tokens) > 1 and tokens[1].text[0].islower()
    return described or tokens[0].lower in _PRONOUNS
