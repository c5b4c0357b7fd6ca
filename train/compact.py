"""The embedded bundle from its trained checkpoints: ``bundles/compact``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from groundwire.export import RoleOptions, Title, export_bundle
from groundwire.runtime.bundle import Bundle, Template

WINDOW = 256
"""Tokens the models read at once. They were trained on windows of at most 128, and longer ones are rarely better."""


def bundle(
    checkpoints: Path, out: Path, watch: Callable[[str, str], None], *, precision: str = "int8", force: bool = False
) -> Bundle:
    """Export ``checkpoints/{qa,nli,qg,spans}`` as one bundle, with the word embeddings stored once."""
    kind = "int8" if precision == "int8" else "fp32"
    sources = {role: str(checkpoints / role) for role in ("qa", "nli", "qg", "spans")}
    roles = {
        "spans": RoleOptions(sources["spans"]),
        "qg": RoleOptions(sources["qg"], precision=kind, template=Template("{answer}", "{context}"), max_tokens=WINDOW),
        "qa": RoleOptions(sources["qa"], precision=kind, max_tokens=WINDOW),
        "nli": RoleOptions(sources["nli"], precision=kind, max_tokens=WINDOW),
    }
    title = Title("compact", "1", "Apache-2.0 AND CC-BY-SA-4.0 AND CC-BY-4.0 AND MIT")
    return export_bundle(roles, out, title=title, force=force, watch=watch)
