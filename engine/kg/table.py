"""Triples while they are collected."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import cast

import numpy as np

from .adjacency import Ints
from .files import Fields, Malformed
from .records import Problem

MAX_PROBLEMS = 100
"""Problems that are kept; ``problem_count`` counts the others too."""
MAX_NAME = 1_000
"""Characters of an entity's or a predicate's name; a triple with a longer one is refused."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Table:
    """Columns of indices into names that are stored once, and checked when they are met first."""

    def __init__(self) -> None:
        self.entities: dict[str, int] = {}
        self.relations: dict[str, int] = {}
        self._predicates: dict[str, int] = {}
        """As written: twice the relation, and one more if the triple is to be turned round."""
        self._columns = (array("q"), array("q"), array("q"))
        self.problems: list[Problem] = []
        self.problem_count = 0

    def __len__(self) -> int:
        """Triples, repeated ones included."""
        return len(self._columns[0])

    def add(self, lines: Sequence[int], rows: Sequence[Fields]) -> None:
        """Add triples and keep the problems; of a row that is refused nothing is kept."""
        if not rows:
            return
        # Most names were met before, so whole columns are looked up at once.
        subjects, predicates, objects = zip(*rows, strict=True)
        look_up = self.entities.get
        columns: list[list[int | None]] = [
            list(map(look_up, subjects)),
            list(map(look_up, objects)),
            list(map(self._predicates.get, predicates)),
        ]
        if any(None in column for column in columns):
            missing = [at for at, found in enumerate(zip(*columns, strict=True)) if None in found]
            refused = []
            for at in missing:
                try:
                    for column, index in zip(columns, self._intern(*rows[at]), strict=True):
                        column[at] = index
                except Malformed as error:
                    self.problem(lines[at], str(error))
                    refused.append(at)
            for at in reversed(refused):
                for column in columns:
                    del column[at]
        for kept, column in zip(self._columns, columns, strict=True):
            kept.extend(cast("list[int]", column))

    def problem(self, line: int | None, what: str) -> None:
        """Count a problem, and keep it if there are not too many yet."""
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(line, what))

    def arrays(self) -> tuple[Ints, Ints]:
        """Subjects and objects [2, N] and predicates [N], every triple once, in the order of its first mention."""
        subjects, objects, predicates = (np.frombuffer(column, dtype=np.int64) for column in self._columns)
        turned = predicates % 2 == 1
        columns = np.stack([np.where(turned, objects, subjects), np.where(turned, subjects, objects), predicates // 2])
        # One key per triple fits 64 bits for up to some hundred million entities.
        sizes = len(self.entities), len(self.relations)
        keys = (columns[0] * sizes[0] + columns[1]) * sizes[1] + columns[2]
        ordered = np.sort(keys)
        if np.any(ordered[1:] == ordered[:-1]):
            columns = columns[:, np.sort(np.unique(keys, return_index=True)[1])]
        return columns[:2], columns[2]

    def _intern(self, subject: str, predicate: str, other: str) -> tuple[int, int, int]:
        names = _name("subject", subject), _name("predicate", predicate), _name("object", other)
        relation = self._predicates.get(predicate)
        if relation is None:
            plain = names[1].lstrip("~ ")
            turned = names[1][: len(names[1]) - len(plain)].count("~") % 2 if plain else 0
            relation = 2 * self.relations.setdefault(plain or names[1], len(self.relations)) + turned
            self._predicates[predicate] = relation
        first, last = (self.entities.setdefault(name, len(self.entities)) for name in (names[0], names[2]))
        return first, last, relation


def _name(field: str, value: str) -> str:
    name = value.strip()
    if not name:
        raise Malformed(f"the {field} is empty")
    if len(name) > MAX_NAME:
        raise Malformed(f"the {field} has {len(name):,} characters; allowed are {MAX_NAME:,}")
    if "\0" in name or _SURROGATE.search(name):
        raise Malformed(f"the {field} has a NUL character or a lone surrogate; it is not valid text")
    return name
