"""What is known about a request while it is served: for its answer, its log and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .problems import Code

OTHER = "other"
"""The route of requests for paths that do not exist."""


@dataclass(slots=True)
class RequestContext:
    """What is known about one request, over HTTP or a WebSocket."""

    id: str
    arrived: float
    """Seconds on the service's clock."""
    route: str = OTHER
    """The path of its operation; ``OTHER`` where there is none."""
    tenant: str = ""
    """Whom its token names; ``*`` is a gateway, whose options name the tenant."""
    status: int = 499
    """The HTTP status of the answer; 499 where the client left before it."""
    refusals: list[Code] = field(default_factory=list)
    """Why a result is missing, for the request or for lines of it."""
    log_fields: dict[str, Any] = field(default_factory=dict)
    """What the line of the log, and the span, say besides."""


def get_context(scope: Mapping[str, Any]) -> RequestContext:
    """The record about the request of an ASGI scope."""
    context: RequestContext = scope["groundwire"]
    return context
