"""Triples as arrays: which of them an entity takes part in, and what lies how far from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Reached(NamedTuple):
    """What a breadth-first search found, as indices."""

    triples: Ints
    entities: Ints
    """Nearest first."""
    distances: Ints
    """Of ``entities``."""
    truncated: bool


class Adjacency:
    """For every entity the triples it takes part in, in one row each of a compressed sparse matrix.

    ``ends`` is int64 [2, N]: subject and object of N triples, as indices below ``entities``.
    """

    def __init__(self, ends: Ints, entities: int) -> None:
        self._ends = ends
        triples = ends.shape[1]
        here = np.arange(triples, dtype=np.int64)
        other = ends[0] != ends[1]  # a loop stands in its entity's row once
        near = np.concatenate([ends[0], ends[1][other]])
        # One sort of one key orders the rows and, inside each, the triples.
        keys = np.sort(near * max(triples, 1) + np.concatenate([here, here[other]]))
        self._row = (keys % max(triples, 1)).astype(np.int32)
        self._bounds = np.zeros(entities + 1, dtype=np.int64)
        np.cumsum(np.bincount(near, minlength=entities), out=self._bounds[1:])
        self.degrees = np.diff(self._bounds)

    def row(self, entity: int) -> NDArray[np.int32]:
        """The triples of one entity, in the graph's order."""
        found: NDArray[np.int32] = self._row[self._bounds[entity] : self._bounds[entity + 1]]
        return found

    def between(self, a: int, b: int) -> NDArray[np.int32]:
        """The triples that join two entities, in either direction."""
        if self.degrees[b] < self.degrees[a]:
            a, b = b, a
        row = self.row(a)
        subjects, objects = self._ends[:, row]
        joins = (subjects + objects == a + b) & ((subjects == b) | (objects == b))
        found: NDArray[np.int32] = row[joins]
        return found

    def search(self, start: Ints, hops: int, limit: int | None) -> Reached:
        """The triples with an end less than ``hops`` away from ``start``, hop by hop.

        Within a hop, the entities of few triples come first, so that with a ``limit`` a hub does not crowd out the
        others.
        """
        entities = len(self.degrees)
        distance = np.full(entities, -1, dtype=np.int32)
        rank = np.zeros(entities, dtype=np.int64)
        frontier = start
        distance[frontier] = 0
        found: list[Ints] = []
        reached = [start]
        wanted, truncated = limit, False
        for hop in range(hops):
            frontier = frontier[np.lexsort((frontier, self.degrees[frontier]))]
            rank[frontier] = np.arange(len(frontier))
            some = frontier
            if limit is not None:
                # A triple stands in two rows at most, and no more than ``limit`` were taken before: so many suffice.
                enough = int(np.searchsorted(np.cumsum(self.degrees[frontier]), 2 * limit + 1)) + 1
                some = frontier[:enough]
            triples, near = self._rows(some)
            far = self._ends[0, triples] + self._ends[1, triples] - near
            # Taken where it is met first: not on the way back, and once when both ends are of this hop.
            away = distance[far]
            new = (away < 0) | ((away == hop) & ((rank[near] < rank[far]) | (near == far)))
            triples, far = triples[new], far[new]
            if wanted is not None:
                truncated = len(triples) > wanted
                triples, far = triples[:wanted], far[:wanted]
                wanted -= len(triples)
            found.append(triples)
            distance[far[distance[far] < 0]] = hop + 1
            frontier = np.flatnonzero(distance == hop + 1)
            reached.append(frontier)
            if truncated or not len(frontier):
                break
        nearest = np.concatenate(reached)
        taken = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
        return Reached(taken, nearest, distance[nearest].astype(np.int64), truncated)

    def _rows(self, entities: Ints) -> tuple[Ints, Ints]:
        """The rows of several entities one after another, and the entity of each place."""
        counts = self.degrees[entities]
        begins = self._bounds[entities] - (np.cumsum(counts) - counts)
        places = np.repeat(begins, counts) + np.arange(int(counts.sum()))
        return self._row[places].astype(np.int64), np.repeat(entities, counts)
