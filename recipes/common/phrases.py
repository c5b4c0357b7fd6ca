"""Reads ``phrases.tsv``: hand-written phrases for the relations of a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from groundwire.runtime.triples import Triple


class RelationPhrases(msgspec.Struct, frozen=True):
    """The phrases for a relation. ``{s}`` and ``{o}`` are the slots of the subject and the object."""

    types: tuple[str, str] = ("thing", "thing")
    """The types of subject and object: it, person, org, place, year, or word, a common noun."""
    forward: tuple[str, ...] = ()
    """Predicates of a sentence about the subject."""
    inverse: tuple[str, ...] = ()
    """Predicates of a sentence about the object."""
    whole: tuple[str, ...] = ()
    ask_object: tuple[str, ...] = ()
    """Questions that the object answers."""
    ask_subject: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Other names of the relation; ``~`` marks the inverse relation."""


@cache
def read_phrases() -> Mapping[str, RelationPhrases]:
    """The hand-written phrases, by relation."""
    by_relation: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    path = Path(__file__).with_name("phrases.tsv")
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        relation, kind, phrases = line.split("\t")
        by_relation[relation][kind] = tuple(phrases.split() if kind == "types" else phrases.split(" | "))
    return {relation: msgspec.convert(kinds, RelationPhrases) for relation, kinds in by_relation.items()}


def list_originals(triple: Triple) -> list[Triple]:
    """The triples of the data that a dialogue may show as ``triple``: itself, and one per relation of that name."""
    triples = [triple]
    for relation, phrases in read_phrases().items():
        if triple.predicate in phrases.names:
            triples.append(Triple(triple.subject, relation, triple.object))
        if f"~{triple.predicate}" in phrases.names:
            triples.append(Triple(triple.object, relation, triple.subject))
    return triples
