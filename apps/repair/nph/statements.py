"""What a response states about a name: the relation, the end of it that the name is at, and what is at the other end.

It reads from a name to the nearest word of a relation before and after it; voice, preposition and word order say which
end the name is at. What cannot be read is left out: a name without a reading is not repaired. Clauses that deny, ask,
suppose or compare (``clauses``) are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from groundwire.runtime.texts.characters import starts_lower
from groundwire.runtime.triples import Triple

from .clauses import Clauses
from .relations import (
    ACTING,
    AGENT,
    INTRANSITIVE,
    KINDS,
    NOUN,
    ORIGINS,
    PREPOSITIONS,
    YEAR,
    End,
    Kind,
    WordRelation,
    adjunct,
    is_verb,
    named_end,
    opposite,
    word_set,
)
from .tokens import (
    ARTICLES,
    BE,
    BREAKS,
    CLASSES,
    COPULA,
    JOINS,
    POSSESSIVE,
    POSSESSIVE_MARKS,
    PRONOUNS,
    RELATIVE,
    SKIPPED,
    NamedTokens,
    NameRange,
    Referent,
    is_word,
)

_NAMING = COPULA | word_set("by also too then actually include includes including")
"""Words between a noun and the name that it is about."""
_OF = frozenset(("of", "for", "to"))
"""They begin what a noun is of: the author of, the music for, the sequel to."""
_AMONG = frozenset(("one", "of"))
"""Of "NAME is one of the films that he produced"."""
_COMPANY = frozenset(("with", "alongside"))
_WORKS = (
    BE | PRONOUNS | SKIPPED | CLASSES.keys() | word_set("classic masterpiece piece something tale title work works")
)
"""What "by NAME" may follow."""
_PLACES = frozenset(("in", "at", "on"))
_MEASURED = frozenset(("height", "elevation", "time"))
_MEASURES = frozenset(("tall", "high", "long"))
_DATED = frozenset((ACTING, YEAR, "direct", "produce", "sequel"))
"""Families whose verbs may be about the year of a work: "it appeared in 1979"."""
_CLAUSE_MARKS = word_set(", ; : and but – -")
_COPULA_REACH = 5
"""Words between "is" and the name after it, at most, in "is on display in NAME"."""
_BY_REACH = 3
"""Words between a participle and its "by", at most."""


class ClaimedEnd(NamedTuple):
    """A relation, and the end of it that a name is at."""

    relation: WordRelation
    end: End


class NameStatement(NamedTuple):
    """A statement about a name. Any of its claims may be meant."""

    claims: tuple[ClaimedEnd, ...]
    others: tuple[Referent, ...]
    """What is at the other end, the most likely first. After the last of them, what the dialogue is about."""
    is_loose: bool = False
    """Whether it is about a pronoun that may mean another name."""


class Text(NamedTokens):
    """A text with its names, read name by name."""

    def __init__(self, text: str, names: Sequence[NameRange], families: Collection[str]) -> None:
        """``families`` are the relations that words outside the table may name: those of the graph."""
        super().__init__(text, names, families)
        self._clauses = Clauses(text, self.names)
        self._readings: dict[int, list[NameStatement]] = {}
        self.paths: dict[int, tuple[Triple, ...]] = {}
        """The paths that support names, as far as they were looked up."""

    def read(self, name: int) -> list[NameStatement]:
        """Return what the text states about a name, itself and by a pronoun that follows it."""
        if name not in self._readings:
            index = self.index_of[name]
            is_read = self.is_readable(name)
            self._readings[name] = [*self._read_at(index), *self._read_pronouns(index)] if is_read else []
        return self._readings[name]

    def states(self, start: int) -> bool:
        """Whether the clause at a position states something, and neither denies, asks, supposes nor compares."""
        return self._clauses.states(start)

    def read_place(self, name: int) -> NameStatement | None:
        """Return what "OTHER in NAME" may state without a verb between: where OTHER is, or what it acts in."""
        index = self.index_of[name] - 1
        while index > 0 and self.tokens[index].text in ARTICLES:
            index -= 1
        before = self.tokens[index - 1] if index > 0 else None
        if before is None or self.tokens[index].text not in _PLACES:
            return None
        if before.name is None and before.text not in PRONOUNS:
            return None
        return NameStatement(_claim_place(self.tokens[index].text), (Referent(before.name, is_certain=True),))

    def _read_at(self, index: int) -> Iterator[NameStatement]:
        if not self.states(self.tokens[index].start):
            return
        after = self._read_after(index)
        coordinated = () if after is None else self._read_coordinated(index)
        is_subject = after is not None and (
            self.begins_sentence(index) or self.tokens[index - 1].text in BREAKS | _CLAUSE_MARKS
        )
        before = None if is_subject else self._read_before(index)
        if before is not None and after is not None and self.tokens[index + 1].text == ",":
            # "By NAME, published in 1818": it need not be the name that was.
            after = after._replace(is_loose=True)
        yield from filter(None, (before, after, *coordinated))

    def _read_pronouns(self, index: int) -> Iterator[NameStatement]:
        """Read the pronouns after a name that may mean it: no other name of an earlier clause is between."""
        own_token = self.tokens[index]
        for number in range(index + 1, len(self.tokens)):
            token = self.tokens[number]
            if token.sentence > own_token.sentence + 1:
                break
            if token.text not in PRONOUNS or token.text in POSSESSIVE:
                continue
            names = [position for position in range(index + 1, number) if self.tokens[position].name is not None]
            earlier = [
                position
                for position in names
                if self.tokens[position].sentence < token.sentence or token.sentence == own_token.sentence
            ]
            if any(self.tokens[position - 1].text not in ("by", "with") for position in earlier):
                continue
            between = {other.text for other in self.tokens[index + 1 : number]}
            if token.sentence == own_token.sentence and number > index + 1 and not between & _CLAUSE_MARKS:
                continue
            is_relative = number <= index + 2 and token.text in RELATIVE and token.sentence == own_token.sentence
            for reading in self._read_at(number):
                others = tuple(other for other in reading.others if other.name != own_token.name)
                if others:
                    is_loose = not is_relative and token.text not in ("that", "this", "one")
                    yield reading._replace(others=others, is_loose=is_loose)

    def _read_before(self, index: int) -> NameStatement | None:
        tokens, sentence = self.tokens, self.tokens[index].sentence
        cue = index - 1
        kinds: tuple[tuple[str, Kind], ...] = ()
        while cue >= 0 and tokens[cue].sentence == sentence and tokens[cue].text not in BREAKS:
            if kinds := self.cue(cue):
                break
            cue -= 1
        if not kinds:
            return self._read_preposition(index, cue + 1)
        link = tokens[cue + 1 : index]
        named = [position for position, token in enumerate(link) if token.name is not None]
        inner: list[int] = []
        head = link
        if named:
            tail = link[named[-1] + 1 :]
            if all(token.text in JOINS | ARTICLES | CLASSES.keys() for token in tail):
                head = link[: named[0]]
            else:
                head, inner = tail, [cue + 1 + position for position in named]
        texts = [token.text for token in head]
        claims = tuple(
            claim
            for family, kind in kinds
            for claim in self._claim_before(family, kind, texts, [token.text for token in link], index)
        )
        if not claims:
            return None
        is_of = bool(inner) and tokens[cue + 1].text in _OF
        following = index + 1
        while following < len(tokens) and tokens[following].text in BE:
            following += 1
        if not is_verb(kinds[0][1]) and following > index + 1 and claims[0].end != named_end(kinds[0][1]):
            # "The sequel of NAME is NAME."
            right = tuple(self.look_right(following))
            return NameStatement(claims, right) if right else None
        others = [Referent(tokens[position].name, is_certain=is_of) for position in reversed(inner)]
        if (
            head
            and head[-1].text in _COMPANY
            and any(token.text in PRONOUNS or token.name is not None for token in link)
        ):
            # "NAME wrote it together with NAME": the other end is the object.
            others = list(self.look_right(cue))
        else:
            others += self.look_left(cue, cue)
        return NameStatement(claims, tuple(others))

    def _claim_before(
        self, family: str, kind: Kind, head: Sequence[str], link: Sequence[str], index: int
    ) -> Iterator[ClaimedEnd]:
        prepositions = [text for text in head if text in PREPOSITIONS]
        if _begins_another(head):
            return
        if not is_verb(kind):
            words = [text for text in head if is_word(text) and text not in ARTICLES | CLASSES.keys()]
            if all(text in _NAMING for text in words) or (words == ["of"] and family in _MEASURED):
                yield ClaimedEnd(WordRelation(family, NOUN), named_end(kind))
            elif words in (["in"], ["at"], ["on"]):
                yield ClaimedEnd(adjunct(family, words[0]), "second")
            elif words[0] in _OF or (words[0] == "and" and words[-1] in _OF):
                yield ClaimedEnd(WordRelation(family, NOUN), opposite(named_end(kind)))
        elif "by" in prepositions:
            writings = [text for text in head if text in CLASSES]
            is_active = next((text for text in link if text not in ARTICLES), None) == ""
            families: tuple[str, ...] = (family,)
            if family != "base" and (writings or is_active):
                # "made after a novel by NAME", "translated OTHER by NAME"
                families = (*self.makers(writings), "base")
            yield from (ClaimedEnd(WordRelation(maker, AGENT), "second") for maker in families)
        elif not prepositions:
            if family not in INTRANSITIVE:
                yield ClaimedEnd(WordRelation(family, AGENT), opposite(named_end(kind)))
        elif self.is_number_at(index):
            yield ClaimedEnd(adjunct(family, "in"), "second")
            yield ClaimedEnd(adjunct(family, prepositions[0]), "second")
            if family in _DATED:
                yield ClaimedEnd(WordRelation(YEAR, NOUN), "second")
        elif prepositions[-1] in _COMPANY:
            if any(text in PRONOUNS or not text for text in link):
                yield ClaimedEnd(WordRelation(family, AGENT), "second")
        elif family == ACTING:
            if prepositions[0] in ("in", "on", "at", "for"):
                yield ClaimedEnd(WordRelation(family, AGENT), "first")
        else:
            yield ClaimedEnd(adjunct(family, prepositions[0]), "second")
            if family in ("direct", "produce", YEAR) and prepositions[0] in ("in", "from"):
                yield from (ClaimedEnd(WordRelation(origin, NOUN), "second") for origin in ORIGINS)

    def _read_preposition(self, index: int, begin: int) -> NameStatement | None:
        """Read a name after a preposition, or an article, without a word that names the relation."""
        words = [token.text for token in self.tokens[begin:index]]
        meaningful = [text for text in words if text not in ARTICLES | CLASSES.keys() | {"back", "town", "city"}]
        last = meaningful[-1] if meaningful else ""
        has_copula = any(text in BE for text in words[-_COPULA_REACH:])
        following = self.tokens[index + 1].text if index + 1 < len(self.tokens) else ""
        name = self.tokens[index].name
        claims: tuple[ClaimedEnd, ...] = ()
        if (last == "by" and _names_work(words)) or (last == "of" and any(text in CLASSES for text in words)):
            claims = tuple(ClaimedEnd(WordRelation(family, AGENT), "second") for family in self.makers(words))
        elif self.is_number_at(index) and self._begins_clause(index):
            return None  # "In 2013 NAME directed NAME": the year of what follows
        elif self.is_number_at(index) and (last in ("in", "from", "of") or (has_copula and following in CLASSES)):
            claims = (ClaimedEnd(WordRelation(YEAR, NOUN), "second"),)
        elif last == "with" and not _is_company(words):
            claims = (ClaimedEnd(WordRelation(ACTING, AGENT), "second"),)
        elif last in _PLACES and has_copula:
            claims = _claim_place(last)
        elif last == "from" and has_copula:
            claims = tuple(ClaimedEnd(WordRelation(family, NOUN), "second") for family in ORIGINS)
        elif (
            has_copula
            and last in BE
            and (
                words[-1] in ("a", "an")
                or following in CLASSES
                or (name is not None and starts_lower(self.name_text(name)))
            )
        ):
            claims = tuple(ClaimedEnd(WordRelation(family, NOUN), "second") for family in KINDS)
        if not claims:
            return None
        copulas = [position for position in range(begin, index) if self.tokens[position].text in BE]
        start = copulas[-1] if copulas else index
        return NameStatement(claims, tuple(self.look_left(start, start)))

    def _begins_clause(self, index: int) -> bool:
        """Whether a name or a pronoun follows, after a comma or none."""
        following = [token for token in self.tokens[index + 1 : index + 3] if token.text != ","][:1]
        return bool(following) and (following[0].name is not None or following[0].text in PRONOUNS)

    def _read_after(self, index: int) -> NameStatement | None:
        tokens, sentence = self.tokens, self.tokens[index].sentence
        position, passive, possessive, own_token = index + 1, False, False, tokens[index].name
        while position < len(tokens) and tokens[position].sentence == sentence:
            text = tokens[position].text
            joined = (
                text == "and"
                and tokens[position - 1].text != ","
                and position + 1 < len(tokens)
                and tokens[position + 1].name is not None
            )
            if tokens[position].name is not None and not (
                tokens[position - 1].text == "and" and tokens[position - 2].text != ","
            ):
                break
            if text in POSSESSIVE_MARKS and position == index + 1 and own_token is not None:
                possessive = True
            elif (text in CLASSES and tokens[position - 1].text not in ARTICLES | {"of", "other"}) or (
                text not in SKIPPED | ARTICLES | _AMONG | CLASSES.keys()
                and not joined
                and tokens[position].name is None
            ):
                break
            passive |= text in BE and not possessive
            position += 1
        if position >= len(tokens) or tokens[position].sentence != sentence:
            return None
        text, kinds = tokens[position].text, self.cue(position)
        rest = self.rest(position)
        right = tuple(self.look_right(position))
        between = [token.text for token in tokens[index + 1 : position]]
        if possessive and not kinds:
            # "NAME's film OTHER": whose it is
            while position < len(tokens) and tokens[position].text in CLASSES.keys() | {"best", "first", "last", "new"}:
                position += 1
            if position < len(tokens) and tokens[position].name is not None and not passive:
                makers = self.makers([token.text for token in tokens[index:position]])
                claims = tuple(ClaimedEnd(WordRelation(family, AGENT), "second") for family in makers)
                return NameStatement(claims, (Referent(tokens[position].name),))
            if "is" not in between and "was" not in between:
                # "it's" and "that's" are no possessives
                passive = True
        if text == "by" and not kinds:
            before = [token.text for token in tokens[max(0, index - 4) : index]]
            claims = tuple(ClaimedEnd(WordRelation(family, AGENT), "first") for family in self.makers(before))
            return NameStatement(claims, right)
        if text == "as" and not kinds:
            return self._read_as(index, position)
        if not kinds:
            return self._read_copula(index, position, passive=passive)
        ends: list[ClaimedEnd] = []
        relative = any(word in ("which", "that", "whom") for word in between)
        for family, kind in kinds:
            if not is_verb(kind):
                if text in _MEASURES and position == index + 1:
                    return NameStatement(
                        tuple(ClaimedEnd(WordRelation(item, NOUN), "second") for item, _ in kinds),
                        tuple(self.look_left(index, index)),
                    )
                if possessive and not passive:
                    ends.append(ClaimedEnd(WordRelation(family, NOUN), opposite(named_end(kind))))
                elif (rest[:1] and rest[0] in _OF) or "its" in between or "his" in between or "her" in between:
                    ends.append(ClaimedEnd(WordRelation(family, NOUN), named_end(kind)))
            elif "by" in rest[:_BY_REACH]:
                ends.append(ClaimedEnd(WordRelation(family, AGENT), "first"))
            elif family == ACTING and not any(is_word(word) or not word for word in rest):
                ends.append(ClaimedEnd(WordRelation(family, AGENT), "second"))
            elif passive and "by" not in rest:
                prepositions = [word for word in rest[:4] if word in PREPOSITIONS]
                if prepositions:
                    ends.append(ClaimedEnd(adjunct(family, prepositions[0]), "first"))
                    if family in _DATED:
                        ends.append(ClaimedEnd(WordRelation(YEAR, NOUN), "first"))
            elif rest[:1] and rest[0] in PREPOSITIONS and not (relative and rest[0] == "with"):
                # Who acts "in" something is a person, also after "stars", which has the work before it otherwise.
                acts = ClaimedEnd(WordRelation(family, AGENT), "second")
                ends.append(acts if family == ACTING else ClaimedEnd(adjunct(family, rest[0]), "first"))
                if family in (YEAR, ACTING):
                    ends.append(ClaimedEnd(WordRelation(YEAR, NOUN), "first"))
            else:
                ends.append(ClaimedEnd(WordRelation(family, AGENT), named_end(kind)))
                if self.tokens[index - 1].text in ("which", "that", "whom") and index > 1:
                    # "OTHER, which NAME translated, was published"
                    right = tuple(self.look_left(index - 1, index - 1))
        return NameStatement(tuple(ends), right) if ends else None

    def _read_as(self, index: int, position: int) -> NameStatement | None:
        """Read "OTHER has NAME as its main character"."""
        for noun in range(position + 1, min(position + 4, len(self.tokens))):
            claims = tuple(
                ClaimedEnd(WordRelation(family, NOUN), named_end(kind))
                for family, kind in self.cue(noun)
                if not is_verb(kind)
            )
            if claims:
                return NameStatement(claims, tuple(self.look_left(index, index)))
        return None

    def _read_coordinated(self, index: int) -> Iterator[NameStatement]:
        """Read the further verbs of "NAME produced it and directed it"."""
        sentence, seen = self.tokens[index].sentence, False
        for position in range(index + 1, len(self.tokens)):
            token = self.tokens[position]
            if token.sentence != sentence or token.text in BREAKS:
                return
            kinds = [(family, kind) for family, kind in self.cue(position) if is_verb(kind)]
            if kinds and seen and self.tokens[position - 1].text in ("and", "as", "also"):
                rest = self.rest(position)
                if rest[:1] and rest[0] not in PREPOSITIONS:
                    claims = tuple(ClaimedEnd(WordRelation(family, AGENT), named_end(kind)) for family, kind in kinds)
                    yield NameStatement(claims, tuple(self.look_right(position)))
            seen |= bool(kinds)

    def _read_copula(self, index: int, position: int, *, passive: bool) -> NameStatement | None:
        """Read "NAME is in OTHER", "NAME is OTHER" and "NAME, which OTHER directed"."""
        tokens = self.tokens
        between = [token.text for token in tokens[index + 1 : position]]
        text = tokens[position].text
        is_relative = tokens[index].text in ("which", "that", "whom") or any(
            word in ("which", "that", "whom") for word in between
        )
        if (
            is_relative
            and (not passive or tokens[position - 1].text in ("which", "that", "whom"))
            and (tokens[position].name is not None or text in PRONOUNS)
            and position + 1 < len(tokens)
        ):
            following = position + 1
            while following < len(tokens) and tokens[following].text in SKIPPED:
                following += 1
            kinds = self.cue(following) if following < len(tokens) else ()
            rest = self.rest(following) if kinds else []
            claims = tuple(
                ClaimedEnd(WordRelation(family, AGENT), opposite(named_end(kind)) if rest[:1] != ["in"] else "first")
                for family, kind in kinds
                if is_verb(kind)
            )
            if claims and not (rest and (rest[0] == "" or rest[0] in PRONOUNS)):
                return NameStatement(
                    claims, (Referent(tokens[position].name, is_certain=tokens[position].name is not None),)
                )
            return None
        if not passive:
            return None
        if text in ("in", "on", "at"):
            claims = (
                *(ClaimedEnd(adjunct(family, text), "first") for family in ("locate", "display")),
                *([ClaimedEnd(WordRelation(ACTING, AGENT), "second")] if text == "in" else []),
            )
            return NameStatement(claims, tuple(self.look_right(position)))
        if tokens[position].name is not None:
            claims = tuple(ClaimedEnd(WordRelation(family, NOUN), "first") for family in KINDS)
            return NameStatement(claims, (Referent(tokens[position].name, is_certain=True),))
        return None


def _names_work(words: Sequence[str]) -> bool:
    """Whether the words before a name end with a work "by" the name: "We went by NAME" is about none."""
    before = [word for word in words[: len(words) - words[::-1].index("by") - 1] if word not in ARTICLES]
    return not before or not is_word(before[-1]) or before[-1] in _WORKS


def _is_company(words: Sequence[str]) -> bool:
    """Whether "with" is about a speaker's company: "I watched it with NAME", and not "I like the film with NAME"."""
    before = [word for word in words[: len(words) - words[::-1].index("with") - 1] if word not in ARTICLES]
    return not {"i", "we"}.isdisjoint(before) and before[-1] not in CLASSES


def _claim_place(preposition: str) -> tuple[ClaimedEnd, ...]:
    """What "in NAME" may be: the place of something, or the work that somebody acts in."""
    return (
        *(ClaimedEnd(adjunct(family, preposition), "second") for family in ("locate", "display")),
        *([ClaimedEnd(WordRelation(ACTING, AGENT), "first")] if preposition == "in" else []),
    )


def _begins_another(words: Sequence[str]) -> bool:
    """Whether words after a verb or noun begin another statement: "and is a graduate of"."""
    joins = [position for position, word in enumerate(words) if word in ("and", "or", ",")]
    plain_words = ARTICLES | JOINS | CLASSES.keys() | PREPOSITIONS | PRONOUNS
    return bool(joins) and any(word not in plain_words for word in words[joins[-1] :])
