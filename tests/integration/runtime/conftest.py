"""Fixtures of the runtime's tests."""

from __future__ import annotations

import pytest

from tests.support.shared import shared_root
from tests.support.zoo import Zoo


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    return Zoo(shared_root(tmp_path_factory) / "zoo")
