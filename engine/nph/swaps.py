"""A subject and an object that changed places, found by asking the critic about both orders.

A fact told the wrong way round has the right names in it, and a critic that read every name among the triples tends to
let it pass: the paper's critic finds 38 % of such responses by itself (table 5, RoBERTa-Intrin). Which of two orders it
doubts more it knows better than how much it should doubt either.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from groundwire.engine.kg import Linked
from groundwire.engine.metrics.critic import ask
from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import FlaggedMention, FlaggedToken
from groundwire.engine.text.sentences import sentences
from groundwire.runtime.protocol import RoleInfo

from .context import Context
from .mentions import doubts, probability
from .wording import Replacement, put

SUSPECT = 0.2
"""Doubt in one of two names, 0–1, from which their order is asked about."""
BETTER = 0.8
"""Share of that doubt that may be left when they change places."""
PAIRS = 4
"""Pairs of names that are asked about at most, those doubted most."""


class Swap(NamedTuple):
    """Two names that fit better in each other's place, in the order of the response."""

    first: FlaggedMention
    second: FlaggedMention
    confirmed: bool
    """Whether the critic prefers the other order; otherwise it flags one of the two for a reason that may be this."""


class _Pair(NamedTuple):
    """Two names of one sentence that a triple joins."""

    first: Linked
    second: Linked
    doubt: float


def swaps(
    context: Context, tokens: Sequence[FlaggedToken], threshold: float, info: RoleInfo
) -> Steps[tuple[Swap, ...]]:
    """The pairs of names that may have changed places.

    Confirmed are those that the critic doubts less in the other order, and then no longer flags; these are disjoint.
    """
    pairs = _pairs(context, tokens)
    if not pairs:
        return ()
    texts = []
    for pair in pairs:
        first = Replacement(pair.first.start, pair.first.end, pair.second.entity, pair.first.entity)
        second = Replacement(pair.second.start, pair.second.end, pair.first.entity, pair.second.entity)
        texts.append(put(context.response, (first, second)))
    answers = yield [ask(context.triples, context.history, text) for text, _ in texts]
    found: list[Swap] = []
    taken: set[int] = set()
    for pair, (_, edits), answer in zip(pairs, texts, answers, strict=True):
        other = doubts(answer, info)
        left = max(probability(other, edit.new_start, edit.new_end) for edit in edits)
        places = {pair.first.start, pair.second.start}
        confirmed = left < min(threshold, BETTER * pair.doubt) and taken.isdisjoint(places)
        if confirmed or pair.doubt >= threshold:
            taken |= places if confirmed else set()
            share = pair.doubt / (pair.doubt + left)
            found.append(Swap(_mention(context, pair.first, share), _mention(context, pair.second, share), confirmed))
    return tuple(found)


def _pairs(context: Context, tokens: Sequence[FlaggedToken]) -> list[_Pair]:
    parts = sentences(context.response) if len(context.links) > 1 else ()
    found = []
    for part in parts:
        within = [link for link in context.links if part.start <= link.start < part.end]
        for first, second in combinations(within, 2):
            doubt = max(probability(tokens, link.start, link.end) for link in (first, second))
            joined = first.entity != second.entity and context.graph.triples_between(first.entity, second.entity)
            if doubt >= SUSPECT and joined:
                found.append(_Pair(first, second, doubt))
    return sorted(found, key=lambda pair: -pair.doubt)[:PAIRS]


def _mention(context: Context, link: Linked, share: float) -> FlaggedMention:
    return FlaggedMention(context.response[link.start : link.end], link.start, link.end, share, link.entity)
