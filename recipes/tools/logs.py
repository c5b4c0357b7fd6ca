"""Chooses the part of a log that is shown: the records that a response needs, and others while there is room."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence

from . import swaps
from .swaps import COUNT
from .turns import RESTAURANT, Record, ToolResult, ToolTurn, ToolValue

THINNED = 0.5
"""Share of the logs that lose fields which the response does not need."""


def list_needed(turn: ToolTurn) -> set[tuple[int, int]]:
    """The records that a response needs: its own, or any that has a value."""
    needed = set()
    spoken_of = turn.record
    for value in turn.values:
        if value.source != "result" or value.act == COUNT:
            continue
        holders = find_records(turn.calls, value)
        if holders:
            needed.add(spoken_of if spoken_of in holders else holders[-1])
    if turn.calls and (not needed or spoken_of is not None):
        i, j = spoken_of if spoken_of is not None else (len(turn.calls) - 1, 0)
        if i < len(turn.calls) and j < len(turn.calls[i].records):
            needed.add((i, j))
    return needed


def find_records(calls: Sequence[ToolResult], value: ToolValue) -> list[tuple[int, int]]:
    """The records that have a value in its slot, or in any where none has it there."""
    every = [(i, j, record) for i, call in enumerate(calls) for j, record in enumerate(call.records)]
    holders = [(i, j) for i, j, record in every if swaps.agree(str(record.get(value.slot, "")), value.value)]
    return holders or [
        (i, j) for i, j, record in every if any(swaps.agree(str(v), value.value) for v in record.values())
    ]


def is_named(turn: ToolTurn, text: str) -> bool:
    """Whether a text says which record is spoken of: it has a name that no other record of the call has."""
    record = swaps.find_record(turn)
    if record is None or turn.record is None:
        return sum(len(call.records) for call in turn.calls) == 1
    siblings = [r for r in turn.calls[turn.record[0]].records if r is not record]
    names = (str(v) for v in record.values() if isinstance(v, str) and len(v) > 3 and v[0].isupper())
    lower = text.casefold()
    return not siblings or any(
        name.casefold() in lower for name in names if all(name not in map(str, other.values()) for other in siblings)
    )


def show_log(
    turn: ToolTurn,
    needed: Iterable[tuple[int, int]],
    room: int,
    rng: random.Random,
    *,
    beside: Sequence[ToolTurn] = (),
    only_needed: bool = False,
) -> tuple[ToolResult, ...]:
    """Choose what is shown of the log that a turn and turns ``beside`` it have.

    Args:
        turn: Whose log is shown.
        needed: The call and the index of each record that is shown in any case.
        room: Characters of the records, about.
        rng: Draws the other records and the fields that are left out.
        beside: Other turns whose values must stay.
        only_needed: Whether to show no other record.
    """
    chosen, turns = set(needed), (turn, *beside)
    slots = {value.slot for of in turns for value in of.values}.union(*(of.unmarked for of in turns), {"date", "time"})
    words = {word for of in turns for word in re.findall(r"\w+", of.response.casefold())}
    thin = rng.random() < THINNED and turn.calls[-1:] != () and turn.calls[-1].tool != RESTAURANT
    dropped = {
        slot
        for slot in dict.fromkeys(slot for call in turn.calls for record in call.records for slot in record)
        if thin and slot not in slots and "name" not in slot.lower() and rng.random() < 0.6
    } - {slot for call in turn.calls for r in call.records for slot, v in r.items() if _shares(v, words)}
    reduced = [[_drop(record, dropped) for record in call.records] for call in turn.calls]
    left = room - sum(_measure(reduced[i][j]) for i, j in chosen)
    others = [] if only_needed else [(i, j) for i, of_call in enumerate(reduced) for j in range(len(of_call))]
    rng.shuffle(others)
    newest = max((i for i, _ in chosen), default=0)
    others.sort(key=lambda index: index[0] != newest)
    for i, j in others[: rng.choice((0, 1, 2, 4, 8))]:
        size = _measure(reduced[i][j])
        if (i, j) not in chosen and size <= left:
            chosen.add((i, j))
            left -= size
    shown = []
    for i, call in enumerate(turn.calls):
        records = tuple(reduced[i][j] for j in range(len(call.records)) if (i, j) in chosen)
        counted = any(value.act == COUNT for of in turns for value in of.values) and i == newest
        if records or (not call.records and not only_needed and rng.random() < 0.5) or counted:
            shown.append(ToolResult(call.tool, records, call.total if counted or rng.random() < 0.5 else len(records)))
    return tuple(shown)


def _shares(value: object, words: set[str]) -> bool:
    """Whether a response has a word of a value, which it may say though nothing marks it."""
    return any(word in words for word in re.findall(r"\w+", str(value).casefold()))


def _drop(record: Record, slots: set[str]) -> Record:
    remaining = {slot: value for slot, value in record.items() if slot not in slots}
    return remaining or record


def _measure(record: Record) -> int:
    return sum(len(slot) + len(str(value)) + 6 for slot, value in record.items())
