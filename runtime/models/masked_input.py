"""The text an entity retriever reads: facts and dialogue, then the response with its mentions masked.

Training builds its inputs here too, so that a model is used on the inputs it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..calls import Candidate, Read, Retrieve
from ..errors import InvalidRequest, TooLong
from ..texts.tokenization import TextEncoder, Window
from ..triples import SEPARATOR, Triple, linearise, sentence, upright

MAX_PATHS = 2
"""Triples in the memory text of an entity, at most."""

MAX_TOKEN_CHARACTERS = 32
"""Characters of a token at most, on average: text beyond that is not tokenized to see whether it fits."""

TriplesByEnds = Mapping[frozenset[str], Sequence[Triple]]
"""Triples by their subject and object, in either direction."""


class MaskedInput(NamedTuple):
    """A call as model inputs."""

    window: Window
    """Facts and history, then the response; every token of a mention is the mask."""
    mentions: tuple[tuple[int, ...], ...]
    """For each mention the positions of its tokens in ``window``."""
    ids: list[int]
    """The same ids without the facts and with each mention as one mask, for the causal model."""
    slots: tuple[int, ...]
    """The position of each mention's mask in ``ids``."""
    read: Read
    """How much of triples and history is in the window."""


def build_masked_input(encoder: TextEncoder, call: Retrieve, mask_id: int, turns: int) -> MaskedInput:
    """Mask the mentions of a call, and put its facts and history in front as far as the window goes.

    The response is never cut, and the last turn is always read. Then come triples in their order, which is nearest
    first, then earlier turns, the newest first; each is read whole or not at all. InvalidRequest for mentions that
    overlap, leave the response or hold no words, or lack candidates; TooLong for a response and last turn beyond the
    window.
    """
    check_retrieve(call)
    facts, history, read = _select_context(encoder, call, turns)
    fact_text = SEPARATOR.join(facts)
    window = encoder.encode_pair(SEPARATOR.join((fact_text, *history) if fact_text else history), call.response)
    mention_of = [
        _find_mention(call.mentions, *span) if sequence == 1 else None
        for span, sequence in zip(window.offsets, window.sequence_ids, strict=True)
    ]
    positions: list[list[int]] = [[] for _ in call.mentions]
    for position, mention in enumerate(mention_of):
        if mention is not None:
            positions[mention].append(position)
    for (start, end), pieces in zip(call.mentions, positions, strict=True):
        if not pieces:
            raise InvalidRequest(
                f"The mention {start}–{end} ({call.response[start:end]!r}) holds no word of its own to replace; "
                "give the range of an entity's name."
            )
    masked = [token if mention is None else mask_id for token, mention in zip(window.ids, mention_of, strict=True)]
    fact_length = len(fact_text) + len(SEPARATOR) if fact_text else 0
    read_positions = [
        position
        for position, mention in enumerate(mention_of)
        if not (window.sequence_ids[position] == 0 and window.offsets[position][0] < fact_length)
        and (mention is None or position == positions[mention][0])
    ]
    index_of = {position: index for index, position in enumerate(read_positions)}
    return MaskedInput(
        window._replace(ids=masked),
        tuple(map(tuple, positions)),
        [masked[position] for position in read_positions],
        tuple(index_of[pieces[0]] for pieces in positions),
        read,
    )


def check_retrieve(call: Retrieve) -> None:
    """Raise InvalidRequest when the mentions or candidates of a call make no sense."""
    length = len(call.response)
    if not call.mentions:
        raise InvalidRequest("No mention is given; give the character range of at least one.")
    for start, end in call.mentions:
        if not 0 <= start < end <= length:
            raise InvalidRequest(
                f"The mention {start}–{end} is no range of a response of {length} characters; "
                "give 0 <= start < end <= length."
            )
    for (start, end), (next_start, next_end) in pairwise(call.mentions):
        if next_start < end:
            raise InvalidRequest(
                f"The mentions {start}–{end} and {next_start}–{next_end} overlap or are out of order; "
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


def group_triples(triples: Sequence[Triple]) -> TriplesByEnds:
    """Group triples by the two entities that they join, in their order."""
    groups: dict[frozenset[str], list[Triple]] = {}
    for triple in dict.fromkeys(map(upright, triples)):
        groups.setdefault(frozenset((triple.subject, triple.object)), []).append(triple)
    return groups


def build_memory_text(candidate: Candidate, triples: TriplesByEnds, *, paths: bool) -> str:
    """The text of a candidate in the memory: its name and, with ``paths``, the triples that join it to its anchor."""
    between = triples.get(frozenset((candidate.anchor, candidate.entity)), ()) if paths else ()
    return SEPARATOR.join([candidate.entity, *([linearise(between[:MAX_PATHS])] if between else [])])


def _find_mention(mentions: Sequence[tuple[int, int]], start: int, end: int) -> int | None:
    """The index of the first mention that the characters ``start`` to ``end`` touch."""
    return next((index for index, (a, b) in enumerate(mentions) if start < b and end > a), None)


def _select_context(encoder: TextEncoder, call: Retrieve, turns: int) -> tuple[list[str], list[str], Read]:
    """The facts and the turns that are read before the response, and how much of what was given that is."""
    facts = list(dict.fromkeys(map(sentence, call.triples)))
    history = [turn for turn in call.history if turn.strip()]
    total = sum(map(len, (*facts, *history)))
    last, earlier = history[-1:], history[-turns:-1] if turns > 1 else []
    if not _fits(encoder, [*facts, *earlier, *last], call.response):
        # The parts that may be read, best first; a separator follows each of them.
        room = encoder.max_tokens - len(encoder.encode_pair(SEPARATOR.join(last), call.response).ids)
        separator_length = len(encoder.encode_plain(SEPARATOR).ids)
        fits = 0
        for part in (*facts, *reversed(earlier)):
            room -= len(encoder.encode_plain(part).ids) + separator_length
            if room < 0:
                break
            fits += 1
        earlier = earlier[len(earlier) - max(0, fits - len(facts)) :]
        facts = facts[:fits]
    turns_read = [*earlier, *last]
    return facts, turns_read, Read(1, sum(map(len, (*facts, *turns_read))), total)


def _fits(encoder: TextEncoder, parts: Sequence[str], response: str) -> bool:
    if sum(map(len, parts)) > encoder.max_tokens * MAX_TOKEN_CHARACTERS:
        return False
    try:
        encoder.encode_pair(SEPARATOR.join(parts), response)
    except TooLong:
        return False
    return True
