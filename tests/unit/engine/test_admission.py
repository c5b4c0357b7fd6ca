"""Which jobs are worked on, and how much the cache takes a result to be."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from groundwire.engine.scheduling.admission import KINDS, TIMED_TENANTS, Admission, JobHeap
from groundwire.engine.scheduling.calls import count_bytes
from groundwire.engine.scheduling.jobs import Job, Task, rank
from groundwire.engine.schema.steps import Steps
from groundwire.runtime.calls import Classify, TextScored, TextSpan


def make_job(
    number: int, deadline: float | None = None, priority: int = 0, kind: str = "steps", tenant: str = ""
) -> Job[Any]:
    def steps() -> Steps[int]:
        yield []
        return 1

    steps.__name__ = kind
    return Job([Task(steps())], 8, 0.0, deadline, priority, number, tenant=tenant)


def test_a_heap_forgets_stale_jobs_in_time() -> None:
    heap = JobHeap(rank, lambda job: job.over)
    for number in range(1000):
        job = make_job(number, deadline=1000.0 - number)
        heap.push(job)
        job.over = number != 5
        assert len(heap) <= 66
    first = heap.first()
    assert first is not None
    assert (first.number, len(heap)) == (5, 1)


def test_the_expected_time_is_what_most_recent_jobs_of_the_kind_took() -> None:
    admission = Admission(2)
    for number, seconds in enumerate((3.0, 2.0, 5.0, 9.0, 1.0)):
        job = make_job(number)
        admission.admit(job, 10.0)
        admission.remove(job, 10.0 + seconds, complete=True)
    failed = make_job(3)
    admission.admit(failed, 10.0)
    admission.remove(failed, 10.1, complete=False)
    idle = make_job(4, deadline=30.0)
    assert admission.has_place(idle, 29.9)
    assert admission.latest_start(idle) == 30.0  # an idle engine tries every job
    admission.admit(make_job(5), 10.0)
    assert admission.latest_start(idle) == 25.0
    assert admission.expected_seconds(make_job(6, kind="other")) == 0.0
    # Beside another it takes twice as long.
    assert admission.has_place(idle, 20.0)
    assert not admission.has_place(idle, 20.1)
    assert not admission.is_hopeless(idle, 20.1)
    assert admission.is_hopeless(idle, 25.0)
    # Where another job can take the place, this one is dropped.
    admission.add(make_job(7, deadline=30.0))
    assert not admission.is_hopeless(idle, 20.1)
    admission.add(make_job(8, deadline=40.0))
    assert admission.is_hopeless(idle, 20.1)


def test_bulk_work_that_never_ends_keeps_no_urgent_job_from_being_tried() -> None:
    admission = Admission(2)
    slow = make_job(0)
    admission.admit(slow, 0.0)
    admission.remove(slow, 9.0, complete=True)
    admission.admit(make_job(1, priority=-1), 9.0)
    urgent = make_job(2, deadline=10.0)
    assert not admission.is_hopeless(urgent, 9.0)
    assert admission.has_place(urgent, 9.0)


def test_the_time_of_a_job_counts_by_its_share_of_the_machine() -> None:
    admission = Admission(5)
    jobs = [make_job(number) for number in range(5)]
    for job in jobs:
        admission.admit(job, 0.0)
    for job in jobs:
        admission.remove(job, 6.0, complete=True)
    admission.admit(make_job(5), 6.0)
    assert admission.expected_seconds(make_job(6)) == 3.0  # of 6, 3, 2, 1.5 and 1.2


def finish(admission: Admission, number: int, tenant: str, seconds: float) -> None:
    job = make_job(number, tenant=tenant)
    admission.add(job)
    admission.admit(job, 0.0)
    admission.remove(job, seconds, complete=True)


def test_slow_jobs_of_others_change_nothing_for_a_tenant_whose_times_are_known() -> None:
    admission = Admission(4)
    finish(admission, 0, "polite", 1.0)
    for number in range(1, 100):
        finish(admission, number, "slow", 50.0)
    admission.admit(make_job(100, tenant="slow"), 0.0)
    assert admission.expected_seconds(make_job(101, tenant="polite")) == 1.0
    assert admission.expected_seconds(make_job(102, tenant="slow")) == 50.0


def test_of_a_tenant_whose_times_are_not_known_is_expected_what_three_of_four_tenants_take_at_most() -> None:
    admission = Admission(4)
    for number, (tenant, seconds) in enumerate({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 9.0}.items()):
        for repeat in range(1 + 10 * number):
            finish(admission, 100 * number + repeat, tenant, seconds)
    admission.admit(make_job(1000), 0.0)
    assert admission.expected_seconds(make_job(1001, tenant="new")) == 4.0
    for number in range(TIMED_TENANTS):
        finish(admission, 2000 + number, f"later {number}", 5.0)  # beside another
    assert admission.expected_seconds(make_job(1002, tenant="a")) == 2.5  # only those that finished last are kept


def test_a_tenant_whose_job_was_dropped_shows_with_the_next_how_long_it_takes() -> None:
    admission = Admission(4)
    finish(admission, 0, "slow", 50.0)
    admission.admit(make_job(1, tenant="slow"), 0.0)
    dropped, tried, later = (make_job(number, deadline=9.0, tenant="polite") for number in (2, 3, 4))
    admission.add(dropped)
    assert admission.is_hopeless(dropped, 0.0)
    admission.remove(dropped, 0.0, complete=False)
    admission.add(tried)
    assert not admission.is_hopeless(tried, 0.0)
    assert admission.has_place(tried, 0.0)
    admission.admit(tried, 0.0)
    assert admission.is_hopeless(later, 0.0)  # until the first is over
    admission.remove(tried, 2.0, complete=True)
    assert admission.expected_seconds(later) == 1.0


def test_a_dropped_job_of_a_tenant_that_is_not_known_leaves_no_trace() -> None:
    admission = Admission(4)
    finish(admission, 0, "slow", 50.0)
    admission.admit(make_job(1, tenant="slow"), 0.0)
    admission.remove(make_job(2, deadline=9.0, tenant="new"), 0.0, complete=False)
    assert admission.is_hopeless(make_job(3, deadline=9.0, tenant="new"), 0.0)


def test_the_durations_of_kinds_are_bounded() -> None:
    admission = Admission(2)
    for number in range(KINDS + 10):
        job = make_job(number, kind=f"kind{number}")
        admission.admit(job, 0.0)
        admission.remove(job, 1.0, complete=True)
    admission.admit(make_job(-1), 0.0)
    assert admission.expected_seconds(make_job(-2, kind="kind9")) == 0.0
    assert admission.expected_seconds(make_job(-3, kind="kind10")) == 1.0


@pytest.mark.parametrize(
    ("value", "least"),
    [
        ("x" * 1000, 1000),
        ("ж" * 1000, 2000),
        (np.zeros(1000, np.float32), 4000),
        (tuple(float(i) for i in range(1000)), 8000 + 1000 * sys.getsizeof(0.5)),
        (tuple(TextSpan("ab", i, i + 2) for i in range(100)), 100 * sys.getsizeof(TextSpan("ab", 0, 2))),
        (Classify("nli", ("x" * 500,), "y" * 500), 1000),
        (TextScored(tuple((i, i + 1) for i in range(300, 400)), (-0.5,) * 100, 0), 100 * (sys.getsizeof((0, 1)) + 88)),
        ({"a" * 100: 0.5}, 100),
    ],
)
def test_the_cost_of_a_value_is_no_less_than_its_memory(value: object, least: int) -> None:
    assert least <= count_bytes(value) < 6 * least
