"""Drawing a score from results ends soon after the deadline, and leaves the event loop to others."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from groundwire.engine import Engine, Options, Score
from groundwire.engine.core import core
from groundwire.engine.schema.time_limit import OutOfTime, check_time, limit_time
from groundwire.engine.verdict.score import build_score
from tests.support.streams import KNOWLEDGE, METRICS, world

TEXT = "Honey is sweet. It is golden."


def build_slowly(*arguments: Any) -> Score:
    """Like a long text: a loop that looks at the time."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        check_time()
        time.sleep(0.01)
    return build_score(*arguments)


def test_a_fold_ends_with_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "build_score", build_slowly)
    with Engine(world()) as engine:
        score = engine.score(TEXT, KNOWLEDGE, metrics=METRICS, options=Options(deadline_ms=200))
        (other,) = engine.score_many([(TEXT, KNOWLEDGE)], metrics=METRICS, options=Options(deadline_ms=200))
    for stopped in (score, other):
        assert (stopped.status, stopped.value, stopped.verdict.label) == ("deadline", None, "unknown")
        assert "Options.deadline_ms" in stopped.message


def test_the_sentences_of_a_verdict_and_its_marks_look_at_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*arguments: Any) -> Score:
        with limit_time(-1.0):
            return build_score(*arguments)

    monkeypatch.setattr(core, "build_score", build)
    with Engine(world()) as engine:
        assert engine.score(TEXT, KNOWLEDGE, metrics=METRICS).status == "deadline"


def test_under_asyncio_a_score_is_drawn_on_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def build(*arguments: Any) -> Score:
        threads.append(threading.get_ident())
        return build_score(*arguments)

    async def main(engine: Engine) -> None:
        assert (await engine.ascore(TEXT, KNOWLEDGE, metrics=METRICS)).status == "scored"

    monkeypatch.setattr(core, "build_score", build)
    with Engine(world()) as engine:
        asyncio.run(main(engine))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_limit_ends_with_its_block() -> None:
    with limit_time(-1.0), limit_time(None):
        check_time()
    with limit_time(-1.0), pytest.raises(OutOfTime):
        check_time()
    check_time()
