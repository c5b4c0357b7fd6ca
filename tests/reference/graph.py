"""The surroundings of entities by breadth-first search over a list, and roles by sets, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from groundwire.runtime.triples import Triple


class Surroundings(NamedTuple):
    triples: list[Triple]
    distances: dict[str, int]
    truncated: bool


def neighbourhood(triples: Sequence[Triple], start: Sequence[str], hops: int, limit: int | None) -> Surroundings:
    """Hop by hop; within a hop entity by entity, those of few triples first, then those the graph names first."""
    names = list(dict.fromkeys(name for triple in triples for name in (triple.subject, triple.object)))
    degree = {name: sum(name in (triple.subject, triple.object) for triple in triples) for name in names}
    distances = dict.fromkeys(start, 0)
    taken: list[Triple] = []
    for hop in range(hops):
        frontier = [name for name in names if distances.get(name) == hop]
        frontier.sort(key=lambda name: degree[name])
        reached = set()
        for name in frontier:
            for triple in triples:
                if name in (triple.subject, triple.object) and triple not in taken:
                    if limit is not None and len(taken) == limit:
                        _settle(distances, names, reached, hop)
                        return Surroundings(taken, distances, True)
                    taken.append(triple)
                    reached |= {triple.subject, triple.object}
        _settle(distances, names, reached, hop)
    return Surroundings(taken, distances, False)


def _settle(distances: dict[str, int], names: Sequence[str], reached: set[str], hop: int) -> None:
    for name in names:
        if name in reached:
            distances.setdefault(name, hop + 1)


def roles(triples: Sequence[Triple], entity: str) -> set[str]:
    return {f"subject:{triple.predicate}" for triple in triples if triple.subject == entity} | {
        f"object:{triple.predicate}" for triple in triples if triple.object == entity
    }


def role_similarity(triples: Sequence[Triple], a: str, b: str) -> float:
    """Cosine of the two sets of roles, a role weighing log(1 + entities / entities that play it)."""
    names = {name for triple in triples for name in (triple.subject, triple.object)}
    played = {name: roles(triples, name) for name in names}

    def weight(role: str) -> float:
        return math.log1p(len(names) / sum(role in roles for roles in played.values()))

    first, second, common = (sum(map(weight, roles)) for roles in (played[a], played[b], played[a] & played[b]))
    return common / math.sqrt(first * second)
