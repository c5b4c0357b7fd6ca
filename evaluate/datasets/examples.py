"""A labelled response: what ``evaluate`` reads, whatever file it came from."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from groundwire.engine.schema.base import Record


class Row(Record, frozen=True):
    """One response, what it should rest on, and what people said of it."""

    id: str
    """Unique within its set."""
    response: str
    knowledge: tuple[str, ...]
    history: tuple[str, ...] = ()
    """Utterances, oldest first."""
    label: int | None = None
    """1 consistent, 0 inconsistent; None where nobody judged it so."""
    grade: float | None = None
    """A judgement on a scale, higher is more faithful; None where there is none."""
    verifiable: bool | None = None
    """Whether it states anything that can be checked; None where nobody said."""
    system: str = ""
    """Who gave the response."""
    context: str = ""
    """Responses with the same non-empty context answer the same turn and may be ranked against each other."""
    source: str = ""
    """Part of the set, for breakdowns."""


def sampled(rows: Sequence[Row], count: int, seed: int) -> list[Row]:
    """At most ``count`` rows, in their order; 0 takes all. Rows of one context are drawn together or not at all."""
    if not count or count >= len(rows):
        return list(rows)
    groups: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(("context", row.context) if row.context else ("row", row.id), []).append(place)
    drawn = list(groups.values())
    random.Random(seed).shuffle(drawn)
    kept: list[int] = []
    for places in drawn:
        if len(kept) + len(places) <= count:
            kept += places
    return [rows[place] for place in sorted(kept)]


def apart(rows: Iterable[Row], others: Iterable[Row]) -> list[bool]:
    """For each of ``rows``, whether it shares no passage of knowledge with ``others``, but for case and blanks.

    What is tuned on rows that share one would have been told about the others.
    """
    seen = {_plain(passage) for row in others for passage in row.knowledge}
    return [not any(_plain(passage) in seen for passage in row.knowledge) for row in rows]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
