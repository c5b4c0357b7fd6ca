"""The roles of entities (subject or object of a relation), which replace the types that graphs rarely have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .adjacency import Ints


class EntityRoles:
    """The roles of every entity, sorted: r as the subject of relation r, R + r as its object, of R relations."""

    def __init__(self, ends: Ints, predicates: Ints, entities: int, relations: int) -> None:
        keys = np.concatenate([ends[0] * 2 * relations + predicates, (ends[1] * 2 + 1) * relations + predicates])
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) > 0]  # ten times as fast as np.unique, which hashes
        entity_of_key, self._roles = np.divmod(keys, max(2 * relations, 1))
        self._bounds = np.searchsorted(entity_of_key, np.arange(entities + 1))
        counts = np.bincount(self._roles, minlength=2 * relations)
        self._weights: NDArray[np.float64] = np.log1p(entities / np.maximum(counts, 1))

    def roles_of(self, entity: int) -> Ints:
        """Return the roles of one entity."""
        return self._roles[self._bounds[entity] : self._bounds[entity + 1]]

    def entities_with(self, role: int) -> Ints:
        """Return the entities that have a role, in the graph's order."""
        return np.searchsorted(self._bounds, np.flatnonzero(self._roles == role), side="right") - 1

    def similarity(self, a: int, b: int) -> float:
        """Return the cosine of two sets of roles; a role weighs log(1 + entities / entities with the role)."""
        first, second = self.roles_of(a), self.roles_of(b)
        common = self._weights[np.intersect1d(first, second, assume_unique=True)].sum()
        return float(min(1.0, common / np.sqrt(self._weights[first].sum() * self._weights[second].sum())))
