"""Which results are final, and kept when a run is continued."""

from __future__ import annotations

from collections.abc import Iterable

UNFINISHED = frozenset({"deadline", "cancelled", "failed"})
"""Statuses of results that another run may improve; the others are decided by the texts."""


def is_final(statuses: Iterable[str]) -> bool:
    """Whether a result with these statuses, its own and its parts', is kept when a run is continued."""
    return UNFINISHED.isdisjoint(statuses)
