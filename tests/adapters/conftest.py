"""Engines over fake models. What the tools themselves warn of is not the adapters' concern."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from groundwire.engine import Engine
from tests.support.adapters import fail, open_engine

# Some tools report their use to their makers, or ask for a list of prices, when they are imported.
os.environ |= {
    "DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "RAGAS_DO_NOT_TRACK": "true",
}


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
