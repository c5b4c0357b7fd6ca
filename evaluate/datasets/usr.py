"""Human scores of USR on Topical-Chat: the authors' file, UniEval's flat one, and JSON Lines with ``uses_knowledge``.

The grade is the mean of "Uses Knowledge", 0–1. Eight of the sixty contexts have no fact ("_nofact"): their rows have no
knowledge, so no metric can score them, and a report counts them as ``invalid``. ``usr-q2`` is the choice of the Q²
paper (its §5.2): those contexts and the system "Original Ground Truth" are left out, 260 responses remain.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .examples import Row
from .plain import read_json
from .source import Format, Found, Items, RowError, Source, record, rows, texts

ORIGINAL = "Original Ground Truth"
NO_FACT = "_nofact"


class _Judged(msgspec.Struct, frozen=True):
    response: str
    model: str
    uses_knowledge: list[float] = msgspec.field(name="Uses Knowledge")
    """One per annotator."""


class _Dialogue(msgspec.Struct, frozen=True):
    context: str
    fact: str
    responses: list[_Judged]


class _Scores(msgspec.Struct, frozen=True):
    groundedness: float


class _Flat(msgspec.Struct, frozen=True):
    """UniEval's names: ``source`` is the dialogue, ``context`` the fact."""

    source: str
    context: str
    system_output: str
    system_id: str
    scores: _Scores


def _is(source: Source) -> bool:
    found = set(source.first)
    return {"fact", "responses"} <= found or {"system_output", "scores"} <= found or "uses_knowledge" in found


def _read(source: Source) -> Items:
    if "uses_knowledge" in source.first:
        return (
            Found(item.where, msgspec.structs.replace(item.row, knowledge=_fact(*item.row.knowledge)))
            if isinstance(item, Found)
            else item
            for item in read_json(source)
        )
    if "system_output" not in source.first:
        return rows(source.entries(), lambda number, entry: _dialogue(number, record(_Dialogue, entry)))
    contexts: dict[tuple[str, str], int] = {}
    return rows(source.entries(), lambda number, entry: _flat(number, record(_Flat, entry), contexts))


def _dialogue(number: int, dialogue: _Dialogue) -> Iterator[Row]:
    for index, judged in enumerate(dialogue.responses):
        if not judged.uses_knowledge:
            raise RowError(f"response {index + 1} has no score of 'Uses Knowledge'")
        yield Row(
            id=f"{number}-{index}",
            response=judged.response.strip(),
            knowledge=_fact(dialogue.fact),
            history=texts(*dialogue.context.split("\n")),
            grade=sum(judged.uses_knowledge) / len(judged.uses_knowledge),
            system=judged.model.strip(),
            context=str(number),
        )


def _flat(number: int, entry: _Flat, contexts: dict[tuple[str, str], int]) -> Iterator[Row]:
    context = contexts.setdefault((entry.source, entry.context), len(contexts))
    yield Row(
        id=str(number),
        response=entry.system_output.strip(),
        knowledge=_fact(entry.context),
        history=texts(*entry.source.split("\n")),
        grade=entry.scores.groundedness,
        system=entry.system_id.strip(),
        context=str(context),
    )


def _fact(*fact: str) -> tuple[str, ...]:
    return texts(*(text for text in fact if not text.strip().startswith(NO_FACT)))


def _as_in_q2(source: Source) -> Items:
    for item in _read(source):
        if not isinstance(item, Found) or in_q2(item.row):
            yield item


def in_q2(row: Row) -> bool:
    """Whether the Q² paper has the response: it is not the original one, and its context has a fact."""
    return bool(row.knowledge) and row.system != ORIGINAL


USR = Format("JSON of USR on Topical-Chat (tc_usr_data.json, or UniEval's topical_chat.json)", _is, _read)
USR_Q2 = Format(
    "the same without the original responses and the contexts without a fact", lambda source: False, _as_in_q2
)
