"""The spans role: a spaCy pipeline, copied as it is, or with its weights in half precision."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import srsly

from groundwire.runtime.bundles.manifest import SpansRole
from groundwire.runtime.errors import ExportError

from ..options import RoleOptions, SpansSettings
from ..store import RoleFiles
from .kind import CopiedKind

_CONFIG = "config.cfg"


def _copy(role: str, options: RoleOptions) -> RoleFiles:
    """Return the record and directory of the pipeline ``options.source``: a directory, or an installed spaCy package.

    The pipeline is not run. ExportError when the pipeline does not exist.
    """
    tree = _find_directory(options.source)
    record = SpansRole(source=Path(options.source).name, revision=options.revision, path=role)
    return RoleFiles(record, tree=tree, finish=halve_weights if options.read(SpansSettings).half else _leave_unchanged)


def halve_weights(pipeline: Path) -> None:
    """Round the weights in the model files of a pipeline's directory to half precision, in place."""
    for path in sorted(pipeline.glob("*/model")):
        content = srsly.msgpack_loads(path.read_bytes())
        for params in content["params"]:
            for name, value in params.items():
                if value is not None and value.dtype == np.float32:
                    params[name] = value.astype(np.float16)
        path.write_bytes(srsly.msgpack_dumps(content))


def _leave_unchanged(pipeline: Path) -> None:
    """Do nothing."""


def _find_directory(source: str) -> Path:
    local = Path(source)
    if (local / _CONFIG).is_file():
        return local
    package = importlib.util.find_spec(source) if source.isidentifier() else None
    if package is not None and package.submodule_search_locations:
        # An installed package keeps its pipeline in a folder that carries the version: en_core_web_sm-3.8.0.
        for root in package.submodule_search_locations:
            for config in sorted(Path(root).glob(f"*/{_CONFIG}")):
                return config.parent
    raise ExportError(
        f"No spaCy pipeline {source!r}: it is neither a directory with a {_CONFIG} nor an installed package. "
        f"Install it (python -m spacy download {source}), or give a directory that nlp.to_disk wrote."
    )


KIND = CopiedKind("spans", _copy)
