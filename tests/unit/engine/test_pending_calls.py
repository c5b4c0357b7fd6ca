"""Which waiting calls a batch takes."""

from __future__ import annotations

from typing import Any

from groundwire.engine.scheduling.calls import PendingCalls
from groundwire.engine.scheduling.jobs import Job, Key, Task, Waiter
from groundwire.runtime.calls import Answer, Call, Classify, ClassifyTokens


def make_job(number: int = 0) -> Job[Any]:
    job: Job[Any] = Job([], 8, 0.0)
    job.number = number
    return job


def ask(pending: PendingCalls, job: Job[Any], *calls: Call, max_windows: int = 8) -> None:
    for index, call in enumerate(calls):
        pending.add("group", Key(call, max_windows), Waiter(job, Task(iter(())), index))  # type: ignore[arg-type]


def take(pending: PendingCalls, *jobs: Job[Any], limit: int = 64, free: int = 1) -> list[Call]:
    return [key.call for key in pending.take("group", jobs, limit, free)]


def test_what_roles_ask_about_one_text_is_taken_together() -> None:
    pending, job = PendingCalls(), make_job()
    first = [Classify("nli", ("p",), "a"), Classify("detector.a", ("P",), "a"), ClassifyTokens("tokens", ("P",), "a")]
    second = [Classify("nli", ("p",), "b"), Classify("detector.a", ("P",), "b")]
    ask(pending, job, first[0], second[0], first[1], second[1], first[2])
    # Two texts and two threads: one text each.
    assert take(pending, job, free=2) == first
    assert take(pending, job, free=1) == second
    assert pending.next_group([job], ["group"]) is None


def test_calls_of_other_roles_are_texts_of_their_own() -> None:
    pending, job = PendingCalls(), make_job()
    calls = [Answer("a", ("p",)), Answer("a", ("q",)), Answer("b", ("p",))]
    ask(pending, job, *calls)
    assert take(pending, job, free=2) == calls[:2]


def test_a_batch_is_bounded_by_its_calls_too() -> None:
    pending, jobs = PendingCalls(), [make_job(number) for number in range(4)]
    for number, job in enumerate(jobs):
        ask(pending, job, Classify("nli", (str(number),), "a"))
        ask(pending, job, Classify("nli", (str(number),), "b"))
    taken = take(pending, *jobs, limit=3)
    assert [(call.premises, call.hypothesis) for call in taken if isinstance(call, Classify)] == [
        ((str(number),), "a") for number in range(4)
    ]


def test_only_calls_with_the_same_number_of_windows_share_a_batch() -> None:
    pending, first, second = PendingCalls(), make_job(1), make_job(2)
    ask(pending, first, Classify("nli", ("p",), "a"))
    ask(pending, second, Classify("detector.a", ("p",), "a"), max_windows=2)
    assert take(pending, first, second) == [Classify("nli", ("p",), "a")]
    assert take(pending, first, second) == [Classify("detector.a", ("p",), "a")]


def test_a_job_that_is_over_leaves_the_calls_of_others() -> None:
    pending, first, second = PendingCalls(), make_job(1), make_job(2)
    shared = Classify("nli", ("p",), "a")
    ask(pending, first, shared, Classify("detector.a", ("p",), "a"))
    ask(pending, second, shared)
    pending.forget(first)
    assert list(pending.waiting_keys()) == [Key(shared, 8)]
    assert take(pending, second) == [shared]
