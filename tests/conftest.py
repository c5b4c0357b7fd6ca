"""What tests of several folders share: one tiny bundle, and an engine over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from groundwire.engine import Engine

# Heavy imports stand inside the fixtures: a test of the native module alone loads neither torch nor spaCy.


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the checkpoints ``qg`` (T5), ``qa`` (ALBERT) and ``nli`` (RoBERTa) and the pipeline ``spans``.

    The weights are random, the tokenizers real, and the pipeline knows a few sentences by heart.
    """
    from .support import models
    from .unit.runtime.test_span_finder import train_tiny

    root = tmp_path_factory.mktemp("checkpoints")
    models.encoder_decoder(root / "qg", "t5")
    models.extractive_qa(root / "qa", "albert", seed=3)  # of a few seeds the one whose answers meet a span most often
    models.classifier(root / "nli", "roberta", seed=3)
    train_tiny("ud").to_disk(root / "spans")
    return root


@pytest.fixture(scope="session")
def tiny_bundle(tiny_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of all roles that Q² needs, in fp32. Shared by all tests: copy it before you damage it."""
    from groundwire.export import RoleOptions, Title, export_bundle

    roles = {
        role: RoleOptions(
            str(tiny_checkpoints / role), precision="fp32", strip_prefix="question: " if role == "qg" else ""
        )
        for role in ("qg", "qa", "nli", "spans")
    }
    return export_bundle(roles, tmp_path_factory.mktemp("bundles") / "tiny", title=Title("tiny")).directory


@pytest.fixture(scope="session")
def engine(tiny_bundle: Path) -> Iterator[Engine]:
    """An engine over the tiny bundle on the CPU."""
    from groundwire.engine import Engine

    with Engine.load(tiny_bundle, device="cpu", threads=1) as loaded:
        yield loaded
