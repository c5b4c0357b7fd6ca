"""Records of roles whose models do not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

RoleT = TypeVar("RoleT")


def make_role(kind: Callable[..., RoleT], tokenizer: str = "tokenizer.json", **fields: Any) -> RoleT:
    """A record of a ``kind`` of role with ``fields``, and with values of eight tokens for what every role has."""
    usual = {"source": "test", "architecture": "Test", "precision": "fp32", "max_tokens": 8, "pad_id": 0}
    return kind(tokenizer=tokenizer, **{**usual, **fields})
