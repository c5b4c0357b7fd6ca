"""Responses made wrong on purpose, for the critic of Neural Path Hunter (Dziri et al. 2021, §3.2).

- ``extrinsic``: an entity of the response gives way to another of the same type that is neither near the dialogue in
  the graph nor in its history;
- ``swapped``, the paper's intrinsic kind: the subject and the object of a fact change places;
- ``misplaced``: an entity of the response gives way to another of the triples that are shown, for which the fact does
  not hold. The paper defines this as intrinsic too and does not make it;
- ``unseen``: the response stays and what it states is no longer shown, because a critic must not go by what it knows.

The paper corrupts 60 % of the dialogues in the first way and 40 % in the second (``PAPER``) and keeps the originals as
clean examples.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from groundwire.runtime.triples import Triple, linearise

from .phrases import originals
from .templates import GraphDialogue, Mention
from .triple_index import TripleIndex

Kind: TypeAlias = Literal["clean", "extrinsic", "swapped", "misplaced", "unseen"]
Span: TypeAlias = tuple[int, int]
LABELS = ("O", "B", "I")
PAPER: Mapping[Kind, float] = {"clean": 0.5, "extrinsic": 0.3, "swapped": 0.2}
"""Every dialogue once as it is and once corrupted."""
MIX: Mapping[Kind, float] = {"clean": 0.42, "extrinsic": 0.22, "swapped": 0.15, "misplaced": 0.16, "unseen": 0.05}
"""What the embedded critic is trained on."""
MORE = 0.25
"""Chance of each further mention to be replaced as well; the paper replaces all of them."""


class Corrupted(msgspec.Struct, frozen=True):
    """A dialogue to criticise."""

    dialogue: GraphDialogue
    """What the critic reads. A mention that was put in has no triples."""
    kind: Kind
    flagged: tuple[Span, ...]
    """The hallucinated mentions of its response, in characters, in order; empty for a clean one."""
    original: GraphDialogue
    """As it was before."""


class Corruptor:
    """Makes dialogues wrong in the light of a graph."""

    def __init__(self, index: TripleIndex, hops: int = 1) -> None:
        """``hops``: how far from the entities of a dialogue a replacement must stay."""
        self._index = index
        self._hops = hops

    def draw(self, dialogue: GraphDialogue, rng: random.Random, mix: Mapping[Kind, float] = MIX) -> Corrupted:
        """``dialogue`` in one of the kinds of ``mix``; where that cannot be made, extrinsic, and then clean."""
        makers = {
            "extrinsic": self.extrinsic,
            "swapped": self.swapped,
            "misplaced": self.misplaced,
            "unseen": self.unseen,
        }
        chosen: Kind = rng.choices(list(mix), list(mix.values()))[0]
        if chosen != "clean":
            for kind in (chosen, "extrinsic"):
                made = makers[kind](dialogue, rng)
                if made is not None:
                    return made
        return clean(dialogue)

    def extrinsic(self, dialogue: GraphDialogue, rng: random.Random, more: float = MORE) -> Corrupted | None:
        """One mention, and each other with the chance ``more``, replaced by an entity of its type from elsewhere."""
        if not dialogue.mentions:
            return None
        ends = {m.entity for m in dialogue.mentions}
        ends.update(end for triple in dialogue.stated() for end in (triple.subject, triple.object))
        avoid = self._index.within(ends, self._hops) | shown(dialogue)
        first = rng.randrange(len(dialogue.mentions))
        new: dict[int, _Put] = {}
        for place, mention in enumerate(dialogue.mentions):
            if place != first and rng.random() >= more:
                continue
            peer = self._index.peer(mention.entity, avoid, rng)
            if peer is None or _told(peer, dialogue) or _overlap(peer, mention.entity):
                continue
            avoid = avoid | {peer}
            new[place] = _as_written(peer, dialogue, mention)
        return _replaced(dialogue, new, "extrinsic") if new else None

    def swapped(self, dialogue: GraphDialogue, rng: random.Random) -> Corrupted | None:
        """The subject and the object of a stated fact in each other's place; None where that would say the same."""
        pairs = [
            (one, other)
            for triple in dialogue.stated()
            if not self._holds(Triple(triple.object, triple.predicate, triple.subject), dialogue)
            for one, subject in enumerate(dialogue.mentions)
            for other, thing in enumerate(dialogue.mentions)
            if subject.entity == triple.subject and thing.entity == triple.object
            if triple in subject.triples and triple in thing.triples
        ]
        if not pairs:
            return None
        one, other = rng.choice(pairs)
        first, second = dialogue.mentions[one], dialogue.mentions[other]
        new = {
            one: _Put(second.entity, dialogue.response[second.start : second.end]),
            other: _Put(first.entity, dialogue.response[first.start : first.end]),
        }
        return _replaced(dialogue, new, "swapped")

    def misplaced(self, dialogue: GraphDialogue, rng: random.Random) -> Corrupted | None:
        """One mention replaced by an entity that is shown, but not for this fact; mostly by one of its type."""
        mentioned = {mention.entity for mention in dialogue.mentions}
        free = sorted(shown(dialogue) - mentioned)
        choices: list[tuple[bool, int, str]] = []
        for place, mention in enumerate(dialogue.mentions):
            for other in free:
                true = any(
                    self._holds(_exchanged(triple, mention.entity, other), dialogue) for triple in mention.triples
                )
                if mention.triples and not true and not _overlap(other, mention.entity):
                    choices.append((self._index.same_part(other, mention.entity), place, other))
        alike = [choice for choice in choices if choice[0]]
        if not choices:
            return None
        _, place, other = rng.choice(alike if alike and rng.random() < 0.8 else choices)
        new = _as_written(other, dialogue, dialogue.mentions[place])
        return _replaced(dialogue, {place: new}, "misplaced")

    def unseen(self, dialogue: GraphDialogue, rng: random.Random) -> Corrupted | None:
        """The dialogue without the triples of one of its facts; flagged is what stands nowhere else.

        None when nothing would be flagged.
        """
        facts = list(dialogue.stated())
        rng.shuffle(facts)
        for gone in facts:
            less = msgspec.structs.replace(dialogue, triples=tuple(t for t in dialogue.triples if t != gone))
            around = " ".join((linearise(less.triples), *less.history)).lower()
            flagged = [
                mention
                for mention in dialogue.mentions
                if mention.entity not in shown(less)
                and mention.entity.lower() not in around
                and dialogue.response[mention.start : mention.end].lower() not in around
            ]
            # What takes part in another fact too is not wrong there.
            if flagged and all(mention.triples == (gone,) for mention in flagged):
                return Corrupted(less, "unseen", tuple((m.start, m.end) for m in flagged), dialogue)
        return None

    def _holds(self, triple: Triple, dialogue: GraphDialogue) -> bool:
        """Whether it is shown or in the graph, under any name of its relation, or its relation has no direction."""
        return triple in dialogue.triples or any(
            fact in self._index or fact.predicate in self._index.symmetric for fact in originals(triple)
        )


def clean(dialogue: GraphDialogue) -> Corrupted:
    """The dialogue as it is."""
    return Corrupted(dialogue, "clean", (), dialogue)


def shown(dialogue: GraphDialogue) -> set[str]:
    """The entities of the triples that are shown."""
    return {end for triple in dialogue.triples for end in (triple.subject, triple.object)}


def labels(offsets: Sequence[Span], flagged: Sequence[Span]) -> list[int]:
    """The index into ``LABELS`` of each token by its character range; B begins a flagged range, I continues it.

    >>> [LABELS[i] for i in labels([(0, 2), (3, 6), (7, 9), (9, 10)], ((3, 9),))]
    ['O', 'B', 'I', 'O']
    """
    out, open_range = [], None
    for start, end in offsets:
        inside = next((span for span in flagged if start < span[1] and span[0] < end), None)
        out.append(0 if inside is None else 2 if inside == open_range else 1)
        open_range = inside
    return out


class _Put(NamedTuple):
    """What stands in a mention's place."""

    entity: str
    text: str


def _replaced(dialogue: GraphDialogue, new: Mapping[int, _Put], kind: Kind) -> Corrupted:
    """The dialogue with the mentions in the places ``new`` replaced."""
    response, at = "", 0
    mentions: list[Mention] = []
    flagged: list[Span] = []
    for place, mention in enumerate(dialogue.mentions):
        response += dialogue.response[at : mention.start]
        put, start = new.get(place), len(response)
        response += put.text if put else dialogue.response[mention.start : mention.end]
        at = mention.end
        if put:
            flagged.append((start, len(response)))
            mentions.append(Mention(start, len(response), put.entity))
        else:
            mentions.append(Mention(start, len(response), mention.entity, mention.triples))
    response += dialogue.response[at:]
    changed = msgspec.structs.replace(dialogue, response=response, mentions=tuple(mentions))
    return Corrupted(changed, kind, tuple(flagged), dialogue)


def _as_written(entity: str, dialogue: GraphDialogue, mention: Mention) -> _Put:
    """An entity for a mention's place, in small letters where the mention was."""
    old = dialogue.response[mention.start : mention.end]
    return _Put(entity, entity.lower() if old.islower() else entity)


def _exchanged(triple: Triple, old: str, new: str) -> Triple:
    subject, thing = (new if end == old else end for end in (triple.subject, triple.object))
    return Triple(subject, triple.predicate, thing)


def _told(entity: str, dialogue: GraphDialogue) -> bool:
    """Whether an entity's name stands anywhere in what the critic reads."""
    return entity.lower() in " ".join((linearise(dialogue.triples), *dialogue.history, dialogue.response)).lower()


def _overlap(one: str, other: str) -> bool:
    """Whether one name is a part of the other, so that they may mean the same."""
    return one.lower() in other.lower() or other.lower() in one.lower()
