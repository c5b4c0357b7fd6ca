"""Looks up in the graph what a response states about its names: who is confirmed, contradicted, or may replace whom."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from groundwire.engine.schema.explanations import FlaggedMention
from groundwire.runtime.texts.characters import starts_lower

from ..kg import Linked
from .context import Context
from .speakers import speaks_of_speakers
from .statements import Text
from .support import Support, find_support, list_families, may_be_placed
from .tokens import NameRange, names_relation

_NAME_AT_END = re.compile(r"(?:\b[A-Z][\w'’.-]*\s?)+$")
CONTRADICTED = 1.0
"""Probability of a name that the graph contradicts to be hallucinated."""


def find_supports(context: Context, mentions: Sequence[FlaggedMention]) -> tuple[Support, ...]:
    """Return what the graph has for each of ``mentions``, names of the response.

    Another of them may be at the other end of what is stated: it may stay, and it may be replaced.
    """
    text = _read(context, context.response, context.links, mentions)
    numbers = {name.start: number for number, name in enumerate(text.names)}
    replaced = [numbers[mention.start] for mention in mentions if mention.start in numbers]

    def find(number: int) -> Support:
        remaining = find_support(context.graph, text, number, context.turns)
        others = [other for other in replaced if other != number]
        if not others:
            return remaining
        alone = find_support(context.graph, text, number, context.turns, replaced=others)
        return remaining._replace(entities={**alone.entities, **remaining.entities})

    return tuple(
        find(numbers[mention.start]) if mention.start in numbers else Support(False, {}) for mention in mentions
    )


def look_up_names(
    context: Context, response: str, links: Sequence[Linked], mentions: Sequence[FlaggedMention]
) -> tuple[tuple[FlaggedMention, ...], tuple[tuple[int, int], ...]]:
    """Return the flagged names after a look into the graph, and the ranges of the names that it confirms.

    A flagged name that a triple supports as stated is not flagged. A name of the graph that no triple supports, where
    the graph has the stated relation of what is at its other end, is flagged unless the history names it; of a sentence
    without a flagged name the last. A clause that denies, asks, supposes or compares is not looked up.
    """
    mentions = [_trim(mention) for mention in mentions]
    text = _read(context, response, links, mentions)
    supports = [find_support(context.graph, text, number, context.turns) for number in range(len(text.names))]
    confirmed = tuple(
        (name.start, name.end) for name, support in zip(text.names, supports, strict=True) if support.own_path
    )
    flagged = {mention.start: mention for mention in mentions}
    for mention in mentions:
        if (mention.start, mention.end) in confirmed:
            del flagged[mention.start]
    busy = {text.sentence(number) for number, name in enumerate(text.names) if name.start in flagged}
    numbers = _list_contradicted(context, text, supports) or _list_said(context, text, supports)
    for number in reversed(numbers):
        if text.sentence(number) not in busy:
            busy.add(text.sentence(number))
            mention = _make_mention(text, number)
            flagged[mention.start] = mention
    return tuple(flagged[start] for start in sorted(flagged)), confirmed


def add_other_ends(context: Context, mentions: Sequence[FlaggedMention]) -> tuple[FlaggedMention, ...]:
    """Return the flagged names of the response with those that may be wrong in their place: the contradicted names at
    the other end of what is stated."""
    text = _read(context, context.response, context.links, mentions)
    supports = [find_support(context.graph, text, number, context.turns) for number in range(len(text.names))]
    starts = {mention.start for mention in mentions}
    busy = {text.sentence(number) for number, name in enumerate(text.names) if name.start in starts}
    others = (
        _make_mention(text, number)
        for number in _list_contradicted(context, text, supports)
        if text.names[number].start not in starts and text.sentence(number) in busy
    )
    return tuple(sorted((*mentions, *others), key=lambda mention: mention.start))


def concern_speakers(context: Context, mentions: Sequence[FlaggedMention], supports: Sequence[Support]) -> bool:
    """Whether all flagged names are in what the response says about its speakers, of which the graph knows nothing.

    ``supports`` are what the graph has for each of ``mentions``. Flagged words without a capital or a digit are no name
    and count for nothing.
    """
    text = _read(context, context.response, context.links, mentions)
    numbers = {name.start: number for number, name in enumerate(text.names)}
    names = [
        (mention, numbers[mention.start], support)
        for mention, support in zip(mentions, supports, strict=True)
        if mention.start in numbers and (mention.entity is not None or mention.text != mention.text.lower())
    ]
    return bool(names) and all(
        mention.entity is None
        and not support.contradicted
        and speaks_of_speakers(text, number)
        and not may_be_placed(context.graph, text, number, context.turns)
        for mention, number, support in names
    )


def _list_contradicted(context: Context, text: Text, supports: Sequence[Support]) -> list[int]:
    """The names of the graph that it contradicts, without those that the history names."""
    named_before = {entity for turn in context.turns for entity in turn}
    return [
        number
        for number, (name, support) in enumerate(zip(text.names, supports, strict=True))
        if support.contradicted and name.entity is not None and name.entity not in named_before
    ]


def _list_said(context: Context, text: Text, supports: Sequence[Support]) -> list[int]:
    """Of two contradicted names that the history names, those that its last turn does not."""
    last_turn = next(filter(None, context.turns), ())
    contradicted = [number for number, support in enumerate(supports) if support.contradicted]
    unasked = [number for number in contradicted if text.names[number].entity not in last_turn]
    return unasked if len(contradicted) > 1 else []


def _trim(mention: FlaggedMention) -> FlaggedMention:
    """The name at the end of flagged words: "Busan" of "light of day in Busan"."""
    name = _NAME_AT_END.search(mention.text)
    if mention.entity is not None or not starts_lower(mention.text) or name is None:
        return mention
    return msgspec.structs.replace(mention, text=name[0], start=mention.start + name.start())


def _make_mention(text: Text, number: int) -> FlaggedMention:
    name = text.names[number]
    return FlaggedMention(text.name_text(number), name.start, name.end, CONTRADICTED, name.entity)


def rate_repair(
    context: Context, response: str, changes: Sequence[NameRange], remaining: Sequence[NameRange]
) -> tuple[int, int] | None:
    """Rate a repaired response; None if the graph does not have each new name as the response states it.

    Args:
        context: The response before repair, in its dialogue.
        response: The repaired response.
        changes: The new names.
        remaining: The flagged names that stay.

    Returns:
        How many of the ``remaining`` the graph still does not support, and how many names of the response a triple
        joins to names of the last turn that has any.
    """
    links = context.graph.link(response)
    # An edit may have an article too.
    changes = [
        next((NameRange(link.start, link.end, link.entity) for link in links if _is_same(link, change)), change)
        for change in changes
    ]
    text = _make_text(context, response, [*changes, *_list_others(links, [*changes, *remaining]), *remaining])
    wanted = {*changes, *remaining}
    supports = {
        name: find_support(context.graph, text, number, context.turns)
        for number, name in enumerate(text.names)
        if name in wanted
    }
    # A name of which nothing is read may be the other end of what is read of another.
    ends = {
        end for support in supports.values() for triple in support.own_path for end in (triple.subject, triple.object)
    }
    confirmed = {
        name: bool(support.own_path) or (not support.is_read and name.entity in ends and text.states(name.start))
        for name, support in supports.items()
    }
    if not all(confirmed[name] for name in changes):
        return None
    turn = next(filter(None, context.turns), ())
    entities = {name.entity for name in text.names if name.entity is not None}
    joining = sum(
        bool(context.graph.triples_between(entity, other)) for entity in entities for other in turn if other != entity
    )
    return sum(not confirmed[name] for name in remaining if name in confirmed), joining


def _read(context: Context, response: str, links: Sequence[Linked], mentions: Sequence[FlaggedMention]) -> Text:
    return _make_text(context, response, [*mentions, *_list_others(links, mentions)])


def _make_text(context: Context, response: str, names: Sequence[NameRange | FlaggedMention | Linked]) -> Text:
    distinct = {
        NameRange(name.start, name.end, name.entity)
        for name in names
        if name.entity is not None or not names_relation(response[name.start : name.end].lower())
    }
    return Text(response, sorted(distinct, key=lambda name: name.start), list_families(context.graph))


def _is_same(link: Linked, change: NameRange) -> bool:
    return link.entity == change.entity and link.start < change.end and change.start < link.end


def _list_others(links: Sequence[Linked], names: Sequence[NameRange | FlaggedMention]) -> list[Linked]:
    """The links that overlap none of ``names``."""
    return [link for link in links if not any(name.start < link.end and link.start < name.end for name in names)]
