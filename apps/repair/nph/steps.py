"""Critique and repair as generators of model calls.

Source: Dziri et al. 2021: the critic flags, the retriever fills, and the critic reads the result (appendix E, with the
retrieved path among its triples). The critic reads a few repairs, and the best repair that it accepts is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from groundwire.engine import Options
from groundwire.engine.metrics.critic import critic_call, find_all_mentions, find_mentions, flag_tokens
from groundwire.engine.schema.explanations import FlaggedMention, FlaggedToken
from groundwire.metrics import Steps
from groundwire.runtime.calls import Retrieve, Retrieved
from groundwire.runtime.protocol import RoleInfo
from groundwire.runtime.triples import Triple

from ..records import Alternative, Change
from ..wording import Replacement, replace_names
from .context import Context, find_path
from .entity_types import find_entities, find_other_types
from .options import RefineOptions
from .repair import (
    MAX_CANDIDATES,
    MIN_CORRECT,
    Filling,
    Slot,
    make_exchange_slots,
    make_fillings,
    make_slots,
    merge_anchors,
)
from .swaps import Swap, find_swaps

VERIFIED_DRAFTS = 3
"""Repairs of a response that the critic reads."""
NO_CANDIDATES = (
    "No entity of the flagged name's type is near what the dialogue is about; raise hops, or pass more triples."
)
TOO_WEAK = "The best candidate has probability {:.2f}, and min_probability is {}."
NAMES_UNCHANGED = "No other entities are more probable than the names that the response has."
NOT_BETTER = "The critic doubts every repair as much as the response itself."


class CritiqueResult(NamedTuple):
    """The critic's decision on a response."""

    mentions: tuple[FlaggedMention, ...]
    probability: float
    """Highest probability that a word is hallucinated."""
    triples: tuple[Triple, ...]
    """The triples that the critic read."""


class RepairResult(NamedTuple):
    """A response before and after repair."""

    before: CritiqueResult
    response: str
    changes: tuple[Change, ...] = ()
    after: CritiqueResult | None = None
    """None when nothing was changed."""
    message: str = ""
    """Why nothing was changed although a name is flagged."""


class _Draft(NamedTuple):
    """A response with its mentions filled."""

    score: float
    """Score of the filling."""
    response: str
    changes: tuple[Change, ...]
    triples: tuple[Triple, ...]
    """What the critic reads: the paths of the changes, the triples that join new entities to others, and the rest."""


def critique_response(context: Context, options: Options, info: RoleInfo) -> Steps[CritiqueResult]:
    """Have the critic read the response, and the other order of names that it is unsure about."""
    result, _, _ = yield from _run_critic(context, options, info)
    return result


def repair_response(
    context: Context, settings: RefineOptions, options: Options, info: RoleInfo, *, has_spans: bool = False
) -> Steps[RepairResult]:
    """Have the critic read the response, and repair the names it flags.

    ``has_spans``: whether there is a role ``spans``, which types the names that the graph does not know.
    """
    before, swaps, tokens = yield from _run_critic(context, options, info)
    mentions = before.mentions
    if settings.mask_all:
        entities = (yield from find_entities(context)) if has_spans else ()
        mentions, swaps = find_all_mentions(context.response, tokens, mentions, context.links, entities), ()
    if not mentions:
        return RepairResult(before, context.response)
    slots = make_slots(context, mentions, type_aware=settings.type_aware, keepable=settings.mask_all)
    if settings.type_aware and has_spans:
        slots = yield from find_other_types(context, slots)
    exchanges = (make_exchange_slots(swap.first, swap.second, confirmed=swap.confirmed) for swap in swaps)
    slot_groups = [group for group in (*exchanges, slots) if group]
    if not slot_groups:
        return RepairResult(before, context.response, message=NO_CANDIDATES)
    answers = yield [_make_retrieve_call(context, group) for group in slot_groups]
    drafts, best_probability = _make_drafts(context, settings, slot_groups, answers)
    if not drafts:
        message = NAMES_UNCHANGED if settings.mask_all else TOO_WEAK.format(best_probability, settings.min_probability)
        return RepairResult(before, context.response, message=message)
    answers = yield [critic_call(draft.triples, context.history, draft.response) for draft in drafts]
    results = [
        _make_result(context, draft.response, draft.triples, flag_tokens(answer, info), options)
        for draft, answer in zip(drafts, answers, strict=True)
    ]
    pairs = list(zip(drafts, results, strict=True))
    draft, after = pairs[0] if settings.mask_all else max(pairs, key=lambda pair: _rate_draft(*pair))
    if settings.veto and after.mentions and after.probability >= before.probability:
        return RepairResult(before, context.response, message=NOT_BETTER)
    return RepairResult(before, draft.response, draft.changes, after)


def _make_result(
    context: Context, response: str, triples: tuple[Triple, ...], tokens: Sequence[FlaggedToken], options: Options
) -> CritiqueResult:
    links = context.links if response == context.response else context.graph.link(response)
    mentions = find_mentions(response, tokens, options.critic.threshold, links)
    highest = max((token.probability for token in tokens if token.start < token.end), default=0.0)
    return CritiqueResult(mentions, highest, triples)


def _run_critic(
    context: Context, options: Options, info: RoleInfo
) -> Steps[tuple[CritiqueResult, tuple[Swap, ...], tuple[FlaggedToken, ...]]]:
    (answer,) = yield [critic_call(context.triples, context.history, context.response)]
    tokens = flag_tokens(answer, info)
    result = _make_result(context, context.response, context.triples, tokens, options)
    swaps = yield from find_swaps(context, tokens, options.critic.threshold, info)
    swapped = {mention.start: mention for swap in swaps if swap.confirmed for mention in (swap.first, swap.second)}
    flagged = {mention.start: mention for mention in result.mentions}
    for start, mention in swapped.items():
        if start not in flagged or flagged[start].probability < mention.probability:
            flagged[start] = mention
    return (
        CritiqueResult(
            tuple(flagged[start] for start in sorted(flagged)),
            max((result.probability, *(mention.probability for mention in swapped.values()))),
            result.triples,
        ),
        swaps,
        tokens,
    )


def _rate_draft(draft: _Draft, after: CritiqueResult) -> tuple[bool, float]:
    """Sort key of a repair: whether the critic accepts it, then its log-probability by retriever and critic."""
    return not after.mentions, draft.score + math.log(max(MIN_CORRECT, 1.0 - after.probability))


def _make_retrieve_call(context: Context, slots: Sequence[Slot]) -> Retrieve:
    """The retriever reads the context's triples and the triples that join a candidate to its anchor."""
    candidates = tuple(slot.candidates for slot in slots)
    joining = (
        context.graph.triples_between(candidate.anchor, candidate.entity)
        for slot in slots
        for candidate in slot.candidates
    )
    return Retrieve(
        context.history,
        tuple(dict.fromkeys((*context.triples, *(triple for triples in joining for triple in triples)))),
        context.response,
        tuple((slot.mention.start, slot.mention.end) for slot in slots),
        candidates,
        top=MAX_CANDIDATES,
    )


def _make_drafts(
    context: Context,
    settings: RefineOptions,
    slot_groups: Sequence[tuple[Slot, ...]],
    answers: Sequence[Sequence[Sequence[Retrieved]]],
) -> tuple[list[_Draft], float]:
    """The responses of the best fillings, at most ``VERIFIED_DRAFTS``, and the best probability of a candidate."""
    ranked: list[tuple[Filling, tuple[Slot, ...], list[tuple[Retrieved, ...]]]] = []
    best_probability = 0.0
    for slots, answer in zip(slot_groups, answers, strict=True):
        candidates = [merge_anchors(context, slot, retrieved) for slot, retrieved in zip(slots, answer, strict=True)]
        best_probability = max(best_probability, *(best.probability for slot in candidates for best in slot[:1]))
        fillings = make_fillings(context, slots, candidates, settings.min_probability)
        ranked += [(filling, slots, candidates) for filling in fillings]
    ranked.sort(key=lambda item: -item[0].score)
    drafts: dict[str, _Draft] = {}
    for filling, slots, candidates in ranked:
        draft = _make_draft(context, settings, slots, filling, candidates)
        if draft is not None and draft.response != context.response:
            drafts.setdefault(draft.response, draft)
        if len(drafts) == VERIFIED_DRAFTS:
            break
    return list(drafts.values()), best_probability


def _make_draft(
    context: Context,
    settings: RefineOptions,
    slots: Sequence[Slot],
    filling: Filling,
    candidates: Sequence[Sequence[Retrieved]],
) -> _Draft | None:
    """The response with a filling; None if the graph has no path to one of its entities."""
    filled = [
        (slot.mention, choice, slot_candidates)
        for slot, choice, slot_candidates in zip(slots, filling.choices, candidates, strict=True)
        if choice is not None
    ]
    response, edits = replace_names(
        context.response,
        [Replacement(mention.start, mention.end, choice.entity, mention.entity) for mention, choice, _ in filled],
    )
    changes = []
    for (mention, choice, slot_candidates), edit in zip(filled, edits, strict=True):
        chosen = _make_alternative(context, choice)
        if not chosen.path:
            return None
        others = [candidate for candidate in slot_candidates if candidate.entity not in (choice.entity, mention.entity)]
        changes.append(
            Change(
                old=context.response[edit.start : edit.end],
                new=response[edit.new_start : edit.new_end],
                start=edit.start,
                end=edit.end,
                new_start=edit.new_start,
                new_end=edit.new_end,
                mention=mention,
                chosen=chosen,
                runners_up=tuple(_make_alternative(context, candidate) for candidate in others[: settings.top - 1]),
            )
        )
    paths = (triple for change in changes for triple in change.chosen.path)
    new_entities = [change.chosen.entity for change in changes]
    joining = (
        triple
        for index, entity in enumerate(new_entities)
        for other in (*context.nodes, *new_entities[:index])
        if other != entity
        for triple in context.graph.triples_between(entity, other)
    )
    return _Draft(filling.score, response, tuple(changes), tuple(dict.fromkeys((*paths, *joining, *context.triples))))


def _make_alternative(context: Context, candidate: Retrieved) -> Alternative:
    path = find_path(context.graph, candidate.anchor, candidate.entity, context.response, context.hops)
    return Alternative(candidate.entity, candidate.anchor, candidate.score, candidate.probability, path)
