"""One tiny bundle of every role that Q² needs, and an engine over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groundwire.engine import Engine
from groundwire.export import QuestionGeneratorSettings, RoleOptions, Title, export_bundle
from tests.support import models
from tests.support.shared import make_once, shared_root
from tests.support.span_pipelines import train_tiny


def write_checkpoints(root: Path) -> None:
    models.encoder_decoder(root / "qg", "t5")
    models.extractive_qa(root / "qa", "albert", seed=3)  # of a few seeds the one whose answers meet a span most often
    models.classifier(root / "nli", "roberta", seed=3)
    train_tiny("ud").to_disk(root / "spans")


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the checkpoints ``qg`` (T5), ``qa`` (ALBERT) and ``nli`` (RoBERTa) and the pipeline ``spans``.

    The weights are random, the tokenizers real, and the pipeline knows a few sentences by heart.
    """
    return make_once(shared_root(tmp_path_factory) / "tiny-checkpoints", write_checkpoints)


@pytest.fixture(scope="session")
def tiny_bundle(tiny_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of all roles that Q² needs, in fp32. Shared by all tests: copy it before you damage it."""

    def export(folder: Path) -> None:
        roles = {
            role: RoleOptions(
                str(tiny_checkpoints / role),
                QuestionGeneratorSettings(strip_prefix="question: ") if role == "qg" else None,
                precision="fp32",
            )
            for role in ("qg", "qa", "nli", "spans")
        }
        export_bundle(roles, folder, title=Title("tiny"))

    return make_once(shared_root(tmp_path_factory) / "tiny", export)


@pytest.fixture(scope="session")
def engine(tiny_bundle: Path) -> Iterator[Engine]:
    """An engine over the tiny bundle on the CPU."""
    with Engine.load(tiny_bundle, device="cpu", threads=1) as loaded:
        yield loaded
