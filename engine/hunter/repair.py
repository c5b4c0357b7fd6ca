"""Which entities may stand at the flagged mentions, and which of them go together.

Source: Dziri et al. 2021, §3.3, with the type-aware filter that its appendix G proposes. The paper fills each mention
by itself; here the mentions of a response are filled together, so that no two of them get the same entity, none is
reached from a node that the repair takes away, and a subject and an object that changed places change back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from groundwire.engine.explanations import FlaggedMention
from groundwire.engine.graph import KnowledgeGraph
from groundwire.runtime.calls import Candidate, Retrieved

from .context import Context

REACHED = 256
"""Triples of a context node's neighbourhood from which candidates are taken, nearest first."""
CANDIDATES = 64
"""Candidates of a mention at most: those most like what stood there first."""
CONSIDERED = 6
"""Candidates of a mention that are tried together with those of the others; fewer where there are many mentions."""
COMBINATIONS = 4096
"""Ways to fill all mentions that are looked at."""
SLOTS = 12
"""Mentions of a response that are filled; others are left as they are."""
ALIKE = 0.05
"""Share of common roles, weighted, from which two entities count as of one type (``KnowledgeGraph.same_kind``)."""
SWAPPED = 0.4
"""Least doubt in a name that may have changed places with a flagged one: the paper's share of swaps."""
EPSILON = 1e-3
"""Least probability that a mention is granted of being right after all."""


class Slot(NamedTuple):
    """A mention that may be replaced, and what may replace it."""

    mention: FlaggedMention
    candidates: tuple[Candidate, ...]


class Filling(NamedTuple):
    """One way to fill the slots: for each the entity that was retrieved, or None to leave it."""

    choices: tuple[Retrieved | None, ...]
    score: float
    """Sum of log-probabilities."""


def slots(context: Context, mentions: Sequence[FlaggedMention], *, type_aware: bool) -> tuple[Slot, ...]:
    """What may stand at each mention; a mention without candidates is left out.

    Candidates are the neighbours of the context nodes: what the history is about, what the response names unflagged,
    and, for repairs of several mentions, the other flagged ones.
    """
    flagged = tuple(dict.fromkeys(mention.entity for mention in mentions if mention.entity is not None))
    at = {mention.start for mention in mentions}
    kept = tuple(dict.fromkeys(link.entity for link in context.links if link.start not in at))
    # A flagged entity may be an anchor, too: of a repair that puts it elsewhere in the response.
    anchors = tuple(dict.fromkeys((*kept, *context.topics, *(flagged if len(mentions) > 1 else ()))))
    found = []
    for mention in mentions:
        others = {entity for entity in flagged if entity != mention.entity}
        candidates = tuple(_candidates(context, mention, anchors, {*kept}, others, type_aware=type_aware))
        if candidates:
            found.append(Slot(mention, candidates))
    return tuple(found[:SLOTS])


def exchange(
    context: Context, mention: FlaggedMention, mentions: Sequence[FlaggedMention], doubt: Callable[[int, int], float]
) -> tuple[Slot, ...]:
    """The two slots of a swap, when a triple joins ``mention`` to a name that is not flagged; else none.

    The critic may flag one end of a fact that is told the wrong way round. Each slot has both entities as candidates,
    so that the retriever says which order it expects. ``doubt`` is the critic's for a range of the response.
    """
    flagged = {one.start for one in mentions}
    joined = [
        (abs(link.start - mention.start), place)
        for place, link in enumerate(context.links)
        if mention.entity is not None
        and link.start not in flagged
        and link.entity != mention.entity
        and context.graph.triples_between(link.entity, mention.entity)
    ]
    if not joined or mention.entity is None:
        return ()
    link = context.links[min(joined)[1]]
    text = context.response[link.start : link.end]
    other = FlaggedMention(text, link.start, link.end, max(SWAPPED, doubt(link.start, link.end)), link.entity)
    both = Candidate(link.entity, mention.entity), Candidate(mention.entity, link.entity)
    return tuple(sorted((Slot(mention, both), Slot(other, both)), key=lambda slot: slot.mention.start))


def pooled(context: Context, slot: Slot, found: Sequence[Retrieved]) -> tuple[Retrieved, ...]:
    """The retrieved entities of a slot, each once, with its probability over all anchors, best first.

    Of several anchors the best that the dialogue is about counts.
    """
    total: dict[str, float] = {}
    first: dict[str, Retrieved] = {}
    for one in sorted(found, key=lambda one: (one.anchor not in context.topics, -one.score)):
        total[one.entity] = total.get(one.entity, 0.0) + one.probability
        first.setdefault(one.entity, one)
    merged = (msgspec.structs.replace(one, probability=min(1.0, total[name])) for name, one in first.items())
    return tuple(sorted(merged, key=lambda one: -one.probability))


def fillings(
    context: Context,
    slots: Sequence[Slot],
    found: Sequence[Sequence[Retrieved]],
    min_probability: float,
) -> list[Filling]:
    """The ways to fill the slots that say something else than the response and hold together, best first.

    ``found`` are the ``pooled`` entities of each slot. Mentions of the same entity get the same one.
    """
    considered = min(CONSIDERED, int(COMBINATIONS ** (1 / max(1, len(slots))) + 1e-9) - 1)
    options: list[list[tuple[Retrieved | None, float]]] = [
        [(None, _log(1.0 - slot.mention.probability))]
        + [
            (one, _log(slot.mention.probability) + _log(one.probability))
            for one in best[:considered]
            if one.probability >= min_probability and one.entity != slot.mention.entity
        ]
        for slot, best in zip(slots, found, strict=True)
    ]
    out = []
    for chosen in product(*options):
        choices = tuple(one for one, _ in chosen)
        if any(choices) and _holds(context, slots, choices):
            out.append(Filling(choices, sum(weight for _, weight in chosen)))
    return sorted(out, key=lambda filling: -filling.score)


def _candidates(
    context: Context,
    mention: FlaggedMention,
    anchors: Sequence[str],
    kept: set[str],
    others: set[str],
    *,
    type_aware: bool,
) -> Iterator[Candidate]:
    """Neighbours of the anchors, near ones and those of the mention's kind first; not what the response has already."""
    graph = context.graph
    same = _folded(mention.text)
    found: list[tuple[float, int, Candidate]] = []
    for anchor in anchors:
        near = graph.neighbourhood([anchor], context.hops, REACHED)
        for entity, distance in near.distances.items():
            if not distance or entity in (mention.entity, *kept) or _folded(entity) == same:
                continue
            kind = 0.0
            if type_aware:
                # Subject and object that change back are of each other's type.
                back = entity in others and mention.entity == anchor
                kind = 1.0 if back else _alike(graph, mention, entity)
                if kind < ALIKE:
                    continue
            found.append((-kind, distance, Candidate(anchor, entity)))
    found.sort(key=lambda one: one[:2])
    yield from (candidate for _, _, candidate in found[:CANDIDATES])


def _alike(graph: KnowledgeGraph, mention: FlaggedMention, entity: str) -> float:
    """How far an entity is of a mention's type, 0–1; a number is never a name."""
    if _numeric(mention.text) != _numeric(entity):
        return 0.0
    return 1.0 if mention.entity is None else graph.same_kind(mention.entity, entity)


def _holds(context: Context, slots: Sequence[Slot], choices: Sequence[Retrieved | None]) -> bool:
    """Whether a filling is consistent: distinct entities, equal words alike, and no anchor that it takes away."""
    at = {slot.mention.start for slot in slots}
    stays = {link.entity for link in context.links if link.start not in at}
    filled: dict[str, str | None] = {}
    entities = []
    for slot, choice in zip(slots, choices, strict=True):
        stood = slot.mention.entity or _folded(slot.mention.text)
        stands = None if choice is None else choice.entity
        if stood in filled:
            if filled[stood] != stands:
                return False
            continue
        filled[stood] = stands
        if stands is not None or slot.mention.entity is not None:
            entities.append(stands or slot.mention.entity)
    if len(set(entities)) < len(entities) or stays.intersection(entities):
        return False
    sound = stays.union(context.topics, entities)
    return all(choice is None or choice.anchor in sound for choice in choices)


def _log(probability: float) -> float:
    return math.log(max(EPSILON, probability))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _numeric(text: str) -> bool:
    return any(map(str.isdigit, text)) and not any(map(str.isalpha, text))
