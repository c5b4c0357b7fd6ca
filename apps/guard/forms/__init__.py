"""The three protocols of chats: one check serves them all.

A form belongs to one request: it remembers what of its answer has come and what has been written.
"""

from __future__ import annotations

from .base import ChatForm
from .completions import CompletionsForm
from .messages import MessagesForm
from .responses import ResponsesForm

__all__ = ["ChatForm", "CompletionsForm", "MessagesForm", "ResponsesForm"]
