"""Human scores of USR on Topical-Chat: the authors' file, UniEval's flat one, and JSON Lines with ``uses_knowledge``.

The grade is the mean of "Uses Knowledge", 0–1. Eight of the sixty contexts have no fact ("_nofact"): their examples
have no knowledge, so no metric can score them, and a report counts them as ``invalid``. ``usr-q2`` is the choice of the
Q² paper (its §5.2): without those contexts and the system "Original Ground Truth", 260 responses remain.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.datasets.plain import read_json
from groundwire.evaluate.datasets.source import (
    ExampleError,
    Format,
    Items,
    LocatedExample,
    Source,
    convert_entries,
    convert_record,
    strip_texts,
)

ORIGINAL = "Original Ground Truth"
NO_FACT = "_nofact"


class _Response(msgspec.Struct, frozen=True):
    response: str
    model: str
    uses_knowledge: list[float] = msgspec.field(name="Uses Knowledge")
    """One per annotator."""


class _Dialogue(msgspec.Struct, frozen=True):
    context: str
    fact: str
    responses: list[_Response]


class _Scores(msgspec.Struct, frozen=True):
    groundedness: float


class _Flat(msgspec.Struct, frozen=True):
    """UniEval's names: ``source`` is the dialogue, ``context`` the fact."""

    source: str
    context: str
    system_output: str
    system_id: str
    scores: _Scores


def _sniff(source: Source) -> bool:
    fields = set(source.first)
    return {"fact", "responses"} <= fields or {"system_output", "scores"} <= fields or "uses_knowledge" in fields


def _read(source: Source) -> Items:
    if "uses_knowledge" in source.first:
        return (
            LocatedExample(item.where, _replace_fact(item.example)) if isinstance(item, LocatedExample) else item
            for item in read_json(source)
        )
    if "system_output" not in source.first:
        return convert_entries(
            source.entries(), lambda number, entry: _read_dialogue(number, convert_record(_Dialogue, entry))
        )
    contexts: dict[tuple[str, str], int] = {}
    return convert_entries(
        source.entries(), lambda number, entry: _read_flat(number, convert_record(_Flat, entry), contexts)
    )


def _read_dialogue(number: int, dialogue: _Dialogue) -> Iterator[Example]:
    for index, response in enumerate(dialogue.responses):
        if not response.uses_knowledge:
            raise ExampleError(f"response {index + 1} has no score of 'Uses Knowledge'")
        yield Example(
            id=f"{number}-{index}",
            response=response.response.strip(),
            knowledge=_strip_fact(dialogue.fact),
            history=strip_texts(*dialogue.context.split("\n")),
            grade=sum(response.uses_knowledge) / len(response.uses_knowledge),
            system=response.model.strip(),
            context=str(number),
        )


def _read_flat(number: int, entry: _Flat, contexts: dict[tuple[str, str], int]) -> Iterator[Example]:
    context = contexts.setdefault((entry.source, entry.context), len(contexts))
    yield Example(
        id=str(number),
        response=entry.system_output.strip(),
        knowledge=_strip_fact(entry.context),
        history=strip_texts(*entry.source.split("\n")),
        grade=entry.scores.groundedness,
        system=entry.system_id.strip(),
        context=str(context),
    )


def _replace_fact(example: Example) -> Example:
    return msgspec.structs.replace(example, knowledge=_strip_fact(*example.knowledge))


def _strip_fact(*fact: str) -> tuple[str, ...]:
    return strip_texts(*(text for text in fact if not text.strip().startswith(NO_FACT)))


def _read_q2_part(source: Source) -> Items:
    for item in _read(source):
        if not isinstance(item, LocatedExample) or is_in_q2(item.example):
            yield item


def is_in_q2(example: Example) -> bool:
    """Whether the Q² paper has the response: it is not the original one, and its context has a fact."""
    return bool(example.knowledge) and example.system != ORIGINAL


USR = Format("JSON of USR on Topical-Chat (tc_usr_data.json, or UniEval's topical_chat.json)", _sniff, _read)
USR_Q2 = Format(
    "the same without the original responses and the contexts without a fact", lambda source: False, _read_q2_part
)
