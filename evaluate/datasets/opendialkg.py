"""``opendialkg.csv`` (facebookresearch/opendialkg): dialogues of two people who walk over a knowledge graph.

A message is a row when its speaker chose a path of the graph right before it: the path's triples are its knowledge, all
earlier messages its history. Messages without a path have no knowledge to be held against and stand in histories only.
Nobody judged the messages' faithfulness, so there is no label; the two ratings are of whole dialogues and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from .examples import Row
from .source import Format, Items, RowError, Source, record, rows

COLUMNS = ("Messages", "User Rating", "Assistant Rating")


class _Metadata(msgspec.Struct, frozen=True):
    path: list[Any] | None = None
    """Score, triples, and the path as a sentence."""


class _Turn(msgspec.Struct, frozen=True):
    sender: str = ""
    message: str | None = None
    metadata: _Metadata | None = None


def _read(source: Source) -> Items:
    return rows(source.table(COLUMNS), _dialogue)


def _dialogue(number: int, cells: dict[str, str]) -> Iterator[Row]:
    try:
        turns = msgspec.json.decode(cells["Messages"], type=list[_Turn])
    except msgspec.DecodeError as error:
        raise RowError(f"Messages is not a JSON list of messages: {error}") from error
    history: list[str] = []
    knowledge: tuple[str, ...] = ()
    for index, turn in enumerate(turns):
        if turn.metadata is not None and turn.metadata.path is not None:
            knowledge = _triples(turn.metadata.path)
        if turn.message is None:
            continue
        if knowledge:
            yield Row(
                id=f"{number}-{index}",
                response=turn.message,
                knowledge=knowledge,
                history=tuple(history),
                system=turn.sender,
            )
        history.append(turn.message)
        knowledge = ()


def _triples(path: list[Any]) -> tuple[str, ...]:
    """The triples as ``subject relation object``, ``~relation`` turned round, underscores as blanks."""
    if len(path) < 2:
        raise RowError("a path has no triples")
    flat = []
    for subject, relation, other in record(list[tuple[str, str, str]], path[1]):
        if relation.startswith("~"):
            subject, relation, other = other, relation[1:], subject
        flat.append(f"{subject} {relation.replace('_', ' ')} {other}")
    return tuple(flat)


OPENDIALKG = Format("CSV of OpenDialKG: opendialkg.csv (no labels)", lambda source: source.has(COLUMNS), _read)
