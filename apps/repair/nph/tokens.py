"""The words and names of a response, and who may be at the other end of what they state.

The grammar is shallow: it knows articles, pronouns, forms of "to be", prepositions, and the words of ``relations``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import is_alphanumeric, is_letters, is_numeric

from .relations import FAMILIES, PREPOSITIONS, Kind, mark_phrases, read_word, word_set

_TOKEN = re.compile(r"['’]s\b|['’](?!\w)|\w+(?:[-,.]\w+)*|[^\w\s()\[\]\"“”«»„*_]")
POSSESSIVE_MARKS = frozenset(("'s", "’s", "'", "’"))
BE = word_set("is was are were be been being 's ’s")
COPULA = BE | word_set("called named would 'd")
PRONOUNS = word_set("he she it they him her them his hers its their this that one who which whom")
RELATIVE = word_set("which that whom who")
POSSESSIVE = word_set("its his her their")
BREAKS = word_set("but while whereas although though because so ; :")
"""Words and marks after which another clause begins."""
JOINS = word_set(", and or as well also both too plus of")
"""Words between the names of a list."""
ARTICLES = word_set("the a an another other his her its their some")
SKIPPED = BE | word_set("has have had also then too just only actually really both all who which that , later once")
"""Words between a name and the verb that it is the subject of."""
_ADVERBS = word_set("also back together only both")
_ANOTHER = re.compile(r"\b(?:also|another|too|as well|other|else|again)\b", re.IGNORECASE)
CLASSES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("film", "movie", "picture", "comedy", "drama"), ("direct",)),
    **dict.fromkeys(("book", "novel", "story", "poem", "series", "play"), ("write",)),
    **dict.fromkeys(("painting", "portrait"), ("paint",)),
    **dict.fromkeys(("building", "bridge", "tower", "house"), ("design",)),
    **dict.fromkeys(word_set("song album sculpture statue studio city town river country man woman"), ()),
}
CLASSES |= {f"{noun}s": families for noun, families in CLASSES.items()}
"""Nouns before a name, and the families that "by" means after them; any maker's where there are none."""
MAX_NAMES = 32
"""Names of a response, at most, that is read."""
MAX_TOKENS = 128
"""Tokens of a sentence, at most, that is read."""
MAKING = ("write", "direct", "paint", "design", "compose", "sculpt", "sing", "illustrate", "translate")
"""The families that "by" alone may mean."""


class NameRange(NamedTuple):
    """A name of the text: ``text[start:end]``."""

    start: int
    end: int
    entity: str | None
    """As the graph has it; None for a name that the graph does not know."""


class Referent(NamedTuple):
    """What is at the other end of a relation: a name of the text, or what a pronoun or an elided subject refers to."""

    name: int | None = None
    """Index of a name; None for a pronoun."""
    is_certain: bool = False
    """Whether no other name is meant where this one does not fit."""
    via: str | None = None
    """The family of a noun between: of "its author" that of author."""


class TextToken(NamedTuple):
    """A word, a mark, or a name of the text."""

    text: str
    """In lower case; of a name the empty text."""
    start: int
    name: int | None
    """Index of the name."""
    sentence: int


class NamedTokens:
    """The tokens of a text with names."""

    def __init__(self, text: str, names: Sequence[NameRange], families: Collection[str]) -> None:
        """``families`` are the relations that words outside the table may name: those of the graph."""
        self.names = tuple(names)
        self.text = text
        self.families = families
        self.tokens = list(self._split(mark_phrases(text)))
        self._lengths = Counter(token.sentence for token in self.tokens)
        self.index_of = {token.name: index for index, token in enumerate(self.tokens) if token.name is not None}

    def _split(self, text: str) -> Iterator[TextToken]:
        starts = [sentence.start for sentence in sentences(self.text)] or [0]
        position = 0
        bounds = [*self.names, NameRange(len(text), len(text), None)]
        for number, name in enumerate(bounds):
            for match in _TOKEN.finditer(text, position, name.start):
                yield TextToken(match[0].lower(), match.start(), None, bisect_right(starts, match.start()))
            if name.start < len(text):
                yield TextToken("", name.start, number, bisect_right(starts, name.start))
            position = max(position, name.end)

    def is_readable(self, name: int) -> bool:
        """Whether a name is in a sentence, and a text, that is short enough to be read."""
        return len(self.names) <= MAX_NAMES and self._lengths[self.sentence(name)] <= MAX_TOKENS

    def name_text(self, name: int) -> str:
        """Return a name as the text writes it."""
        return self.text[self.names[name].start : self.names[name].end]

    def sentence(self, name: int) -> int:
        """Return the number of the sentence of a name."""
        return self.tokens[self.index_of[name]].sentence

    def names_before(self, name: int) -> list[int]:
        """Return the names before a name, the nearest first, without those of its own sentence."""
        sentence = self.sentence(name)
        before = [token for token in self.tokens if token.name is not None and token.sentence < sentence]
        return [token.name for token in reversed(before) if token.name is not None]

    def sentence_names(self, name: int) -> set[int]:
        """Return the other names of the sentence of a name."""
        sentence = self.sentence(name)
        return {
            token.name
            for token in self.tokens
            if token.name is not None and token.sentence == sentence and token.name != name
        }

    def find_holders(self) -> Iterator[tuple[str, int]]:
        """Yield the family and the name of every "director of NAME"."""
        for index, token in enumerate(self.tokens):
            if token.name is not None and (noun := self.noun_before(index)):
                yield noun, token.name

    def cue(self, index: int) -> tuple[tuple[str, Kind], ...]:
        """Return the families and kinds of a word that names a relation."""
        token = self.tokens[index]
        if token.name is not None or not token.text or token.text in PRONOUNS | COPULA | PREPOSITIONS:
            return ()
        before = self.tokens[index - 1].text if index else ""
        if token.text in ("play", "set", "found") and before in ARTICLES:
            return ()
        read = read_word(token.text.removeprefix("co-"))
        return tuple(item for item in read if item[0] in self.families or item[0] in FAMILIES)

    def noun_before(self, index: int) -> str | None:
        """Return the family of the noun in "the director of NAME"."""
        position = index - 1
        while position > 0 and self.tokens[position].text in ARTICLES | CLASSES.keys():
            position -= 1
        if position > 0 and self.tokens[position].text in ("of", "for"):
            nouns = [family for family, kind in self.cue(position - 1) if kind == "noun"]
            return nouns[0] if nouns else None
        return None

    def rest(self, position: int) -> list[str]:
        """Return the words after a token to the end of its clause, without articles and adverbs; a name is empty."""
        sentence = self.tokens[position].sentence
        words: list[str] = []
        for token in self.tokens[position + 1 :]:
            if token.sentence != sentence or token.text in BREAKS:
                break
            if token.text not in ARTICLES | _ADVERBS or token.text in PRONOUNS:
                words.append(token.text)
        return words

    def look_left(self, index: int, cue: int) -> Iterator[Referent]:
        """Yield the names and pronouns before a token in its sentence, the nearest first."""
        tokens = self.tokens
        sentence = tokens[index].sentence
        is_adjacent = True
        for position in range(index - 1, -1, -1):
            token = tokens[position]
            if token.sentence != sentence or token.text in BREAKS:
                return
            if token.name is not None:
                via = self.noun_before(position)
                possessive = position + 1 < len(tokens) and tokens[position + 1].text in POSSESSIVE_MARKS
                yield Referent(token.name, is_certain=is_adjacent or via is not None or possessive, via=via)
                if is_adjacent or via is not None:
                    return
            elif token.text in PRONOUNS:
                if token.text in ("that", "which", "who", "whom", "one") and position > 0:
                    continue
                via = self._noun_after(position, cue)
                named = [
                    earlier
                    for earlier in tokens[:position]
                    if earlier.sentence == sentence and earlier.name is not None
                ]
                if via is None:
                    yield from (Referent(earlier.name) for earlier in reversed(named))
                yield Referent(None, via=via)
                return
            elif token.text not in SKIPPED | ARTICLES and token.text not in CLASSES:
                noun = self._agent_noun(position) if position != cue else None
                if noun:
                    yield Referent(None, via=noun)
                    return
                is_adjacent = False

    def _noun_after(self, position: int, cue: int) -> str | None:
        """The family of the noun in "its director", unless it is the word that names the relation."""
        if self.tokens[position].text in POSSESSIVE and position + 1 < cue:
            return self._agent_noun(position + 1)
        return None

    def _agent_noun(self, position: int) -> str | None:
        return next((family for family, kind in self.cue(position) if kind == "noun"), None)

    def look_right(self, position: int) -> Iterator[Referent]:
        """Yield the first name, or pronoun, after a token in its sentence."""
        sentence = self.tokens[position].sentence
        for index in range(position, len(self.tokens)):
            token = self.tokens[index]
            if token.sentence != sentence or token.text in BREAKS:
                return
            if token.name is not None:
                via = self.noun_before(index) if index > position + 1 and self.tokens[position].text == "by" else None
                yield Referent(token.name, is_certain=True, via=via)
                return
            if index > position and (
                (token.text in PRONOUNS and token.text not in ("that", "who", "which"))
                or (token.text in CLASSES and self.tokens[index - 1].text in ("the", "this"))
            ):
                yield Referent(None)
                return
            if token.text in ("with", "alongside"):
                return

    def makers(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the families that "by" means after these words."""
        for word in reversed(words):
            if CLASSES.get(word):
                return CLASSES[word]
        return tuple(family for family in MAKING if family in self.families)

    def is_another(self, index: int) -> bool:
        """Whether the sentence of a token says "also" or "another"."""
        tokens = [token for token in self.tokens if token.sentence == self.tokens[index].sentence]
        return _ANOTHER.search(self.text, tokens[0].start, tokens[-1].start + 5) is not None

    def is_number_at(self, index: int) -> bool:
        """Whether a token is a name of digits."""
        name = self.tokens[index].name
        return name is not None and is_number(self.name_text(name))

    def begins_sentence(self, index: int) -> bool:
        """Whether a token is the first of its sentence."""
        return index == 0 or self.tokens[index - 1].sentence != self.tokens[index].sentence


def names_relation(text: str) -> bool:
    """Whether a text in lower case is a word that the grammar knows, and no name."""
    return text in CLASSES or any(family in FAMILIES for family, _ in read_word(text))


def is_word(text: str) -> bool:
    """Whether the text of a token is a word, and no mark or name."""
    return bool(text) and is_alphanumeric(text[0])


def is_number(text: str) -> bool:
    """Whether a text has digits and no letters."""
    return any(map(is_numeric, text)) and not any(map(is_letters, text))
