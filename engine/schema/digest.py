"""Digests of requests: what a continued run compares, and what decides whether a line of traffic is drawn."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from .results import Request


def digest_fields(fields: dict[str, Any]) -> str:
    """Sixteen hexadecimal digits of the fields of a request, in order."""
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:16]


def digest_request(request: Request) -> str:
    """Sixteen hexadecimal digits of the response, the knowledge, the history and the triples."""
    fields = msgspec.to_builtins(request)
    if not fields["triples"]:
        del fields["triples"]  # requests without triples keep the digest they had before there were any
    return digest_fields(fields)


def is_drawn(digest: str, rate: float) -> bool:
    """Whether a request belongs to the share ``rate``, 0–1, of all requests; a higher rate keeps it.

    >>> [is_drawn("4000000000000000", rate) for rate in (0.2, 0.3, 1.0)]
    [False, True, True]
    """
    return int(digest, 16) < rate * float(16 ** len(digest))
