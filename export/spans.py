"""The spans role: a spaCy pipeline, copied as it is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from groundwire.runtime.bundle import SpansRole
from groundwire.runtime.errors import ExportError

from .options import RoleOptions
from .store import RoleFiles

_CONFIG = "config.cfg"


def files(role: str, options: RoleOptions) -> RoleFiles:
    """The record and directory of the pipeline ``options.source``: a directory, or an installed spaCy package.

    Nothing of the pipeline is run. ExportError when there is no such pipeline.
    """
    tree = _directory(options.source)
    return RoleFiles(SpansRole(source=Path(options.source).name, revision=options.revision, path=role), tree=tree)


def _directory(source: str) -> Path:
    local = Path(source)
    if (local / _CONFIG).is_file():
        return local
    found = importlib.util.find_spec(source) if source.isidentifier() else None
    if found is not None and found.submodule_search_locations:
        # An installed package keeps its pipeline in a folder that carries the version: en_core_web_sm-3.8.0.
        for root in found.submodule_search_locations:
            for config in sorted(Path(root).glob(f"*/{_CONFIG}")):
                return config.parent
    raise ExportError(
        f"No spaCy pipeline {source!r}: it is neither a directory with a {_CONFIG} nor an installed package. "
        f"Install it (python -m spacy download {source}), or give a directory that nlp.to_disk wrote."
    )
