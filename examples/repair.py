"""Repair a response with a knowledge graph: wrong names are replaced by entities that the graph supports."""

from __future__ import annotations

from pathlib import Path

from groundwire.engine import Engine
from groundwire.repair import KnowledgeGraph, Refiner

FILMS = Path(__file__).with_name("films.tsv")


def main() -> None:
    """Repair a response about a film and print the triple that justifies the change."""
    graph = KnowledgeGraph.load(FILMS)
    with Engine.load("nph") as engine:
        refinement = Refiner(engine).refine("It was directed by James Cameron.", graph, history=["Do you know Alien?"])
    print(refinement.status, "|", refinement.response)
    for change in refinement.changes:
        triple = change.triple
        print(f"  {change.old} → {change.new}, because {triple.subject} {triple.predicate} {triple.object}")


if __name__ == "__main__":
    main()
