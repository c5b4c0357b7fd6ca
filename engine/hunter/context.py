"""What a knowledge graph has to say about a dialogue: its context nodes, and the triples that models are shown.

Source: Dziri et al. 2021, §2 and §3.3: the k-hop subgraph around the entities that the dialogue is about. The paper
takes them from annotated paths; here they are the entities that the history and the response name. A subgraph may have
thousands of triples and a model reads a few dozen, so those that bear on the response come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groundwire.engine.graph import KnowledgeGraph, Linked
from groundwire.engine.metrics.critic import TURNS
from groundwire.engine.words import words
from groundwire.runtime.triples import Triple, readable, sentence

SHOWN = 16
"""Triples of a graph that models are shown. Triples that the caller gives are all shown."""
REACHED = 4096
"""Triples of the neighbourhood among which those are chosen."""
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
    turns = [[link.entity for link in graph.link(turn)] for turn in reversed(history)]
    recent = [entity for turn in turns[:TURNS] for entity in turn] or [entity for turn in turns for entity in turn]
    topics = tuple(dict.fromkeys(recent))
    if whole and not topics and not links:
        topics = tuple(graph.entities)
    nodes = tuple(dict.fromkeys((*topics, *(link.entity for link in links))))
    triples = tuple(graph) if whole else tuple(_bearing(graph, nodes, response, history[-1:], hops))[:SHOWN]
    return Context(graph, history, response, topics, links, triples, hops)


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
        return (max(direct, key=lambda triple: _about(triple, said)),)
    if hops < 2 or a == b:
        return ()
    near = graph.neighbourhood([b], hops - 1, REACHED)
    steps = [triple for triple in graph.neighbourhood([a], 1, REACHED).triples if _other(triple, a) in near.distances]
    ranked = sorted(steps, key=lambda triple: (near.distances[_other(triple, a)], -_about(triple, said)))
    for step in ranked:
        rest = joining(graph, _other(step, a), b, response, hops - 1)
        if rest:
            return (step, *rest)
    return ()


def _bearing(
    graph: KnowledgeGraph, nodes: Sequence[str], response: str, last: Sequence[str], hops: int
) -> Iterable[Triple]:
    """The triples around ``nodes``, those first that join two of them, then those that the talk is about."""
    named, said, asked = set(nodes), _stems(response), _stems(" ".join(last))
    around = graph.neighbourhood(nodes, hops, REACHED).triples if nodes else ()

    def weight(triple: Triple) -> int:
        both = triple.subject in named and triple.object in named and triple.subject != triple.object
        either = triple.subject in named or triple.object in named
        return 8 * both + 3 * either + 2 * _about(triple, said) + _about(triple, asked)

    return sorted(around, key=lambda triple: -weight(triple))  # stable: near ones stay before far ones


def _other(triple: Triple, end: str) -> str:
    return triple.object if triple.subject == end else triple.subject


def _about(triple: Triple, stems: frozenset[str]) -> bool:
    return not _stems(readable(triple.predicate)).isdisjoint(stems)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.lower[:_STEM] for word in words(text) if word.content)
