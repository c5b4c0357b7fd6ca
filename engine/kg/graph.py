"""A knowledge graph in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple

from .adjacency import Adjacency, Ints
from .entity_roles import Roles
from .files import Reader, read_jsonl, read_opendialkg_csv, read_tsv, reader_for
from .linking import Linker
from .records import Linked, Problem, Subgraph
from .table import Table

Aliases = Mapping[str, Sequence[str]]


class KnowledgeGraph:
    """Triples with their entities' surroundings, names and roles. It never changes, so threads may share it.

    Names are kept as written, without outer blanks; a triple that was given before is not kept twice. A predicate with
    a leading ``~`` is the inverse of the one without, as in OpenDialKG, and its triple is kept turned round.

    An entity that is not in the graph raises InvalidRequest wherever one is asked for; ``entity in graph`` tells.
    """

    problems: tuple[Problem, ...]
    """The first lines of the file that were left out, at most ``MAX_PROBLEMS``; the rest of the file is here."""
    problem_count: int
    """How many were left out in all."""

    def __init__(self, table: Table, aliases: Aliases | None = None) -> None:
        """Index what a Table holds; see ``from_triples`` and ``load``."""
        self._names = table.entities
        self.entities: Sequence[str] = tuple(table.entities)
        self.relations: Sequence[str] = tuple(table.relations)
        ends, predicates = table.arrays()
        self._adjacency = Adjacency(ends, len(self.entities))
        self._roles = Roles(ends, predicates, len(self.entities), len(self.relations))
        # As objects, so that a selection is one indexing operation.
        self._entities, relations = _objects(self.entities), _objects(self.relations)
        self._triples = _objects(
            list(map(Triple, self._entities[ends[0]], relations[predicates], self._entities[ends[1]]))
        )
        linkable: dict[int, Sequence[str]] = {}
        for entity, others in (aliases or {}).items():
            if isinstance(others, str) or not all(isinstance(other, str) for other in others):
                raise InvalidRequest(f"aliases[{entity!r}] is {others!r:.200}; pass a list of names.")
            if entity not in table.entities:
                table.problem(None, f"an alias of {entity!r}, an entity that no triple names")
            else:
                linkable[table.entities[entity]] = others
        self._linker = Linker(self.entities, self._adjacency.degrees.tolist(), linkable)
        self.problems = tuple(table.problems)
        self.problem_count = table.problem_count

    @classmethod
    def from_triples(
        cls, triples: Iterable[Triple | tuple[str, str, str]], *, aliases: Aliases | None = None
    ) -> KnowledgeGraph:
        """A graph of triples in memory; none at all make an empty graph.

        ``aliases`` are other names of entities, for ``link``. InvalidRequest names the first triple that is none.
        """
        table, rows = Table(), []
        for number, triple in enumerate(triples):
            fields = (triple.subject, triple.predicate, triple.object) if isinstance(triple, Triple) else triple
            if not isinstance(fields, tuple | list) or len(fields) != 3:
                raise InvalidRequest(
                    f"triples[{number}] is {fields!r:.200}; pass Triple(subject, predicate, object) or three strings."
                )
            for field, value in zip(("subject", "predicate", "object"), fields, strict=True):
                if not isinstance(value, str):
                    raise InvalidRequest(
                        f"triples[{number}]: the {field} is {type(value).__name__}; it must be a string."
                    )
            rows.append(fields)
        table.add(range(len(rows)), rows)
        if table.problems:
            raise InvalidRequest(f"triples[{table.problems[0].line}]: {table.problems[0].what}.")
        return cls(table, aliases)

    @classmethod
    def load(cls, path: str | PathLike[str], *, aliases: Aliases | None = None) -> KnowledgeGraph:
        """A graph from a file, chosen by its name: .tsv or .txt, .jsonl, or OpenDialKG's .csv, each also with .gz.

        A line that holds no triple goes to ``problems``, with its number, and the rest is kept. InvalidRequest for a
        file that cannot be read, is damaged, or holds no triple at all.
        """
        return cls._read(reader_for(Path(path)), path, aliases)

    @classmethod
    def from_tsv(cls, path: str | PathLike[str], *, aliases: Aliases | None = None) -> KnowledgeGraph:
        """Lines of ``subject TAB predicate TAB object``; otherwise as ``load``."""
        return cls._read(read_tsv, path, aliases)

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str], *, aliases: Aliases | None = None) -> KnowledgeGraph:
        """Lines of ``["subject", "predicate", "object"]`` or objects with these keys; otherwise as ``load``."""
        return cls._read(read_jsonl, path, aliases)

    @classmethod
    def from_opendialkg(cls, path: str | PathLike[str], *, aliases: Aliases | None = None) -> KnowledgeGraph:
        """``opendialkg_triples.txt``, or the paths of ``opendialkg.csv``; otherwise as ``load``."""
        table = ".csv" in (suffix.lower() for suffix in Path(path).suffixes[-2:])
        return cls._read(read_opendialkg_csv if table else read_tsv, path, aliases)

    @classmethod
    def _read(cls, reader: Reader, path: str | PathLike[str], aliases: Aliases | None) -> KnowledgeGraph:
        table = Table()
        for block in reader(Path(path)):
            for line, what in block.broken:
                table.problem(line, what)
            table.add(block.lines, block.rows)
        if not len(table):
            first = f" (line {table.problems[0].line}: {table.problems[0].what})" if table.problems else ""
            raise InvalidRequest(f"{path} holds no triples{first}. Give a file of triples.")
        return cls(table, aliases)

    def __len__(self) -> int:
        """Triples."""
        return len(self._triples)

    def __iter__(self) -> Iterator[Triple]:
        """The triples, in the order in which they were first given."""
        return iter(self._triples.tolist())

    def __contains__(self, entity: object) -> bool:
        """Whether an entity has exactly this name."""
        return entity in self._names

    def __repr__(self) -> str:
        return f"KnowledgeGraph({len(self)} triples, {len(self.entities)} entities, {len(self.relations)} relations)"

    def link(self, text: str) -> tuple[Linked, ...]:
        """The entities that ``text`` mentions, in its order; ranges are disjoint and begin and end between words.

        - A name is met letter for letter, or up to case, accents, Unicode form (NFKC), hyphens, apostrophes and other
          punctuation, ``&`` and "and", and a leading article; or one of its aliases is. Of overlapping mentions the
          longest counts; of entities with one name the one written exactly so, then the one of most triples.
        - Names of function words alone (It, The Who, What If) must stand in the text letter for letter, and a single
          one not at the beginning of a sentence; so must the word that is left of a name without its article (Watch
          for The Watch).
        - A mention does not reach over the end of a sentence, an empty line, or a comma, bracket or quotation mark that
          the name does not have.
        - Names without a letter or digit, and of more than 64 words, are never linked. Nothing is transliterated: for a
          text in another script than the graph, give aliases.
        """
        if not isinstance(text, str):
            raise InvalidRequest(f"text is {type(text).__name__}; pass a string.")
        return self._linker.link(text)

    def neighbourhood(self, entities: Sequence[str], hops: int = 1, limit: int | None = None) -> Subgraph:
        """The triples on paths of at most ``hops`` triples from any of ``entities``, whichever way they point.

        That is the k-hop subgraph of Neural Path Hunter: a triple belongs to it if one of its ends is less than
        ``hops`` away. ``hops`` 0 gives the entities alone, and no entities an empty subgraph. At most ``limit`` triples
        are returned, the nearest; around hubs that is what keeps an answer small.
        """
        if isinstance(entities, str):
            raise InvalidRequest("entities is one string; pass a list of entities.")
        if isinstance(hops, bool) or not isinstance(hops, int) or hops < 0:
            raise InvalidRequest(f"hops is {hops!r}; allowed are whole numbers from 0.")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidRequest(f"limit is {limit!r}; allowed are whole numbers from 1, or None for all triples.")
        start = np.array(list(dict.fromkeys(map(self._index, entities))), dtype=np.int64)
        found = self._adjacency.search(start, hops, limit)
        return Subgraph(
            triples=self._select(found.triples),
            entities=tuple(self._entities[found.entities].tolist()),
            hops=tuple(found.distances.tolist()),
            truncated=found.truncated,
        )

    def triples_between(self, a: str, b: str) -> tuple[Triple, ...]:
        """The triples that join two entities, in either direction, in the graph's order; for one entity its loops."""
        return self._select(self._adjacency.between(self._index(a), self._index(b)))

    def degree(self, entity: str) -> int:
        """The number of triples that an entity takes part in."""
        return int(self._adjacency.degrees[self._index(entity)])

    def kinds(self, entity: str) -> frozenset[str]:
        """The roles an entity plays, ``subject:RELATION`` and ``object:RELATION``: what is known of its type."""
        return frozenset(map(self._role, self._roles.of(self._index(entity)).tolist()))

    def same_kind(self, a: str, b: str) -> float:
        """How alike the roles of two entities are, from 0 (no role in common) to 1 (the same roles).

        The share of common roles, weighted by how rare each is (see ``Roles.similarity``). Symmetric.
        """
        return self._roles.similarity(self._index(a), self._index(b))

    def _role(self, role: int) -> str:
        relation = self.relations[role % len(self.relations)]
        return f"{'object' if role >= len(self.relations) else 'subject'}:{relation}"

    def _select(self, indices: Ints | NDArray[np.int32]) -> tuple[Triple, ...]:
        return tuple(self._triples[indices].tolist())

    def _index(self, entity: str) -> int:
        try:
            return self._names[entity]
        except (KeyError, TypeError):
            raise InvalidRequest(
                f"{entity!r:.200} is not one of the graph's {len(self.entities)} entities. Write it as the graph does, "
                "find it with KnowledgeGraph.link, or check with `entity in graph`."
            ) from None


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    found: NDArray[np.object_] = np.empty(len(values), dtype=object)
    found[:] = values
    return found
