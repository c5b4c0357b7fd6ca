"""A knowledge graph in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from groundwire.runtime.arguments import check_integer, check_iterable, check_path, check_sequence
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple

from .adjacency import Adjacency, Ints
from .entity_roles import EntityRoles
from .files import TripleReader, choose_reader, read_jsonl, read_opendialkg_csv, read_tsv
from .linking import EntityLinker
from .records import GraphProblem, Linked, Subgraph
from .table import TripleTable

Aliases = Mapping[str, Sequence[str]]


class KnowledgeGraph:
    """An immutable set of triples with the neighbourhoods, names and roles of its entities; threads may share it.

    Names are kept as written, without spaces at their ends; duplicate triples are dropped. A predicate with a leading
    ``~`` is the inverse of the one without it, as in OpenDialKG; its triple is stored with subject and object swapped.

    A method that takes an entity raises InvalidRequest if the graph does not have it; check with ``entity in graph``.
    """

    problems: tuple[GraphProblem, ...]
    """The lines of the file that were left out: the first ``MAX_PROBLEMS``. All other lines are in the graph."""
    problem_count: int
    """Number of lines that were left out."""

    def __init__(self, table: TripleTable, aliases: Aliases | None = None) -> None:
        """Index the triples of a table; ``from_triples`` and ``load`` make a graph.

        Args:
            table: The triples.
            aliases: Other names of entities, for ``link``, by entity.

        Raises:
            InvalidRequest: The names of an entity are not a list of texts, or ``table`` is none.
        """
        if not isinstance(table, TripleTable):
            raise InvalidRequest(
                f"table is {type(table).__name__}; make a graph with KnowledgeGraph.from_triples([(subject, predicate, "
                "object), …]), or read it with KnowledgeGraph.load(path)."
            )
        self._names = table.entities
        self.entities: Sequence[str] = tuple(table.entities)
        self.relations: Sequence[str] = tuple(table.relations)
        self._relation_index = dict(table.relations)
        ends, predicates = table.arrays()
        self._adjacency = Adjacency(ends, len(self.entities))
        self._roles = EntityRoles(ends, predicates, len(self.entities), len(self.relations))
        # Arrays of objects: a selection is then one indexing operation.
        self._entities, relations = _objects(self.entities), _objects(self.relations)
        self._triples = _objects(
            list(map(Triple, self._entities[ends[0]], relations[predicates], self._entities[ends[1]]))
        )
        alias_index: dict[int, Sequence[str]] = {}
        for entity, names in (aliases or {}).items():
            if isinstance(names, str) or not all(isinstance(name, str) for name in names):
                raise InvalidRequest(f"aliases[{entity!r}] is {names!r:.200}; pass a list of names.")
            if entity not in table.entities:
                table.add_problem(None, f"an alias of {entity!r}, an entity that no triple names")
            else:
                alias_index[table.entities[entity]] = names
        self._linker = EntityLinker(self.entities, self._adjacency.degrees.tolist(), alias_index)
        self.problems = tuple(table.problems)
        self.problem_count = table.problem_count

    @classmethod
    def from_triples(
        cls, triples: Iterable[Triple | tuple[str, str, str]], *, aliases: Aliases | None = None
    ) -> KnowledgeGraph:
        """Make a graph of triples in memory.

        Args:
            triples: Triples or three strings each; without triples the graph is empty.
            aliases: Other names of entities, for ``link``, by entity.

        Returns:
            The graph.

        Raises:
            InvalidRequest: A triple is malformed; the message names the first.
        """
        table, rows = TripleTable(), []
        for number, triple in enumerate(check_iterable("triples", triples, "a list of triples")):
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
        """Read a graph from a file. A line without a triple is left out and added to ``problems``.

        Args:
            path: A file .tsv or .txt, .jsonl, or OpenDialKG's .csv, each also with .gz.
            aliases: Other names of entities, for ``link``, by entity.

        Returns:
            The graph.

        Raises:
            InvalidRequest: The file cannot be read, is damaged, or has no triple at all.
        """
        return cls._read(choose_reader(check_path("path", path)), path, aliases)

    @classmethod
    def from_tsv(cls, path: str | PathLike[str], *, aliases: Aliases | None = None) -> KnowledgeGraph:
        """Read lines of ``subject TAB predicate TAB object``; otherwise like ``load``."""
        return cls._read(read_tsv, path, aliases)

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str], *, aliases: Aliases | None = None) -> KnowledgeGraph:
        """Read lines of ``["subject", "predicate", "object"]`` or objects with these keys; otherwise like ``load``."""
        return cls._read(read_jsonl, path, aliases)

    @classmethod
    def from_opendialkg(cls, path: str | PathLike[str], *, aliases: Aliases | None = None) -> KnowledgeGraph:
        """Read ``opendialkg_triples.txt``, or the paths of ``opendialkg.csv``; otherwise like ``load``."""
        is_csv = ".csv" in (suffix.lower() for suffix in check_path("path", path).suffixes[-2:])
        return cls._read(read_opendialkg_csv if is_csv else read_tsv, path, aliases)

    @classmethod
    def _read(cls, reader: TripleReader, path: str | PathLike[str], aliases: Aliases | None) -> KnowledgeGraph:
        table = TripleTable()
        for block in reader(check_path("path", path)):
            for line, what in block.broken:
                table.add_problem(line, what)
            table.add(block.lines, block.rows)
        if not len(table):
            first = f" (line {table.problems[0].line}: {table.problems[0].what})" if table.problems else ""
            raise InvalidRequest(f"{path} contains no triples{first}. Pass a file with triples.")
        return cls(table, aliases)

    def __len__(self) -> int:
        """Number of triples."""
        return len(self._triples)

    def __iter__(self) -> Iterator[Triple]:
        """The triples, in the order of their first occurrence."""
        return iter(self._triples.tolist())

    def __contains__(self, entity: object) -> bool:
        """Whether the graph has an entity with exactly this name."""
        return entity in self._names

    def __repr__(self) -> str:
        return f"KnowledgeGraph({len(self)} triples, {len(self.entities)} entities, {len(self.relations)} relations)"

    def link(self, text: str) -> tuple[Linked, ...]:
        """Find the entities that a text mentions.

        - A mention matches a name or an alias letter for letter, or up to case, accents, Unicode form (NFKC), hyphens,
          apostrophes and other punctuation, ``&`` and "and", and a leading article. Of overlapping mentions the longest
          counts; of entities with one name, the entity that is written exactly like the mention, then the entity with
          most triples.
        - A name of function words alone (It, The Who, What If) matches letter for letter only, and if it is one word,
          not at the beginning of a sentence. The same holds for the one word that is left of a name without its article
          (Watch for The Watch).
        - A mention does not extend over the end of a sentence, an empty line, or a comma, bracket or quotation mark
          that the name does not have.
        - Names without a letter or digit, and names of more than 64 words, are never linked. Names are not
          transliterated: for a text in another script than the graph's, pass aliases.

        Args:
            text: The text.

        Returns:
            The mentions in the text's order; their ranges are disjoint and cover whole words.

        Raises:
            InvalidRequest: ``text`` is not a string.
        """
        if not isinstance(text, str):
            raise InvalidRequest(f"text is {type(text).__name__}; pass a string.")
        return self._linker.link(text)

    def neighbourhood(self, entities: Sequence[str], hops: int = 1, limit: int | None = None) -> Subgraph:
        """Return the triples near entities, in either direction.

        This is the k-hop subgraph of Neural Path Hunter: a triple belongs to it if one of its ends is less than
        ``hops`` away.

        Args:
            entities: Names of entities; without entities the result is empty.
            hops: Triples of a path, at most, 0 or more; with 0 the result has the entities alone.
            limit: Triples of the result, at most, 1 or more, nearest first, which bounds it around hubs; None for all.

        Returns:
            The triples on the paths, with the entities and their distances.

        Raises:
            InvalidRequest: The graph does not have an entity, or a number is out of range.
        """
        entities = check_sequence("entities", entities, "a list of entities")
        hops = check_integer("hops", hops, 0)
        if limit is not None:
            limit = check_integer("limit", limit, 1)
        start = np.array(list(dict.fromkeys(map(self._index, entities))), dtype=np.int64)
        result = self._adjacency.search(start, hops, limit)
        return Subgraph(
            triples=self._select(result.triples),
            entities=tuple(self._entities[result.entities].tolist()),
            hops=tuple(result.distances.tolist()),
            truncated=result.truncated,
        )

    def triples_between(self, a: str, b: str) -> tuple[Triple, ...]:
        """Return the triples that join two entities, in either direction.

        Args:
            a: Name of an entity.
            b: Name of an entity, which may be ``a``.

        Returns:
            The triples in the graph's order; loops if the entities are equal.

        Raises:
            InvalidRequest: The graph does not have an entity.
        """
        return self._select(self._adjacency.joining_triples(self._index(a), self._index(b)))

    def degree(self, entity: str) -> int:
        """Return the number of triples that contain an entity.

        Args:
            entity: Name of the entity.

        Raises:
            InvalidRequest: The graph does not have the entity.
        """
        return int(self._adjacency.degrees[self._index(entity)])

    def roles(self, entity: str) -> frozenset[str]:
        """Return the roles of an entity, ``subject:RELATION`` and ``object:RELATION``, which replace its type.

        Args:
            entity: Name of the entity.

        Raises:
            InvalidRequest: The graph does not have the entity.
        """
        return frozenset(map(self._format_role, self._roles.roles_of(self._index(entity)).tolist()))

    def entities_with(self, role: str, limit: int) -> tuple[str, ...]:
        """Return entities that have a role.

        Args:
            role: ``subject:RELATION`` or ``object:RELATION``, as ``roles`` writes it.
            limit: Entities of the result, at most, 1 or more.

        Returns:
            The first entities of the graph with the role; none for a role that the graph does not have.
        """
        end, _, relation = role.partition(":")
        if relation not in self._relation_index or end not in ("subject", "object"):
            return ()
        number = self._relation_index[relation] + (len(self.relations) if end == "object" else 0)
        return tuple(self._entities[self._roles.entities_with(number)[:limit]].tolist())

    def role_similarity(self, a: str, b: str) -> float:
        """Return the similarity of the roles of two entities.

        Args:
            a: Name of an entity.
            b: Name of an entity.

        Returns:
            The cosine of the two sets of roles, from 0 (no role in common) to 1 (the same roles). Rare roles weigh more
            (see
            ``EntityRoles.similarity``).

        Raises:
            InvalidRequest: The graph does not have an entity.
        """
        return self._roles.similarity(self._index(a), self._index(b))

    def _format_role(self, role: int) -> str:
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
    array: NDArray[np.object_] = np.empty(len(values), dtype=object)
    array[:] = values
    return array
