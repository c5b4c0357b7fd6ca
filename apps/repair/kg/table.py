"""Collects triples in columns of indices, and checks their names."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import cast

import numpy as np

from .adjacency import Ints
from .files import Fields, MalformedLine
from .records import GraphProblem

MAX_PROBLEMS = 100
"""Problems that are kept, at most; ``problem_count`` counts the others too."""
MAX_NAME = 1_000
"""Characters of the name of an entity or a predicate, at most; a triple with a longer name is left out."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class TripleTable:
    """Triples as columns of indices into names; each name is stored and checked once."""

    def __init__(self) -> None:
        self.entities: dict[str, int] = {}
        self.relations: dict[str, int] = {}
        self._predicates: dict[str, int] = {}
        """Predicates as written: twice the index of the relation, plus one for an inverse (``~``)."""
        self._columns = (array("q"), array("q"), array("q"))
        self.problems: list[GraphProblem] = []
        self.problem_count = 0

    def __len__(self) -> int:
        """Number of triples, duplicates included."""
        return len(self._columns[0])

    def add(self, lines: Sequence[int], rows: Sequence[Fields]) -> None:
        """Add triples, and a problem for each row with an unusable name; such a row is left out.

        ``lines`` are the line numbers of ``rows``.
        """
        if not rows:
            return
        # Most names are known already, so whole columns are looked up at once.
        subjects, predicates, objects = zip(*rows, strict=True)
        look_up = self.entities.get
        columns: list[list[int | None]] = [
            list(map(look_up, subjects)),
            list(map(look_up, objects)),
            list(map(self._predicates.get, predicates)),
        ]
        if any(None in column for column in columns):
            incomplete = [row for row, indices in enumerate(zip(*columns, strict=True)) if None in indices]
            left_out = []
            for row in incomplete:
                try:
                    for column, index in zip(columns, self._intern(*rows[row]), strict=True):
                        column[row] = index
                except MalformedLine as error:
                    self.add_problem(lines[row], str(error))
                    left_out.append(row)
            for row in reversed(left_out):
                for column in columns:
                    del column[row]
        for stored, column in zip(self._columns, columns, strict=True):
            stored.extend(cast("list[int]", column))

    def add_problem(self, line: int | None, what: str) -> None:
        """Count a problem, and keep it unless there are ``MAX_PROBLEMS`` already."""
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(GraphProblem(line, what))

    def arrays(self) -> tuple[Ints, Ints]:
        """Return subjects and objects [2, N] and relations [N]: every triple once, in the order of first occurrence."""
        subjects, objects, predicates = (np.frombuffer(column, dtype=np.int64) for column in self._columns)
        inverse = predicates % 2 == 1
        columns = np.stack(
            [np.where(inverse, objects, subjects), np.where(inverse, subjects, objects), predicates // 2]
        )
        # One key per triple fits into 64 bits for up to some hundred million entities.
        sizes = len(self.entities), len(self.relations)
        keys = (columns[0] * sizes[0] + columns[1]) * sizes[1] + columns[2]
        ordered = np.sort(keys)
        if np.any(ordered[1:] == ordered[:-1]):
            columns = columns[:, np.sort(np.unique(keys, return_index=True)[1])]
        return columns[:2], columns[2]

    def _intern(self, subject: str, predicate: str, object_: str) -> tuple[int, int, int]:
        """The indices of subject, object and predicate; new names are checked and stored."""
        names = _clean("subject", subject), _clean("predicate", predicate), _clean("object", object_)
        relation = self._predicates.get(predicate)
        if relation is None:
            plain = names[1].lstrip("~ ")
            inverse = names[1][: len(names[1]) - len(plain)].count("~") % 2 if plain else 0
            relation = 2 * self.relations.setdefault(plain or names[1], len(self.relations)) + inverse
            self._predicates[predicate] = relation
        first, last = (self.entities.setdefault(name, len(self.entities)) for name in (names[0], names[2]))
        return first, last, relation


def _clean(field: str, value: str) -> str:
    name = value.strip()
    if not name:
        raise MalformedLine(f"the {field} is empty")
    if len(name) > MAX_NAME:
        raise MalformedLine(f"the {field} has {len(name):,} characters; allowed are {MAX_NAME:,}")
    if "\0" in name or _SURROGATE.search(name):
        raise MalformedLine(f"the {field} has a NUL character or a lone surrogate; it is not valid text")
    return name
