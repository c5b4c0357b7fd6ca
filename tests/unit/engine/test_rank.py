"""Ranking candidate responses."""

from __future__ import annotations

import asyncio
import threading

import pytest

from groundwire.engine import Engine, InvalidRequest
from groundwire.runtime.calls import MeasureTexts
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from tests.support.generation import language_model

CANDIDATES = ["honey is blue", "bees make honey", "x " * 8, "wasps make honey", "bees make honey"]


def test_candidates_are_ordered_and_share_one_batch() -> None:
    with Engine(FakeRuntime({"lm": language_model})) as engine:
        ranked = engine.rank(CANDIDATES, "bees make honey", history=["hello there"])
        assert [candidate.index for candidate in ranked] == [1, 4, 3, 0, 2]
        assert [candidate.response for candidate in ranked][:2] == ["bees make honey"] * 2
        assert [candidate.result.status for candidate in ranked] == ["scored"] * 4 + ["truncated"]
        values = [candidate.result.value for candidate in ranked[:4]]
        assert values == sorted(values, key=lambda value: -(value or 0.0))
        assert isinstance(engine.core.runtime, FakeRuntime)
        (role, calls), (_, measured) = engine.core.runtime.batches
        assert role == "lm"
        assert [type(call) for call in measured] == [MeasureTexts], "only for the candidate that is too long"
        assert len(calls) == len(set(calls)) == 2 * 4, "a repeated candidate is asked about once"


def test_rank_agrees_with_score() -> None:
    with Engine(FakeRuntime({"lm": language_model})) as engine:
        for candidate in engine.rank(CANDIDATES, "bees make honey"):
            score = engine.score(candidate.response, "bees make honey", metrics=["pmi"])
            assert score.metrics["pmi"] == candidate.result


def test_triples_stand_for_the_knowledge() -> None:
    with Engine(FakeRuntime({"lm": language_model})) as engine:
        ranked = engine.rank(["honey is blue", "bees make honey"], triples=[("bees", "make", "honey")])
        assert [candidate.index for candidate in ranked] == [1, 0]


@pytest.mark.parametrize(
    ("candidates", "metric", "message"),
    [("one string", "pmi", "list"), ([], "pmi", "list"), (["a", " "], "pmi", "empty"), (["a"], "fast", "group")],
)
def test_what_cannot_be_ranked(candidates: list[str], metric: str, message: str) -> None:
    with Engine(FakeRuntime({"lm": language_model})) as engine, pytest.raises(InvalidRequest, match=message):
        engine.rank(candidates, "knowledge", metric=metric)


def test_arank_is_rank_for_asyncio() -> None:
    with Engine(FakeRuntime({"lm": language_model})) as engine:
        assert asyncio.run(engine.arank(CANDIDATES, "bees make honey")) == engine.rank(CANDIDATES, "bees make honey")


def test_cancelling_the_task_cancels_the_ranking() -> None:
    entered, release = threading.Event(), threading.Event()

    def wait(call: object) -> Outcome:
        entered.set()
        release.wait(30)
        return language_model(call)

    async def give_up(engine: Engine) -> None:
        task = asyncio.create_task(engine.arank(CANDIDATES, "bees make honey"))
        await asyncio.to_thread(entered.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()

    runtime = FakeRuntime({"lm": wait}, batch=1)
    with Engine(runtime) as engine:
        asyncio.run(give_up(engine))
    assert len(runtime.batches) == 1, "the other calls were given up"
