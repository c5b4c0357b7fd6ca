"""Fixtures of the runtime's tests."""

from __future__ import annotations

import pytest

from tests.support.zoo import Zoo


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    return Zoo(tmp_path_factory.mktemp("zoo"))
