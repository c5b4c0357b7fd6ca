"""The rows that worlds give: knowledge, history and response, with labels for sentences and characters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorldSpan:
    """Characters of a response that its knowledge does not support."""

    start: int
    end: int
    reason: str
    """One of the reasons of ``synthesis.structured_edits``."""


@dataclass(frozen=True, slots=True)
class WorldSentence:
    """Characters of a sentence, a list item or a heading of a response."""

    start: int
    end: int
    label: int | None
    """1 supported, 0 not, None where the sentence states nothing (greeting, closing, abstention)."""


@dataclass(frozen=True, slots=True)
class WorldRow:
    """A response to a history and a knowledge, with labels."""

    knowledge: tuple[str, ...]
    history: tuple[str, ...]
    response: str
    label: int
    """1 when the knowledge supports all that the response states, else 0."""
    sentences: tuple[WorldSentence, ...]
    spans: tuple[WorldSpan, ...]
    domain: str
    change: str
    """What makes the response unsupported; empty for a supported one."""


@dataclass(frozen=True, slots=True)
class WorldPair:
    """Two rows that share all but what one change touches."""

    supported: WorldRow
    unsupported: WorldRow
