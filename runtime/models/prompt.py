"""The two contexts of a response generator: its prompt with knowledge and history, and with the history alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import InvalidRequest
from ..texts.tokenization import fill

KNOWLEDGE, HISTORY = "{knowledge}", "{history}"
BETWEEN_PASSAGES = " "
BETWEEN_TURNS = "\n"


class PromptContexts(NamedTuple):
    """The parts of both contexts, filled in."""

    grounded: list[str]
    """With the knowledge."""
    alone: list[str]
    """Without it."""


def fill_prompt(prompt: Sequence[str], knowledge: Sequence[str], history: Sequence[str]) -> PromptContexts:
    """Fill in ``prompt`` with and without the knowledge; blank passages and turns are skipped, and braces inside a
    passage or turn are text.

    A part whose fields are all empty is left out; ``alone`` has no part with ``{knowledge}``.

    >>> fill_prompt(("Document: {knowledge}. ", "{history}. ", "Agent:"), ["Tea is old"], [])
    PromptContexts(grounded=['Document: Tea is old. ', 'Agent:'], alone=['Agent:'])
    """
    fields = {
        "knowledge": BETWEEN_PASSAGES.join(passage for passage in knowledge if passage.strip()),
        "history": BETWEEN_TURNS.join(turn for turn in history if turn.strip()),
    }
    grounded = [fill(piece, fields) for piece in prompt if _has_content(piece, fields)]
    alone = [fill(piece, fields) for piece in prompt if KNOWLEDGE not in piece and _has_content(piece, fields)]
    return PromptContexts(grounded, alone)


def check_prompt(prompt: Sequence[str]) -> None:
    """Raise InvalidRequest for parts that do not name both fields, or that name others."""
    whole = "".join(prompt)
    if whole.count(KNOWLEDGE) != 1 or whole.count(HISTORY) != 1 or whole.count("{") != 2 or whole.count("}") != 2:
        raise InvalidRequest(
            f"The prompt {list(prompt)} must have {KNOWLEDGE} and {HISTORY} once each, and no other braces."
        )
    if any(KNOWLEDGE in piece and HISTORY in piece for piece in prompt):
        raise InvalidRequest(
            f"One piece of the prompt {list(prompt)} has both {KNOWLEDGE} and {HISTORY}; give each a piece of its own, "
            "so that the model can read the history without the knowledge."
        )


def _has_content(piece: str, fields: dict[str, str]) -> bool:
    values = [value for name, value in fields.items() if f"{{{name}}}" in piece]
    return not values or any(values)
