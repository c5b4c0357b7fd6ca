"""The roles that a kind of model may fill, and the settings of a kind, by name.

Cheap to import, so that a command can check a name at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from groundwire.runtime.bundles.manifest import TargetName
from groundwire.runtime.errors import ExportError

from ..options import (
    ClassifierSettings,
    EmbedderSettings,
    JudgeSettings,
    KindSettings,
    QuestionGeneratorSettings,
    ReaderSettings,
    RequestedPrecision,
    ResponseGeneratorSettings,
    RoleOptions,
    SpansSettings,
    TokenClassifierSettings,
)

ANY_NAME = "NAME"
"""A placeholder for any name at the end of a role: ``detector.NAME``."""

ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "extractive_qa": ("qa",),
        "question_generator": ("qg",),
        "classifier": ("nli", f"detector.{ANY_NAME}"),
        "judge": ("judge",),
        "token_classifier": ("token_classifier", "critic"),
        "reader": ("reader",),
        "embedder": ("embedder",),
        "language_model": ("lm",),
        "response_generator": ("generator",),
        "retriever": ("retriever",),
        "spans": ("spans",),
    }
)
"""By the name of the kind; ``detector.NAME`` is any role whose name begins with ``detector.``."""

SETTINGS_OF_KINDS: Mapping[str, type[KindSettings]] = MappingProxyType(
    {
        "classifier": ClassifierSettings,
        "judge": JudgeSettings,
        "token_classifier": TokenClassifierSettings,
        "question_generator": QuestionGeneratorSettings,
        "response_generator": ResponseGeneratorSettings,
        "reader": ReaderSettings,
        "embedder": EmbedderSettings,
        "spans": SpansSettings,
    }
)
"""By the name of the kind; other kinds have no settings of their own."""
_ENCODERS = ("extractive_qa", "classifier", "judge", "token_classifier")
BLOCK_KINDS = ("classifier", "judge", "token_classifier")
"""The kinds whose graphs may have 4-bit weights."""
TARGET_KINDS: Mapping[TargetName, tuple[str, ...]] = MappingProxyType(
    {
        "cuda": (*_ENCODERS, "reader", "question_generator"),
        "tensorrt": _ENCODERS,
        "tensorrt-rtx": (*_ENCODERS, "reader", "embedder", "question_generator", "language_model"),
    }
)
"""By target, the kinds whose roles have graphs for it."""


def list_precisions(role: str, target: TargetName) -> tuple[RequestedPrecision, ...]:
    """Return what the graph of a role for a target may be asked to be."""
    if target == "cuda" or find_kind_name(role) in ("question_generator", "language_model"):
        return "fp32", "fp16"
    return "fp32", "fp16", "fp8", "int8"


def find_kind_name(role: str, *, presets: Iterable[str] = ()) -> str:
    """Return the name of the kind that fills ``role``.

    Raises ExportError for a role that no metric uses. The message lists the roles and, where a preset may be named
    too, ``presets``.
    """
    for kind, roles in ROLES.items():
        if any(_matches(role, name) for name in roles):
            return kind
    names = [name for roles in ROLES.values() for name in roles]
    near = difflib.get_close_matches(role, [*presets, *names], n=1)
    raise ExportError(
        f"Unknown {'preset or ' if presets else ''}role {role!r}{f'; did you mean {near[0]}?' if near else '.'} "
        + (f"Presets are {_join(list(presets))}. " if presets else "")
        + f"Roles are {_join(names)}."
    )


def check_kind(role: str, options: RoleOptions) -> None:
    """Raise ExportError if the settings are of another kind of model than the kind that fills the role."""
    name = find_kind_name(role)
    allowed = SETTINGS_OF_KINDS.get(name)
    if options.kind is None or (allowed is not None and isinstance(options.kind, allowed)):
        return
    advice = (
        "has no settings of its own; leave kind out" if allowed is None else f"takes {allowed.__name__}; pass these"
    )
    raise ExportError(f"RoleOptions.kind is {type(options.kind).__name__}, but {name}, the kind of {role!r}, {advice}.")


def _matches(role: str, name: str) -> bool:
    prefix = name.removesuffix(ANY_NAME)
    return role == name or (prefix != name and role.startswith(prefix) and role != prefix)


def _join(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
