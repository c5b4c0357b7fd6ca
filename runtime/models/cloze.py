"""The text an entity retriever reads: facts and dialogue in front, the response with its mentions masked behind.

Training makes its inputs here too, so that a model sees in service what it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from groundwire.runtime.calls import Candidate, Read, Retrieve
from groundwire.runtime.errors import InvalidRequest, TooLong
from groundwire.runtime.tokenization import TextEncoder, Window
from groundwire.runtime.triples import SEPARATOR, Triple, linearise, sentence, upright

PATHS = 2
"""Triples that an entity is remembered with at most."""

LONGEST = 32
"""Characters of a token at most, on average: text beyond that is not tokenized to see whether it fits."""

Joins = Mapping[frozenset[str], Sequence[Triple]]


class Cloze(NamedTuple):
    """A call as model inputs."""

    window: Window
    """Facts and history, then the response; every word piece of a mention is the mask."""
    mentions: tuple[tuple[int, ...], ...]
    """For each mention the places of its word pieces in ``window``."""
    ids: list[int]
    """The same ids without the facts and with each mention as one mask, for the causal model."""
    slots: tuple[int, ...]
    """Where the mentions stand in ``ids``."""
    read: Read
    """How much of triples and history is in the window."""


def cloze(encoder: TextEncoder, call: Retrieve, mask_id: int, turns: int) -> Cloze:
    """Mask the mentions of a call and put what it rests on in front, as far as the window goes.

    The response is never cut, and the last turn is always read. Then come triples in their order, which is nearest
    first, then earlier turns, the newest first; each is read whole or not at all. InvalidRequest for mentions that
    overlap, leave the response or hold no words, or lack candidates; TooLong for a response and last turn beyond the
    window.
    """
    check(call)
    facts, history, read = _front(encoder, call, turns)
    told = SEPARATOR.join(facts)
    window = encoder.pair(SEPARATOR.join((told, *history) if told else history), call.response)
    owner = [
        _mention(call.mentions, *span) if sequence == 1 else None
        for span, sequence in zip(window.offsets, window.sequence_ids, strict=True)
    ]
    places: list[list[int]] = [[] for _ in call.mentions]
    for place, mention in enumerate(owner):
        if mention is not None:
            places[mention].append(place)
    for (start, end), own in zip(call.mentions, places, strict=True):
        if not own:
            raise InvalidRequest(
                f"The mention {start}–{end} ({call.response[start:end]!r}) holds no word of its own to replace; "
                "give the range of an entity's name."
            )
    masked = [token if mention is None else mask_id for token, mention in zip(window.ids, owner, strict=True)]
    behind = len(told) + len(SEPARATOR) if told else 0
    kept = [
        place
        for place, mention in enumerate(owner)
        if not (window.sequence_ids[place] == 0 and window.offsets[place][0] < behind)
        and (mention is None or place == places[mention][0])
    ]
    first = {place: number for number, place in enumerate(kept)}
    return Cloze(
        window._replace(ids=masked),
        tuple(map(tuple, places)),
        [masked[place] for place in kept],
        tuple(first[own[0]] for own in places),
        read,
    )


def check(call: Retrieve) -> None:
    """InvalidRequest when the mentions or candidates of a call make no sense."""
    length = len(call.response)
    if not call.mentions:
        raise InvalidRequest("No mention is given; give the character range of at least one.")
    for start, end in call.mentions:
        if not 0 <= start < end <= length:
            raise InvalidRequest(
                f"The mention {start}–{end} is no range of a response of {length} characters; "
                "give 0 <= start < end <= length."
            )
    for (start, end), (after, last) in pairwise(call.mentions):
        if after < end:
            raise InvalidRequest(
                f"The mentions {start}–{end} and {after}–{last} overlap or are out of order; "
                "give disjoint ranges from left to right."
            )
    if len(call.candidates) != len(call.mentions):
        raise InvalidRequest(
            f"{len(call.mentions)} mentions came with candidates for {len(call.candidates)}; give a set for each."
        )
    for (start, end), candidates in zip(call.mentions, call.candidates, strict=True):
        if not candidates:
            raise InvalidRequest(
                f"The mention {start}–{end} ({call.response[start:end]!r}) has no candidate; give at least one entity "
                "of the graph, from a wider neighbourhood if this one is empty."
            )


def joins(triples: Sequence[Triple]) -> Joins:
    """Triples by the two entities that they join, in their order."""
    found: dict[frozenset[str], list[Triple]] = {}
    for triple in dict.fromkeys(map(upright, triples)):
        found.setdefault(frozenset((triple.subject, triple.object)), []).append(triple)
    return found


def remembered(candidate: Candidate, joined: Joins, *, paths: bool) -> str:
    """The text that a candidate is remembered by: its name and, with ``paths``, what joins it to its anchor."""
    between = joined.get(frozenset((candidate.anchor, candidate.entity)), ()) if paths else ()
    return SEPARATOR.join([candidate.entity, *([linearise(between[:PATHS])] if between else [])])


def _mention(mentions: Sequence[tuple[int, int]], start: int, end: int) -> int | None:
    """The first mention that the characters ``start`` to ``end`` touch."""
    return next((index for index, (a, b) in enumerate(mentions) if start < b and end > a), None)


def _front(encoder: TextEncoder, call: Retrieve, turns: int) -> tuple[list[str], list[str], Read]:
    """The facts and the turns that stand before the response, and how much of what was given that is."""
    facts = list(dict.fromkeys(map(sentence, call.triples)))
    history = [turn for turn in call.history if turn.strip()]
    total = sum(map(len, (*facts, *history)))
    last, earlier = history[-1:], history[-turns:-1] if turns > 1 else []
    if not _fits(encoder, [*facts, *earlier, *last], call.response):
        # What may be read, best first; a joint of its own behind each.
        room = encoder.max_tokens - len(encoder.pair(SEPARATOR.join(last), call.response).ids)
        joint = len(encoder.plain(SEPARATOR).ids)
        fits = 0
        for part in (*facts, *reversed(earlier)):
            room -= len(encoder.plain(part).ids) + joint
            if room < 0:
                break
            fits += 1
        earlier = earlier[len(earlier) - max(0, fits - len(facts)) :]
        facts = facts[:fits]
    turns_read = [*earlier, *last]
    return facts, turns_read, Read(1, sum(map(len, (*facts, *turns_read))), total)


def _fits(encoder: TextEncoder, parts: Sequence[str], response: str) -> bool:
    if sum(map(len, parts)) > encoder.max_tokens * LONGEST:
        return False
    try:
        encoder.pair(SEPARATOR.join(parts), response)
    except TooLong:
        return False
    return True
