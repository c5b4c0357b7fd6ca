"""Knowledge graphs: triples from memory or files, neighbourhoods of entities, and entity linking in texts.

>>> from groundwire.repair import KnowledgeGraph
>>> graph = KnowledgeGraph.from_triples(
...     [
...         ("Alien", "directed by", "Ridley Scott"),
...         ("Alien", "starred actors", "Sigourney Weaver"),
...         ("Blade Runner", "directed by", "Ridley Scott"),
...         ("Blade Runner", "based on", "Do Androids Dream of Electric Sheep?"),
...     ],
...     aliases={"Sigourney Weaver": ["Susan Weaver"]},
... )
>>> text = "Wasn't ALIEN, with susan weaver, by the director of Blade-Runner?"
>>> for link in graph.link(text):
...     print(text[link.start : link.end], "=", link.entity, link.how)
ALIEN = Alien normalised
susan weaver = Sigourney Weaver alias
Blade-Runner = Blade Runner normalised
>>> near = graph.neighbourhood(["Alien"], hops=2)
>>> [triple.object for triple in near.triples], near.distance("Blade Runner")
(['Ridley Scott', 'Sigourney Weaver', 'Ridley Scott'], 2)
>>> graph.triples_between("Ridley Scott", "Alien")
(Triple(subject='Alien', predicate='directed by', object='Ridley Scott'),)
>>> sorted(graph.roles("Ridley Scott")), round(graph.role_similarity("Alien", "Blade Runner"), 2)
(['object:directed by'], 0.41)
"""

from __future__ import annotations

from .graph import KnowledgeGraph
from .records import GraphProblem, Linked, Subgraph
from .table import MAX_NAME, MAX_PROBLEMS

__all__ = ["MAX_NAME", "MAX_PROBLEMS", "GraphProblem", "KnowledgeGraph", "Linked", "Subgraph"]
