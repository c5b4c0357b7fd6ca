"""Reads OpenDialKG's film dialogues with the triples their responses state (Moon et al. 2019; CC BY-NC 4.0).

For experiments only: weights trained on them must not be shipped. The files do not say which triple a response states,
so entities are linked by name, and a turn is kept when the graph accounts for all its mentions: every linked entity is
joined by a triple to another entity of the dialogue or was mentioned before, and every capitalised name is linked.

The files split turns and not dialogues: half of the test turns continue or precede a turn of the training part, whose
history may then contain them. So a part leaves out dialogues with turns in a later part.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from groundwire.repair.kg import KnowledgeGraph, Linked
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple

from ..common.corpus import read_rows, read_triple_rows
from ..common.sentence_pieces import EntityMention
from ..common.triple_index import TripleIndex
from ..synthesis import perturbations
from .templates import DISTRACTORS, GraphDialogue

TURNS = 3
"""Turns of history that are kept, as in the paper."""
GRAPH_FILE, TURNS_FILE = "nc_opendialkg_film_kg.jsonl.gz", "nc_opendialkg_turns.jsonl.gz"
Part = Literal["train", "valid", "test"]


class OpenDialKGTurns:
    """The usable turns of a part: a ``DialogueSource``."""

    def __init__(self, dialogues: Sequence[GraphDialogue], index: TripleIndex) -> None:
        """InvalidRequest without dialogues."""
        if not dialogues:
            raise InvalidRequest("The graph accounts for none of the turns; give turns that name its entities.")
        self.dialogues = tuple(dialogues)
        self.index = index

    @classmethod
    def read(cls, data: Path, part: Part = "train") -> OpenDialKGTurns:
        """Read the files in ``data``; errors as for ``read_opendialkg``."""
        return cls(*read_opendialkg(data, part))

    def draw(self, rng: random.Random) -> GraphDialogue:
        """Draw a turn."""
        return rng.choice(self.dialogues)

    def stream(self, rng: random.Random) -> Iterator[GraphDialogue]:
        """Yield every turn once, in random order."""
        yield from rng.sample(self.dialogues, len(self.dialogues))


def has_opendialkg(data: Path) -> bool:
    """Whether ``data`` has the turns."""
    return (data / TURNS_FILE).exists()


def read_opendialkg(data: Path, split: Part = "test", seed: int = 7) -> tuple[list[GraphDialogue], TripleIndex]:
    """The usable turns of ``split`` and the graph, from the two files in ``data``.

    InvalidRequest when one of them is missing.
    """
    missing = [name for name in (GRAPH_FILE, TURNS_FILE) if not (data / name).exists()]
    if missing:
        raise InvalidRequest(
            f"{data} lacks {' and '.join(missing)}. OpenDialKG's turns are read from {GRAPH_FILE} and {TURNS_FILE}; "
            "put both there, or use dialogues made by templates."
        )
    index = TripleIndex(Triple(*row) for row in read_triple_rows(data / GRAPH_FILE))
    rows = select_part(read_rows(data / TURNS_FILE), split)
    return list(link_dialogues(rows, KnowledgeGraph.from_triples(index.triples), index, seed)), index


def select_part(rows: Iterable[dict[str, Any]], part: Part) -> list[dict[str, Any]]:
    """The rows of ``part`` whose dialogues have no turn in a later part: train, valid, test is the order."""
    parts = get_args(Part)
    later = parts[parts.index(part) + 1 :]
    table = list(rows)
    taken = {row["dialog_id"] for row in table if row["split"] in later}
    return [row for row in table if row["split"] == part and row["dialog_id"] not in taken]


def link_dialogues(
    rows: Iterable[dict[str, Any]], graph: KnowledgeGraph, index: TripleIndex, seed: int
) -> Iterator[GraphDialogue]:
    """Yield the turns that the graph accounts for, each with its stated triples among other triples of its entities."""
    for number, row in enumerate(rows):
        history = tuple(row["context"][-TURNS:])
        entities = {linked.entity for turn in history for linked in _link_names(turn, graph)} | set(row["entity"])
        links = _link_names(row["resp"], graph)
        mentions = _make_mentions(links, entities, graph)
        stated = list(dict.fromkeys(triple for mention in mentions for triple in mention.triples))
        accounted = all(mention.triples or mention.entity in entities for mention in mentions)
        if not stated or not accounted or _has_unlinked_name(row["resp"], links):
            continue
        rng = random.Random(seed * 1_000_003 + number)
        ends = dict.fromkeys(end for triple in stated for end in (triple.subject, triple.object))
        near = [t for t in dict.fromkeys(t for end in ends for t in index.triples_of(end)) if t not in stated]
        shown = [*stated, *rng.sample(near, min(rng.choice(DISTRACTORS), len(near)))]
        rng.shuffle(shown)
        yield GraphDialogue(history, tuple(shown), row["resp"], mentions)


def _link_names(text: str, graph: KnowledgeGraph) -> list[Linked]:
    """Linked names without single words in another case: films are called "Her" and "Once"."""
    return [
        linked
        for linked in graph.link(text)
        if linked.entity == text[linked.start : linked.end] or " " in text[linked.start : linked.end]
    ]


def _make_mentions(links: Sequence[Linked], entities: set[str], graph: KnowledgeGraph) -> tuple[EntityMention, ...]:
    """Each link with the triples that join it to another entity of the response or of the history."""
    linked_entities = {linked.entity for linked in links}
    mentions = []
    for linked in links:
        others = sorted((linked_entities | (entities & set(graph.entities))) - {linked.entity})
        joined = [triple for other in others for triple in graph.triples_between(linked.entity, other)]
        mentions.append(EntityMention(linked.start, linked.end, linked.entity, tuple(dict.fromkeys(joined))))
    return tuple(mentions)


def _has_unlinked_name(response: str, links: Sequence[Linked]) -> bool:
    """Whether a capitalised name of the response is not linked."""
    rest = response
    for linked in links:
        rest = rest[: linked.start] + "x" * (linked.end - linked.start) + rest[linked.end :]
    return bool(perturbations.find_names(rest))
