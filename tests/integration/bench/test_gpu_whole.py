"""The latency of whole responses on a GPU: what is measured first, and what is kept of a failed warm-up; on a fake."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.gpu import processes, whole
from bench.gpu.report import list_targets
from bench.gpu.setup import Launches, Setup
from bench.gpu.stages import Record
from groundwire.runtime.errors import ModelError
from groundwire.runtime.fake import FakeRuntime
from tests.support.fakes import ROLES

MESSAGE = "The role 'nli' answers its stored input otherwise here"


class Runtime(FakeRuntime):
    """A runtime whose warm-up fails with ``message``, if there is one."""

    message = ""

    def warm_calls(self, roles: Collection[str] | None = None) -> tuple[()]:
        """No calls."""
        if self.message:
            raise ModelError(self.message)
        return ()


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    """Tiny sizes, with the fake as the runtime."""
    monkeypatch.setattr(Setup, "load_runtime", lambda *roles: Runtime(ROLES))
    monkeypatch.setattr(whole, "METRICS", {"q2": ["q2"], "full": ["q2", "nli"]})
    return Setup("cpu", True, tmp_path, in_flight=(2,))


@pytest.fixture
def saved() -> list[Any]:
    """What a stage has saved, as it was then."""
    return []


def keep(saved: list[Any]) -> Callable[[Any], None]:
    return lambda results: saved.append(msgspec.to_builtins(results))


def test_launches_are_counted_after_all_times_were_taken(
    setup: Setup, saved: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses: list[str] = []

    def count_launches(setup: Setup, run: Callable[[], str]) -> Launches:
        statuses.append(run())
        return Launches(len(statuses), 0, 0, None)

    monkeypatch.setattr(whole, "count_launches", count_launches)
    whole.measure_latency(setup, keep(saved))
    kernels = [[row["launches"] and row["launches"]["kernels"] for row in results["rows"]] for results in saved]
    assert kernels == [[None] * count for count in range(5)] + [
        [1, None, None, None],
        [1, 2, None, None],
        [1, 2, 3, None],
        [1, 2, 3, 4],
    ]
    assert [row["metrics"] for row in saved[-1]["rows"]] == list(whole.AT_ONCE)
    assert set(statuses) == {"scored"}
    assert saved[-1]["warm_up"]["error"] == ""


def test_launches_that_cannot_be_counted_leave_the_times(setup: Setup, saved: list[Any]) -> None:
    whole.measure_latency(setup, keep(saved))  # a CPU has no kernels
    assert [row["launches"] for row in saved[-1]["rows"]] == [None] * 4


@pytest.mark.parametrize(
    ("measure", "rows"), [(whole.measure_latency, 4), (whole.measure_load, 2), (processes.measure, 2)]
)
def test_a_failed_warm_up_fails_the_stage_after_its_measurement(
    setup: Setup,
    saved: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    measure: Callable[[Setup, Callable[[Any], None]], None],
    rows: int,
) -> None:
    monkeypatch.setattr(Runtime, "message", MESSAGE)
    load_engine = whole.load_engine
    monkeypatch.setattr(processes, "load_engine", lambda setup, count: load_engine(setup))
    with pytest.raises(ModelError, match=MESSAGE):
        measure(setup, keep(saved))
    results = saved[-1]
    assert len(results["rows"]) == rows
    warm_ups = [results["warm_up"]] if "warm_up" in results else [row["warm_up"] for row in results["rows"]]
    assert {warm_up["error"] for warm_up in warm_ups} == {MESSAGE}


def test_zeros_of_the_double_are_no_failure(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runtime, "message", MESSAGE)
    monkeypatch.setattr(whole, "is_double", lambda: True)
    engine, warm_up = whole.load_engine(setup)
    with engine:
        assert warm_up.error == ""


def test_targets_are_checked_on_a_stage_whose_warm_up_failed(
    setup: Setup, saved: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runtime, "message", MESSAGE)
    with pytest.raises(ModelError):
        whole.measure_latency(setup, keep(saved))
    targets = list_targets([Record("latency", "failed", 1.0, f"ModelError: {MESSAGE}", saved[-1])])
    assert "full set, p50" in {target.name for target in targets}
