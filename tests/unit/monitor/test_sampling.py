"""A monitor scores a share of what a server answers, and never makes the server wait."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from groundwire.engine import Engine, InvalidRequest, LoadOptions, Request, Score
from groundwire.monitor import monitor
from groundwire.monitor.sampling import is_drawn
from tests.support.evaluation import CALIBRATION
from tests.support.fakes import world

KNOWLEDGE = "Elvis came in 1935."
RIGHT, WRONG = "Elvis was born in 1935.", "Elvis was born in 1936."


def load(calibration: Any = CALIBRATION) -> Engine:
    return Engine(world(), LoadOptions(calibration=calibration))


def test_every_response_is_scored_at_rate_1_and_counted() -> None:
    seen: list[tuple[Request, Score]] = []
    with load() as engine:
        with monitor(engine, rate=1.0, metrics="all", on_score=lambda *given: seen.append(given)) as watch:
            assert [watch.add(text, KNOWLEDGE) for text in (RIGHT, WRONG, RIGHT)] == [True] * 3
            assert not watch.add("", KNOWLEDGE)
        summary = watch.summarize()
        alone = engine.score(WRONG, KNOWLEDGE, metrics="all")
    assert (summary.offered, summary.drawn, summary.invalid, summary.dropped, summary.failed) == (4, 3, 1, 0, 0)
    assert sum(summary.labels.values()) == 3
    assert [request.response for request, _ in seen] == [RIGHT, WRONG, RIGHT]
    assert seen[1][1].verdict == alone.verdict
    counted = [summary.labels.get(label, 0) for label in ("inconsistent", "consistent")]
    assert summary.share is not None
    assert summary.share.value == pytest.approx(counted[0] / sum(counted))
    assert summary.share.low < summary.share.value < summary.share.high


def test_the_digest_of_the_texts_draws() -> None:
    texts = [f"Elvis was born in {year}." for year in range(1900, 1940)]
    expected = [is_drawn(Request(text, (KNOWLEDGE,)).digest(), 0.3) for text in texts]
    assert 4 < sum(expected) < 24
    with load() as engine, monitor(engine, rate=0.3, metrics=["overlap"]) as watch:
        assert [watch.add(text, KNOWLEDGE) for text in texts] == expected
    summary = watch.summarize()
    assert (summary.offered, summary.drawn) == (40, sum(expected))
    assert summary.labels == {"unknown": sum(expected)}
    assert summary.share is None


def test_what_finds_no_room_is_dropped_and_counted_and_the_server_does_not_wait() -> None:
    gate = threading.Event()
    with load() as engine:
        watch = monitor(engine, rate=1.0, metrics=["overlap"], max_waiting=2, on_score=lambda *given: gate.wait(30))
        accepted = [watch.add(f"Elvis came in {year}.", KNOWLEDGE) for year in range(1900, 1910)]
        gate.set()
        watch.close()
    summary = watch.summarize()
    assert 2 <= sum(accepted) <= 3  # one is being scored, two wait
    assert (summary.drawn, summary.dropped) == (sum(accepted), 10 - sum(accepted))
    assert sum(summary.labels.values()) == summary.drawn


def test_a_closed_engine_is_a_count_and_not_an_error() -> None:
    engine = load()
    with monitor(engine, rate=1.0, metrics=["overlap"]) as watch:
        engine.close()
        assert watch.add(RIGHT, KNOWLEDGE)
    assert watch.summarize().failed == 1
    assert not watch.add(RIGHT, KNOWLEDGE)
    assert watch.summarize().dropped == 1


def test_a_callback_that_fails_is_counted_and_the_next_response_scored() -> None:
    seen: list[str] = []

    def write(request: Request, score: Score) -> None:
        seen.append(request.response)
        raise ValueError("no room on the disk")

    with load() as engine, monitor(engine, rate=1.0, metrics=["overlap"], on_score=write) as watch:
        assert watch.add(RIGHT, KNOWLEDGE)
        assert watch.add(WRONG, KNOWLEDGE)
    assert seen == [RIGHT, WRONG]
    assert watch.summarize().failed == 2


@pytest.mark.parametrize("given", [{"rate": 0.0}, {"rate": 1.5}, {"max_waiting": 0}, {"metrics": ["nope"]}])
def test_wrong_settings_are_refused(given: dict[str, Any]) -> None:
    with load() as engine, pytest.raises(InvalidRequest, match=r"rate is|max_waiting is|Unknown metric"):
        monitor(engine, **given)
