"""Streams in virtual time under faults, deadlines and closes; and proof that the simulation finds defects."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from groundwire.engine.extend import fold_outcomes
from groundwire.engine.schema.results import STOPPED, Score
from groundwire.guard import checks, core
from groundwire.guard.checks import Check
from groundwire.guard.core import StreamCore
from tests.simulation.streams import StreamSimulation

SEEDS = 300


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def find_problems(seeds: int) -> Iterator[str]:
    for seed in range(seeds):
        yield from (f"seed {seed}: {problem}" for problem in StreamSimulation(seed).run())


@pytest.mark.no_cover
def test_no_schedule_lets_text_leave_unchecked_or_leaves_a_stream_waiting() -> None:
    ends: Counter[str] = Counter()
    for seed in range(SEEDS):
        simulation = StreamSimulation(seed)
        assert simulation.run() == [], seed
        ends.update(client.ended for client in simulation.clients)
    assert ends.keys() == {"finished", "EngineClosed", "StreamClosed"}


def ignore_failures(patch: pytest.MonkeyPatch) -> None:
    """A sentence is consistent although a metric failed."""

    def check_alone(score: Score) -> Check:
        check = checks.check_alone(score)
        if check.has_verdict:
            return check
        return Check("consistent", msgspec.structs.replace(check.verdict, label="consistent"))

    patch.setattr(core, "check_alone", check_alone)


def forget_failures(patch: pytest.MonkeyPatch) -> None:
    """The metrics that were stopped are left out."""

    def fold(request: Any, outcomes: Any, timings: Any, plan: Any, **options: Any) -> Score:
        score = fold_outcomes(request, outcomes, timings, plan, **options)
        scored = {name: result for name, result in score.metrics.items() if result.status not in STOPPED}
        return msgspec.structs.replace(score, metrics=scored)

    patch.setattr(core, "fold_outcomes", fold)


def release_twice(patch: pytest.MonkeyPatch) -> None:
    """What has left is held again."""

    def leave(self: StreamCore, text: str, end: int, *arguments: Any, **settings: Any) -> None:
        released_end = self.released_end
        original(self, text, end, *arguments, **settings)
        self.released_end = (released_end + end) // 2

    original = StreamCore._leave
    patch.setattr(StreamCore, "_leave", leave)


@pytest.mark.parametrize("plant", [ignore_failures, forget_failures, release_twice])
def test_a_planted_defect_is_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert next(find_problems(SEEDS), None) is not None
