"""What a knowledge graph answers with."""

from __future__ import annotations

from collections.abc import Mapping
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


class Subgraph(msgspec.Struct, frozen=True):
    """The surroundings of some entities of a graph."""

    triples: tuple[Triple, ...]
    """Nearest first; among those of one hop, those of entities with few triples first."""
    distances: Mapping[str, int]
    """Hops from the nearest of the entities asked about, for every entity here, nearest first."""
    truncated: bool = False
    """Whether ``limit`` left something out."""

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities, nearest first."""
        return tuple(self.distances)

    def distance(self, entity: str) -> int:
        """Hops from the nearest of the entities asked about, 0 for those; InvalidRequest for an entity not in here."""
        try:
            return self.distances[entity]
        except KeyError:
            raise InvalidRequest(
                f"{entity!r} is not among the {len(self.distances)} entities of this subgraph; see its entities."
            ) from None
