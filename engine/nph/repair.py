"""Which entities may stand at the flagged mentions, and which of them go together.

Source: Dziri et al. 2021, §3.3, with the type-aware filter that its appendix G proposes. The paper fills each mention
by itself; here the mentions of a response are filled together, so that no two of them get the same entity, none is
reached from a node that the repair takes away, and a subject and an object that changed places change back.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from typing import NamedTuple

import msgspec

from groundwire.engine.schema.explanations import FlaggedMention
from groundwire.engine.text.sentences import sentences
from groundwire.runtime.calls import Candidate, Retrieved

from .context import Context, about, subjects

REACHED = 1024
"""Triples of a context node's neighbourhood that are looked at, nearest first."""
NEAR = 128
"""Entities among them that are looked at, those first that the response speaks of."""
CANDIDATES = 64
"""Candidates of a mention at most: the dialogue's own entities, then those most like what stood there."""
CONSIDERED = 6
"""Candidates of a mention that are tried together with those of the others; fewer where there are many mentions."""
COMBINATIONS = 4096
"""Ways to fill all mentions that are looked at."""
SLOTS = 12
"""Mentions of a response that are filled; others are left as they are."""
ALIKE = 0.05
"""Share of common roles, weighted, from which two entities count as of one type (``KnowledgeGraph.same_kind``)."""
OTHER_KIND = 0.3
"""What the probability of a candidate of another type counts."""
EPSILON = 1e-3
"""Least probability that a mention is granted of being right after all."""


class Slot(NamedTuple):
    """A mention that may be replaced, and what may replace it."""

    mention: FlaggedMention
    candidates: tuple[Candidate, ...]
    foreign: frozenset[str] = frozenset()
    """Candidates that are of another type than what stands there."""
    confirmed: bool = False
    """Whether the critic has said already that it prefers the exchange."""


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
    kept = [link for link in context.links if link.start not in at]
    # A flagged entity may be an anchor, too: of a repair that puts it elsewhere in the response.
    others = flagged if len(mentions) > 1 else ()
    anchors = tuple(dict.fromkeys((*subjects(context.response, kept), *context.topics, *others)))
    near = {anchor: _near(context, anchor) for anchor in anchors}
    parts = _sentence_starts(context.response)
    found = []
    for mention in mentions:
        beside = {link.entity for link in kept if _part(parts, link.start) == _part(parts, mention.start)}
        back = {entity for entity in flagged if entity != mention.entity}
        offered = tuple(_candidates(context, mention, near, beside, back, type_aware=type_aware))
        if offered:
            foreign = frozenset(one.entity for one, alike in offered if not alike)
            found.append(Slot(mention, tuple(one for one, _ in offered), foreign))
    return tuple(found[:SLOTS])


def exchange(first: FlaggedMention, second: FlaggedMention, *, confirmed: bool) -> tuple[Slot, ...]:
    """The slots of two names that may have changed places.

    Each has both entities as candidates, so that the retriever says which order it expects. It has the last word only
    where the critic has said nothing.
    """
    if first.entity is None or second.entity is None:
        return ()
    both = Candidate(second.entity, first.entity), Candidate(first.entity, second.entity)
    return (Slot(first, both, confirmed=confirmed), Slot(second, both, confirmed=confirmed))


def pooled(context: Context, slot: Slot, found: Sequence[Retrieved]) -> tuple[Retrieved, ...]:
    """The retrieved entities of a slot, each once, with its probability over all anchors, best first.

    Of several anchors the best that the dialogue is about counts. An entity of another type counts ``OTHER_KIND``, so
    that the retriever must be sure of it; those of the mention's type share what is left.
    """
    total: dict[str, float] = {}
    first: dict[str, Retrieved] = {}
    for one in sorted(found, key=lambda one: (one.anchor not in context.topics, -one.score)):
        total[one.entity] = total.get(one.entity, 0.0) + one.probability
        first.setdefault(one.entity, one)
    shares = {name: share * (OTHER_KIND if name in slot.foreign else 1.0) for name, share in total.items()}
    whole = sum(shares.values())
    merged = (
        msgspec.structs.replace(one, probability=shares[name] if name in slot.foreign else shares[name] / whole)
        for name, one in first.items()
    )
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
            (one, _log(slot.mention.probability) + (0.0 if slot.confirmed else _log(one.probability)))
            for one in best[:considered]
            if (slot.confirmed or one.probability >= min_probability) and one.entity != slot.mention.entity
        ]
        for slot, best in zip(slots, found, strict=True)
    ]
    parts = _sentence_starts(context.response)
    at = {slot.mention.start for slot in slots}
    stays = {(_part(parts, link.start), link.entity) for link in context.links if link.start not in at}
    out = []
    for chosen in product(*options):
        choices = tuple(one for one, _ in chosen)
        if any(choices) and _holds(context, slots, choices, parts, stays):
            out.append(Filling(choices, sum(weight for _, weight in chosen)))
    return sorted(out, key=lambda filling: -filling.score)


def _near(context: Context, anchor: str) -> dict[str, int]:
    """The neighbours of a context node with their distance; the dialogue's own first, then those it speaks of."""
    reached = context.graph.neighbourhood([anchor], context.hops, REACHED)
    spoken = about(reached.triples, context.response)
    ordered = dict.fromkeys(end for triple in spoken for end in (triple.subject, triple.object))
    own = [node for node in context.nodes if node != anchor and context.graph.triples_between(anchor, node)]
    first = {entity: reached.distances.get(entity, 1) for entity in dict.fromkeys((*own, *ordered)) if entity != anchor}
    return dict(list(first.items())[:NEAR])


def _candidates(
    context: Context,
    mention: FlaggedMention,
    near: Mapping[str, Mapping[str, int]],
    beside: set[str],
    back: set[str],
    *,
    type_aware: bool,
) -> Iterator[tuple[Candidate, bool]]:
    """Neighbours of the anchors that are neither there nor beside it, and whether they are of the mention's type.

    ``back`` are the flagged entities elsewhere in the response: subject and object that change back are of each other's
    type. A number gives way to numbers alone.
    """
    same = _folded(mention.text)
    found: list[tuple[bool, float, int, Candidate]] = []
    for anchor, entities in near.items():
        for entity, distance in entities.items():
            if entity == mention.entity or entity in beside or _folded(entity) == same:
                continue
            kind = 1.0
            if type_aware and not (entity in back and mention.entity == anchor):
                if _numeric(mention.text) != _numeric(entity):
                    continue
                if mention.entity is not None:
                    kind = context.graph.same_kind(mention.entity, entity)
            found.append((entity not in context.nodes, -kind, distance, Candidate(anchor, entity)))
    found.sort(key=lambda one: one[:3])
    yield from ((candidate, kind <= -ALIKE) for _, kind, _, candidate in found[:CANDIDATES])


def _holds(
    context: Context,
    slots: Sequence[Slot],
    choices: Sequence[Retrieved | None],
    parts: Sequence[int],
    stays: AbstractSet[tuple[int, str]],
) -> bool:
    """Whether a filling is consistent: equal names alike, others not, and no anchor that it takes away.

    ``stays`` are the entities that are named beside the slots, each with its sentence, in which it stands once.
    """
    filled: dict[str, str | None] = {}
    put: set[str] = set()
    for slot, choice in zip(slots, choices, strict=True):
        stood = slot.mention.entity or _folded(slot.mention.text)
        stands = slot.mention.entity if choice is None else choice.entity
        if stood in filled:
            if filled[stood] != stands:
                return False
            continue
        filled[stood] = stands
        if stands is not None:
            if stands in put or (_part(parts, slot.mention.start), stands) in stays:
                return False
            put.add(stands)
    sound = put.union(context.topics, (entity for _, entity in stays))
    return all(choice is None or choice.anchor in sound for choice in choices)


def _sentence_starts(response: str) -> tuple[int, ...]:
    return tuple(sentence.start for sentence in sentences(response))


def _part(starts: Sequence[int], at: int) -> int:
    """Which sentence a place belongs to."""
    return bisect_right(starts, at)


def _log(probability: float) -> float:
    return math.log(max(EPSILON, probability))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _numeric(text: str) -> bool:
    return any(map(str.isdigit, text)) and not any(map(str.isalpha, text))
