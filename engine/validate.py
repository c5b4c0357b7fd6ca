"""Turns what a caller passes into a Request, or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groundwire.runtime.errors import InvalidRequest

from .options import Options
from .records import Request


def make_request(response: Any, knowledge: Any, history: Any = (), options: Options | None = None) -> Request:
    """Check the texts; InvalidRequest says what was given, what is allowed and what to do.

    ``knowledge`` is one string or an iterable of passages; passages without words are left out as long as one remains.
    """
    options = options or Options()
    text = _text("response", response)
    if not text.strip():
        raise InvalidRequest("response is empty; pass the text to check, or do not score this turn.")
    if len(text) > options.max_response_chars:
        raise InvalidRequest(
            f"response has {len(text)} characters; allowed are {options.max_response_chars}. "
            "Score it in parts, or raise Options.max_response_chars."
        )
    passages = (knowledge,) if isinstance(knowledge, str) else _several("knowledge", knowledge, "one string or several")
    passages = tuple(_text(f"knowledge[{i}]", passage) for i, passage in enumerate(passages))
    passages = tuple(passage for passage in passages if passage.strip())
    if not passages:
        raise InvalidRequest("knowledge is empty; pass the text the response should rest on.")
    total = sum(map(len, passages))
    if total > options.max_knowledge_chars:
        raise InvalidRequest(
            f"knowledge has {total} characters; allowed are {options.max_knowledge_chars}. "
            "Retrieve fewer passages, or raise Options.max_knowledge_chars."
        )
    if isinstance(history, str):
        raise InvalidRequest("history is one string; pass a list of utterances, oldest first.")
    turns = tuple(_text(f"history[{i}]", turn) for i, turn in enumerate(_several("history", history, "several")))
    return Request(text, passages, turns)


def _several(name: str, value: Any, allowed: str) -> tuple[Any, ...]:
    if not isinstance(value, Iterable) or isinstance(value, bytes | dict):
        raise InvalidRequest(f"{name} is {type(value).__name__}; pass {allowed} strings.")
    return tuple(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} is {type(value).__name__}; pass a string.")
    if "\0" in value:
        raise InvalidRequest(f"{name} has a NUL character at offset {value.index(chr(0))}; remove it.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{name} has a lone surrogate at offset {error.start}; it is not valid text. "
            "Decode the source with errors='replace'."
        ) from error
    return value
