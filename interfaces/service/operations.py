"""What a path does: its handler, its types, and the problems that it may answer with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from starlette.responses import Response

from .call import Call
from .problems import Code

Handle: TypeAlias = Callable[[Call], Awaitable[Response]]

EVENTS = "text/event-stream"
"""Media type of server-sent events."""
WORK: tuple[Code, ...] = (
    "malformed", "unauthorized", "body_timeout", "too_large", "unsupported_media_type", "invalid", "unreadable",
    "overloaded", "failed", "not_ready", "closed", "deadline",
)  # fmt: skip


class Operation(NamedTuple):
    """A method of a path. The handler's docstring is its description."""

    method: str
    path: str
    handle: Handle
    body: Any = None
    """Type of the body; None for no body."""
    result: Any = None
    """Type of the answer; None for text."""
    body_type: str = "application/json"
    result_type: str = "application/json"
    problems: tuple[Code, ...] = WORK
    parameters: tuple[Mapping[str, Any], ...] = ()
    """Of the path and the query, as OpenAPI describes them."""

    @property
    def name(self) -> str:
        """The handler's name."""
        return self.handle.__name__

    @property
    def is_open(self) -> bool:
        """Whether it needs no token."""
        return "unauthorized" not in self.problems

    @property
    def has_deadline(self) -> bool:
        """Whether it ends with 504 when its deadline has passed."""
        return "deadline" in self.problems
