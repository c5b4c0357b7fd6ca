"""The texts of messages and documents, as LangChain and LangGraph pass them."""

from __future__ import annotations

from typing import Any


def read_text(value: Any) -> Any:
    """Return the text of a document or a message.

    Args:
        value: The document or message.

    Returns:
        Its text; anything else as it is, for the engine to check.
    """
    if hasattr(value, "page_content"):
        return value.page_content
    return str(value.text) if hasattr(value, "content") and hasattr(value, "text") else value


def read_texts(value: Any) -> Any:
    """Return the texts of documents or messages.

    Args:
        value: A list of them, or one.

    Returns:
        A list of texts, or one, as from ``read_text``.
    """
    return [read_text(item) for item in value] if isinstance(value, list | tuple) else read_text(value)
