"""What continuing a run needs: the digest of each request, and which results are final."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from groundwire.engine.schema.results import Request

UNFINISHED = frozenset({"deadline", "cancelled", "failed"})
"""Statuses of results that another run may improve; the others are decided by the texts."""


def is_final(statuses: Iterable[str]) -> bool:
    """Whether a result with these statuses, its own and its parts', is kept when a run is continued."""
    return UNFINISHED.isdisjoint(statuses)


def digest_fields(fields: dict[str, Any]) -> str:
    """Sixteen hexadecimal digits of the fields of a request, in order."""
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:16]


def digest_request(request: Request) -> str:
    """Sixteen hexadecimal digits of the response, the knowledge, the history and the triples."""
    fields = msgspec.to_builtins(request)
    if not fields["triples"]:
        del fields["triples"]  # requests without triples keep the digest they had before there were any
    return digest_fields(fields)
