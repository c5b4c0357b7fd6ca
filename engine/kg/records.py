"""What a knowledge graph answers with."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple


class Problem(msgspec.Struct, frozen=True):
    """A line of a graph's file that was left out, or an alias that has no entity."""

    line: int | None
    """Counted from 1; of a row that covers several lines, its last. None for an alias."""
    what: str
    """What is wrong, and what is allowed."""


class Linked(msgspec.Struct, frozen=True):
    """A mention of an entity: ``text[start:end]``, in characters."""

    start: int
    end: int
    entity: str
    how: Literal["exact", "normalised", "alias"]
    """Letter for letter; up to case, accents, punctuation, Unicode form and a leading article; by another name."""


class Subgraph(msgspec.Struct, frozen=True, dict=True):
    """The surroundings of some entities of a graph."""

    triples: tuple[Triple, ...]
    """Nearest first; among those of one hop, those of entities with few triples first."""
    entities: tuple[str, ...]
    """Nearest first: the entities asked about, then in the graph's order those that are one hop away, and so on."""
    hops: tuple[int, ...]
    """Of every entity here: its distance from the nearest of those asked about."""
    truncated: bool = False
    """Whether ``limit`` left something out."""

    def distance(self, entity: str) -> int:
        """Hops from the nearest of the entities asked about, 0 for those; InvalidRequest for an entity not in here."""
        try:
            return self.distances[entity]
        except KeyError:
            raise InvalidRequest(
                f"{entity!r} is not among the {len(self.entities)} entities of this subgraph; see its entities."
            ) from None

    @cached_property
    def distances(self) -> dict[str, int]:
        """``hops`` by entity."""
        # Made when first asked for: with thousands of entities it takes as long as finding them.
        return dict(zip(self.entities, self.hops, strict=True))
