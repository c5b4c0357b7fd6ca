"""Engines over fake models. What the tools themselves warn of is not the adapters' concern."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groundwire.engine import Engine
from tests.support.adapters import fail, open_engine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture
def engine() -> Iterator[Engine]:
    with open_engine() as engine:
        yield engine


@pytest.fixture
def failing_engine() -> Iterator[Engine]:
    """An engine whose verdicts are all ``unknown``, because a model fails."""
    with open_engine(nli=fail) as engine:
        yield engine


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tools write files where they run."""
    monkeypatch.chdir(tmp_path)
