"""A labelled response: what ``evaluate`` reads, whatever file it came from."""

from __future__ import annotations

from groundwire.engine.record import Record


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
