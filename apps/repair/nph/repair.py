"""Chooses entities for the flagged names of a response, so that the choices are consistent with each other.

Source: Dziri et al. 2021, §3.3, with the type-aware filter that its appendix G proposes. The paper fills each mention
independently; here the mentions of a response are filled together: no two of them get the same entity, none is reached
from a node that the repair removes, and an exchanged subject and object are exchanged back.
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
from groundwire.metrics import sentences
from groundwire.runtime.calls import Candidate, Retrieved
from groundwire.runtime.texts.characters import is_letters, is_numeric

from .context import Context, find_subjects, sort_by_relevance
from .support import Path, Support

ANCHOR_TRIPLES = 1024
"""Triples of a context node's neighbourhood that are searched for candidates, nearest first."""
ANCHOR_ENTITIES = 128
"""Entities among them that are considered, those most relevant to the response first."""
MAX_CANDIDATES = 64
"""Candidates of a mention, at most: entities of the dialogue first, then those most like the flagged entity."""
COMBINED_CANDIDATES = 6
"""Candidates of a mention that are combined with candidates of the other mentions; fewer if there are many mentions."""
MAX_COMBINATIONS = 4096
"""Combinations of candidates for all mentions that are considered."""
MAX_SLOTS = 12
"""Mentions of a response that are filled; the others are not replaced."""
SAME_TYPE = 0.05
"""Weighted share of common roles from which two entities count as of one type (``KnowledgeGraph.role_similarity``)."""
OTHER_TYPE_FACTOR = 0.3
"""Factor on the probability of a candidate of another type."""
MIN_CORRECT = 1e-3
"""Least probability that is assumed for a flagged mention to be correct."""


class Slot(NamedTuple):
    """A mention that may be replaced, and its candidates."""

    mention: FlaggedMention
    candidates: tuple[Candidate, ...]
    other_type: frozenset[str] = frozenset()
    """Candidates of another type than the flagged name."""
    confirmed: bool = False
    """Whether the critic has already preferred the exchange, so that the retriever's probability does not count."""
    keepable: bool = False
    """Whether the retriever may choose the mention's own entity, and the critic's probability does not count."""
    paths: Mapping[str, Path] = {}
    """For each candidate the triples that support it, where the graph chose the candidates."""


class Filling(NamedTuple):
    """One way to fill the slots: for each slot the retrieved entity, or None to leave it."""

    choices: tuple[Retrieved | None, ...]
    score: float
    """Sum of log-probabilities."""


def make_supported_slots(
    mentions: Sequence[FlaggedMention], supports: Sequence[Support], *, keepable: bool
) -> tuple[Slot, ...]:
    """Return the mentions for which the graph has other entities at the stated end of the stated relation, with those.

    ``supports`` are what the graph has for each of ``mentions``.
    """
    slots = (
        Slot(
            mention,
            tuple(Candidate(anchor, entity) for entity, (anchor, _) in support.entities.items())[:MAX_CANDIDATES],
            keepable=keepable,
            paths={entity: path for entity, (_, path) in support.entities.items()},
        )
        for mention, support in zip(mentions, supports, strict=True)
    )
    return tuple(slot for slot in slots if slot.candidates)[:MAX_SLOTS]


def make_slots(
    context: Context, mentions: Sequence[FlaggedMention], *, type_aware: bool, keepable: bool = False
) -> tuple[Slot, ...]:
    """Return the mentions with all candidates near by, as in the paper; if ``keepable``, also their own entities.

    Candidates are the neighbours of the context nodes: what the history is about, what the response names unflagged,
    and, for repairs of several mentions, the other flagged entities.
    """
    flagged = tuple(dict.fromkeys(mention.entity for mention in mentions if mention.entity is not None))
    starts = {mention.start for mention in mentions}
    unflagged = [link for link in context.links if link.start not in starts]
    # A flagged entity may be an anchor too: the repair may move it to another mention.
    others = flagged if len(mentions) > 1 else ()
    anchors = tuple(dict.fromkeys((*find_subjects(context.response, unflagged), *context.topics, *others)))
    neighbours = {anchor: _find_neighbours(context, anchor) for anchor in anchors}
    sentence_starts = _sentence_starts(context.response)
    slots = []
    for mention in mentions:
        sentence = _sentence_index(sentence_starts, mention.start)
        in_sentence = {link.entity for link in unflagged if _sentence_index(sentence_starts, link.start) == sentence}
        exchangeable = {entity for entity in flagged if entity != mention.entity}
        candidates = tuple(
            _find_candidates(
                context, mention, neighbours, in_sentence, exchangeable, type_aware=type_aware, keepable=keepable
            )
        )
        if candidates:
            other_type = frozenset(candidate.entity for candidate, same_type in candidates if not same_type)
            listed = tuple(candidate for candidate, _ in candidates)
            slots.append(Slot(mention, listed, other_type, keepable=keepable))
    return tuple(slots[:MAX_SLOTS])


def make_exchange_slots(first: FlaggedMention, second: FlaggedMention, *, confirmed: bool) -> tuple[Slot, ...]:
    """Return the slots of two names that may have been exchanged; none if one of them is not an entity.

    Each slot has both entities as candidates, so the retriever says which order it expects. It decides only if the
    critic did not.
    """
    if first.entity is None or second.entity is None:
        return ()
    both = Candidate(second.entity, first.entity), Candidate(first.entity, second.entity)
    return (Slot(first, both, confirmed=confirmed), Slot(second, both, confirmed=confirmed))


def merge_anchors(context: Context, slot: Slot, retrieved: Sequence[Retrieved]) -> tuple[Retrieved, ...]:
    """Return the retrieved entities of a slot, each once, with its probability over all anchors, best first.

    If an entity has several anchors, the best anchor among the topics of the dialogue is kept. The probability of an
    entity of another type is multiplied by ``OTHER_TYPE_FACTOR``; entities of the mention's type share the rest.
    """
    totals: dict[str, float] = {}
    best: dict[str, Retrieved] = {}
    for candidate in sorted(
        retrieved, key=lambda candidate: (candidate.anchor not in context.topics, -candidate.score)
    ):
        totals[candidate.entity] = totals.get(candidate.entity, 0.0) + candidate.probability
        best.setdefault(candidate.entity, candidate)
    shares = {
        entity: share * (OTHER_TYPE_FACTOR if entity in slot.other_type else 1.0) for entity, share in totals.items()
    }
    total = sum(shares.values())
    merged = (
        msgspec.structs.replace(
            candidate, probability=shares[entity] if entity in slot.other_type else shares[entity] / total
        )
        for entity, candidate in best.items()
    )
    return tuple(sorted(merged, key=lambda candidate: -candidate.probability))


def make_fillings(
    context: Context,
    slots: Sequence[Slot],
    retrieved: Sequence[Sequence[Retrieved]],
    min_probability: float,
) -> list[Filling]:
    """Return the consistent ways to fill the slots that change the response, best first; of keepable slots, only
    fillings that are better than the response.

    ``retrieved`` are the entities of each slot from ``merge_anchors``. Mentions of the same entity get the same one.
    """
    per_slot = min(COMBINED_CANDIDATES, int(MAX_COMBINATIONS ** (1 / max(1, len(slots))) + 1e-9) - 1)
    options = [
        [(None, _weigh_keeping(slot, best)), *_weigh_candidates(slot, best[:per_slot], min_probability)]
        for slot, best in zip(slots, retrieved, strict=True)
    ]
    sentence_starts = _sentence_starts(context.response)
    starts = {slot.mention.start for slot in slots}
    remaining = {
        (_sentence_index(sentence_starts, link.start), link.entity)
        for link in context.links
        if link.start not in starts
    }
    fillings = []
    for combination in product(*options):
        choices = tuple(choice for choice, _ in combination)
        if any(choices) and _is_consistent(context, slots, choices, sentence_starts, remaining):
            fillings.append(Filling(choices, sum(weight for _, weight in combination)))
    if any(slot.keepable for slot in slots):
        unchanged = sum(is_kept for (_, is_kept), *_ in options)
        fillings = [filling for filling in fillings if filling.score > unchanged]
    return sorted(fillings, key=lambda filling: -filling.score)


def _weigh_keeping(slot: Slot, best: Sequence[Retrieved]) -> float:
    """The log-probability that the mention is right: by the critic, or by the retriever if the slot is keepable."""
    if not slot.keepable:
        return _log(1.0 - slot.mention.probability)
    return _log(sum(candidate.probability for candidate in best if candidate.entity == slot.mention.entity))


def _weigh_candidates(
    slot: Slot, best: Sequence[Retrieved], min_probability: float
) -> Iterator[tuple[Retrieved | None, float]]:
    flagged = 0.0 if slot.keepable else _log(slot.mention.probability)
    for candidate in best:
        if candidate.entity != slot.mention.entity and (slot.confirmed or candidate.probability >= min_probability):
            yield candidate, flagged + (0.0 if slot.confirmed else _log(candidate.probability))


def _find_neighbours(context: Context, anchor: str) -> dict[str, int]:
    """The neighbours of a context node with their distance: entities of the dialogue first, then by relevance."""
    subgraph = context.graph.neighbourhood([anchor], context.hops, ANCHOR_TRIPLES)
    relevant = sort_by_relevance(subgraph.triples, context.response)
    ordered = dict.fromkeys(end for triple in relevant for end in (triple.subject, triple.object))
    in_dialogue = [node for node in context.nodes if node != anchor and context.graph.triples_between(anchor, node)]
    neighbours = {
        entity: subgraph.distances.get(entity, 1)
        for entity in dict.fromkeys((*in_dialogue, *ordered))
        if entity != anchor
    }
    return dict(list(neighbours.items())[:ANCHOR_ENTITIES])


def _find_candidates(
    context: Context,
    mention: FlaggedMention,
    neighbours: Mapping[str, Mapping[str, int]],
    in_sentence: set[str],
    exchangeable: set[str],
    *,
    type_aware: bool,
    keepable: bool,
) -> Iterator[tuple[Candidate, bool]]:
    """Neighbours of the anchors that the mention's sentence does not name, and whether they have the mention's type.

    ``exchangeable`` are the flagged entities elsewhere in the response: an exchanged subject and object count as of
    each other's type. A number is replaced by a number only.
    """
    name = _normalize_name(mention.text)
    ranked: list[tuple[bool, float, int, Candidate]] = []
    for anchor, entities in neighbours.items():
        for entity, distance in entities.items():
            is_same = entity == mention.entity or _normalize_name(entity) == name
            if entity in in_sentence or (is_same and not keepable):
                continue
            similarity = 1.0
            if type_aware and not (entity in exchangeable and mention.entity == anchor):
                if _is_number(mention.text) != _is_number(entity):
                    continue
                if mention.entity is not None:
                    similarity = context.graph.role_similarity(mention.entity, entity)
            ranked.append((entity not in context.nodes, -similarity, distance, Candidate(anchor, entity)))
    ranked.sort(key=lambda item: item[:3])
    yield from ((candidate, similarity <= -SAME_TYPE) for _, similarity, _, candidate in ranked[:MAX_CANDIDATES])


def _is_consistent(
    context: Context,
    slots: Sequence[Slot],
    choices: Sequence[Retrieved | None],
    sentence_starts: Sequence[int],
    remaining: AbstractSet[tuple[int, str]],
) -> bool:
    """Whether equal names get equal entities, different names different ones, and every anchor stays in the dialogue.

    ``remaining`` are the entities outside the slots, each with the index of its sentence; a sentence names none twice.
    """
    replacements: dict[str, str | None] = {}
    entities: set[str] = set()
    for slot, choice in zip(slots, choices, strict=True):
        old = slot.mention.entity or _normalize_name(slot.mention.text)
        new = slot.mention.entity if choice is None else choice.entity
        if old in replacements:
            if replacements[old] != new:
                return False
            continue
        replacements[old] = new
        if new is not None:
            if new in entities or (_sentence_index(sentence_starts, slot.mention.start), new) in remaining:
                return False
            entities.add(new)
    anchors = entities.union(context.topics, (entity for _, entity in remaining))
    return all(
        choice is None or choice.entity in slot.paths or choice.anchor in anchors
        for slot, choice in zip(slots, choices, strict=True)
    )


def _sentence_starts(response: str) -> tuple[int, ...]:
    return tuple(sentence.start for sentence in sentences(response))


def _sentence_index(starts: Sequence[int], offset: int) -> int:
    """The index of the sentence that contains an offset, from 1."""
    return bisect_right(starts, offset)


def _log(probability: float) -> float:
    return math.log(max(MIN_CORRECT, probability))


def _normalize_name(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_number(text: str) -> bool:
    return any(map(is_numeric, text)) and not any(map(is_letters, text))
