"""Requests to models that a gateway shows before their answers: what the answers should rest on."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

MAX_CHATS = 1_000
MAX_CHARACTERS = 20_000_000
"""Characters that are remembered, of all requests together."""


class RememberedChat(NamedTuple):
    """What the answer to a request should rest on, and the dialogue before it."""

    knowledge: tuple[str, ...]
    history: tuple[str, ...]

    @property
    def size(self) -> int:
        """Characters."""
        return sum(map(len, (*self.knowledge, *self.history)))


class RememberedChats:
    """The last requests by tenant and call; used on the event loop alone."""

    def __init__(self) -> None:
        self._chats: OrderedDict[tuple[str, str], RememberedChat] = OrderedDict()
        self._size = 0

    def add(self, tenant: str, call_id: str, chat: RememberedChat) -> None:
        """Remember a request; the oldest are forgotten where there are too many."""
        earlier = self._chats.pop((tenant, call_id), None)
        self._size += chat.size - (earlier.size if earlier else 0)
        self._chats[tenant, call_id] = chat
        while len(self._chats) > MAX_CHATS or self._size > MAX_CHARACTERS:
            self._size -= self._chats.popitem(last=False)[1].size

    def get(self, tenant: str, call_id: str | None) -> RememberedChat:
        """Return a request, which may be asked for again: a stream is checked several times; empty if not known."""
        return self._chats.get((tenant, call_id or ""), RememberedChat((), ()))
