"""The texts of messages and documents, as LangChain and LangGraph pass them."""

from __future__ import annotations

from typing import Any


def read_text(value: Any) -> Any:
    """The text of a document or a message; anything else as it is, for the engine to check."""
    if hasattr(value, "page_content"):
        return value.page_content
    return str(value.text) if hasattr(value, "content") and hasattr(value, "text") else value


def read_texts(value: Any) -> Any:
    """The text of one of them, or the texts of several."""
    return [read_text(item) for item in value] if isinstance(value, list | tuple) else read_text(value)
