"""Tests of the CUDA path on the double of CUDA; ``make test-device`` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundwire.export import RoleOptions, Title, export_bundle
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.kinds import kind_of
from tests.support import cuda_double, models, retrievers
from tests.support.shared import make_once, shared_root
from tests.support.span_pipelines import train_tiny

FOLDER = Path(__file__).parent
LIMIT_S = 1800
"""Of a test with the exports that it is the first to need: what hangs is to end, and a busy machine is not."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder their limit, and skip them in a process that does not use the double."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
    if not cuda_double.is_active():
        skip = pytest.mark.skip(reason="these tests need onnxruntime-gpu and run in a process of their own: "
                                "make test-device")  # fmt: skip
        for item in items:
            if FOLDER in item.path.parents:
                item.add_marker(skip)


def write_checkpoints(root: Path) -> None:
    models.encoder_decoder(root / "qg", "t5")
    models.extractive_qa(root / "qa", "albert", seed=3)
    models.classifier(root / "nli", "roberta", seed=3)
    models.classifier(root / "detector.facts", "bert")
    models.token_classifier(root / "critic", "bert")
    models.embedder(root / "embedder", "mpnet")
    models.language_model(root / "lm", "gpt2")
    models.language_model(root / "generator", "gpt2")
    retrievers.save(root / "retriever")
    train_tiny("ud").to_disk(root / "spans")


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with a tiny model of every role, in fp16."""
    root = shared_root(tmp_path_factory)

    def export(folder: Path) -> None:
        checkpoints = make_once(root / "checkpoints", write_checkpoints)
        roles = {path.name: RoleOptions(str(path), precision="fp16") for path in sorted(checkpoints.iterdir())}
        export_bundle(roles, folder, title=Title("device"))

    return make_once(root / "bundle", export)


@pytest.fixture(scope="session")
def runtime(bundle: Path) -> LocalRuntime:
    """The bundle on the double, warmed up."""
    runtime = LocalRuntime.load(bundle, device="cuda")
    for role, record in runtime.bundle.manifest.roles.items():
        runtime.run(role, kind_of(record).warm_calls(role), 8)
    return runtime
