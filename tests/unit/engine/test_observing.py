"""Who watches the engine's batches sees each of them, and cannot disturb them."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from tests.support.streams import world


def test_every_batch_is_observed() -> None:
    seen: list[tuple[str, int]] = []

    def observe(role: str, calls: int, ms: float) -> None:
        assert ms >= 0
        seen.append((role, calls))

    runtime = world()
    with Engine(runtime) as engine:
        engine.core.observe_batches(observe)
        engine.score("Honey is sweet.", "Honey.", metrics=["nli", "verifiability"])
    assert sorted(seen) == sorted((role, len(calls)) for role, calls in runtime.batches)
    assert seen


def test_a_watcher_that_fails_disturbs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(role: str, calls: int, ms: float) -> None:
        raise ValueError("no room for numbers")

    with Engine(world()) as engine:
        engine.core.observe_batches(fail)
        assert engine.score("Honey is sweet.", "Honey.", metrics=["nli"]).status == "scored"
        engine.core.observe_batches(None)
        assert engine.score("Honey is golden.", "Honey.", metrics=["nli"]).status == "scored"
        assert engine.core.is_open
    assert "no room for numbers" in caplog.text
