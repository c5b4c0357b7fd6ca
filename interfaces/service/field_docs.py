"""The docstrings of a record's fields, which Python does not keep: help texts and the OpenAPI document show them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache


@cache
def read_field_docs(record: type) -> dict[str, str]:
    """By field, the string below it in the source of the class or of a base class, in one line; fields without one are
    left out.

    Empty where the source is not there.
    """
    docs: dict[str, str] = {}
    for base in reversed(record.__mro__):
        if base.__module__.partition(".")[0] == "groundwire":
            docs |= _read_own(base)
    return docs


def _read_own(record: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(record))
    except (OSError, TypeError):
        return {}
    (definition,) = ast.parse(source).body
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
