"""``opendialkg.csv`` (facebookresearch/opendialkg): dialogues of two people who walk over a knowledge graph.

A message is an example when its speaker chose a path of the graph right before it: the path's triples are its
knowledge, all earlier messages its history. Messages without a path have no knowledge to be compared with and appear in
histories only. The faithfulness of messages is not labelled; the two ratings are of whole dialogues and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.datasets.source import ExampleError, Format, Items, Source, convert_entries, convert_record
from groundwire.runtime.bundles.decode import decode_json

COLUMNS = ("Messages", "User Rating", "Assistant Rating")


class _Metadata(msgspec.Struct, frozen=True):
    path: list[Any] | None = None
    """Score, triples, and the path as a sentence."""


class _Turn(msgspec.Struct, frozen=True):
    sender: str = ""
    message: str | None = None
    metadata: _Metadata | None = None


def _read(source: Source) -> Items:
    return convert_entries(source.table(COLUMNS), _read_dialogue)


def _read_dialogue(number: int, cells: dict[str, str]) -> Iterator[Example]:
    turns = decode_json(
        cells["Messages"],
        list[_Turn],
        lambda reason: ExampleError(f"Messages is not a JSON list of messages: {reason}"),
    )
    history: list[str] = []
    knowledge: tuple[str, ...] = ()
    for index, turn in enumerate(turns):
        if turn.metadata is not None and turn.metadata.path is not None:
            knowledge = _format_triples(turn.metadata.path)
        if turn.message is None:
            continue
        if knowledge:
            yield Example(
                id=f"{number}-{index}",
                response=turn.message,
                knowledge=knowledge,
                history=tuple(history),
                system=turn.sender,
            )
        history.append(turn.message)
        knowledge = ()


def _format_triples(path: list[Any]) -> tuple[str, ...]:
    """The triples as ``subject relation object``, ``~relation`` inverted, underscores as spaces."""
    if len(path) < 2:
        raise ExampleError("a path has no triples")
    flat = []
    for subject, relation, other in convert_record(list[tuple[str, str, str]], path[1]):
        if relation.startswith("~"):
            subject, relation, other = other, relation[1:], subject
        flat.append(f"{subject} {relation.replace('_', ' ')} {other}")
    return tuple(flat)


OPENDIALKG = Format("CSV of OpenDialKG: opendialkg.csv (no labels)", lambda source: source.has(COLUMNS), _read)
