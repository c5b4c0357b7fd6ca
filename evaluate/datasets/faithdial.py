"""FaithDial (McGill-NLP/FaithDial): Wizard of Wikipedia responses, judged, and edited where they hallucinated.

``BEGIN`` says what ``original_response`` does, or ``response`` where nothing was edited: inconsistent with any
"Hallucination", else consistent with "Entailment", else neither ("Generic" alone: nothing can be verified). An edited
``response`` is a second row of the same context and consistent, which is how the authors train their critic
(models/critic_data.py). ``VRM`` holds speech acts and is not read. A file holds dialogues with ``utterances``, or
utterances; those without ``knowledge`` are the seeker's and no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from .examples import Row
from .source import Format, Items, RowError, Source, record, rows, texts

WIZARD, EDITED = "wow", "faithdial"


class _Utterance(msgspec.Struct, frozen=True):
    response: str
    knowledge: str
    history: list[str] = []
    original_response: str | None = None
    begin: list[str] | str | None = msgspec.field(name="BEGIN", default=None)


class _Dialogue(msgspec.Struct, frozen=True):
    utterances: list[dict[str, Any]]


def _is(source: Source) -> bool:
    return "utterances" in source.first or {"response", "BEGIN"} <= set(source.first)


def _read(source: Source) -> Items:
    return rows(source.entries(), _entry)


def _entry(number: int, entry: Any) -> Iterator[Row]:
    if not isinstance(entry, dict) or "utterances" not in entry:
        yield from _utterance(str(number), record(_Utterance, entry))
        return
    for index, utterance in enumerate(record(_Dialogue, entry).utterances):
        if "knowledge" not in utterance:
            continue
        try:
            yield from _utterance(f"{number}-{index}", record(_Utterance, utterance))
        except RowError as error:
            raise RowError(f"utterance {index + 1}: {error}") from error


def _utterance(name: str, said: _Utterance) -> Iterator[Row]:
    found = (said.begin,) if isinstance(said.begin, str) else tuple(said.begin or ())
    acts = {act.strip().lower() for act in found}
    label = 0 if "hallucination" in acts else 1 if "entailment" in acts else None
    judged = Row(
        id=f"{name}-{WIZARD}",
        response=said.original_response or said.response,
        knowledge=texts(said.knowledge),
        history=tuple(said.history),
        label=label,
        verifiable=False if acts == {"generic"} else None,
        system=WIZARD,
        context=name,
    )
    yield judged
    if said.original_response and said.original_response != said.response:
        yield msgspec.structs.replace(
            judged, id=f"{name}-{EDITED}", response=said.response, label=1, verifiable=None, system=EDITED
        )


FAITHDIAL = Format("JSON of FaithDial: train.json, valid.json, test.json", _is, _read)
