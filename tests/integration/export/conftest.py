"""Tiny checkpoints on disk, loaded as the exporter loads them, each made once per run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from groundwire.export.checkpoint import Checkpoint
from groundwire.export.options import RoleOptions
from groundwire.export.roles.registry import KINDS
from tests.support import models
from tests.support.graphs import Loader
from tests.support.shared import make_once, shared_root

_WRITE: dict[str, Callable[[Path, str], Path]] = {
    "extractive_qa": models.extractive_qa,
    "classifier": models.classifier,
    "question_generator": models.encoder_decoder,
    "embedder": models.embedder,
    "language_model": models.language_model,
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The directory of a tiny checkpoint by kind and family."""
    root = shared_root(tmp_path_factory) / "checkpoints"

    def get(kind: str, family: str) -> Path:
        return make_once(root / f"{kind}-{family}", lambda path: _WRITE[kind](path, family))

    return get


@pytest.fixture(scope="session")
def load(folder: Callable[[str, str], Path]) -> Loader:
    """A tiny checkpoint, loaded."""
    made: dict[tuple[str, str], Checkpoint] = {}

    def get(kind: str, family: str) -> Checkpoint:
        if (kind, family) not in made:
            made[kind, family] = KINDS[kind].load(RoleOptions(str(folder(kind, family))))
        return made[kind, family]

    return get
