"""Streets that a call names otherwise than they were said: Mill Road for Mill Rise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundwire.engine.extend import FUNCTION_WORDS
from groundwire.runtime.texts.characters import is_numeric

from .context import TurnContext
from .words import PLACE_KEY, PROPER_KEY, STREET_KINDS

_LINE_KEY = re.compile(r"(?:^|_)(?:address|street|line_?\d|site|pick_?up)", re.IGNORECASE)
"""Keys of a line of an address, beside those of names and places."""
_TOKEN = re.compile(r"[\w'’]+|[^\w ]")
_WORD = re.compile(r"[^\W\d_]+")
_NAME_WORDS = 3
"""Words between a house number and the kind of its street, at most."""


def find_other_street(key: str, text: str, context: TurnContext) -> str:
    """Return why a text names a street of another kind than the one that was said; empty if it does not.

    Args:
        key: The key of the argument.
        text: What the argument says.
        context: The turn.
    """
    is_address = any(pattern.search(key) for pattern in (_LINE_KEY, PLACE_KEY, PROPER_KEY))
    streets = [(name, kind) for name, kind, has_number in _list_streets(text) if has_number or is_address]
    if not streets:
        return ""
    said = {(name, kind) for name, kind, _ in _list_streets(context.everything.text)}
    kinds = {STREET_KINDS.get(token) for token in _TOKEN.findall(context.user.lower)}
    for name, kind in streets:
        others = sorted(other for of_name, other in said if of_name == name)
        if others and kind not in others and kind not in kinds:  # "Sorry, road, not rise" names a kind alone
            return f"The dialogue or the log has {others[0]}, not {kind}."
    return ""


def _list_streets(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the last word of each street's name, its kind, and whether a house number is before it."""
    tokens = [token.replace("'", "").replace("’", "") for token in _TOKEN.findall(text.lower())]
    for index, token in enumerate(tokens[1:], 1):
        name = tokens[index - 1]
        if token in STREET_KINDS and _WORD.fullmatch(name) and name not in FUNCTION_WORDS:
            before = tokens[max(0, index - 1 - _NAME_WORDS) : index - 1]
            yield STREET_KINDS.get(name, name), STREET_KINDS[token], any(is_numeric(word[:1]) for word in before)
