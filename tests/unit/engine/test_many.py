"""Many items: order, back-pressure, asyncio; and options that are checked where they enter."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import (
    BundleError,
    DeviceError,
    Engine,
    EngineClosed,
    InvalidRequest,
    LoadOptions,
    Options,
    Overloaded,
    api,
)
from groundwire.engine.schema.options import FeqaOptions, Q2Options, TokenClassifierOptions
from groundwire.generation import BeamSearch, Greedy
from groundwire.runtime.calls import Classified, Classify, Read
from tests.support.fakes import label, world

ITEMS = [(f"Elvis was born in {year}.", "Elvis came in 1935.") for year in range(1900, 1930)]


def test_asyncio_scores_many_in_order_from_both_kinds_of_iterable() -> None:
    async def produce() -> AsyncIterator[Any]:
        for item in ITEMS:
            await asyncio.sleep(0)
            yield item

    async def main(engine: Engine) -> None:
        alone = [score.metrics for score in engine.score_many(ITEMS)]
        assert [score.metrics async for score in engine.ascore_many(ITEMS)] == alone
        assert [score.metrics async for score in engine.ascore_many(produce())] == alone
        assert [score.status async for score in engine.ascore_many([ITEMS[0], ("", "x"), ITEMS[1]])] == [
            "scored",
            "invalid",
            "scored",
        ]

    with Engine(world()) as engine:
        asyncio.run(main(engine))


def test_many_items_wait_when_other_callers_fill_the_engine() -> None:
    opened = threading.Event()

    def gated(call: Classify) -> Any:
        assert opened.wait(60)
        return label(call)

    engine = Engine(world(nli=gated), LoadOptions(max_waiting=2))
    callers = ThreadPoolExecutor(2)
    busy = [callers.submit(engine.score, f"hello {i}", "Some Knowledge") for i in range(2)]
    while engine.core.scheduler.unfinished < 2:
        assert not any(future.done() for future in busy)
        time.sleep(0.01)
    with pytest.raises(Overloaded):
        engine.score(*ITEMS[0])
    threading.Timer(0.05, opened.set).start()
    assert [score.status for score in engine.score_many(ITEMS)] == ["scored"] * len(ITEMS)

    async def main() -> list[str]:
        return [score.status async for score in engine.ascore_many(ITEMS)]

    assert asyncio.run(main()) == ["scored"] * len(ITEMS)
    assert [future.result(60).status for future in busy] == ["scored"] * 2
    callers.shutdown()
    engine.close()


def test_leaving_early_cancels_what_is_in_flight() -> None:
    async def leave(engine: Engine) -> None:
        async for _ in (scores := engine.ascore_many(ITEMS)):
            break
        await scores.aclose()  # type: ignore[attr-defined]

    with Engine(world()) as engine:
        next(scores := engine.score_many(ITEMS))
        scores.close()  # type: ignore[attr-defined]
        asyncio.run(leave(engine))
        engine.close(drain=True)
        assert engine.core.scheduler.unfinished == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (Options(deadline_ms=-5), r"Options.deadline_ms is -5; Expected `float` > 0.0"),
        (Options(deadline_ms=0), r"Options.deadline_ms is 0; Expected `float` > 0.0"),
        (Options(profile="Strict"), "Options.profile is 'Strict'; use one of balanced, strict, lenient"),  # type: ignore[arg-type]
        (Options(deadline_ms=float("nan")), "deadline_ms"),
        (Options(deadline_ms=1e300), "deadline_ms"),
        (Options(deadline_ms="5"), "got `str`"),  # type: ignore[arg-type]
        (Options(max_windows=0), "max_windows"),
        (Options(priority=1000), "priority"),
        (Options(q2=Q2Options(questions="some")), "Options.q2.questions is 'some'; use one of single, all"),  # type: ignore[arg-type]
        (Options(q2=Q2Options(spans=[["a"]])), "spans"),  # type: ignore[arg-type]
        (Options(q2=Q2Options(decoding=BeamSearch(num_beams=0))), "num_beams=0; allowed are 1 to 64"),
        (Options(feqa=FeqaOptions(decoding=Greedy(max_new_tokens=-1))), "max_new_tokens=-1"),
        (Options(q2=5), "q2"),  # type: ignore[arg-type]
        (Options(token_classifier=TokenClassifierOptions(threshold=1.5)), "threshold"),
        ({}, "options is dict; pass an instance of Options"),
        ("fast", "options is str"),
    ],
)
def test_unusable_options_are_refused_and_the_engine_goes_on(options: Any, reason: str) -> None:
    with Engine(world()) as engine:
        with pytest.raises(InvalidRequest, match=reason):
            engine.score(*ITEMS[0], options=options)
        with pytest.raises(InvalidRequest, match=reason):
            engine.score_many(ITEMS, options=options)
        assert engine.score(*ITEMS[0]).status == "scored"


@pytest.mark.parametrize("metrics", [5, [5], [None], {"q2": 1}, {"q2"}, object()])
def test_unusable_metrics_are_refused(metrics: Any) -> None:
    with Engine(world()) as engine, pytest.raises(InvalidRequest):
        engine.score(*ITEMS[0], metrics=metrics)


def test_a_long_history_is_refused() -> None:
    with (
        Engine(world()) as engine,
        pytest.raises(InvalidRequest, match="history has 300000 characters; allowed are 200000"),
    ):
        engine.score(*ITEMS[0], history=["x" * 150_000] * 2)


def test_a_closed_engine_says_so() -> None:
    engine = Engine(world())
    assert engine.core.is_open
    engine.close()
    engine.close(drain=True)
    assert not engine.core.is_open
    with pytest.raises(EngineClosed, match="load another"):
        engine.score(*ITEMS[0])
    with pytest.raises(EngineClosed):
        next(engine.score_many(ITEMS))


def test_an_engine_cannot_be_pickled() -> None:
    with Engine(world()) as engine, pytest.raises(TypeError, match="Load one in every process"):
        pickle.dumps(engine)


def test_requests_with_a_higher_priority_are_served_first() -> None:
    started, opened = threading.Event(), threading.Event()
    order: list[str] = []

    def gated(call: Classify) -> Classified:
        started.set()
        assert opened.wait(60)
        order.append(call.hypothesis)
        return Classified("neutral", {"neutral": 1.0}, 0, Read(1, 1, 1))

    runtime = world(spans=lambda call: (), nli=gated)
    runtime._batch = runtime._concurrent_requests = 1
    with Engine(runtime) as engine:

        def score(name: str, priority: int) -> threading.Thread:
            options = Options(priority=priority)
            thread = threading.Thread(target=engine.score, args=(name, "Some"), kwargs={"options": options})
            thread.start()
            return thread

        threads = [score("first", 0)]
        assert started.wait(5)
        for name, priority in (("bulk", -1), ("usual", 0)):
            before = engine.core.scheduler._submitted
            threads.append(score(name, priority))
            while engine.core.scheduler._submitted == before:
                time.sleep(0.01)
        opened.set()
        for thread in threads:
            thread.join()
    assert [name for name in order if " " not in name][:1] == ["first"]
    assert order.index("usual") < order.index("bulk")


@pytest.mark.parametrize("settings", [{"bundle": {}}, {"bundle": None}, {"extra": [5]}])
def test_a_path_of_another_type_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="pass a string or a path"):
        Engine.load(**settings)


def test_the_environment_chooses_the_default_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(api, "_default", [])
    monkeypatch.setenv("GROUNDWIRE_BUNDLE", str(tmp_path / "none"))
    with pytest.raises(BundleError, match="none"):
        api.default_engine()
    monkeypatch.delenv("GROUNDWIRE_BUNDLE")
    monkeypatch.setenv("GROUNDWIRE_DEVICE", "moon")
    with pytest.raises(DeviceError, match="moon"):
        api.default_engine()
    monkeypatch.setenv("GROUNDWIRE_THREADS", "two")
    with pytest.raises(InvalidRequest, match="GROUNDWIRE_THREADS='two' is not a number"):
        api.default_engine()


def test_options_may_be_checked_in_many_threads_from_the_first_on() -> None:
    """msgspec crashes where two threads read a type's annotations at the same time, so this runs in a fresh process."""
    code = (
        "import threading\n"
        "from groundwire.engine import Options\n"
        "from groundwire.engine.core.plan import check_options\n"
        "barrier = threading.Barrier(8)\n"
        "def check(first):\n"
        "    barrier.wait()\n"
        "    for number in range(50): check_options(Options(deadline_ms=first + number), frozenset(), None)\n"
        "threads = [threading.Thread(target=check, args=(1000 * (index + 1),)) for index in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
