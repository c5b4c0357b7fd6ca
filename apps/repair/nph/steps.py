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
from .lookup import add_other_ends, concern_speakers, find_supports, look_up_names, rate_repair
from .options import RefineOptions
from .repair import (
    MAX_CANDIDATES,
    MIN_CORRECT,
    Filling,
    Slot,
    make_exchange_slots,
    make_fillings,
    make_slots,
    make_supported_slots,
    merge_anchors,
)
from .support import Support
from .swaps import Swap, find_swaps
from .tokens import NameRange

VERIFIED_DRAFTS = 3
"""Repairs of a response that the critic reads."""
MAX_DRAFTS = 16
"""Repairs, the most probable first, of which those are chosen."""
NO_CANDIDATES = (
    "No entity of the flagged name's type is near what the dialogue is about; raise hops, or pass more triples."
)
UNREAD = (
    "What the response states about {} cannot be read: it names no relation of the graph with an entity at its other "
    "end, or denies, asks, supposes or compares. Name both in a plain statement, or take the most probable repair with "
    "veto=False."
)
UNSUPPORTED = (
    "Within two hops the graph has nothing else for what the response states about {}; pass more triples, or take the "
    "most probable repair with veto=False."
)
OF_SPEAKERS = "{}: what the response says about its speakers, of which the graph knows nothing."
TOO_WEAK = "The best candidate has probability {:.2f}, and min_probability is {}."
NAMES_UNCHANGED = "No other entities are more probable than the names that the response has."


class CritiqueResult(NamedTuple):
    """The critic's decision on a response."""

    mentions: tuple[FlaggedMention, ...]
    probability: float
    """Highest probability that a word is hallucinated."""
    triples: tuple[Triple, ...]
    """The triples that the critic read."""
    confirmed: tuple[tuple[int, int], ...] = ()
    """The ranges of the names that the graph confirms."""


class RepairResult(NamedTuple):
    """A response before and after repair."""

    before: CritiqueResult
    response: str
    changes: tuple[Change, ...] = ()
    after: CritiqueResult | None = None
    """None when nothing was changed."""
    message: str = ""
    """Why nothing was changed although a name is flagged."""
    concerns_speakers: bool = False
    """Whether the flagged names are all in what the response says about its speakers."""


class _Draft(NamedTuple):
    """A response with its mentions filled."""

    score: float
    """Score of the filling."""
    response: str
    changes: tuple[Change, ...]
    triples: tuple[Triple, ...]
    """What the critic reads: the paths of the changes, the triples that join new entities to others, and the rest."""

    @property
    def names(self) -> tuple[NameRange, ...]:
        """The new names."""
        return tuple(NameRange(change.new_start, change.new_end, change.chosen.entity) for change in self.changes)

    def move(self, mention: FlaggedMention) -> NameRange:
        """A name of the old response that stays, where it is in this one."""
        shift = sum(
            (change.new_end - change.new_start) - (change.end - change.start)
            for change in self.changes
            if change.end <= mention.start
        )
        return NameRange(mention.start + shift, mention.end + shift, mention.entity)


def critique_response(context: Context, options: Options, info: RoleInfo, *, look_up: bool) -> Steps[CritiqueResult]:
    """Have the critic read the response, and the other order of names that it is unsure about.

    ``look_up``: whether the graph confirms and contradicts names too (``look_up_names``).
    """
    result, _, _ = yield from _run_critic(context, options, info, look_up=look_up)
    return result


def repair_response(
    context: Context, settings: RefineOptions, options: Options, info: RoleInfo, *, has_spans: bool = False
) -> Steps[RepairResult]:
    """Have the critic read the response, and repair the names it flags.

    ``has_spans``: whether there is a role ``spans``, which types the names that the graph does not know.
    """
    before, swaps, tokens = yield from _run_critic(context, options, info, look_up=settings.veto)
    mentions = before.mentions
    if settings.mask_all:
        entities = (yield from find_entities(context)) if has_spans else ()
        mentions, swaps = find_all_mentions(context.response, tokens, mentions, context.links, entities), ()
    if not mentions:
        return RepairResult(before, context.response)
    reason = NO_CANDIDATES
    if settings.veto:
        mentions = mentions if settings.mask_all else add_other_ends(context, mentions)
        supports = find_supports(context, mentions)
        if concern_speakers(context, mentions, supports):
            message = OF_SPEAKERS.format(_quote(mentions))
            return RepairResult(before, context.response, message=message, concerns_speakers=True)
        slots = make_supported_slots(mentions, supports, keepable=settings.mask_all)
        reason = _explain(mentions, supports)
    else:
        slots = make_slots(context, mentions, type_aware=settings.type_aware, keepable=settings.mask_all)
        if settings.type_aware and has_spans:
            slots = yield from find_other_types(context, slots)
    exchanges = (make_exchange_slots(swap.first, swap.second, confirmed=swap.confirmed) for swap in swaps)
    slot_groups = [group for group in (*exchanges, slots) if group]
    if not slot_groups:
        return RepairResult(before, context.response, message=reason)
    answers = yield [_make_retrieve_call(context, group) for group in slot_groups]
    drafts, best_probability = _make_drafts(context, settings, mentions, slot_groups, answers)
    if not drafts:
        if settings.mask_all:
            reason = NAMES_UNCHANGED
        elif best_probability < settings.min_probability:
            reason = TOO_WEAK.format(best_probability, settings.min_probability)
        return RepairResult(before, context.response, message=reason)
    answers = yield [critic_call(draft.triples, context.history, draft.response) for draft in drafts]
    results = [
        _make_result(context, draft.response, draft.triples, flag_tokens(answer, info), options, look_up=settings.veto)
        for draft, answer in zip(drafts, answers, strict=True)
    ]
    pairs = list(zip(drafts, results, strict=True))
    draft, after = pairs[0] if settings.mask_all else max(pairs, key=lambda pair: _rate_draft(*pair))
    return RepairResult(before, draft.response, draft.changes, after)


def _explain(mentions: Sequence[FlaggedMention], supports: Sequence[Support]) -> str:
    """Say why no entity of the graph may replace the flagged names."""
    is_read = any(support.is_read for support in supports)
    names = [mention for mention, support in zip(mentions, supports, strict=True) if support.is_read == is_read]
    return (UNSUPPORTED if is_read else UNREAD).format(_quote(names))


def _quote(mentions: Sequence[FlaggedMention]) -> str:
    return " and ".join(f"“{mention.text}”" for mention in mentions)


def _make_result(
    context: Context,
    response: str,
    triples: tuple[Triple, ...],
    tokens: Sequence[FlaggedToken],
    options: Options,
    *,
    look_up: bool,
) -> CritiqueResult:
    links = context.links if response == context.response else context.graph.link(response)
    mentions = find_mentions(response, tokens, options.critic.threshold, links)
    confirmed: tuple[tuple[int, int], ...] = ()
    if look_up:
        mentions, confirmed = look_up_names(context, response, links, mentions)
    highest = max(
        (
            *(mention.probability for mention in mentions),
            *(
                token.probability
                for token in tokens
                if token.start < token.end and not any(start <= token.start < end for start, end in confirmed)
            ),
        ),
        default=0.0,
    )
    return CritiqueResult(mentions, highest, triples, confirmed)


def _run_critic(
    context: Context, options: Options, info: RoleInfo, *, look_up: bool
) -> Steps[tuple[CritiqueResult, tuple[Swap, ...], tuple[FlaggedToken, ...]]]:
    (answer,) = yield [critic_call(context.triples, context.history, context.response)]
    tokens = flag_tokens(answer, info)
    result = _make_result(context, context.response, context.triples, tokens, options, look_up=look_up)
    confirmed_starts = {start for start, _ in result.confirmed}
    swaps = yield from find_swaps(context, tokens, options.critic.threshold, info)
    swaps = tuple(swap for swap in swaps if confirmed_starts.isdisjoint((swap.first.start, swap.second.start)))
    swapped = {mention.start: mention for swap in swaps if swap.confirmed for mention in (swap.first, swap.second)}
    flagged = {mention.start: mention for mention in result.mentions}
    for start, mention in swapped.items():
        if start not in flagged or flagged[start].probability < mention.probability:
            flagged[start] = mention
    return (
        result._replace(
            mentions=tuple(flagged[start] for start in sorted(flagged)),
            probability=max((result.probability, *(mention.probability for mention in swapped.values()))),
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
    mentions: Sequence[FlaggedMention],
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
    made: dict[str, _Draft] = {}
    for filling, slots, candidates in ranked[: MAX_DRAFTS if settings.veto else None]:
        draft = _make_draft(context, settings, slots, filling, candidates)
        if draft is not None and draft.response != context.response:
            made.setdefault(draft.response, draft)
        if not settings.veto and len(made) == VERIFIED_DRAFTS:
            break
    drafts = list(made.values())
    if settings.veto:
        drafts = _choose_supported(context, drafts, mentions)
    return drafts[:VERIFIED_DRAFTS], best_probability


def _choose_supported(context: Context, drafts: Sequence[_Draft], mentions: Sequence[FlaggedMention]) -> list[_Draft]:
    """The drafts that the graph supports and that leave least unsupported, with the fewest changes.

    Where these change different names, the drafts that keep what the history names and that are joined to it most; none
    where that does not decide which of the names is wrong.
    """
    rated: list[tuple[tuple[int, ...], _Draft]] = []
    named_before = {entity for turn in context.turns for entity in turn}
    for draft in drafts:
        changed = {change.mention.start for change in draft.changes}
        remaining = [draft.move(mention) for mention in mentions if mention.start not in changed]
        rating = rate_repair(context, draft.response, draft.names, remaining)
        if rating is not None:
            unsupported, joining = rating
            unsaid = sum(change.mention.entity in named_before for change in draft.changes)
            rated.append(((unsupported, len(draft.changes), unsaid, -joining), draft))
    best = min((rating for rating, _ in rated), default=())
    chosen = [draft for rating, draft in rated if rating[:3] == best[:3]]
    if len({_changed_names(draft) for draft in chosen}) > 1:
        chosen = [draft for rating, draft in rated if rating == best]
    ways = sorted({_changed_names(draft) for draft in chosen})
    if len(ways) > 1 and named_before:
        return []
    # A dialogue that has named nothing is about what the response names first.
    return [draft for draft in chosen if _changed_names(draft) == ways[-1]]


def _changed_names(draft: _Draft) -> tuple[int, ...]:
    return tuple(change.mention.start for change in draft.changes)


def _make_draft(
    context: Context,
    settings: RefineOptions,
    slots: Sequence[Slot],
    filling: Filling,
    candidates: Sequence[Sequence[Retrieved]],
) -> _Draft | None:
    """The response with a filling; None if the graph has no path to one of its entities."""
    filled = [
        (slot, choice, slot_candidates)
        for slot, choice, slot_candidates in zip(slots, filling.choices, candidates, strict=True)
        if choice is not None
    ]
    response, edits = replace_names(
        context.response,
        [
            Replacement(slot.mention.start, slot.mention.end, choice.entity, slot.mention.entity)
            for slot, choice, _ in filled
        ],
    )
    changes = []
    for (slot, choice, slot_candidates), edit in zip(filled, edits, strict=True):
        mention, chosen = slot.mention, _make_alternative(context, slot, choice)
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
                runners_up=tuple(
                    _make_alternative(context, slot, candidate) for candidate in others[: settings.top - 1]
                ),
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


def _make_alternative(context: Context, slot: Slot, candidate: Retrieved) -> Alternative:
    path = slot.paths.get(candidate.entity) or find_path(
        context.graph, candidate.anchor, candidate.entity, context.response, context.hops
    )
    return Alternative(candidate.entity, candidate.anchor, candidate.score, candidate.probability, path)
