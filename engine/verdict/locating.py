"""Results of what is shown (``text.rendering``), located in the texts as they were written."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ..metrics.requests import ReadRequest
from ..schema.explanations import PassageRange

T = TypeVar("T")
_QUOTING = ("text", "knowledge_says", "knowledge_answer")
"""Fields that quote the characters which their record names."""


def locate_in_original(item: T, request: ReadRequest) -> T:
    """Return a record with the ranges and quotations of the original texts in the place of those that are shown.

    Args:
        item: A score, or anything in one: records, tuples and dictionaries of what the engine says.
        request: The request that it is about.
    """
    return item if request.is_verbatim else _locate(item, request)


def _locate(item: Any, request: ReadRequest) -> Any:
    if isinstance(item, tuple):
        return tuple([_locate(part, request) for part in item])
    if isinstance(item, dict):
        return {key: _locate(part, request) for key, part in item.items()}
    if not isinstance(item, msgspec.Struct):
        return item
    if isinstance(item, PassageRange):
        start, end = request.rendered_knowledge[item.passage].locate(item.start, item.end)
        return replace(item, start=start, end=end)
    changes = {name: _locate(getattr(item, name), request) for name in item.__struct_fields__}
    start, end = changes.get("start"), changes.get("end")
    if isinstance(start, int) and isinstance(end, int):
        changes["start"], changes["end"] = request.rendered_response.locate(start, end)
        _quote(changes, request.response[start:end], request.original.response[changes["start"] : changes["end"]])
    evidence = getattr(item, "evidence", None)
    if isinstance(evidence, PassageRange):
        shown = request.knowledge[evidence.passage][evidence.start : evidence.end]
        located = changes["evidence"]
        _quote(changes, shown, request.original.knowledge[located.passage][located.start : located.end])
    return replace(item, **changes)


def _quote(changes: dict[str, Any], shown: str, original: str) -> None:
    for name in _QUOTING:
        if changes.get(name) == shown:
            changes[name] = original
