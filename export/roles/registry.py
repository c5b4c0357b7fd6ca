"""The kinds of models that the exporter knows: a new kind is a module of this package, a line in ``KINDS``
and a line in ``ROLES`` (``names.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import (
    classifier,
    embedder,
    extractive_qa,
    judge,
    question_generator,
    reader,
    response_generator,
    spans,
    token_classifier,
)
from .kind import CopiedKind, ExportKind
from .language_model import kind as language_model
from .names import find_kind_name
from .retriever import kind as retriever

KINDS: Mapping[str, ExportKind | CopiedKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            extractive_qa.KIND,
            question_generator.KIND,
            classifier.KIND,
            judge.KIND,
            token_classifier.KIND,
            reader.KIND,
            embedder.KIND,
            language_model.KIND,
            response_generator.KIND,
            retriever.KIND,
            spans.KIND,
        )
    }
)
"""By name."""


def find_kind(role: str) -> ExportKind | CopiedKind:
    """Return the kind of model that fills ``role``; ExportError for a role that no metric uses."""
    return KINDS[find_kind_name(role)]
