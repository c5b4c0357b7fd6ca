"""Finds a subject and an object that were exchanged, by having the critic read both orders.

An exchanged pair of names has the right names in it, and a critic that read both among the triples tends to accept it:
the paper's critic finds 38 % of such responses by itself (table 5, RoBERTa-Intrin). The critic compares two orders more
reliably than it scores one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from groundwire.engine.extend import find_overlaps
from groundwire.engine.metrics.critic import critic_call, flag_tokens, max_probabilities
from groundwire.engine.schema.explanations import FlaggedMention, FlaggedToken
from groundwire.metrics import Steps, sentences
from groundwire.runtime.protocol import RoleInfo

from ..kg import Linked
from ..wording import Replacement, replace_names
from .context import Context

MIN_PROBABILITY = 0.2
"""Probability, 0–1, that one of two names is hallucinated, from which the other order is tried."""
MAX_REMAINING = 0.8
"""Share of that probability that the other order may have at most to be preferred."""
MAX_PAIRS = 4
"""Pairs of names that are tried, at most: the pairs with the highest probability."""


class Swap(NamedTuple):
    """Two names that may have been exchanged, in the order of the response."""

    first: FlaggedMention
    second: FlaggedMention
    confirmed: bool
    """Whether the critic prefers the other order. If not, it flags one of the names, and the exchange may be why."""


class _Pair(NamedTuple):
    """Two names of one sentence that a triple joins."""

    first: Linked
    second: Linked
    probability: float
    """The higher of the probabilities that the two names are hallucinated."""


def find_swaps(
    context: Context, tokens: Sequence[FlaggedToken], threshold: float, info: RoleInfo
) -> Steps[tuple[Swap, ...]]:
    """Return the pairs of names that may have been exchanged.

    A swap is confirmed if the critic prefers the other order and flags neither name in it. Those are disjoint.
    """
    pairs = _find_pairs(context, tokens)
    if not pairs:
        return ()
    texts = []
    for pair in pairs:
        first = Replacement(pair.first.start, pair.first.end, pair.second.entity, pair.first.entity)
        second = Replacement(pair.second.start, pair.second.end, pair.first.entity, pair.second.entity)
        texts.append(replace_names(context.response, (first, second)))
    answers = yield [critic_call(context.triples, context.history, text) for text, _ in texts]
    swaps: list[Swap] = []
    confirmed_starts: set[int] = set()
    for pair, (_, edits), answer in zip(pairs, texts, answers, strict=True):
        swapped_tokens = flag_tokens(answer, info)
        remaining = max(max_probabilities(swapped_tokens, ((edit.new_start, edit.new_end) for edit in edits)))
        starts = {pair.first.start, pair.second.start}
        confirmed = remaining < min(threshold, MAX_REMAINING * pair.probability) and confirmed_starts.isdisjoint(starts)
        if confirmed or pair.probability >= threshold:
            confirmed_starts |= starts if confirmed else set()
            share = pair.probability / (pair.probability + remaining)
            swaps.append(
                Swap(_make_mention(context, pair.first, share), _make_mention(context, pair.second, share), confirmed)
            )
    return tuple(swaps)


def _find_pairs(context: Context, tokens: Sequence[FlaggedToken]) -> list[_Pair]:
    if len(context.links) < 2:
        return []
    pairs = []
    probabilities = max_probabilities(tokens, ((link.start, link.end) for link in context.links))
    probability_of = dict(zip(context.links, probabilities, strict=True))
    checked = sentences(context.response)
    links_of_sentences = find_overlaps(((sentence.start, sentence.end) for sentence in checked), context.links)
    for sentence, links in zip(checked, links_of_sentences, strict=True):
        for first, second in combinations([link for link in links if sentence.start <= link.start], 2):
            probability = max(probability_of[first], probability_of[second])
            if (
                probability >= MIN_PROBABILITY
                and first.entity != second.entity
                and context.graph.triples_between(first.entity, second.entity)
            ):
                pairs.append(_Pair(first, second, probability))
    return sorted(pairs, key=lambda pair: -pair.probability)[:MAX_PAIRS]


def _make_mention(context: Context, link: Linked, probability: float) -> FlaggedMention:
    return FlaggedMention(context.response[link.start : link.end], link.start, link.end, probability, link.entity)
