"""Indexes named triples to make and corrupt dialogues: neighbours, and entities with the same role in a relation."""

from __future__ import annotations

import random
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from groundwire.runtime.triples import Triple

from .corpus import read_triple_rows

YEAR = "release_year"
"""Predicate of the invented years."""
IGNORED = (
    *("/common/topic/webpage", "/user/", "currency", "/base/schemastaging", "number_of_mortgages", "person/gender"),
    *("type_of_union", "unions_of_this_type", "film_release_distribution_medium", "/location/hud_", "/base/aareas"),
    *("campuses", "educational_institution_campus", "film_format", "/ranked_item/"),
)
"""Bookkeeping: relations whose name contains one of these are not used in dialogues."""
SYMMETRIC = 0.2
"""Share of a relation's triples that hold in both directions from which it counts as symmetric."""
_DISAMBIGUATION = re.compile(r"-(?:GB|US)$")
Split = Literal["train", "dev", "test"]


class TripleIndex:
    """A graph indexed for random draws; entities are names."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples: tuple[Triple, ...] = tuple(dict.fromkeys(triples))
        self._facts = frozenset(self.triples)
        self._about: dict[str, list[Triple]] = defaultdict(list)
        self._near: dict[str, set[str]] = defaultdict(set)
        self._players: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._parts: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
        by_relation: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for triple in self.triples:
            by_relation[triple.predicate].add((triple.subject, triple.object))
            for part, entity, other in (
                ("subject", triple.subject, triple.object),
                ("object", triple.object, triple.subject),
            ):
                self._about[entity].append(triple)
                self._near[entity].add(other)
                self._players[part, triple.predicate][entity] = None
                self._parts[entity][part, triple.predicate] = None
        self._listed = {key: list(players) for key, players in self._players.items()}
        self.symmetric = frozenset(
            name
            for name, pairs in by_relation.items()
            if sum((o, s) in pairs for s, o in pairs) >= SYMMETRIC * len(pairs)
        )
        """Predicates that hold in both directions."""

    @classmethod
    def read(cls, data: Path, splits: Sequence[Split] = ("train", "dev", "test")) -> TripleIndex:
        """Read FB15k-237, with invented years for its films (``fb15k237_{split}.jsonl.gz`` in ``data``)."""
        triples = [triple for split in splits for triple in read_triples(data / f"fb15k237_{split}.jsonl.gz")]
        return cls([*triples, *make_years(triples)])

    def __contains__(self, triple: Triple) -> bool:
        return triple in self._facts

    def triples_of(self, entity: str) -> Sequence[Triple]:
        """The triples with ``entity`` as their subject or object."""
        return self._about.get(entity, ())

    def find_within(self, entities: Iterable[str], hops: int = 1) -> set[str]:
        """The entities at most ``hops`` triples away from one of ``entities``, themselves included."""
        reached = set(entities)
        edge = set(reached)
        for _ in range(hops):
            edge = set().union(*(self._near.get(entity, ()) for entity in edge)) - reached
            reached |= edge
        return reached

    def draw_peer(self, entity: str, avoid: set[str], rng: random.Random, tries: int = 40) -> str | None:
        """Draw another entity of the same type that is not in ``avoid``; None when ``tries`` draws find none.

        The graph has no types. Entities with the same role in the same relation (a film's director, an award) count as
        of the same type, and the rarer a role is, the more often it decides.
        """
        parts = list(self._parts.get(entity, ()))
        if not parts:
            return None
        weights = [1 / len(self._listed[part]) for part in parts]
        for _ in range(tries):
            candidate = rng.choice(self._listed[rng.choices(parts, weights)[0]])
            if candidate != entity and candidate not in avoid:
                return candidate
        return None

    def share_role(self, first: str, second: str) -> bool:
        """Whether two entities have the same role in some relation."""
        return not self._parts.get(first, {}).keys().isdisjoint(self._parts.get(second, {}).keys())


def read_triples(path: Path) -> list[Triple]:
    """The triples of a file that are not ``IGNORED``, without Freebase's marks of homonyms such as ``-GB``."""
    rows = (row for row in read_triple_rows(path) if not any(part in row[1] for part in IGNORED))
    triples = (
        Triple(_strip_disambiguation(subject), relation, _strip_disambiguation(thing))
        for subject, relation, thing in rows
    )
    return [triple for triple in triples if triple.subject != triple.object]


def make_years(triples: Iterable[Triple]) -> list[Triple]:
    """An invented release year for every film, the same in every run: FB15k-237 has no dates."""
    films = dict.fromkeys(t.subject for t in triples if t.predicate.startswith("/film/film/"))
    return [Triple(film, YEAR, str(1930 + int((zlib.crc32(film.encode()) % 8464) ** 0.5))) for film in films]


def _strip_disambiguation(name: str) -> str:
    return _DISAMBIGUATION.sub("", name)
