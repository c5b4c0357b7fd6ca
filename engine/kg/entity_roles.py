"""The roles entities play, in place of the types that knowledge graphs rarely give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .adjacency import Ints


class Roles:
    """For every entity its roles in order: r as subject of relation r, R + r as its object, of R relations."""

    def __init__(self, ends: Ints, predicates: Ints, entities: int, relations: int) -> None:
        played = np.concatenate([ends[0] * 2 * relations + predicates, (ends[1] * 2 + 1) * relations + predicates])
        played.sort()
        played = played[np.diff(played, prepend=-1) > 0]  # ten times as fast as np.unique, which hashes
        owner, self._roles = np.divmod(played, max(2 * relations, 1))
        self._bounds = np.searchsorted(owner, np.arange(entities + 1))
        players = np.bincount(self._roles, minlength=2 * relations)
        self._weights: NDArray[np.float64] = np.log1p(entities / np.maximum(players, 1))

    def of(self, entity: int) -> Ints:
        """The roles of one entity."""
        return self._roles[self._bounds[entity] : self._bounds[entity + 1]]

    def similarity(self, a: int, b: int) -> float:
        """Cosine of the two sets of roles, a role weighing log(1 + entities / entities that play it)."""
        first, second = self.of(a), self.of(b)
        common = self._weights[np.intersect1d(first, second, assume_unique=True)].sum()
        return float(min(1.0, common / np.sqrt(self._weights[first].sum() * self._weights[second].sum())))
