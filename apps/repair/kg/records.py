"""The records that a knowledge graph returns."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple


class GraphProblem(msgspec.Struct, frozen=True):
    """A line of a graph's file, or an alias, that was left out."""

    line: int | None
    """From 1; the last line of a CSV row that covers several. None for an alias."""
    what: str
    """What is wrong with it, and what is allowed."""


class Linked(msgspec.Struct, frozen=True):
    """A mention of an entity: ``text[start:end]``, in characters."""

    start: int
    end: int
    entity: str
    how: Literal["exact", "normalised", "alias"]
    """``exact``: letter for letter. ``normalised``: up to case, accents, punctuation, Unicode form and a leading
    article. ``alias``: by another name."""


class Subgraph(msgspec.Struct, frozen=True, dict=True):
    """The neighbourhood of some entities of a graph."""

    triples: tuple[Triple, ...]
    """Nearest first; within a hop, the triples of entities with few triples first."""
    entities: tuple[str, ...]
    """Nearest first: the requested entities, then the entities one hop away in the graph's order, and so on."""
    hops: tuple[int, ...]
    """For each of ``entities`` its distance from the nearest requested entity."""
    truncated: bool = False
    """Whether ``limit`` left triples out."""

    def distance(self, entity: str) -> int:
        """Return how far an entity is from the nearest requested entity.

        Args:
            entity: One of ``entities``.

        Returns:
            The number of triples on the path, from 0.

        Raises:
            InvalidRequest: The subgraph does not have the entity.
        """
        try:
            return self.distances[entity]
        except KeyError:
            raise InvalidRequest(
                f"{entity!r} is not among the {len(self.entities)} entities of this subgraph; see its entities."
            ) from None

    @cached_property
    def distances(self) -> dict[str, int]:
        """``hops`` by entity."""
        # Built on first use: for thousands of entities it takes as long as the search.
        return dict(zip(self.entities, self.hops, strict=True))
