"""The CSV files of the Q² authors (orhonovich/q-squared, third_party/data).

``cross_annotation.csv`` has one dialogue turn per line with the responses of both systems and a label for each, where
**1 means inconsistent**. ``SYSTEM_consistent.csv`` and ``SYSTEM_inconsistent.csv`` have one response per line and no
label: the file's name is the label. ``message`` is the turn before, empty where the system opened the dialogue;
``gold`` is the human answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.datasets.source import Format, Items, Source, convert_entries, parse_choice, strip_texts

COMMON = ("episode_idx", "round", "message", "knowledge")
RESPONSE, LABEL = "_response", "_label"


def _sniff(source: Source) -> bool:
    return source.has(COMMON) and (source.has(("response",)) or bool(_list_systems(source)))


def _list_systems(source: Source) -> tuple[str, ...]:
    return tuple(name.removesuffix(RESPONSE) for name in source.header() if name.endswith(RESPONSE))


def _read(source: Source) -> Items:
    systems = _list_systems(source)
    if systems:
        needed = (*COMMON, *(system + end for system in systems for end in (RESPONSE, LABEL)))
        return convert_entries(source.table(needed), lambda number, cells: _read_cross(number, cells, systems))
    named = re.search(r"(?:([a-z0-9]+)_)?(in)?consistent", source.stem)
    system = (named[1] or "") if named else ""
    label = None if named is None else 0 if named[2] else 1
    part = "" if label is None else f"{system}_{'consistent' if label else 'inconsistent'}".strip("_")

    def convert(number: int, cells: dict[str, str]) -> Iterator[Example]:
        yield Example(
            id=str(number),
            response=cells["response"],
            knowledge=strip_texts(cells["knowledge"]),
            history=strip_texts(cells["message"]),
            label=label,
            system=system,
            dialogue=cells["episode_idx"],
            source=part,
        )

    return convert_entries(source.table((*COMMON, "response")), convert)


def _read_cross(number: int, cells: dict[str, str], systems: tuple[str, ...]) -> Iterator[Example]:
    for system in systems:
        yield Example(
            id=f"{number}-{system}",
            response=cells[system + RESPONSE],
            knowledge=strip_texts(cells["knowledge"]),
            history=strip_texts(cells["message"]),
            label=parse_choice(system + LABEL, cells[system + LABEL], {"0": 1, "1": 0}),
            system=system,
            context=str(number),
            dialogue=cells["episode_idx"],
        )


Q2 = Format(
    "CSV of the Q² authors: cross_annotation.csv, or SYSTEM_consistent.csv, SYSTEM_inconsistent.csv", _sniff, _read
)
