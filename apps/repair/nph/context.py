"""The context of a dialogue in a knowledge graph: the entities it names, and the triples that the models read.

Source: Dziri et al. 2021, §2 and §3.3: the k-hop subgraph around the entities that the dialogue is about. The paper
takes them from annotated paths; here they are the entities that the history and the response name. A subgraph may have
thousands of triples and a model reads a few dozen, so the triples most relevant to the response come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from groundwire.engine.extend import words
from groundwire.engine.metrics.critic import TURNS
from groundwire.runtime.texts.characters import is_lower_case
from groundwire.runtime.triples import Triple, readable

from ..kg import KnowledgeGraph, Linked
from .support import list_mentioned

MODEL_TRIPLES = 16
"""Triples of a graph that the models read. Triples that the caller passes are all read."""
NEIGHBOURHOOD_TRIPLES = 1024
"""Triples of the neighbourhood, nearest first, from which those are selected; triples that join two entities of the
dialogue are always considered."""
JOINED_ENTITIES = 12
"""Entities of the dialogue, at most, whose joining triples are looked up."""
_STEM = 4
"""Letters that two words must have in common at their beginning to count as related: directed, director."""


class Context(NamedTuple):
    """A response in its dialogue, and what the graph has about both."""

    graph: KnowledgeGraph
    history: tuple[str, ...]
    response: str
    topics: tuple[str, ...]
    """The entities of the history, the latest first."""
    turns: tuple[tuple[str, ...], ...]
    """The entities of each turn of the history, and whom "the director of Alien" means in it, the latest turn first."""
    links: tuple[Linked, ...]
    """The entities that the response names."""
    triples: tuple[Triple, ...]
    """The triples that critic and retriever read, the most relevant to the response first."""
    hops: int

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every entity that history and response name, each once."""
        return tuple(dict.fromkeys((*self.topics, *(link.entity for link in self.links))))


def build_context(
    graph: KnowledgeGraph, response: str, history: tuple[str, ...], hops: int, *, all_triples: bool = False
) -> Context:
    """Return the context of ``response``; it has no triples if neither history nor response names an entity.

    The topics come from the last turns, as many as the models read, or from earlier turns if the last name none.
    ``all_triples`` has the models read the whole graph, for triples that the caller chose. If the dialogue then names
    no entity, all entities of these triples are its topics.
    """
    links = graph.link(response)
    linked = [(turn, graph.link(turn)) for turn in reversed(history)]
    turns = tuple(tuple(list_mentioned(graph, turn, turn_links)) for turn, turn_links in linked)
    subjects = [list(find_subjects(turn, turn_links)) for turn, turn_links in linked]
    recent = [entity for turn in subjects[:TURNS] for entity in turn] or [
        entity for turn in subjects for entity in turn
    ]
    topics = tuple(dict.fromkeys(recent))
    if all_triples and not topics and not links:
        topics = tuple(graph.entities)
    nodes = tuple(dict.fromkeys((*topics, *(link.entity for link in links))))
    if all_triples:
        return Context(graph, history, response, topics, turns, links, tuple(graph), hops)
    # The triple that supports a true statement joins two entities that it names. The neighbourhood of an entity that
    # only the response names is left out: it would make a wrong name look plausible.
    centres = topics or tuple(find_subjects(response, links))[:1]
    triples = tuple(_rank_triples(graph, nodes, centres, response, history[-1:], hops))[:MODEL_TRIPLES]
    return Context(graph, history, response, topics, turns, links, triples, hops)


def find_subjects(text: str, links: Sequence[Linked]) -> Iterator[str]:
    """Yield the entities that ``text`` is about: those it names, without common nouns if there are proper names.

    In "Is Alien a good film?" the graph may also have an entity "Film", and half of its entities are next to that.
    """
    proper = [link for link in links if link.how == "exact" or not _is_common_noun(text[link.start : link.end])]
    yield from (link.entity for link in proper or links)


def find_path(graph: KnowledgeGraph, a: str, b: str, response: str, hops: int) -> tuple[Triple, ...]:
    """Return the triple between two entities that is most relevant to ``response``, else a shortest path, else ()."""
    stems = _stems(response)
    direct = graph.triples_between(a, b)
    if direct:
        return (max(direct, key=lambda triple: _shares_stem(triple, stems)),)
    if hops < 2 or a == b:
        return ()
    near = graph.neighbourhood([b], hops - 1, NEIGHBOURHOOD_TRIPLES)
    around_a = graph.neighbourhood([a], 1, NEIGHBOURHOOD_TRIPLES).triples
    steps = [triple for triple in around_a if _other_end(triple, a) in near.distances]
    ranked = sorted(steps, key=lambda triple: (near.distances[_other_end(triple, a)], -_shares_stem(triple, stems)))
    for step in ranked:
        rest = find_path(graph, _other_end(step, a), b, response, hops - 1)
        if rest:
            return (step, *rest)
    return ()


def sort_by_relevance(triples: Iterable[Triple], response: str) -> list[Triple]:
    """Return the triples whose predicate shares a word stem with the response, then the others, each in their order."""
    stems = _stems(response)
    return sorted(triples, key=lambda triple: not _shares_stem(triple, stems))


def _is_common_noun(text: str) -> bool:
    return is_lower_case(text) and len(text.split()) == 1


def _rank_triples(
    graph: KnowledgeGraph,
    nodes: Sequence[str],
    centres: Sequence[str],
    response: str,
    last_turn: Sequence[str],
    hops: int,
) -> Iterable[Triple]:
    """The triples around ``centres`` and the triples that join two ``nodes``, the most relevant first."""
    named, response_stems, turn_stems = set(nodes), _stems(response), _stems(" ".join(last_turn))
    pairs = combinations(nodes[-JOINED_ENTITIES:], 2)
    joining = (triple for a, b in pairs for triple in graph.triples_between(a, b))
    around = graph.neighbourhood(centres, hops, NEIGHBOURHOOD_TRIPLES).triples if centres else ()

    def weight(triple: Triple) -> int:
        both = triple.subject in named and triple.object in named and triple.subject != triple.object
        either = triple.subject in named or triple.object in named
        return 8 * both + 3 * either + 2 * _shares_stem(triple, response_stems) + _shares_stem(triple, turn_stems)

    # The sort is stable, so near triples stay before far ones.
    return sorted(dict.fromkeys((*joining, *around)), key=lambda triple: -weight(triple))


def _other_end(triple: Triple, end: str) -> str:
    return triple.object if triple.subject == end else triple.subject


def _shares_stem(triple: Triple, stems: frozenset[str]) -> bool:
    return not _predicate_stems(triple.predicate).isdisjoint(stems)


@lru_cache(4096)
def _predicate_stems(predicate: str) -> frozenset[str]:
    return _stems(readable(predicate))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.lower[:_STEM] for word in words(text) if word.content)
