"""Which entities the graph has for what a response states at a name, each with the path that supports it.

A name without a statement that can be read has no supported entity: a repair of it would be a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from groundwire.runtime.texts.characters import is_lower_case
from groundwire.runtime.triples import Triple

from ..kg import KnowledgeGraph, Linked
from .relations import AGENT, KINDS, NOUN, End, WordRelation, find_ends, opposite, read_predicate
from .statements import ClaimedEnd, NameStatement, Text
from .tokens import NameRange, Referent, is_number

FACTS = 1024
"""Triples of an entity that are searched."""
GROUPS, GROUP_ENTITIES = 16, 32
"""Names before a name, turns, and entities of a turn, at most, that a pronoun may refer to."""
EXEMPLARS = 16
"""Entities at an end of a relation that show which kind of entity is there."""
SAME_KIND = 0.25
"""Least mean cosine of an entity's positions and those of the exemplars, 0–1, to be of their kind."""
Path: TypeAlias = tuple[Triple, ...]
Groups: TypeAlias = Sequence[Sequence[str]]


class Anchor(NamedTuple):
    """An entity at the other end of what is stated, and the path from the dialogue to it."""

    entity: str
    path: Path = ()


class Support(NamedTuple):
    """What the graph has for a name."""

    is_read: bool
    """Whether the response states something about it that can be read."""
    entities: Mapping[str, tuple[str, Path]]
    """The supported entities with their anchor and the path to them."""
    own_path: Path = ()
    """The path that supports the name's own entity; empty where the graph does not support it."""
    contradicted: bool = False
    """Whether the graph has the stated relation of the anchor, and not with the name."""


def find_support(
    graph: KnowledgeGraph, text: Text, number: int, turns: Groups, *, replaced: Iterable[int] = (), alone: bool = False
) -> Support:
    """Return what the graph supports at a name of ``text``.

    Args:
        graph: The graph.
        text: The response with its names.
        number: Index of the name.
        turns: The entities of each turn of the history, the latest first.
        replaced: Indices of names that may be replaced too, which anchor nothing.
        alone: Whether the other names of its sentence do not count.
    """
    readings = text.read(number)
    if not readings:
        return Support(False, {})
    reader = _Reader(graph, text, number, turns, frozenset(replaced))
    supported: dict[str, tuple[str, Path]] | None = None
    is_contradicted = False
    for reading in readings:
        if not reader.may_be_meant(reading):
            continue
        entities, has_anchor = reader.find(reading)
        if reading.is_loose and (supported is None or not supported.keys() & entities.keys()):
            continue  # alone it would be a guess: "So is NAME. Mario Puzo wrote it."
        if not has_anchor and (reading.is_loose or all(claim.relation.family in KINDS for claim in reading.claims)):
            continue
        is_contradicted |= has_anchor
        supported = (
            entities if supported is None else {key: value for key, value in supported.items() if key in entities}
        )
    if supported is None:
        return Support(False, {})
    entity = text.names[number].entity
    own_path = supported[entity][1] if entity in supported else ()
    return Support(
        True,
        reader.prefer_asked(reader.keep_new(supported if alone else reader.explain_names(supported))),
        own_path,
        is_contradicted and not own_path,
    )


def may_be_placed(graph: KnowledgeGraph, text: Text, number: int, turns: Groups) -> bool:
    """Whether the graph has a place of what is named before "in NAME", or a work that it acts in."""
    reading = text.read_place(number)
    return reading is not None and _Reader(graph, text, number, turns, frozenset()).find(reading)[1]


class _Reader:
    """Resolves the statements about one name."""

    def __init__(self, graph: KnowledgeGraph, text: Text, number: int, turns: Groups, replaced: frozenset[int]) -> None:
        self._graph, self._text, self._number = graph, text, number
        self._turns = turns
        self._replaced = replaced
        self._is_another = text.is_another(text.index_of[number])
        before = [text.names[index].entity for index in text.names_before(number) if index not in replaced]
        self._groups: list[Sequence[str]] = [[entity] for entity in before if entity is not None]
        self._groups = [group[:GROUP_ENTITIES] for group in (*self._groups[:GROUPS], *turns[:GROUPS])]

    def find(self, reading: NameStatement) -> tuple[dict[str, tuple[str, Path]], bool]:
        """The entities that a reading allows, and whether the graph has its relation of an anchor."""
        entities: dict[str, tuple[str, Path]] = {}
        has_anchor = False
        for claim in reading.claims:
            anchors = self._resolve(reading.others, claim, is_another=self._is_another)
            options = [self._list_candidates(anchor, claim) for anchor in anchors]
            has_anchor |= bool(options)
            for entity, (anchor, path) in options[0].items() if options else ():
                if all(entity in other for other in options[1:]):
                    entities.setdefault(entity, (anchor, path))
        return entities, has_anchor

    def may_be_meant(self, reading: NameStatement) -> bool:
        """Whether a reading may be about the name. A common noun is only what it says as a kind: in "Anna Cole starred
        in the drama Crash" the drama is not what she acts in."""
        entity = self._text.names[self._number].entity
        if entity is None or not (is_lower_case(entity[1:]) and is_lower_case(self._text.name_text(self._number))):
            return True
        return any(_is_of_kind(self._graph, entity, claim.relation, claim.end) for claim in reading.claims)

    def explain_names(self, supported: Mapping[str, tuple[str, Path]]) -> dict[str, tuple[str, Path]]:
        """Keep the entities that fit every other name of the sentence.

        A name fits that is supported too, that is stated elsewhere as the graph has it, or that a triple joins to the
        entity or to an end of its path.
        """
        others = [index for index in self._text.sentence_names(self._number) if index not in self._replaced]
        own_entity = self._text.names[self._number].entity
        paths = [
            path
            for index in (others if supported else ())
            if own_entity not in _list_ends(path := self._find_path(index))
        ]
        stated = {end for path in paths for end in _list_ends(path)}
        names = [
            entity
            for index in others
            if (entity := self._text.names[index].entity) is not None
            and entity not in supported
            and entity not in stated
        ]

        def fits(entity: str, path: Path) -> bool:
            ends = {entity, *_list_ends(path)}
            return all(name in ends or any(self._graph.triples_between(name, end) for end in ends) for name in names)

        return {entity: (anchor, path) for entity, (anchor, path) in supported.items() if fits(entity, path)}

    def _find_path(self, index: int) -> Path:
        if index not in self._text.paths:
            support = find_support(self._graph, self._text, index, self._turns, alone=True)
            self._text.paths[index] = support.own_path
        return self._text.paths[index]

    def prefer_asked(self, supported: Mapping[str, tuple[str, Path]]) -> dict[str, tuple[str, Path]]:
        """Keep the entities that are joined to most of what the last turn names."""
        asked = self._turns[0] if self._turns else ()
        counts = {
            entity: sum(bool(self._graph.triples_between(entity, name)) for name in asked) for entity in supported
        }
        most = max(counts.values(), default=0)
        return {entity: support for entity, support in supported.items() if counts[entity] == most}

    def keep_new(self, supported: Mapping[str, tuple[str, Path]]) -> dict[str, tuple[str, Path]]:
        """Leave out the names of the response, and with "also" whatever was named before."""
        left_out = {name.entity for name in self._text.names}
        if self._is_another:
            left_out |= {entity for turn in self._turns for entity in turn}
        numeric = is_number(self._text.name_text(self._number))
        return {
            entity: support
            for entity, support in supported.items()
            if entity not in left_out and is_number(entity) == numeric
        }

    def _list_candidates(self, anchor: Anchor, claim: ClaimedEnd) -> dict[str, tuple[str, Path]]:
        """The entities at the claim's end of a relation whose other end is the anchor."""
        path_entities = _list_ends(anchor.path)
        return {
            entity: (anchor.entity, (*anchor.path, triple))
            for entity, triple in _neighbours(self._graph, anchor.entity, claim.relation, claim.end)
            if entity != anchor.entity and entity not in path_entities
        }

    def _resolve(self, others: Sequence[Referent], claim: ClaimedEnd, *, is_another: bool = False) -> list[Anchor]:
        other_end = opposite(claim.end)
        for other in others:
            if other.via is not None:
                return self._resolve_holder(other, claim)
            if other.name is None:
                return self._resolve_pronoun(claim, is_another=is_another)
            entity = self._text.names[other.name].entity
            if other.name in self._replaced:
                continue
            if entity is not None and _has(self._graph, entity, claim.relation, other_end):
                return [Anchor(entity)]
            if other.is_certain:
                return []
        return self._resolve_pronoun(claim, is_another=is_another)

    def _resolve_pronoun(self, claim: ClaimedEnd, *, is_another: bool) -> list[Anchor]:
        """The latest entities that may be at the other end; an entity of the right kind hides those before it."""
        other_end = opposite(claim.end)
        for group in self._groups:
            capable = [entity for entity in group if _has(self._graph, entity, claim.relation, other_end)]
            if capable:
                return [Anchor(entity) for entity in capable]
            if any(_is_of_kind(self._graph, entity, claim.relation, other_end) for entity in group):
                return []
        for group in self._groups if is_another else ():
            # "He also wrote": the author of what the dialogue is about.
            holders = [
                Anchor(entity, (triple,))
                for topic in group
                for entity, triple in _neighbours(self._graph, topic, claim.relation, other_end)
            ]
            if holders:
                return holders if len({holder.entity for holder in holders}) == 1 else []
        return []

    def _resolve_holder(self, other: Referent, claim: ClaimedEnd) -> list[Anchor]:
        """The entity that a noun names: the author of a book."""
        relation = WordRelation(other.via or "", NOUN)
        inner = Referent(other.name, other.is_certain)
        holders: dict[str, Anchor] = {}
        for base in self._resolve([inner], ClaimedEnd(relation, "second")):
            for entity, triple in _neighbours(self._graph, base.entity, relation, "second"):
                holders[entity] = Anchor(entity, (*base.path, triple))
        capable = [
            holder
            for holder in holders.values()
            if _has(self._graph, holder.entity, claim.relation, opposite(claim.end))
        ]
        return capable if len(holders) == 1 else []


def list_mentioned(graph: KnowledgeGraph, turn: str, links: Sequence[Linked]) -> tuple[str, ...]:
    """Return the entities of a turn, and whom "the director of NAME" means in it."""
    text = Text(turn, [NameRange(link.start, link.end, link.entity) for link in links], list_families(graph))
    entities = [link.entity for link in links]
    for family, number in text.find_holders():
        holders = dict(_neighbours(graph, links[number].entity, WordRelation(family, NOUN), "second"))
        entities += list(holders) if len(holders) == 1 else []
    return tuple(dict.fromkeys(entities))


def list_families(graph: KnowledgeGraph) -> frozenset[str]:
    """Return the families of the graph's relations."""
    return _list_families(tuple(graph.relations))


@lru_cache(64)
def _list_families(relations: tuple[str, ...]) -> frozenset[str]:
    return frozenset(fact.relation.family for name in relations for fact in read_predicate(name))


def _list_ends(path: Path) -> set[str]:
    return {end for triple in path for end in (triple.subject, triple.object)}


def _neighbours(graph: KnowledgeGraph, entity: str, relation: WordRelation, end: End) -> Iterator[tuple[str, Triple]]:
    """The entities at an end of a relation whose other end is ``entity``, with their triples."""
    for triple in graph.neighbourhood([entity], 1, FACTS).triples:
        ends = find_ends(triple, relation)
        if ends is not None:
            here, there = ends if end == "second" else (ends[1], ends[0])
            if here == entity and there != entity:
                yield there, triple


def _has(graph: KnowledgeGraph, entity: str, relation: WordRelation, end: End) -> bool:
    return any(role in _roles_of(tuple(graph.relations), relation, end) for role in graph.roles(entity))


def _is_of_kind(graph: KnowledgeGraph, entity: str, relation: WordRelation, end: End) -> bool:
    exemplars = [
        exemplar
        for role in _roles_of(tuple(graph.relations), relation, end)
        for exemplar in graph.entities_with(role, EXEMPLARS)
    ]
    if not exemplars:
        return False
    own_path = _list_positions(graph, entity)
    return sum(_compare(own_path, _list_positions(graph, exemplar)) for exemplar in exemplars) >= SAME_KIND * len(
        exemplars
    )


def _list_positions(graph: KnowledgeGraph, entity: str) -> frozenset[tuple[str, End]]:
    """The families whose relations an entity takes part in, and its end of them, in whichever direction they are."""
    return frozenset(position for role in graph.roles(entity) for position in _read_role(role))


@lru_cache(4096)
def _read_role(role: str) -> tuple[tuple[str, End], ...]:
    side, _, predicate = role.partition(":")
    facts = read_predicate(predicate)
    return tuple(
        (
            fact.relation.family + _list_adjunct(fact.relation),
            fact.subject if side == "subject" else opposite(fact.subject),
        )
        for fact in facts
    )


def _list_adjunct(relation: WordRelation) -> str:
    """The preposition of a relation: a city lies on a river, and a tower in a city."""
    return "" if relation.form in (AGENT, NOUN) else f" {relation.form}"


def _compare(a: frozenset[tuple[str, End]], b: frozenset[tuple[str, End]]) -> float:
    return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0


@lru_cache(1024)
def _roles_of(relations: tuple[str, ...], relation: WordRelation, end: End) -> frozenset[str]:
    """The roles, as ``KnowledgeGraph.roles`` writes them, of an end of a relation."""
    roles = set()
    for name in relations:
        for fact in read_predicate(name):
            if fact.relation.matches(relation):
                roles.add(f"{'subject' if fact.subject == end else 'object'}:{name}")
    return frozenset(roles)
