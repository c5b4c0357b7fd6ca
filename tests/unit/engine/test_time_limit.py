"""Drawing a score from results ends soon after the deadline, and leaves the event loop to others."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import Any

import pytest

from groundwire.engine import Engine, Options, Request, Score
from groundwire.engine.core import core
from groundwire.engine.extend import fold_outcomes
from groundwire.engine.metrics.requests import OutOfTime, ReadRequest
from groundwire.engine.verdict.score import build_score
from tests.support.streams import KNOWLEDGE, METRICS, world

TEXT = "Honey is sweet. It is golden."


def build_slowly(request: ReadRequest, *arguments: Any) -> Score:
    """Like a long text: a loop that looks at the time."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        request.check_time()
        time.sleep(0.01)
    return build_score(request, *arguments)


def test_a_fold_ends_with_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "build_score", build_slowly)
    with Engine(world()) as engine:
        score = engine.score(TEXT, KNOWLEDGE, metrics=METRICS, options=Options(deadline_ms=200))
        (other,) = engine.score_many([(TEXT, KNOWLEDGE)], metrics=METRICS, options=Options(deadline_ms=200))
    for stopped in (score, other):
        assert (stopped.status, stopped.value, stopped.verdict.label) == ("deadline", None, "unknown")
        assert "Options.deadline_ms" in stopped.message


def test_the_sentences_of_a_verdict_and_its_marks_look_at_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(request: ReadRequest, *arguments: Any) -> Score:
        return build_score(request.end_at(-1.0), *arguments)

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


def test_a_request_is_out_of_time_after_its_end_alone() -> None:
    request = ReadRequest.of(Request(TEXT, (KNOWLEDGE,)))
    request.check_time()
    request.end_at(time.monotonic() + 60).check_time()
    with pytest.raises(OutOfTime):
        request.end_at(-1.0).check_time()


def test_the_end_of_one_fold_is_not_that_of_the_next() -> None:
    request = ReadRequest.of(Request(TEXT, (KNOWLEDGE,)))
    with Engine(world()) as engine:
        plan = engine.core.plan(METRICS)
        job_result = engine.core.start([request], plan).future.result()
    fold = partial(fold_outcomes, request, job_result.outcomes, job_result.timings, plan)
    assert [fold(end=-1.0).status, fold().status] == ["deadline", "scored"]
