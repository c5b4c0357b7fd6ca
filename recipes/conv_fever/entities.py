"""Finds the entities that Conv-FEVER's corruptions swap, with the spaCy pipeline of a bundle or any other."""

from __future__ import annotations

from pathlib import Path

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import SpansRole
from groundwire.runtime.errors import BundleError
from groundwire.runtime.models.span_finder import load_pipeline

from .corpus import EntityFinder


def load_entity_finder(source: str) -> EntityFinder:
    """The entities by a bundle (a name or a directory), a pipeline directory, or an installed spaCy pipeline.

    Raises BundleError when ``source`` is none of them, or when the bundle has no role ``spans``.
    """
    nlp = load_pipeline(_find_pipeline(source))
    # Rules for entities may read parts of speech, but no dependencies.
    nlp.select_pipes(disable=[name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory == "parser"])

    def find(text: str) -> list[tuple[str, str]]:
        return [(entity.text, entity.label_) for entity in nlp(text).ents]

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
