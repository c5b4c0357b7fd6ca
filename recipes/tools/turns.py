"""Reads the turns: the log of the tools' results, the call, the dialogue before, the response and its values.

SGD (CC BY-SA 4.0), STAR (MIT), Taskmaster-4 (CC BY 4.0) and E2E (CC BY-SA 4.0), as ``more/README.md`` of the training
sets describes them. SGD's services that its training split lacks are held out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..common.corpus import read_rows

FILES = tuple(f"more/{name}.jsonl.gz" for name in ("sgd_turns", "star_turns", "taskmaster4_turns", "e2e_pairs"))
TRAIN = "train"
"""The split of SGD that is trained on; rows of other sets have none and are trained on too."""
RESTAURANT = "find_restaurant"
"""The tool of a row that has a record and no log."""
_ARGUMENT = re.compile(r"""^api\.is_equal_to\(["']?(.*?)["']?\)$""")
"""How STAR writes an argument."""
Record: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolValue:
    """Characters of a response that say a value."""

    start: int
    end: int
    slot: str
    value: str
    """As the record has it."""
    source: str
    """``result``, ``history`` or ``call``."""
    act: str = ""
    """SGD's act (OFFER, INFORM, INFORM_COUNT, CONFIRM); empty for a statement about a record."""
    opposite: str = ""
    """What says the opposite, for the verb of a claim."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool and what it returned."""

    tool: str
    records: tuple[Record, ...]
    total: int
    """Records that it returned, those that were left out with them."""


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """A response that the log supports, and what was before it."""

    id: str
    service: str
    calls: tuple[ToolResult, ...]
    """Oldest first."""
    method: str
    """Of the newest call; empty for none."""
    arguments: Mapping[str, str]
    """Of the newest call."""
    history: tuple[str, ...]
    """Each begins with ``user: `` or ``assistant: ``."""
    response: str
    values: tuple[ToolValue, ...]
    acts: frozenset[str]
    unmarked: frozenset[str]
    """Slots that the response may speak of without a place for it."""
    record: tuple[int, int] | None
    """The call and the record that the response speaks of, where that is known."""

    @property
    def dialogue(self) -> str:
        """What the dialogue's turns have in common in their ids."""
        return self.id.rpartition("-")[0]


def read_turns(data: Path, split: str) -> list[ToolTurn]:
    """Read the supported turns in ``data``, as far as the files are there.

    Args:
        data: Directory with the training sets.
        split: ``train``, or ``dev`` for SGD's services that its training split lacks.
    """
    rows = [row for name in FILES if (data / name).is_file() for row in read_rows(data / name)]
    trained = {row["service"] for row in rows if row.get("split", TRAIN) == TRAIN}
    wanted = (
        (row for row in rows if row.get("split", TRAIN) == TRAIN)
        if split == TRAIN
        else (row for row in rows if row["service"] not in trained)
    )
    return [turn for row in wanted if row["label"] == 1 and (turn := make_turn(row)) is not None]


def make_turn(row: Mapping[str, Any]) -> ToolTurn | None:
    """The turn of a row; None for results that are not records of plain values."""
    calls = tuple(_list_calls(row))
    if not all(_is_plain(record) for call in calls for record in call.records):
        return None
    call = row.get("call") or {}
    values = (_make_value(span) for span in row["spans"] if not span.get("bad"))
    return ToolTurn(
        row["id"],
        row["service"],
        calls,
        call.get("method", ""),
        {name: _ARGUMENT.sub(r"\1", str(value)) for name, value in call.get("arguments", {}).items()},
        tuple(row["history"]),
        row["response"],
        tuple(sorted(values, key=lambda value: value.start)),
        frozenset(row.get("acts") or ()),
        frozenset(slot for slot, _ in row.get("unmarked") or ()),
        (row["record"][0], row["record"][1]) if isinstance(row.get("record"), list) else None,
    )


def _list_calls(row: Mapping[str, Any]) -> Iterator[ToolResult]:
    record = row.get("record")
    if isinstance(record, dict):
        # A slot of E2E has a list; with several values it is not clear which one a text contradicts.
        flat = {slot: values[0] if len(values) == 1 else values for slot, values in record.items()}
        yield ToolResult(RESTAURANT, (flat,), 1)
        return
    for call in json.loads(row["knowledge"]):
        records = tuple({k: v for k, v in record.items() if v not in ("", None)} for record in call["result"])
        yield ToolResult(call["tool"], records, call.get("total", len(records)))


def _is_plain(record: Record) -> bool:
    return all(isinstance(value, (str, int, float, bool)) for value in record.values())


def _make_value(span: Mapping[str, Any]) -> ToolValue:
    return ToolValue(
        span["start"],
        span["end"],
        span["slot"],
        str(span["value"]),
        span["in"],
        span.get("act") or "",
        span.get("flip", ""),
    )
