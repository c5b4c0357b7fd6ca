"""Critique and repair as generators of model calls.

Source: Dziri et al. 2021: the critic flags, the retriever fills, and the critic reads the result (appendix E, with the
path that was retrieved among its triples). Of a few ways to fill the mentions one that the critic accepts is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from groundwire.engine.metrics.critic import ask
from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.explanations import FlaggedMention, FlaggedToken
from groundwire.engine.schema.options import Options
from groundwire.runtime.calls import Retrieve, Retrieved
from groundwire.runtime.protocol import RoleInfo
from groundwire.runtime.triples import Triple

from .context import Context, joining
from .mentions import doubts, mentions
from .records import Alternative, Change
from .repair import CANDIDATES, EPSILON, Filling, Slot, exchange, fillings, pooled, slots
from .swaps import Swap, swaps
from .wording import Replacement, put

VERIFIED = 3
"""Ways to fill the mentions that the critic reads."""


class RefineOptions(Record, frozen=True):
    """How a response is repaired."""

    hops: int = 1
    """How many triples a candidate may lie from a context node."""
    top: int = 5
    """Candidates reported for a mention: the chosen one and its runners-up."""
    type_aware: bool = True
    """Prefer candidates that play a part in the graph that what they replace plays too (the paper's appendix G); others
    count 0.3 of their probability, and a number only gives way to a number."""
    min_probability: float = 0.05
    """Among the candidates of its mention, 0–1, from which one is good enough to be shown to the critic."""


class Judgement(NamedTuple):
    """What the critic says of a response."""

    mentions: tuple[FlaggedMention, ...]
    probability: float
    """Of the word it doubts most."""
    triples: tuple[Triple, ...]
    """What it was shown."""


class Repair(NamedTuple):
    """What became of a response."""

    before: Judgement
    response: str
    changes: tuple[Change, ...] = ()
    after: Judgement | None = None
    """None when nothing was changed."""
    message: str = ""
    """Why nothing was changed although something is flagged."""


class _Draft(NamedTuple):
    """A response with its mentions filled."""

    score: float
    """The filling's."""
    response: str
    changes: tuple[Change, ...]
    triples: tuple[Triple, ...]
    """What the critic is shown: the paths of the changes, what joins the new entities to the others, and the rest."""


def critique(context: Context, options: Options, info: RoleInfo) -> Steps[Judgement]:
    """The critic on the response, and on the other order of names that it half doubts."""
    judged, _ = yield from _criticised(context, options, info)
    return judged


def refine(context: Context, settings: RefineOptions, options: Options, info: RoleInfo) -> Steps[Repair]:
    """The critic on the response, and the repair of what it flags."""
    before, swapped = yield from _criticised(context, options, info)
    if not before.mentions:
        return Repair(before, context.response)
    filled = slots(context, before.mentions, type_aware=settings.type_aware)
    turned = (exchange(swap.first, swap.second, confirmed=swap.confirmed) for swap in swapped)
    offers = [offer for offer in (*turned, filled) if offer]
    if not offers:
        return Repair(before, context.response, message=NOTHING)
    answers = yield [_question(context, offer) for offer in offers]
    drafts, best = _drafts(context, settings, offers, answers)
    if not drafts:
        return Repair(before, context.response, message=TOO_WEAK.format(best, settings.min_probability))
    verdicts = yield [ask(draft.triples, context.history, draft.response) for draft in drafts]
    judged = [
        _judged(context, draft.response, draft.triples, doubts(verdict, info), options)
        for draft, verdict in zip(drafts, verdicts, strict=True)
    ]
    draft, after = max(zip(drafts, judged, strict=True), key=_worth)
    if after.mentions and after.probability >= before.probability:
        return Repair(before, context.response, message=NO_BETTER)
    return Repair(before, draft.response, draft.changes, after)


NOTHING = (
    "No entity of the flagged mention's kind is near what the dialogue is about; raise hops, or give more triples."
)
TOO_WEAK = "The best candidate has probability {:.2f}, and min_probability is {}."
NO_BETTER = "The critic doubts every repair as much as the response itself."


def _judged(
    context: Context, response: str, triples: tuple[Triple, ...], tokens: Sequence[FlaggedToken], options: Options
) -> Judgement:
    links = context.links if response == context.response else context.graph.link(response)
    found = mentions(response, tokens, options.critic.threshold, links)
    worst = max((token.probability for token in tokens if token.start < token.end), default=0.0)
    return Judgement(found, worst, triples)


def _criticised(context: Context, options: Options, info: RoleInfo) -> Steps[tuple[Judgement, tuple[Swap, ...]]]:
    (answer,) = yield [ask(context.triples, context.history, context.response)]
    tokens = doubts(answer, info)
    judged = _judged(context, context.response, context.triples, tokens, options)
    found = yield from swaps(context, tokens, options.critic.threshold, info)
    both = {one.start: one for swap in found if swap.confirmed for one in (swap.first, swap.second)}
    flagged = {mention.start: mention for mention in judged.mentions}
    for start, mention in both.items():
        if start not in flagged or flagged[start].probability < mention.probability:
            flagged[start] = mention
    return Judgement(
        tuple(flagged[start] for start in sorted(flagged)),
        max((judged.probability, *(mention.probability for mention in both.values()))),
        judged.triples,
    ), found


def _worth(one: tuple[_Draft, Judgement]) -> tuple[bool, float]:
    """What a repair is worth: first that the critic accepts it, then how probable retriever and critic find it."""
    draft, after = one
    return not after.mentions, draft.score + math.log(max(EPSILON, 1.0 - after.probability))


def _question(context: Context, offer: Sequence[Slot]) -> Retrieve:
    """What the retriever is asked: the facts that are shown, and those that join a candidate to its anchor."""
    candidates = tuple(slot.candidates for slot in offer)
    joins = (context.graph.triples_between(one.anchor, one.entity) for few in candidates for one in few)
    return Retrieve(
        context.history,
        tuple(dict.fromkeys((*context.triples, *(triple for few in joins for triple in few)))),
        context.response,
        tuple((slot.mention.start, slot.mention.end) for slot in offer),
        candidates,
        top=CANDIDATES,
    )


def _drafts(
    context: Context,
    settings: RefineOptions,
    offers: Sequence[tuple[Slot, ...]],
    answers: Sequence[Sequence[Sequence[Retrieved]]],
) -> tuple[list[_Draft], float]:
    """The best fillings of all offers as responses, at most ``VERIFIED``, and the best probability of a candidate."""
    found: list[tuple[Filling, tuple[Slot, ...], list[tuple[Retrieved, ...]]]] = []
    best = 0.0
    for offer, answer in zip(offers, answers, strict=True):
        few = [pooled(context, slot, each) for slot, each in zip(offer, answer, strict=True)]
        best = max(best, *(one.probability for each in few for one in each[:1]))
        found += [(one, offer, few) for one in fillings(context, offer, few, settings.min_probability)]
    found.sort(key=lambda one: -one[0].score)
    drafts: dict[str, _Draft] = {}
    for filling, offer, few in found:
        draft = _written(context, settings, offer, filling, few)
        if draft is not None and draft.response != context.response:
            drafts.setdefault(draft.response, draft)
        if len(drafts) == VERIFIED:
            break
    return list(drafts.values()), best


def _written(
    context: Context,
    settings: RefineOptions,
    offer: Sequence[Slot],
    filling: Filling,
    found: Sequence[Sequence[Retrieved]],
) -> _Draft | None:
    """The response with a filling; None when the graph has no path behind one of its entities."""
    chosen = [
        (slot.mention, choice, few)
        for slot, choice, few in zip(offer, filling.choices, found, strict=True)
        if choice is not None
    ]
    response, edits = put(
        context.response,
        [Replacement(mention.start, mention.end, choice.entity, mention.entity) for mention, choice, _ in chosen],
    )
    changes = []
    for (mention, choice, few), edit in zip(chosen, edits, strict=True):
        taken = _alternative(context, choice)
        if not taken.path:
            return None
        others = [one for one in few if one.entity not in (choice.entity, mention.entity)][: settings.top - 1]
        changes.append(
            Change(
                old=context.response[edit.start : edit.end],
                new=response[edit.new_start : edit.new_end],
                start=edit.start,
                end=edit.end,
                new_start=edit.new_start,
                new_end=edit.new_end,
                mention=mention,
                chosen=taken,
                runners_up=tuple(_alternative(context, one) for one in others),
            )
        )
    paths = (triple for change in changes for triple in change.chosen.path)
    news = [change.chosen.entity for change in changes]
    joins = (
        triple
        for place, new in enumerate(news)
        for other in (*context.nodes, *news[:place])
        if other != new
        for triple in context.graph.triples_between(new, other)
    )
    return _Draft(filling.score, response, tuple(changes), tuple(dict.fromkeys((*paths, *joins, *context.triples))))


def _alternative(context: Context, one: Retrieved) -> Alternative:
    path = joining(context.graph, one.anchor, one.entity, context.response, context.hops)
    return Alternative(one.entity, one.anchor, one.score, one.probability, path)
