"""Makes the entity retriever's examples: calls from dialogues about a graph, with some of their entities masked.

In service a masked name is a wrong name and keeps its number of tokens. So in training another entity is put at
the mention before it is masked, and the length of the mask reveals nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from groundwire.runtime.calls import Candidate, Retrieve
from groundwire.runtime.triples import Triple, upright

from ..common.sentence_pieces import EntityMention
from ..common.triple_index import TripleIndex
from .templates import GraphDialogue


class RetrievalExample(NamedTuple):
    """A call and its true answers."""

    call: Retrieve
    truth: tuple[str, ...]
    """The true entity of each mention."""
    gold: tuple[int, ...]
    """The number of the candidate that the response states, by mention."""


class RetrievalExamples:
    """Makes calls from dialogues."""

    def __init__(self, index: TripleIndex, *, sans: int = 12, all_mentions: bool = False) -> None:
        """``index`` is the graph that further neighbours come from; ``sans`` bounds the candidates of a mention."""
        self._index = index
        self._sans = sans
        self._all = all_mentions

    def make(self, dialogue: GraphDialogue, rng: random.Random) -> RetrievalExample | None:
        """Mask some of the stated entities of a response; None when no triple holds any of them."""
        stated = select_answerable(dialogue)
        if not stated:
            return None
        count = len(stated) if self._all else rng.choice((1, 1, 1, 2, len(stated)))
        chosen = sorted(rng.sample(stated, min(count, len(stated))), key=lambda mention: mention.start)
        return self.mask_mentions(
            dialogue, chosen, [self._draw_stranger(dialogue, mention, rng) for mention in chosen], rng
        )

    def mask_mentions(
        self, dialogue: GraphDialogue, chosen: Sequence[EntityMention], names: Sequence[str], rng: random.Random
    ) -> RetrievalExample:
        """The call that asks for the mentions ``chosen``, with ``names`` in their places."""
        context = self._list_context(dialogue, chosen)
        triples = list(dict.fromkeys(map(upright, dialogue.triples)))
        drawn = set(triples)
        for mention in chosen:
            for anchor in _list_anchors(mention, context):
                triples += [t for t in self._draw_more(anchor, mention, rng) if t not in drawn]
                drawn.update(triples)
        candidates, gold = [], []
        for mention in chosen:
            of_mention = self._draw_candidates(mention, context, triples, rng)
            candidates.append(tuple(of_mention))
            # Any triple that holds the entity and a node of the context is right.
            gold.append(next(index for index, candidate in enumerate(of_mention) if candidate.entity == mention.entity))
        response, spans = _insert_names(dialogue.response, chosen, names)
        call = Retrieve(dialogue.history, tuple(triples), response, spans, tuple(candidates))
        return RetrievalExample(call, tuple(mention.entity for mention in chosen), tuple(gold))

    def _list_context(self, dialogue: GraphDialogue, chosen: Sequence[EntityMention]) -> tuple[str, ...]:
        """The entities of the triples that the history or the rest of the response names."""
        history = " ".join(dialogue.history).casefold()
        named = dict.fromkeys(mention.entity for mention in dialogue.mentions if mention not in chosen)
        ends = dict.fromkeys(end for triple in dialogue.triples for end in (triple.subject, triple.object))
        return tuple(end for end in ends if end in named or end.casefold() in history)

    def _draw_candidates(
        self, mention: EntityMention, context: Sequence[str], triples: Sequence[Triple], rng: random.Random
    ) -> list[Candidate]:
        anchors = set(_list_anchors(mention, context))
        candidates = dict.fromkeys(
            Candidate(anchor, entity)
            for triple in triples
            for anchor, entity in ((triple.subject, triple.object), (triple.object, triple.subject))
            if anchor in anchors
        )
        true = [candidate for candidate in candidates if candidate.entity == mention.entity]
        wrong = [candidate for candidate in candidates if candidate.entity != mention.entity]
        chosen = true[:2] + rng.sample(wrong, min(len(wrong), max(1, self._sans - len(true[:2]))))
        rng.shuffle(chosen)
        return chosen

    def _draw_more(self, anchor: str, mention: EntityMention, rng: random.Random) -> list[Triple]:
        """Draw other triples of an anchor; none makes another entity right."""
        parts = {(triple.predicate, triple.object == mention.entity) for triple in mention.triples}
        near = list(self._index.triples_of(anchor))
        near = rng.sample(near, min(len(near), self._sans))
        return [
            triple
            for triple in near
            if (triple.predicate, triple.subject == anchor) not in parts
            and mention.entity not in (triple.subject, triple.object)
        ][: rng.randrange(self._sans // 2 + 1)]

    def _draw_stranger(self, dialogue: GraphDialogue, mention: EntityMention, rng: random.Random) -> str:
        """Draw another name, mostly of the same type, as a hallucination would be."""
        peer = self._index.draw_peer(mention.entity, {mention.entity}, rng)
        triple = rng.choice(dialogue.triples)
        return peer if peer is not None and rng.random() < 0.8 else rng.choice((triple.subject, triple.object))


def select_answerable(dialogue: GraphDialogue) -> list[EntityMention]:
    """The mentions whose entity a triple holds that the response states."""
    return [
        mention
        for mention in dialogue.mentions
        if any(mention.entity in (triple.subject, triple.object) for triple in mention.triples)
    ]


def _list_anchors(mention: EntityMention, context: Sequence[str]) -> tuple[str, ...]:
    """The context nodes, and the other end of the stated triple if it is none of them."""
    pairs = [(triple.subject, triple.object) for triple in mention.triples]
    ends = {end for pair in pairs if mention.entity in pair for end in pair} - {mention.entity}
    nodes = tuple(node for node in context if node != mention.entity)
    return nodes if ends & set(nodes) else (*nodes, *sorted(ends)[:1])


def _insert_names(
    response: str, chosen: Sequence[EntityMention], names: Sequence[str]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The response with other names at the mentions, and their character ranges."""
    text, end, spans = "", 0, []
    for mention, name in zip(chosen, names, strict=True):
        text += response[end : mention.start]
        spans.append((len(text), len(text) + len(name)))
        text += name
        end = mention.end
    return text + response[end:], tuple(spans)
