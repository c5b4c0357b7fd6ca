"""OpenAI's chat completions, which are read and written as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import ChatForm, Json


class CompletionsForm(ChatForm):
    """``/v1/chat/completions``."""

    path = "chat/completions"
    names_events = False

    def read_request(self, body: Mapping[str, Any]) -> Json:
        """Return the request."""
        return dict(body)

    def read_answer(self, answer: Json) -> Json:
        """Return the completion."""
        return answer

    def write_answer(self, completion: Json) -> Json:
        """Return the completion."""
        return completion

    def read_event(self, event: Json) -> Json | None:
        """Return the chunk."""
        return event

    def write_chunk(self, chunk: Json) -> Iterator[Json]:
        """Yield the chunk."""
        yield chunk

    def write_error(self, error: Json) -> Json:
        """Return the error."""
        return error

    def find_error(self, event: Mapping[str, Any]) -> Json | None:
        """Return the error of a chunk that has one."""
        return {"error": event["error"]} if event.get("error") else None
