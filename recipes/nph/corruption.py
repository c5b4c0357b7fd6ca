"""Corrupts responses, for the critic of Neural Path Hunter (Dziri et al. 2021, §3.2).

- ``extrinsic``: an entity of the response is replaced by another of the same type that is neither near the dialogue in
  the graph nor in its history;
- ``swapped``, the paper's intrinsic kind: the subject and the object of a fact are exchanged;
- ``misplaced``: an entity of the response is replaced by another of the triples that are shown, for which the fact does
  not hold. The paper defines this as intrinsic too and does not make it;
- ``unseen``: the response stays and the triple that it states is hidden, because a critic must not rely on its own
  knowledge.

The paper corrupts 60 % of the dialogues in the first way and 40 % in the second, keeps the originals as clean examples,
replaces every mention and exchanges every pair (``CorruptionRecipe.INTRIN_EXTRIN``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from groundwire.runtime.triples import Triple, linearise

from ..common.phrases import list_originals
from ..common.sentence_pieces import EntityMention
from ..common.triple_index import TripleIndex
from .templates import GraphDialogue

CorruptionKind: TypeAlias = Literal["clean", "extrinsic", "swapped", "misplaced", "unseen"]
Span: TypeAlias = tuple[int, int]
LABELS = ("O", "B", "I")
MORE = 0.25
"""Chance of each further mention to be replaced as well, where not every mention is."""


@dataclass(frozen=True, slots=True)
class Corruption:
    """Which corruptions are drawn, and how much of a response they change."""

    mix: Mapping[CorruptionKind, float]
    """The share of each kind."""
    every: bool
    """Whether ``extrinsic`` replaces every mention and ``swapped`` exchanges every pair, as in the paper. Otherwise one
    mention is replaced, and each other with probability ``MORE``, or one pair exchanged."""


class CorruptionRecipe(StrEnum):
    """The corruptions that a critic is trained on: the embedded critic's, or one of a row of the paper's table 5."""

    EMBEDDED = "embedded"
    """All four kinds, mostly with one wrong name among right ones."""
    INTRIN_EXTRIN = "intrin-extrin"
    """RoBERTa-Intrin-Extrin, the paper's critic: 60 % extrinsic, 40 % intrinsic."""
    INTRIN = "intrin"
    EXTRIN = "extrin"

    @property
    def corruption(self) -> Corruption:
        """What the recipe draws; the paper's corruptions have every dialogue once unchanged and once corrupted."""
        return _CORRUPTIONS[self]


_CORRUPTIONS: Mapping[CorruptionRecipe, Corruption] = {
    CorruptionRecipe.EMBEDDED: Corruption(
        {"clean": 0.42, "extrinsic": 0.22, "swapped": 0.15, "misplaced": 0.16, "unseen": 0.05}, every=False
    ),
    CorruptionRecipe.INTRIN_EXTRIN: Corruption({"clean": 0.5, "extrinsic": 0.3, "swapped": 0.2}, every=True),
    CorruptionRecipe.INTRIN: Corruption({"clean": 0.5, "swapped": 0.5}, every=True),
    CorruptionRecipe.EXTRIN: Corruption({"clean": 0.5, "extrinsic": 0.5}, every=True),
}


class CorruptedDialogue(msgspec.Struct, frozen=True):
    """A dialogue for the critic, corrupted or clean."""

    dialogue: GraphDialogue
    """The dialogue that the critic reads. A mention that was put in has no triples."""
    kind: CorruptionKind
    flagged: tuple[Span, ...]
    """The hallucinated mentions of its response, in characters, in order; empty for a clean one."""
    original: GraphDialogue
    """The dialogue before the corruption."""


class Corruptor:
    """Corrupts dialogues about a graph."""

    def __init__(self, index: TripleIndex, hops: int = 1) -> None:
        """``hops``: entities at most so many triples away from a dialogue's entities do not replace them."""
        self._index = index
        self._hops = hops

    def draw(
        self,
        dialogue: GraphDialogue,
        rng: random.Random,
        corruption: Corruption = _CORRUPTIONS[CorruptionRecipe.EMBEDDED],
    ) -> CorruptedDialogue:
        """Draw a kind and corrupt ``dialogue`` so; where that is not possible, extrinsic if that is drawn at all, and
        then clean."""
        more = 1.0 if corruption.every else MORE
        makers: Mapping[CorruptionKind, Callable[[], CorruptedDialogue | None]] = {
            "extrinsic": lambda: self.make_extrinsic(dialogue, rng, more),
            "swapped": lambda: self.make_swapped(dialogue, rng, every=corruption.every),
            "misplaced": lambda: self.make_misplaced(dialogue, rng),
            "unseen": lambda: self.make_unseen(dialogue, rng),
        }
        chosen: CorruptionKind = rng.choices(list(corruption.mix), list(corruption.mix.values()))[0]
        fallback: tuple[CorruptionKind, ...] = ("extrinsic",) if "extrinsic" in corruption.mix else ()
        if chosen != "clean":
            for kind in (chosen, *fallback):
                corrupted = makers[kind]()
                if corrupted is not None:
                    return corrupted
        return keep_clean(dialogue)

    def make_extrinsic(
        self, dialogue: GraphDialogue, rng: random.Random, more: float = MORE
    ) -> CorruptedDialogue | None:
        """One mention, and each other with probability ``more``, replaced by an unrelated entity of its type."""
        if not dialogue.mentions:
            return None
        ends = {m.entity for m in dialogue.mentions}
        ends.update(end for triple in dialogue.stated_triples() for end in (triple.subject, triple.object))
        avoid = self._index.find_within(ends, self._hops) | list_shown_entities(dialogue)
        first = rng.randrange(len(dialogue.mentions))
        new: dict[int, _Replacement] = {}
        for number, mention in enumerate(dialogue.mentions):
            if number != first and rng.random() >= more:
                continue
            peer = self._index.draw_peer(mention.entity, avoid, rng)
            if peer is None or _is_named(peer, dialogue) or _names_overlap(peer, mention.entity):
                continue
            avoid = avoid | {peer}
            new[number] = _match_case(peer, dialogue, mention)
        return _replace_mentions(dialogue, new, "extrinsic") if new else None

    def make_swapped(
        self, dialogue: GraphDialogue, rng: random.Random, *, every: bool = False
    ) -> CorruptedDialogue | None:
        """The subject and the object of a stated fact exchanged, or of ``every`` one, each mention once.

        None where that would state a fact too.
        """
        pairs = [
            (subject_number, object_number)
            for triple in dialogue.stated_triples()
            if not self._holds(Triple(triple.object, triple.predicate, triple.subject), dialogue)
            for subject_number, subject_mention in enumerate(dialogue.mentions)
            for object_number, object_mention in enumerate(dialogue.mentions)
            if subject_mention.entity == triple.subject and object_mention.entity == triple.object
            if triple in subject_mention.triples and triple in object_mention.triples
        ]
        if not pairs:
            return None
        new: dict[int, _Replacement] = {}
        for subject_number, object_number in (rng.choice(pairs), *(pairs if every else ())):
            if subject_number in new or object_number in new:
                continue
            first, second = dialogue.mentions[subject_number], dialogue.mentions[object_number]
            new[subject_number] = _Replacement(second.entity, dialogue.response[second.start : second.end])
            new[object_number] = _Replacement(first.entity, dialogue.response[first.start : first.end])
        return _replace_mentions(dialogue, new, "swapped")

    def make_misplaced(self, dialogue: GraphDialogue, rng: random.Random) -> CorruptedDialogue | None:
        """One mention replaced by a shown entity that makes its fact false, mostly of its type; None without any."""
        mentioned = {mention.entity for mention in dialogue.mentions}
        unmentioned = sorted(list_shown_entities(dialogue) - mentioned)
        choices: list[tuple[bool, int, str]] = []
        for number, mention in enumerate(dialogue.mentions):
            for entity in unmentioned:
                true = any(
                    self._holds(_exchange_entity(triple, mention.entity, entity), dialogue)
                    for triple in mention.triples
                )
                if mention.triples and not true and not _names_overlap(entity, mention.entity):
                    choices.append((self._index.share_role(entity, mention.entity), number, entity))
        alike = [choice for choice in choices if choice[0]]
        if not choices:
            return None
        _, number, entity = rng.choice(alike if alike and rng.random() < 0.8 else choices)
        new = _match_case(entity, dialogue, dialogue.mentions[number])
        return _replace_mentions(dialogue, {number: new}, "misplaced")

    def make_unseen(self, dialogue: GraphDialogue, rng: random.Random) -> CorruptedDialogue | None:
        """The dialogue without the triple of one of its facts; flagged are the mentions that no other text names.

        None when nothing would be flagged.
        """
        facts = list(dialogue.stated_triples())
        rng.shuffle(facts)
        for hidden in facts:
            reduced = msgspec.structs.replace(dialogue, triples=tuple(t for t in dialogue.triples if t != hidden))
            visible = " ".join((linearise(reduced.triples), *reduced.history)).lower()
            flagged = [
                mention
                for mention in dialogue.mentions
                if mention.entity not in list_shown_entities(reduced)
                and mention.entity.lower() not in visible
                and dialogue.response[mention.start : mention.end].lower() not in visible
            ]
            # A mention that takes part in another fact too is not wrong there.
            if flagged and all(mention.triples == (hidden,) for mention in flagged):
                return CorruptedDialogue(reduced, "unseen", tuple((m.start, m.end) for m in flagged), dialogue)
        return None

    def _holds(self, triple: Triple, dialogue: GraphDialogue) -> bool:
        """Whether a triple is shown or in the graph, under any name of its relation, or its relation is symmetric."""
        return triple in dialogue.triples or any(
            fact in self._index or fact.predicate in self._index.symmetric for fact in list_originals(triple)
        )


def keep_clean(dialogue: GraphDialogue) -> CorruptedDialogue:
    """The dialogue unchanged, as a clean example."""
    return CorruptedDialogue(dialogue, "clean", (), dialogue)


def list_shown_entities(dialogue: GraphDialogue) -> set[str]:
    """The entities of the triples that are shown."""
    return {end for triple in dialogue.triples for end in (triple.subject, triple.object)}


def label_tokens(offsets: Sequence[Span], flagged: Sequence[Span]) -> list[int]:
    """The index into ``LABELS`` of each token by its character range; B begins a flagged range, I continues it.

    >>> [LABELS[i] for i in label_tokens([(0, 2), (3, 6), (7, 9), (9, 10)], ((3, 9),))]
    ['O', 'B', 'I', 'O']
    """
    token_labels, open_range = [], None
    for start, end in offsets:
        inside = next((span for span in flagged if start < span[1] and span[0] < end), None)
        token_labels.append(0 if inside is None else 2 if inside == open_range else 1)
        open_range = inside
    return token_labels


class _Replacement(NamedTuple):
    """The replacement of a mention."""

    entity: str
    text: str


def _replace_mentions(
    dialogue: GraphDialogue, new: Mapping[int, _Replacement], kind: CorruptionKind
) -> CorruptedDialogue:
    """The dialogue with the mentions of the numbers in ``new`` replaced."""
    response, end = "", 0
    mentions: list[EntityMention] = []
    flagged: list[Span] = []
    for number, mention in enumerate(dialogue.mentions):
        response += dialogue.response[end : mention.start]
        replacement, start = new.get(number), len(response)
        response += replacement.text if replacement else dialogue.response[mention.start : mention.end]
        end = mention.end
        if replacement:
            flagged.append((start, len(response)))
            mentions.append(EntityMention(start, len(response), replacement.entity))
        else:
            mentions.append(EntityMention(start, len(response), mention.entity, mention.triples))
    response += dialogue.response[end:]
    changed = msgspec.structs.replace(dialogue, response=response, mentions=tuple(mentions))
    return CorruptedDialogue(changed, kind, tuple(flagged), dialogue)


def _match_case(entity: str, dialogue: GraphDialogue, mention: EntityMention) -> _Replacement:
    """The replacement of a mention by ``entity``, lower-cased where the mention was."""
    old = dialogue.response[mention.start : mention.end]
    return _Replacement(entity, entity.lower() if old.islower() else entity)


def _exchange_entity(triple: Triple, old: str, new: str) -> Triple:
    subject, thing = (new if end == old else end for end in (triple.subject, triple.object))
    return Triple(subject, triple.predicate, thing)


def _is_named(entity: str, dialogue: GraphDialogue) -> bool:
    """Whether an entity's name occurs anywhere in what the critic reads."""
    return entity.lower() in " ".join((linearise(dialogue.triples), *dialogue.history, dialogue.response)).lower()


def _names_overlap(first: str, second: str) -> bool:
    """Whether a name is part of the other, so that both may mean the same."""
    return first.lower() in second.lower() or second.lower() in first.lower()
