"""Parts of responses with their values and their unsupported characters, and the rows that they make."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from groundwire.engine.text.sentences import sentences

from ..worlds.rows import WorldPair, WorldRow, WorldSentence, WorldSpan
from ..written.pairs import name_reason
from .rendering import render_log
from .swaps import Swap
from .turns import ToolCall, ToolTurn

TURNS = 2
"""Turns of the dialogue that are history; earlier ones are knowledge."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A part of a response, where its values stand, and its unsupported characters."""

    text: str
    values: tuple[tuple[int, int], ...] = ()
    wrong: tuple[WorldSpan, ...] = ()

    def accept(self) -> Draft:
        """The part beside a log that supports all of it."""
        return Draft(self.text, (*self.values, *((span.start, span.end) for span in self.wrong)))

    def shift(self, by: int) -> tuple[tuple[tuple[int, int], ...], tuple[WorldSpan, ...]]:
        """The values and the unsupported characters, moved."""
        moved = tuple((start + by, end + by) for start, end in self.values)
        return moved, tuple(WorldSpan(span.start + by, span.end + by, span.reason) for span in self.wrong)


@dataclass(frozen=True, slots=True)
class Side:
    """One answer of a pair before it is rendered."""

    calls: tuple[ToolCall, ...]
    drafts: tuple[Draft, ...]


def draft_turn(turn: ToolTurn, swap: Swap | None = None) -> Draft:
    """A turn's response, with a swap or without."""
    ranges = [(value.start, value.end) for value in turn.values]
    if swap is None:
        return Draft(turn.response, tuple(ranges))
    text, start, end = swap.apply(turn)
    value = turn.values[swap.index]
    reason = (
        "negation" if value.opposite else name_value_reason(turn.response[value.start : value.end], text[start:end])
    )
    moved = end - value.end
    kept = tuple(
        (a + moved, b + moved) if a >= value.end else (a, b)
        for index, (a, b) in enumerate(ranges)
        if index != swap.index
    )
    return Draft(text, kept, (WorldSpan(start, end, reason),))


def name_value_reason(old: str, new: str) -> str:
    """The reason of a wrong value; a "no" or "without" in a name is no negation."""
    reason = name_reason(old, new)
    return "entity" if reason == "negation" else reason


def mark_turn(turn: ToolTurn, swap: Swap) -> Draft:
    """A turn's response whose value is wrong as it stands, because the log has another."""
    value = turn.values[swap.index]
    reason = name_value_reason(swap.text, turn.response[value.start : value.end])
    kept = tuple((v.start, v.end) for index, v in enumerate(turn.values) if index != swap.index)
    return Draft(turn.response, kept, (WorldSpan(value.start, value.end, reason),))


def render_pair(
    sides: tuple[Side, Side],
    arguments: Mapping[str, str],
    dialogue: Sequence[str],
    service: str,
    kind: str,
    rng: random.Random,
) -> WorldPair:
    """Render both sides alike."""
    seed, space = rng.random(), rng.choices((" ", "\n", "\n- "), (0.75, 0.15, 0.1))[0]
    rows = []
    for side in sides:
        log = render_log(side.calls, arguments, random.Random(seed))
        knowledge = "\n".join([*dialogue[:-TURNS], log])
        rows.append(make_row(knowledge, tuple(dialogue[-TURNS:]), _join(side.drafts, space), service, kind))
    return WorldPair(rows[0], rows[1])


def _join(drafts: Sequence[Draft], space: str) -> Draft:
    if len(drafts) == 1:
        return drafts[0]
    text = ""
    values: list[tuple[int, int]] = []
    wrong: list[WorldSpan] = []
    for draft in drafts:
        text += space if text else space.lstrip("\n") if space.strip() else ""
        of_draft, of_wrong = draft.shift(len(text))
        values += of_draft
        wrong += of_wrong
        text += draft.text if draft.text.rstrip()[-1] in ".!?" else f"{draft.text.rstrip()}."
    return Draft(text, tuple(values), tuple(wrong))


def make_row(knowledge: str, history: tuple[str, ...], draft: Draft, service: str, kind: str) -> WorldRow:
    """The row of a response; ``kind`` says what is wrong, if something is."""
    labelled = list(_label_sentences(draft))
    turns = tuple(turn.partition(": ")[2] or turn for turn in history)
    change = kind if draft.wrong else ""
    return WorldRow(
        (knowledge,), turns, draft.text, int(not draft.wrong), tuple(labelled), draft.wrong, f"tool:{service}", change
    )


def _label_sentences(draft: Draft) -> Iterator[WorldSentence]:
    """A sentence with a wrong value is unsupported, one with values supported, and a question without states nothing;
    the others, praise or courtesy, have no label unless they are alone."""
    parts = sentences(draft.text)
    for part in parts:
        if any(span.start < part.end and part.start < span.end for span in draft.wrong):
            yield WorldSentence(part.start, part.end, 0)
        elif any(start < part.end and part.start < end for start, end in draft.values) or len(parts) == 1:
            yield WorldSentence(part.start, part.end, 1)
        elif part.text.rstrip().endswith("?"):
            yield WorldSentence(part.start, part.end, None)
