"""Parts of responses with their values and their unsupported characters, and the rows that they make."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from groundwire.metrics import sentences

from ..worlds.rows import WorldPair, WorldRow, WorldSentence, WorldSpan
from ..written.pairs import name_reason
from .rendering import render_log
from .swaps import ValueSwap
from .turns import ToolResult, ToolTurn

TURNS = 2
"""Turns of the dialogue that are history; earlier ones are knowledge."""


@dataclass(frozen=True, slots=True)
class ResponsePart:
    """A part of a response, where its values stand, and its unsupported characters."""

    text: str
    values: tuple[tuple[int, int], ...] = ()
    wrong: tuple[WorldSpan, ...] = ()

    def accept(self) -> ResponsePart:
        """The part beside a log that supports all of it."""
        return ResponsePart(self.text, (*self.values, *((span.start, span.end) for span in self.wrong)))

    def shift(self, by: int) -> tuple[tuple[tuple[int, int], ...], tuple[WorldSpan, ...]]:
        """The values and the unsupported characters, moved."""
        moved = tuple((start + by, end + by) for start, end in self.values)
        return moved, tuple(WorldSpan(span.start + by, span.end + by, span.reason) for span in self.wrong)


@dataclass(frozen=True, slots=True)
class PairSide:
    """One answer of a pair before it is rendered."""

    calls: tuple[ToolResult, ...]
    parts: tuple[ResponsePart, ...]


def part_of_turn(turn: ToolTurn, swap: ValueSwap | None = None) -> ResponsePart:
    """A turn's response, with a swap or without."""
    ranges = [(value.start, value.end) for value in turn.values]
    if swap is None:
        return ResponsePart(turn.response, tuple(ranges))
    text, start, end = swap.apply(turn)
    value = turn.values[swap.index]
    reason = (
        "negation" if value.opposite else name_value_reason(turn.response[value.start : value.end], text[start:end])
    )
    moved = end - value.end
    other_ranges = tuple(
        (a + moved, b + moved) if a >= value.end else (a, b)
        for index, (a, b) in enumerate(ranges)
        if index != swap.index
    )
    return ResponsePart(text, other_ranges, (WorldSpan(start, end, reason),))


def name_value_reason(old: str, new: str) -> str:
    """The reason of a wrong value; a "no" or "without" in a name is no negation."""
    reason = name_reason(old, new)
    return "entity" if reason == "negation" else reason


def mark_turn(turn: ToolTurn, swap: ValueSwap) -> ResponsePart:
    """A turn's response whose value is wrong where it is, because the log has another."""
    value = turn.values[swap.index]
    reason = name_value_reason(swap.text, turn.response[value.start : value.end])
    others = tuple((v.start, v.end) for index, v in enumerate(turn.values) if index != swap.index)
    return ResponsePart(turn.response, others, (WorldSpan(value.start, value.end, reason),))


def render_pair(
    sides: tuple[PairSide, PairSide],
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
        rows.append(make_row(knowledge, tuple(dialogue[-TURNS:]), _join(side.parts, space), service, kind))
    return WorldPair(rows[0], rows[1])


def _join(parts: Sequence[ResponsePart], space: str) -> ResponsePart:
    if len(parts) == 1:
        return parts[0]
    text = ""
    values: list[tuple[int, int]] = []
    wrong: list[WorldSpan] = []
    for part in parts:
        text += space if text else space.lstrip("\n") if space.strip() else ""
        moved_values, of_wrong = part.shift(len(text))
        values += moved_values
        wrong += of_wrong
        text += part.text if part.text.rstrip()[-1] in ".!?" else f"{part.text.rstrip()}."
    return ResponsePart(text, tuple(values), tuple(wrong))


def make_row(knowledge: str, history: tuple[str, ...], part: ResponsePart, service: str, kind: str) -> WorldRow:
    """The row of a response; ``kind`` says what is wrong, if something is."""
    labelled = list(_label_sentences(part))
    turns = tuple(turn.partition(": ")[2] or turn for turn in history)
    change = kind if part.wrong else ""
    return WorldRow(
        (knowledge,), turns, part.text, int(not part.wrong), tuple(labelled), part.wrong, f"tool:{service}", change
    )


def _label_sentences(part: ResponsePart) -> Iterator[WorldSentence]:
    """A sentence with a wrong value is unsupported, one with values supported, and a question without states nothing;
    the others, praise or courtesy, have no label unless they are alone."""
    listed = sentences(part.text)
    for sentence in listed:
        if any(span.start < sentence.end and sentence.start < span.end for span in part.wrong):
            yield WorldSentence(sentence.start, sentence.end, 0)
        elif any(start < sentence.end and sentence.start < end for start, end in part.values) or len(listed) == 1:
            yield WorldSentence(sentence.start, sentence.end, 1)
        elif sentence.text.rstrip().endswith("?"):
            yield WorldSentence(sentence.start, sentence.end, None)
