"""The commands that this distribution adds to ``groundwire``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .conv_fever.command import app as corpus
from .dialogues.command import convert
from .papers.command import show_table

COMMANDS: dict[str, Callable[[], Any]] = {
    "convert": lambda: convert,
    "corpus": lambda: corpus,
    "tables": lambda: show_table,
}
"""Functions that return a command or a group of commands, by its name."""
