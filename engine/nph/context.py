"""What a knowledge graph has to say about a dialogue: its context nodes, and the triples that models are shown.

Source: Dziri et al. 2021, §2 and §3.3: the k-hop subgraph around the entities that the dialogue is about. The paper
takes them from annotated paths; here they are the entities that the history and the response name. A subgraph may have
thousands of triples and a model reads a few dozen, so those that bear on the response come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from groundwire.engine.kg import KnowledgeGraph, Linked
from groundwire.engine.metrics.critic import TURNS
from groundwire.engine.text.words import words
from groundwire.runtime.triples import Triple, readable, sentence

SHOWN = 16
"""Triples of a graph that models are shown. Triples that the caller gives are all shown."""
REACHED = 1024
"""Triples of the neighbourhood among which those are chosen, the nearest; those that join two entities of the dialogue
are always among them."""
JOINED = 12
"""Entities of the dialogue among which those are looked for."""
_STEM = 4
"""Letters that two words must begin with to be about the same: directed, director."""


class Context(NamedTuple):
    """A response in its dialogue, as the graph sees it."""

    graph: KnowledgeGraph
    history: tuple[str, ...]
    response: str
    topics: tuple[str, ...]
    """The entities of the history, the latest first."""
    links: tuple[Linked, ...]
    """The entities that the response names."""
    triples: tuple[Triple, ...]
    """What critic and retriever are shown, what bears on the response first."""
    hops: int

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every entity that history and response name, each once."""
        return tuple(dict.fromkeys((*self.topics, *(link.entity for link in self.links))))


def around(
    graph: KnowledgeGraph, response: str, history: tuple[str, ...], hops: int, *, whole: bool = False
) -> Context:
    """The context of ``response``; its triples are empty when nothing is named.

    The topics are those of the last turns, as many as the models read, or of earlier ones where those name nothing.
    ``whole`` shows every triple of the graph, for triples that the caller chose. Then what they are about counts as the
    topic of a dialogue that names nothing.
    """
    links = graph.link(response)
    turns = [list(subjects(turn, graph.link(turn))) for turn in reversed(history)]
    recent = [entity for turn in turns[:TURNS] for entity in turn] or [entity for turn in turns for entity in turn]
    topics = tuple(dict.fromkeys(recent))
    if whole and not topics and not links:
        topics = tuple(graph.entities)
    nodes = tuple(dict.fromkeys((*topics, *(link.entity for link in links))))
    if whole:
        return Context(graph, history, response, topics, links, tuple(graph), hops)
    # A true statement is shown by the triple that joins what it names. The surroundings of a name that the history does
    # not bring up would only make a wrong one look at home.
    centres = topics or tuple(subjects(response, links))[:1]
    triples = tuple(_bearing(graph, nodes, centres, response, history[-1:], hops))[:SHOWN]
    return Context(graph, history, response, topics, links, triples, hops)


def subjects(text: str, links: Sequence[Linked]) -> Iterator[str]:
    """The entities that ``text`` is about: those it names, but for common nouns beside proper names.

    In "Is Alien a good film?" a graph may know "Film" too, and half of its entities are next to that.
    """
    proper = [link for link in links if link.how == "exact" or not _common(text[link.start : link.end])]
    yield from (link.entity for link in proper or links)


def document(history: Sequence[str], triples: Iterable[Triple]) -> str:
    """What FeQA reads in the place of knowledge (the paper's appendix E): the history, and every triple as a sentence.

    >>> document(["Do you know Alien?"], [Triple("Alien", "directed_by", "Ridley Scott")])
    'Do you know Alien? Alien directed by Ridley Scott.'
    """
    return " ".join((*history, *(f"{sentence(triple)}." for triple in triples)))


def joining(graph: KnowledgeGraph, a: str, b: str, response: str, hops: int) -> tuple[Triple, ...]:
    """The triple between two entities that bears most on ``response``, or else the shortest path; empty for none."""
    said = _stems(response)
    direct = graph.triples_between(a, b)
    if direct:
        return (max(direct, key=lambda triple: _shares(triple, said)),)
    if hops < 2 or a == b:
        return ()
    near = graph.neighbourhood([b], hops - 1, REACHED)
    steps = [triple for triple in graph.neighbourhood([a], 1, REACHED).triples if _other(triple, a) in near.distances]
    ranked = sorted(steps, key=lambda triple: (near.distances[_other(triple, a)], -_shares(triple, said)))
    for step in ranked:
        rest = joining(graph, _other(step, a), b, response, hops - 1)
        if rest:
            return (step, *rest)
    return ()


def about(triples: Iterable[Triple], response: str) -> list[Triple]:
    """The triples in their order, those first whose predicate shares a word with the response."""
    said = _stems(response)
    return sorted(triples, key=lambda triple: not _shares(triple, said))


def _common(words: str) -> bool:
    return words.islower() and len(words.split()) == 1


def _bearing(
    graph: KnowledgeGraph,
    nodes: Sequence[str],
    centres: Sequence[str],
    response: str,
    last: Sequence[str],
    hops: int,
) -> Iterable[Triple]:
    """The triples around ``centres``, and before them those that join two ``nodes``; what the talk is about first."""
    named, said, asked = set(nodes), _stems(response), _stems(" ".join(last))
    joined = (triple for a, b in combinations(nodes[-JOINED:], 2) for triple in graph.triples_between(a, b))
    around = graph.neighbourhood(centres, hops, REACHED).triples if centres else ()

    def weight(triple: Triple) -> int:
        both = triple.subject in named and triple.object in named and triple.subject != triple.object
        either = triple.subject in named or triple.object in named
        return 8 * both + 3 * either + 2 * _shares(triple, said) + _shares(triple, asked)

    # Stable, so that near triples stay before far ones.
    return sorted(dict.fromkeys((*joined, *around)), key=lambda triple: -weight(triple))


def _other(triple: Triple, end: str) -> str:
    return triple.object if triple.subject == end else triple.subject


def _shares(triple: Triple, stems: frozenset[str]) -> bool:
    return not _of_predicate(triple.predicate).isdisjoint(stems)


@lru_cache(4096)
def _of_predicate(predicate: str) -> frozenset[str]:
    return _stems(readable(predicate))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.lower[:_STEM] for word in words(text) if word.content)
