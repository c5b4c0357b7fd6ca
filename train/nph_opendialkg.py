"""OpenDialKG's film dialogues with the triples their responses state (Moon et al. 2019; CC BY-NC 4.0).

For experiments only: no weights that are shipped may have seen them. Who stated what is not part of these files, so
entities are linked by name, and a turn is kept when the graph accounts for all it mentions: every linked entity is
joined to another one of the dialogue or was mentioned before, and no capitalised name is left over.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from groundwire.engine.graph import KnowledgeGraph, Linked
from groundwire.runtime.triples import Triple

from . import facts
from .corpus import read_rows
from .nph_graph import TripleIndex
from .nph_templates import DISTRACTORS, GraphDialogue, Mention

TURNS = 3
"""Turns of history that are kept, as in the paper."""


def read(data: Path, split: str = "test", seed: int = 7) -> tuple[list[GraphDialogue], TripleIndex]:
    """The usable turns of ``split`` (train, valid or test) and the graph, from ``nc_opendialkg_*`` in ``data``."""
    triples = [Triple(*row) for row in read_rows(data / "nc_opendialkg_film_kg.jsonl.gz")]
    rows = (row for row in read_rows(data / "nc_opendialkg_turns.jsonl.gz") if row["split"] == split)
    index = TripleIndex(triples)
    return list(dialogues(rows, KnowledgeGraph.from_triples(index.triples), index, seed)), index


def dialogues(
    rows: Iterable[dict[str, Any]], graph: KnowledgeGraph, index: TripleIndex, seed: int
) -> Iterator[GraphDialogue]:
    """The turns that the graph accounts for, each with what it states among other triples of its entities."""
    for number, row in enumerate(rows):
        history = tuple(row["context"][-TURNS:])
        before = {linked.entity for turn in history for linked in _links(turn, graph)} | set(row["entity"])
        links = _links(row["resp"], graph)
        mentions = _mentions(links, before, graph)
        stated = list(dict.fromkeys(triple for mention in mentions for triple in mention.triples))
        told = all(mention.triples or mention.entity in before for mention in mentions)
        if not stated or not told or _left_over(row["resp"], links):
            continue
        rng = random.Random(seed * 1_000_003 + number)
        ends = dict.fromkeys(end for triple in stated for end in (triple.subject, triple.object))
        near = [t for t in dict.fromkeys(t for end in ends for t in index.about(end)) if t not in stated]
        shown = [*stated, *rng.sample(near, min(rng.choice(DISTRACTORS), len(near)))]
        rng.shuffle(shown)
        yield GraphDialogue(history, tuple(shown), row["resp"], mentions)


def _links(text: str, graph: KnowledgeGraph) -> list[Linked]:
    """Linked names but single words in another case: films are called "Her" and "Once"."""
    return [
        linked
        for linked in graph.link(text)
        if linked.entity == text[linked.start : linked.end] or " " in text[linked.start : linked.end]
    ]


def _mentions(links: Sequence[Linked], before: set[str], graph: KnowledgeGraph) -> tuple[Mention, ...]:
    """Each link with the triples that join it to another entity of the response or of what came before."""
    own = {linked.entity for linked in links}
    out = []
    for linked in links:
        others = sorted((own | (before & set(graph.entities))) - {linked.entity})
        joined = [triple for other in others for triple in graph.triples_between(linked.entity, other)]
        out.append(Mention(linked.start, linked.end, linked.entity, tuple(dict.fromkeys(joined))))
    return tuple(out)


def _left_over(response: str, links: Sequence[Linked]) -> bool:
    """Whether a capitalised name of the response is no linked one."""
    rest = response
    for linked in links:
        rest = rest[: linked.start] + "x" * (linked.end - linked.start) + rest[linked.end :]
    return bool(facts.names(rest))
