"""The bounds on accepted requests: what is let in, what waits, and when a refused caller should try again."""

from __future__ import annotations

import time

import pytest

from groundwire.engine import Engine, InvalidRequest, LoadOptions, Options, Overloaded, Request
from groundwire.engine.core.core import count_tokens
from groundwire.engine.scheduling.admission import BULK_SHARE, Backlog, estimate_tokens
from groundwire.runtime.calls import BeamSearch, Greedy, Sampling
from groundwire.runtime.triples import Triple
from tests.support.streams import METRICS, world


def test_tokens_count_and_not_the_number() -> None:
    backlog = Backlog(1000, 100)
    for tokens in (60, 40):
        backlog.check(tokens)
        backlog.add(tokens, 0.0)
    with pytest.raises(Overloaded, match="about 100 of 100 tokens"):
        backlog.check(1)
    backlog.check(1, is_bounded=False)
    backlog.remove(60, 1.0)
    backlog.remove(40, 1.0)
    for _ in range(100):
        backlog.check(1)
        backlog.add(1, 1.0)
    assert (backlog.requests, backlog.tokens) == (100, 100)


def test_one_request_of_more_tokens_than_the_bound_is_accepted_beside_others() -> None:
    backlog = Backlog(1000, 100)
    backlog.check(1000, is_bulk=True)
    backlog.add(100, 0.0)
    with pytest.raises(Overloaded):
        backlog.check(1000, is_bulk=True)
    backlog.check(1000)
    backlog.add(1000, 0.0)
    for tokens in (1000, 1):
        with pytest.raises(Overloaded):
            backlog.check(tokens)


def test_bulk_work_leaves_half_of_the_tokens() -> None:
    backlog = Backlog(1000, 100)
    backlog.add(60, 0.0)
    backlog.check(40, is_bulk=True)  # one at a time, whatever single requests take
    backlog.remove(60, 1.0)
    backlog.add(30, 1.0, is_bulk=True)
    backlog.check(20, is_bulk=True)
    assert BULK_SHARE == 0.5
    with pytest.raises(Overloaded):
        backlog.check(21, is_bulk=True)
    backlog.check(70)


@pytest.mark.parametrize(
    ("rate", "tokens", "seconds"), [(10.0, 50, 5), (10.0, 100, 10), (1000.0, 50, 1), (0.1, 50, 60)]
)
def test_the_time_to_try_again_follows_from_the_measured_rate(rate: float, tokens: int, seconds: int) -> None:
    backlog, clock = Backlog(1000, 100), 0.0
    for _ in range(5):
        backlog.add(100, clock)
        clock += 100 / rate
        backlog.remove(100, clock)
        clock += 1000  # idle time says nothing about the rate
    backlog.add(100, clock)
    with pytest.raises(Overloaded) as refused:
        backlog.check(tokens)
    assert refused.value.retry_after_s == seconds


def test_without_a_measurement_a_caller_tries_again_in_a_second() -> None:
    backlog = Backlog(1)
    backlog.add(10**9, 0.0)
    with pytest.raises(Overloaded, match="larger max_waiting") as refused:
        backlog.check(1)
    assert refused.value.retry_after_s == 1


def test_tokens_grow_with_the_texts_and_the_work() -> None:
    assert estimate_tokens(["a" * 40]) == 10
    assert estimate_tokens(["a" * 40, "b" * 20, "c" * 20], 3) == 60
    assert estimate_tokens([], 0) == 1
    assert estimate_tokens(["a" * 40], 1, BeamSearch()) == estimate_tokens(["a" * 40], 1, Greedy()) == 10
    assert estimate_tokens(["a" * 40], 1, BeamSearch(num_beams=20, num_return_sequences=1)) == 40
    assert estimate_tokens(["a" * 40], 1, Sampling(num_return_sequences=10**9)) == 128


def test_an_engine_refuses_a_request_beyond_its_tokens() -> None:
    with Engine(world(), LoadOptions(max_waiting_tokens=100)) as engine:
        plan = engine.plan(METRICS)
        request = Request("a" * 40, ("b" * 80,), ("c" * 40,), (Triple("d" * 20, "e" * 10, "f" * 10),))
        assert count_tokens([request], plan) == 50 * len(METRICS)
        engine.core.scheduler._backlog.add(101, 0.0)
        with pytest.raises(Overloaded):
            engine.submit(request, plan)
        assert engine.statistics().unfinished_tokens == 101
        assert engine.core.score(request, plan, is_bounded=False).result().status == "scored"
        engine.core.scheduler._backlog.remove(101, time.monotonic())
        assert engine.score("a" * 400, "b", metrics=METRICS).status == "scored", "alone"
        assert engine.statistics().unfinished == 0


@pytest.mark.parametrize("bound", [0, -1, "many"])
def test_a_wrong_bound_is_refused(bound: object) -> None:
    with pytest.raises(InvalidRequest, match="max_waiting_tokens"):
        LoadOptions(max_waiting_tokens=bound)  # type: ignore[arg-type]


def test_scores_of_one_job_are_those_of_single_requests() -> None:
    with Engine(world()) as engine:
        plan = engine.plan(METRICS, Options())
        requests = [Request("Honey is sweet.", ("Honey is sweet.",)), Request("Honey is blue.", ("Honey is golden.",))]
        together = engine.core.score_together(requests, plan).result()
        alone = [engine.submit(request, plan).result() for request in requests]
        assert [score.metrics for score in together] == [score.metrics for score in alone]
        assert [score.verdict for score in together] == [score.verdict for score in alone]
