"""Triples as arrays: the triples of an entity, and the entities and triples within some hops of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class SearchResult(NamedTuple):
    """Result of a breadth-first search, as indices."""

    triples: Ints
    entities: Ints
    """Nearest first."""
    distances: Ints
    """Hops to each of ``entities``."""
    truncated: bool
    """Whether the limit left triples out."""


class Adjacency:
    """The triples of every entity, as the rows of a compressed sparse matrix.

    ``ends`` is int64 [2, N]: subject and object of N triples, as indices below ``entities``.
    """

    def __init__(self, ends: Ints, entities: int) -> None:
        self._ends = ends
        triples = ends.shape[1]
        indices = np.arange(triples, dtype=np.int64)
        not_loop = ends[0] != ends[1]  # the row of an entity has a loop once
        near = np.concatenate([ends[0], ends[1][not_loop]])
        # Sorting one combined key orders the rows and, inside each row, the triples.
        keys = np.sort(near * max(triples, 1) + np.concatenate([indices, indices[not_loop]]))
        self._row = (keys % max(triples, 1)).astype(np.int32)
        self._bounds = np.zeros(entities + 1, dtype=np.int64)
        np.cumsum(np.bincount(near, minlength=entities), out=self._bounds[1:])
        self.degrees = np.diff(self._bounds)

    def row(self, entity: int) -> NDArray[np.int32]:
        """Return the triples of one entity, in the graph's order."""
        row: NDArray[np.int32] = self._row[self._bounds[entity] : self._bounds[entity + 1]]
        return row

    def joining_triples(self, a: int, b: int) -> NDArray[np.int32]:
        """Return the triples that join two entities, in either direction."""
        if self.degrees[b] < self.degrees[a]:
            a, b = b, a
        row = self.row(a)
        subjects, objects = self._ends[:, row]
        is_joining = (subjects + objects == a + b) & ((subjects == b) | (objects == b))
        joining: NDArray[np.int32] = row[is_joining]
        return joining

    def search(self, start: Ints, hops: int, limit: int | None) -> SearchResult:
        """Return the triples with an end less than ``hops`` away from ``start``, nearest first.

        Within a hop, the triples of entities with few triples come first, so that with a ``limit`` a hub does not crowd
        out the others.
        """
        entities = len(self.degrees)
        distance = np.full(entities, -1, dtype=np.int32)
        rank = np.zeros(entities, dtype=np.int64)
        frontier = start
        distance[frontier] = 0
        found_triples: list[Ints] = []
        found_entities = [start]
        remaining, truncated = limit, False
        for hop in range(hops):
            frontier = frontier[np.lexsort((frontier, self.degrees[frontier]))]
            rank[frontier] = np.arange(len(frontier))
            expanded = frontier
            if limit is not None:
                # A triple is in at most two rows and at most ``limit`` were found before, so these entities suffice.
                enough = int(np.searchsorted(np.cumsum(self.degrees[frontier]), 2 * limit + 1)) + 1
                expanded = frontier[:enough]
            triples, near = self._rows(expanded)
            far = self._ends[0, triples] + self._ends[1, triples] - near
            # A triple counts where it is reached first: not on the way back, and once if both ends are in this hop.
            far_distance = distance[far]
            new = (far_distance < 0) | ((far_distance == hop) & ((rank[near] < rank[far]) | (near == far)))
            triples, far = triples[new], far[new]
            if remaining is not None:
                truncated = len(triples) > remaining
                triples, far = triples[:remaining], far[:remaining]
                remaining -= len(triples)
            found_triples.append(triples)
            distance[far[distance[far] < 0]] = hop + 1
            frontier = np.flatnonzero(distance == hop + 1)
            found_entities.append(frontier)
            if truncated or not len(frontier):
                break
        nearest = np.concatenate(found_entities)
        all_triples = np.concatenate(found_triples) if found_triples else np.zeros(0, dtype=np.int64)
        return SearchResult(all_triples, nearest, distance[nearest].astype(np.int64), truncated)

    def _rows(self, entities: Ints) -> tuple[Ints, Ints]:
        """The concatenated rows of several entities, and the entity of each element."""
        counts = self.degrees[entities]
        offsets = self._bounds[entities] - (np.cumsum(counts) - counts)
        positions = np.repeat(offsets, counts) + np.arange(int(counts.sum()))
        return self._row[positions].astype(np.int64), np.repeat(entities, counts)
