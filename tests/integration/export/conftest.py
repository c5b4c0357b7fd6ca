"""Tiny checkpoints on disk, loaded as the exporter loads them, each made once per run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from groundwire.export.checkpoint import Checkpoint
from groundwire.export.options import RoleOptions
from groundwire.export.roles.registry import KINDS
from tests.support import models

Loader = Callable[[str, str], Checkpoint]
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
    root = tmp_path_factory.mktemp("checkpoints")

    def get(kind: str, family: str) -> Path:
        path = root / f"{kind}-{family}"
        return path if path.exists() else _WRITE[kind](path, family)

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
