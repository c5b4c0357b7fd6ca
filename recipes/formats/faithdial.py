"""FaithDial (McGill-NLP/FaithDial): Wizard of Wikipedia responses, labelled, and edited where they hallucinated.

``BEGIN`` labels ``original_response``, or ``response`` where nothing was edited: inconsistent with any "Hallucination",
else consistent with "Entailment", else neither ("Generic" alone: nothing can be verified). An edited ``response`` is a
second example of the same context and consistent; the authors train their critic in this way (models/critic_data.py).
``VRM`` holds speech acts and is not read. A file holds dialogues with ``utterances``, or utterances; an utterance
without ``knowledge`` is the seeker's and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.datasets.source import (
    ExampleError,
    Format,
    Items,
    Source,
    convert_entries,
    convert_record,
    strip_texts,
)

WIZARD, EDITED = "wow", "faithdial"


class _Utterance(msgspec.Struct, frozen=True):
    response: str
    knowledge: str
    history: list[str] = []
    original_response: str | None = None
    begin: list[str] | str | None = msgspec.field(name="BEGIN", default=None)


class _Dialogue(msgspec.Struct, frozen=True):
    utterances: list[dict[str, Any]]


def _sniff(source: Source) -> bool:
    return "utterances" in source.first or {"response", "BEGIN"} <= set(source.first)


def _read(source: Source) -> Items:
    return convert_entries(source.entries(), _read_entry)


def _read_entry(number: int, entry: Any) -> Iterator[Example]:
    if not isinstance(entry, dict) or "utterances" not in entry:
        yield from _read_utterance(str(number), convert_record(_Utterance, entry))
        return
    for index, utterance in enumerate(convert_record(_Dialogue, entry).utterances):
        if "knowledge" not in utterance:
            continue
        try:
            yield from _read_utterance(f"{number}-{index}", convert_record(_Utterance, utterance))
        except ExampleError as error:
            raise ExampleError(f"utterance {index + 1}: {error}") from error


def _read_utterance(name: str, utterance: _Utterance) -> Iterator[Example]:
    begin = (utterance.begin,) if isinstance(utterance.begin, str) else tuple(utterance.begin or ())
    acts = {act.strip().lower() for act in begin}
    label = 0 if "hallucination" in acts else 1 if "entailment" in acts else None
    original = Example(
        id=f"{name}-{WIZARD}",
        response=utterance.original_response or utterance.response,
        knowledge=strip_texts(utterance.knowledge),
        history=tuple(utterance.history),
        label=label,
        verifiable=False if acts == {"generic"} else None,
        system=WIZARD,
        context=name,
    )
    yield original
    if utterance.original_response and utterance.original_response != utterance.response:
        yield msgspec.structs.replace(
            original, id=f"{name}-{EDITED}", response=utterance.response, label=1, verifiable=None, system=EDITED
        )


FAITHDIAL = Format("JSON of FaithDial: train.json, valid.json, test.json", _sniff, _read)
