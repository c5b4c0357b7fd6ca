"""The names that other programs give to the fields of a request, and ``--columns`` for any other name."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from groundwire.engine.extend import list_passages
from groundwire.engine.schema.chats import read_chat
from groundwire.runtime.errors import InvalidRequest

from .json_text import MalformedText, decode_json

ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "response": ("answer", "actual_output", "claim"),
        "knowledge": ("contexts", "context", "retrieved_contexts", "retrieval_context", "doc"),
        "history": ("question", "user_input", "input"),
    }
)
"""By field, the names of ragas (question, answer, contexts; user_input, response, retrieved_contexts), LettuceDetect
(question, answer, context), DeepEval (input, actual_output, retrieval_context) and LLM-AggreFact (claim, doc)."""
PROMPT = "prompt"
"""The knowledge in LettuceDetect's data files, where no field has another name of it."""
FIELDS = ("response", "knowledge", "history", "triples", "id")
"""The fields of a request in a file."""


class AmbiguousColumns(MalformedText):
    """A field is there under several names."""


class UnknownColumns(InvalidRequest):
    """The input lacks a column that is needed, or that the caller names."""


def parse_columns(value: str | None, fields: Collection[str] = FIELDS) -> dict[str, str]:
    """The names in a value of ``--columns``, by field; InvalidRequest when it is not ``FIELD=NAME,…``.

    >>> parse_columns("response=text,knowledge=passages")
    {'response': 'text', 'knowledge': 'passages'}
    """
    columns: dict[str, str] = {}
    for part in (value or "").split(",") if value else ():
        field, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not name or field not in fields or field in columns:
            raise InvalidRequest(
                f"{part.strip()!r} is not FIELD=NAME with a field named once. "
                f"Fields are {', '.join(fields)}; an example is --columns response=text,knowledge=passages."
            )
        columns[field] = name
    return columns


def find_columns(names: Collection[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The name of each field that is among ``names``: the name in ``columns``, else its own name, else an alias.

    Raises AmbiguousColumns for several aliases of one field.
    """
    where = {field: name for field, name in columns.items() if name in names}
    for field, aliases in ALIASES.items():
        if field in columns or field in names:
            continue
        present = [alias for alias in aliases if alias in names and alias not in columns.values()]
        if len(present) > 1:
            raise AmbiguousColumns(
                f"both {' and '.join(present)} may be the {field}; say which with --columns {field}={present[0]}"
            )
        if present:
            where[field] = present[0]
    if not {"knowledge", "triples"} & {*where, *columns, *names} and PROMPT in names and PROMPT not in columns.values():
        where["knowledge"] = PROMPT
    return where


def suggest_columns(absent: Collection[str], columns: Mapping[str, str]) -> str:
    """What to do about fields that an input does not have."""
    named, unnamed = sorted(set(absent) & set(columns)), sorted(set(absent) - set(columns))
    if named:
        return f"Correct --columns {named[0]}={columns[named[0]]}."
    return f"If {unnamed[0]} has another name, say so: --columns {unnamed[0]}=NAME."


def rename_fields(row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The row under Groundwire's own names. A question as one text becomes a history of one utterance.

    A chat's ``messages`` become the fields that the row does not have (``_read_messages``). MalformedText if they are
    not a chat with a response, AmbiguousColumns for several aliases of one field.
    """
    where = find_columns(row.keys(), columns)
    renamed = {name: value for name, value in row.items() if name not in where.values() and name not in columns}
    renamed |= {field: row[name] for field, name in where.items()}
    if where.get("history", "history") != "history" and isinstance(renamed["history"], str):
        renamed["history"] = [renamed["history"]] if renamed["history"].strip() else []
    if "messages" in row and "response" not in renamed:
        renamed = _read_messages(renamed.pop("messages")) | renamed
    return renamed


def read_passages(cell: str) -> Any:
    """The knowledge in a cell of a table: a text, the JSON of an object or a list, or a list of texts as Python, and so
    pandas, writes it; MalformedText if it is none of these.

    >>> read_passages('["It costs £5.", {"paid": true}]'), read_passages("[sic] It costs £5.")
    (['It costs £5.', {'paid': True}], '[sic] It costs £5.')
    >>> read_passages("['It costs £5.', 'It is paid.']")
    ['It costs £5.', 'It is paid.']
    """
    start = cell.lstrip()[:2]
    if start in ("['", '["') and (passages := _read_python_list(cell.strip())) is not None:
        return passages
    return decode_json(cell) if start in ('["', "[{", "[]", '{"') else cell


def _read_python_list(cell: str) -> list[str] | None:
    """The texts of a list in the form of ``repr``; None for anything else, such as NumPy's form without commas."""
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if repr(value) == cell and all(isinstance(text, str) for text in value) else None


def _read_messages(messages: object) -> dict[str, Any]:
    """The fields of a chat: the assistant's last message is the response, what users and the assistant said before is
    the history, and what the system said and tools returned before is the knowledge."""
    listed = messages if isinstance(messages, list) else []
    last = max((index for index, message in enumerate(listed) if _read_response(message)), default=None)
    if last is None:
        raise MalformedText("messages has no text of the role assistant, which would be the response")
    chat = read_chat(listed[:last])
    knowledge = list(list_passages((*chat.instructions, *chat.calls)))
    fields: dict[str, Any] = {
        "response": _read_response(listed[last]),
        "history": [text.strip() for _, text in chat.history],
    }
    return fields | ({"knowledge": knowledge} if knowledge else {})


def _read_response(message: object) -> str:
    """The text of a message of the assistant; empty for another message."""
    said = [text for role, text in read_chat([message]).history if role == "assistant"]
    return said[0].strip() if said else ""
