"""Reads what the strings below the fields of records say: for the help of ``groundwire serve`` and for OpenAPI."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap


def write_field_docs() -> str:
    """Return ``interfaces/service/fields.json``: the descriptions of fields by the name of their record."""
    from groundwire.service.application import OPERATIONS
    from groundwire.service.openapi import list_records
    from groundwire.service.problems import Problem
    from groundwire.service.settings import ProxySettings, Settings

    types = [kind for operation in OPERATIONS for kind in (operation.body, operation.result) if kind is not None]
    records = {*list_records([*types, Problem]), Settings, ProxySettings}
    docs = {record.__name__: read_docs(record) for record in sorted(records, key=lambda record: record.__name__)}
    return json.dumps({name: texts for name, texts in docs.items() if texts}, indent=1, ensure_ascii=False) + "\n"


def read_docs(record: type) -> dict[str, str]:
    """Return, by field, the string below it in the class or a base class, in one line."""
    docs: dict[str, str] = {}
    for base in reversed(record.__mro__):
        if base.__module__.partition(".")[0] == "groundwire":
            docs |= _read_own(base)
    fields = getattr(record, "__struct_fields__", docs)  # a class variable is no field
    return {name: text for name, text in docs.items() if name in fields}


def _read_own(record: type) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    assert isinstance(definition, ast.ClassDef)
    docs = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            docs[statement.target.id] = " ".join(following.value.value.split())
    return docs
