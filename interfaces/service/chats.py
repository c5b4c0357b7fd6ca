"""Requests to models that a gateway shows before their answers: what the answers should rest on."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

MAX_CHATS = 1_000
MAX_CHARACTERS = 20_000_000
"""Characters that are remembered, of all requests together, with the names of their calls."""


class RememberedChat(NamedTuple):
    """What the answer to a request should rest on, and the dialogue before it."""

    knowledge: tuple[str, ...]
    history: tuple[str, ...]
    messages: bytes = b""
    """Its messages and tools as JSON, where tool calls are checked; else empty."""

    @property
    def size(self) -> int:
        """Characters."""
        return sum(map(len, (*self.knowledge, *self.history, self.messages)))


class RememberedChats:
    """The last requests by tenant and call; used on the event loop alone."""

    def __init__(self) -> None:
        self._chats: dict[str, dict[str, RememberedChat]] = {}
        self._sizes = Counter[str]()
        """Characters by tenant."""

    def add(self, tenant: str, call_id: str, chat: RememberedChat) -> None:
        """Remember a request; where there are too many, the oldest of the tenant that has most is forgotten."""
        self._forget(tenant, call_id)
        self._chats.setdefault(tenant, {})[call_id] = chat
        self._sizes[tenant] += len(call_id) + chat.size
        while (many := sum(map(len, self._chats.values())) > MAX_CHATS) or self._sizes.total() > MAX_CHARACTERS:
            counts = Counter({name: len(calls) for name, calls in self._chats.items()}) if many else self._sizes
            ((largest, _),) = counts.most_common(1)
            self._forget(largest, next(iter(self._chats[largest])))

    def _forget(self, tenant: str, call_id: str) -> None:
        chat = self._chats.get(tenant, {}).pop(call_id, None)
        if chat is not None:
            self._sizes[tenant] -= len(call_id) + chat.size

    def get(self, tenant: str, call_id: str | None) -> RememberedChat:
        """Return a request, which may be asked for again: a stream is checked several times; empty if not known."""
        return self._chats.get(tenant, {}).get(call_id, RememberedChat((), ())) if call_id else RememberedChat((), ())
