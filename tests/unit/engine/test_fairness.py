"""Who is served next when several tenants, and bulk work, want the same engine."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, InvalidRequest, LoadOptions, Options
from groundwire.engine.scheduling.admission import JOBS_PER_WAITING_TENANT, KEPT_TENANTS, Admission, FairQueue
from groundwire.engine.scheduling.jobs import Job, Task
from groundwire.engine.schema.steps import Steps
from tests.support.fakes import world


def make_job(number: int, tenant: str = "", *, priority: int = 0, is_bulk: bool = False, size: int = 0) -> Job[Any]:
    def steps() -> Steps[int]:
        yield []
        return 1

    return Job([Task(steps())], 8, 0.0, priority=priority, number=number, is_bulk=is_bulk, tenant=tenant, size=size)


def serve(admission: Admission, seconds: dict[str, float], count: int) -> list[str]:
    """Admit and finish jobs one after another; returns whose they were."""
    now, served = 0.0, []
    for _ in range(count):
        job = admission.first
        if job is None:
            break
        admission.admit(job, now)
        now += seconds[job.tenant]
        admission.remove(job, now, complete=True)
        served.append(job.tenant)
    return served


def test_tenants_share_the_time_by_weight() -> None:
    admission = Admission(1, {"a": 3.0})
    for number in range(400):
        admission.add(make_job(number, "a" if number < 200 else "b"))
    served = Counter(serve(admission, {"a": 1.0, "b": 1.0}, 100))
    assert served["a"] == pytest.approx(75, abs=2)


def test_it_is_time_that_is_shared_and_not_the_number_of_requests() -> None:
    admission = Admission(1)
    for number in range(400):
        admission.add(make_job(number, "slow" if number < 200 else "fast"))
    served = Counter(serve(admission, {"slow": 9.0, "fast": 1.0}, 100))
    assert served["slow"] == pytest.approx(10, abs=2)


def test_a_tenant_that_comes_late_waits_for_no_backlog_and_has_no_credit() -> None:
    admission = Admission(1)
    for number in range(100):
        admission.add(make_job(number, "a"))
    assert serve(admission, {"a": 1.0}, 50) == ["a"] * 50
    for number in range(100, 150):
        admission.add(make_job(number, "b"))
    served = serve(admission, {"a": 1.0, "b": 1.0}, 20)
    assert "b" in served[:2]
    assert served.count("b") == pytest.approx(10, abs=1)
    # And the same after it was idle.
    while admission.first is not None:
        serve(admission, {"a": 1.0, "b": 1.0}, 1)
    for number in range(200, 240):
        admission.add(make_job(number, "a" if number % 2 else "b"))
    assert serve(admission, {"a": 1.0, "b": 1.0}, 20).count("b") == pytest.approx(10, abs=1)


def test_urgency_goes_before_shares() -> None:
    admission = Admission(1)
    for number in range(10):
        admission.add(make_job(number, "a"))
    serve(admission, {"a": 1.0}, 5)
    admission.add(make_job(20, "b"))
    admission.add(make_job(21, "a", priority=1))
    first = admission.first
    assert first is not None
    assert first.number == 21


def test_single_requests_go_before_bulk_work_of_their_priority_and_take_no_place_from_it() -> None:
    admission = Admission(2)
    for number in range(10_000):
        admission.add(make_job(number, is_bulk=True))
    for _ in range(2):
        job = admission.first
        assert job is not None
        assert admission.has_place(job, 0.0)
        admission.admit(job, 0.0)
    waiting = admission.first
    assert waiting is not None
    assert not admission.has_place(waiting, 0.0)
    admission.add(make_job(10_000))
    single = admission.first
    assert single is not None
    assert single.number == 10_000
    assert admission.has_place(single, 0.0)
    admission.admit(single, 0.0)
    assert next(iter(admission.active)) is single
    # Bulk work of a higher priority is still more urgent.
    admission.add(make_job(10_001))
    admission.add(make_job(10_002, priority=1, is_bulk=True))
    assert admission.first is not None
    assert admission.first.number == 10_002


def test_what_is_expected_of_a_long_text_is_what_long_texts_took() -> None:
    admission = Admission(2)
    for number, (size, seconds) in enumerate(((100, 1.0), (110, 1.0), (100_000, 50.0))):
        job = make_job(number, size=size)
        admission.admit(job, 0.0)
        admission.remove(job, seconds, complete=True)
    admission.admit(make_job(10), 0.0)
    expected = [admission.expected_seconds(make_job(11, size=size)) for size in (0, 50, 100, 5_000, 90_000, 10**6)]
    assert expected == [0.0, 0.0, 1.0, 1.0, 50.0, 50.0]


def test_idle_tenants_are_forgotten() -> None:
    queue = FairQueue({})
    waiting = make_job(-1, "waiting")
    queue.push(waiting)
    for number in range(5 * KEPT_TENANTS):
        job = make_job(number, f"tenant {number}", priority=1)
        queue.push(job)
        assert queue.first() is job
        queue.begin(job, 0.001)
        job.admitted, job.over = 0.0, True
        queue.end(job, number % 3)
        assert len(queue._tenants) <= KEPT_TENANTS + 4
    assert queue.first() is waiting
    queue.end(make_job(-2, "unknown"), 5.0)
    assert "unknown" not in queue._tenants


def test_a_tenant_far_ahead_is_not_passed_over_for_ever() -> None:
    """It was charged for hours, with another job of it still active, while new names keep coming."""
    queue = FairQueue({})
    jobs = [make_job(number, "ahead") for number in range(3)]
    for job in jobs[:2]:
        queue.push(job)
        queue.begin(job, 1.0)
        job.admitted = 0.0
    queue.end(jobs[0], 1e6)
    queue.push(jobs[2])
    for count in range(2 * JOBS_PER_WAITING_TENANT + 1):
        queue.push(make_job(10 + count, f"new {count}"))
        first = queue.first()
        assert first is not None
        if first is jobs[2]:
            return
        queue.begin(first, 0.1)
        first.admitted = 0.0
    raise AssertionError("it waits still")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.01, 10.0)), min_size=1, max_size=60))
def test_no_tenant_is_ahead_by_more_than_a_job_while_others_wait(jobs: list[tuple[str, float]]) -> None:
    """With a backlog from the start, served times differ by at most the longest job of each side."""
    admission = Admission(1)
    seconds = {}
    for number, (tenant, length) in enumerate(jobs):
        admission.add(make_job(number, tenant))
        seconds[number] = length
    had, left = Counter[str](), Counter(tenant for tenant, _ in jobs)
    longest = max(length for _, length in jobs)
    now = 0.0
    while (job := admission.first) is not None:
        least = min(had[tenant] for tenant, count in left.items() if count)
        assert had[job.tenant] <= least + longest + 1e-6
        admission.admit(job, now)
        now += seconds[job.number]
        admission.remove(job, now, complete=True)
        had[job.tenant] += seconds[job.number]
        left[job.tenant] -= 1


def test_tenants_do_not_change_a_score() -> None:
    with Engine(world(), LoadOptions(tenant_weights={"a": 2})) as engine:
        plain = engine.score("It is old.", "It is old.", metrics=["nli"])
        named = engine.score("It is old.", "It is old.", metrics=["nli"], options=Options(tenant="a"))
    assert (plain.value, plain.signature) == (named.value, named.signature)


@pytest.mark.parametrize("weights", [["a"], {"a": 0}, {"a": -1.0}, {"a": float("inf")}, {"a": True}, {1: 1.0}])
def test_weights_are_numbers_above_zero(weights: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"tenant_weights.*numbers above 0"):
        Engine(world(), LoadOptions(tenant_weights=weights))


def test_statistics_say_what_an_engine_does_and_did() -> None:
    with Engine(world()) as engine:
        seen = []
        engine.core.observe_batches(lambda *batch: seen.append(engine.statistics()))
        assert engine.statistics().finished == 0
        for _ in range(2):
            engine.score("It is old.", "It is old.", metrics=["nli"])
        statistics = engine.statistics()
    assert (statistics.finished, statistics.active, statistics.queued) == (2, 0, {})
    assert (statistics.cached_calls, statistics.cache_hits, statistics.cache_misses) == engine.core.scheduler.cache_info
    assert (statistics.stages["nli"].batches, statistics.stages["nli"].calls) == (1, 1)
    assert statistics.stages["nli"].ms >= 0.0
    assert seen[0].active == 1
    assert seen[0].stages["nli"].batches == 1
    assert engine.statistics().finished == 2
