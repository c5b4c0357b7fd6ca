"""Finds the entities that Conv-FEVER's corruptions swap, with the span finder of a bundle or any spaCy pipeline."""

from __future__ import annotations

from pathlib import Path

from groundwire.runtime.bundle import Bundle
from groundwire.runtime.errors import BundleError
from groundwire.runtime.manifest import SpansRole
from groundwire.runtime.models.span_finder import SpanFinder

from .corpus import EntityFinder

ENTITY = "ent:"


def load_entity_finder(source: str) -> EntityFinder:
    """The entities by a bundle (a name or a directory), a pipeline directory, or an installed spaCy pipeline.

    Raises BundleError when ``source`` is none of them, or when the bundle has no role ``spans``.
    """
    finder = SpanFinder.load(_find_pipeline(source))

    def find(text: str) -> list[tuple[str, str]]:
        spans = finder.find(text)
        return [(span.text, span.kind.removeprefix(ENTITY)) for span in spans if span.kind.startswith(ENTITY)]

    return find


def _find_pipeline(source: str) -> Path | str:
    directory = Path(source)
    if directory.is_dir() and (directory / "config.cfg").exists():
        return directory
    try:
        bundle = Bundle.open(source)
    except BundleError:
        if directory.exists():
            raise
        return source  # perhaps an installed pipeline; if not, its error names all that is allowed
    role = bundle.manifest.roles.get("spans")
    if not isinstance(role, SpansRole):
        raise BundleError(
            f"The bundle {source!r} has no role 'spans'; it has {', '.join(sorted(bundle.manifest.roles))}."
        )
    return bundle.file(role.path)
