"""The scheduler: merging, repeats, deadlines, cancellation, isolation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from groundwire.engine import Engine, EngineClosed, LoadOptions, MetricResult, Options, Overloaded
from groundwire.engine.core.pending import Pending, Procedure
from groundwire.engine.scheduling.calls import ENTRY_BYTES, Cache, Key, count_bytes
from groundwire.engine.scheduling.jobs import Failure
from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.engine.schema.steps import Steps
from groundwire.runtime.calls import Answer, Call, Classified, Classify, IsPersonal, Read
from groundwire.runtime.errors import DeviceError, GroundwireError, ModelError, TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome, Withdrawn
from tests.support.fakes import answer, world


def label(call: Classify) -> Classified:
    return Classified(call.hypothesis, {call.hypothesis: 1.0}, 0, Read(1, 1, 1))


def ask(*names: str) -> Steps[MetricResult]:
    """A metric with one round of model calls per name."""
    for name in names:
        (classified,) = yield [Classify("nli", ("p",), name)]
        assert classified.label == name
    return MetricResult("m", "scored", 1.0)


def test_a_round_of_host_calls_alone_may_follow_a_round_of_device_calls() -> None:
    def steps() -> Steps[MetricResult]:
        yield [Classify("nli", ("p",), "x")]
        (personal,) = yield [IsPersonal("what is my name?")]
        return MetricResult("m", "scored", float(personal))

    scheduler = Scheduler(FakeRuntime({"nli": label, "spans": lambda call: True}))
    job = scheduler.submit([steps()], 8, None)
    assert job.future.result(5).outcomes[0].value == 1.0
    scheduler.close()


class Gate(FakeRuntime):
    """Blocks the first batch until ``opened`` is set, so that further requests queue up."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.opened = threading.Event()
        self.entered = threading.Event()

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        self.entered.set()
        assert self.opened.wait(10)
        return super().run(role, calls, max_windows)


def wait_for_calls(scheduler: Scheduler, count: int) -> None:
    """Return when ``count`` calls wait or run."""
    for _ in range(2000):
        if len(scheduler._pending) == count:
            return
        time.sleep(0.005)
    raise AssertionError(f"{len(scheduler._pending)} calls wait or run, not {count}")


def make_gated_scheduler(answers: Callable[[Classify], Outcome] = label, batch: int = 64) -> tuple[Gate, Scheduler]:
    runtime = Gate({"nli": answers}, batch)
    return runtime, Scheduler(runtime)


def test_requests_share_batches_and_a_repeated_call_runs_once() -> None:
    runtime, scheduler = make_gated_scheduler()
    first = scheduler.submit([ask("x")], 8, None)
    assert runtime.entered.wait(5)
    others = [scheduler.submit([ask(name)], 8, None) for name in ("a", "b", "a", "x")]
    wait_for_calls(scheduler, 3)
    runtime.opened.set()
    for job in (first, *others):
        assert job.future.result(5).outcomes[0].status == "scored"
    batches = [[call.hypothesis for call in calls] for _, calls in runtime.batches]  # type: ignore[union-attr]
    assert batches == [["x"], ["a", "b"]]
    scheduler.close()


def test_metrics_of_one_request_share_their_calls() -> None:
    runtime = FakeRuntime({"nli": label})
    scheduler = Scheduler(runtime)
    job = scheduler.submit([ask("a", "b"), ask("b", "a")], 8, None)
    assert [result.value for result in job.future.result(5).outcomes] == [1.0, 1.0]
    hypotheses = [call.hypothesis for _, calls in runtime.batches for call in calls]  # type: ignore[union-attr]
    assert sorted(hypotheses) == ["a", "b"]
    scheduler.close()


def test_a_batch_holds_at_most_as_many_calls_as_the_runtime_accepts() -> None:
    runtime, scheduler = make_gated_scheduler(batch=3)
    first = scheduler.submit([ask("x")], 8, None)
    assert runtime.entered.wait(5)
    jobs = [scheduler.submit([ask(str(i))], 8, None) for i in range(7)]
    wait_for_calls(scheduler, 8)
    runtime.opened.set()
    for job in (first, *jobs):
        job.future.result(5)
    assert [len(calls) for _, calls in runtime.batches] == [1, 3, 3, 1]
    scheduler.close()


def test_a_failing_call_fails_no_other_request() -> None:
    def fragile(call: Classify) -> Outcome:
        if call.hypothesis == "bad":
            raise RuntimeError("the graph fell over")
        return label(call)

    runtime, scheduler = make_gated_scheduler(fragile)
    first = scheduler.submit([ask("x")], 8, None)
    assert runtime.entered.wait(5)
    jobs = {name: scheduler.submit([ask(name)], 8, None) for name in ("a", "bad", "b")}
    wait_for_calls(scheduler, 4)
    runtime.opened.set()
    results = {name: job.future.result(5).outcomes[0] for name, job in jobs.items()}
    assert {name: result.status for name, result in results.items()} == {"a": "scored", "bad": "failed", "b": "scored"}
    assert "the graph fell over" in results["bad"].message
    assert first.future.result(5).outcomes[0].status == "scored"
    scheduler.close()


class Faulty(FakeRuntime):
    """Fails as a whole on the batches that ``fault`` names an error for."""

    def __init__(self, fault: Callable[[Sequence[Call]], GroundwireError | None]) -> None:
        super().__init__({"nli": label})
        self._fault = fault

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        outcomes = super().run(role, calls, max_windows)
        if (error := self._fault(calls)) is not None:
            raise error
        return outcomes


def ask_at_once(count: int) -> Steps[MetricResult]:
    yield [Classify("nli", ("p",), str(index)) for index in range(count)]
    return MetricResult("m", "scored", 1.0)


def run_at_once(runtime: FakeRuntime, count: int) -> list[int]:
    """The sizes of the batches in which the calls of one round ran."""
    scheduler = Scheduler(runtime)
    scheduler.submit([ask_at_once(count)], 8, None).future.result(5)
    scheduler.close()
    return [len(calls) for _, calls in runtime.batches]


def test_a_call_that_spoils_its_batch_is_found_by_halving() -> None:
    poison = Faulty(lambda calls: ModelError("spoiled") if Classify("nli", ("p",), "20") in calls else None)
    sizes = run_at_once(poison, 32)
    assert sizes.count(1) == 2  # the call, and one that came down to it
    assert len(sizes) == 11


def test_a_batch_that_is_too_large_for_the_memory_runs_in_halves() -> None:
    small = Faulty(lambda calls: ModelError("out of memory") if len(calls) > 8 else None)
    assert run_at_once(small, 32) == [32, 16, 8, 8, 16, 8, 8]


def test_a_lost_device_is_not_tried_again() -> None:
    lost = Faulty(lambda calls: DeviceError("the GPU is lost"))
    assert run_at_once(lost, 32) == [32]


def test_only_the_calls_that_failed_run_again() -> None:
    def answers(call: Classify) -> Outcome:
        return ModelError("not finite") if call.hypothesis == "3" else label(call)

    assert run_at_once(FakeRuntime({"nli": answers}), 32) == [32, 1]


def test_a_failed_call_is_not_cached() -> None:
    outcomes = iter([ModelError("out of memory")])

    def flaky(call: Classify) -> Outcome:
        return next(outcomes, None) or label(call)

    scheduler = Scheduler(FakeRuntime({"nli": flaky}))
    statuses = [scheduler.submit([ask("a")], 8, None).future.result(5).outcomes[0].status for _ in range(2)]
    assert statuses == ["failed", "scored"]
    scheduler.close()


def test_a_call_that_was_withdrawn_runs_again_for_those_that_wait() -> None:
    asked = []

    def withdrawn_once(call: Classify) -> Outcome:
        asked.append(call)
        return Withdrawn("nothing waited") if len(asked) == 1 else label(call)

    scheduler = Scheduler(FakeRuntime({"nli": withdrawn_once}))
    job = scheduler.submit([ask("a")], 8, None)
    assert job.future.result(5).outcomes[0].status == "scored"
    assert len(asked) == 2
    scheduler.close()


def test_the_status_of_a_too_long_text_is_truncated() -> None:
    scheduler = Scheduler(FakeRuntime({"nli": lambda call: TooLong("too long")}))
    (result,) = scheduler.submit([ask("a")], 8, None).future.result(5).outcomes
    assert result == Failure("truncated", "too long")
    scheduler.close()


def test_a_defect_of_a_metric_fails_that_metric_alone(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Steps[MetricResult]:
        yield [Classify("nli", ("p",), "a")]
        raise ZeroDivisionError("oops")

    scheduler = Scheduler(FakeRuntime({"nli": label}))
    broke, fine = scheduler.submit([broken(), ask("a")], 8, None).future.result(5).outcomes
    assert isinstance(broke, Failure)
    assert (broke.status, fine.status) == ("failed", "scored")
    assert "ZeroDivisionError" in broke.message
    assert "task broken failed" in caplog.text
    scheduler.close()


def test_a_deadline_ends_a_waiting_request_and_no_other() -> None:
    runtime, scheduler = make_gated_scheduler()
    first = scheduler.submit([ask("x")], 8, None)
    assert runtime.entered.wait(5)
    late = scheduler.submit([ask("a", "b")], 8, 1.0)
    time.sleep(0.02)
    runtime.opened.set()
    result = late.future.result(5).outcomes[0]
    assert isinstance(result, Failure)
    assert result.status == "deadline"
    assert "1 ms" in result.message
    assert first.future.result(5).outcomes[0].status == "scored"
    assert all(call.hypothesis != "b" for _, calls in runtime.batches for call in calls)  # type: ignore[union-attr]
    scheduler.close()


def test_a_deadline_does_not_wait_for_the_running_batch() -> None:
    runtime, scheduler = make_gated_scheduler()
    job = scheduler.submit([ask("a")], 8, 20.0)
    assert runtime.entered.wait(5)
    late = job.future.result(5)
    assert (late.outcomes[0].status, late.timings.stages_ms) == ("deadline", {})
    assert not runtime.batches
    runtime.opened.set()
    later = scheduler.submit([ask("a")], 8, None)
    assert later.future.result(5).outcomes[0].status == "scored"
    assert len(runtime.batches) == 1  # The cache kept the result of the batch.
    assert late.timings.stages_ms == {}
    scheduler.close()


def test_a_device_with_two_concurrent_batches_runs_both_halves_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=5)

    class Concurrent(FakeRuntime):
        def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
            both.wait()
            return super().run(role, calls, max_windows)

    def steps() -> Steps[MetricResult]:
        classified = yield [Classify("nli", ("p",), name) for name in "abcde"]
        return MetricResult("m", "scored", float([result.label for result in classified] == list("abcde")))

    runtime = Concurrent({"nli": label}, concurrent_batches=2)
    scheduler = Scheduler(runtime)
    assert scheduler.submit([steps()], 8, None).future.result(5).outcomes[0].value == 1.0
    assert sorted(len(calls) for _, calls in runtime.batches) == [2, 3]
    scheduler.close()


def test_a_cancelled_request_sends_no_further_call() -> None:
    runtime, scheduler = make_gated_scheduler()
    job = scheduler.submit([ask("a", "b")], 8, None)
    assert runtime.entered.wait(5)
    scheduler.cancel(job)
    runtime.opened.set()
    assert job.future.result(5).outcomes[0].status == "cancelled"
    scheduler.close()
    assert [call.hypothesis for _, calls in runtime.batches for call in calls] == ["a"]  # type: ignore[union-attr]


def test_close_cancels_unfinished_requests_and_refuses_new_ones() -> None:
    runtime, scheduler = make_gated_scheduler()
    job = scheduler.submit([ask("a", "b")], 8, None)
    assert runtime.entered.wait(5)
    threading.Timer(0.05, runtime.opened.set).start()
    scheduler.close()
    assert job.future.result(5).outcomes[0].status == "cancelled"
    with pytest.raises(EngineClosed, match="load another"):
        scheduler.submit([ask("a")], 8, None)


class InterruptibleGate(Gate):
    """Its batch ends when it is interrupted, and not before."""

    def interrupt(self) -> None:
        """As ``Interruptible.interrupt``."""
        assert not self.closed
        self.opened.set()


def test_close_interrupts_the_batch_that_no_request_waits_for_any_more() -> None:
    runtime = InterruptibleGate({"nli": label})
    engine = Engine(runtime)
    job = engine.core.run([ask("a")], Options())
    assert runtime.entered.wait(5)
    engine.close()
    assert runtime.opened.is_set()
    assert runtime.closed
    assert job.future.result(5).outcomes[0].status == "cancelled"


def test_a_request_beyond_the_limit_of_waiting_ones_is_refused() -> None:
    runtime = Gate({"nli": label})
    scheduler = Scheduler(runtime, max_waiting=2)
    jobs = [scheduler.submit([ask(str(i))], 8, None) for i in range(2)]
    with pytest.raises(Overloaded, match="2 requests"):
        scheduler.submit([ask("z")], 8, None)
    runtime.opened.set()
    for job in jobs:
        job.future.result(5)
    scheduler.submit([ask("z")], 8, None).future.result(5)
    scheduler.close()


def test_a_call_is_repeated_under_another_window_limit() -> None:
    limits: list[int] = []

    class Limited(FakeRuntime):
        def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
            limits.append(max_windows)
            return super().run(role, calls, max_windows)

    scheduler = Scheduler(Limited({"nli": label}))
    for limit in (8, 16, 8):
        scheduler.submit([ask("a")], limit, None).future.result(5)
    assert limits == [8, 16]
    scheduler.close()


def test_the_cache_evicts_the_least_recently_used_result() -> None:
    keys = [Key(Answer(name, ("p",)), 8) for name in "abcd"]
    cost = ENTRY_BYTES + count_bytes(keys[0].call) + count_bytes(True)
    cache = Cache(max_bytes=3 * cost)
    for key in keys[:3]:
        cache.put(key, True)
    assert cache.get(keys[0]) is True
    cache.put(keys[3], True)
    assert [key.call.question for key in keys if cache.get(key)] == ["a", "c", "d"]  # type: ignore[union-attr]
    cache.put(Key(Answer("x" * 5000, ("p",)), 8), True)
    assert len(cache) == 3


def test_eight_threads_get_the_same_scores_as_one_thread() -> None:
    texts = [(f"Elvis was born in {year}.", f"Elvis came in {year % 7 + 1900}.") for year in range(1900, 1960)]
    with Engine(world()) as engine:
        alone = [engine.score(*pair).metrics for pair in texts]
    with Engine(world(), LoadOptions(cache_bytes=1)) as engine, ThreadPoolExecutor(8) as pool:
        together = [score.metrics for score in pool.map(lambda pair: engine.score(*pair), texts)]
        many = [score.metrics for score in engine.score_many(texts)]
    assert alone == together == many


def test_ascore_runs_requests_concurrently_and_can_be_cancelled() -> None:
    runtime = Gate({**world()._answers, "qa": answer})

    async def main() -> tuple[list[str], bool]:
        engine = Engine(runtime)
        tasks = [asyncio.create_task(engine.ascore("Elvis sang.", f"Elvis {i}")) for i in range(5)]
        doomed = asyncio.create_task(engine.ascore("Elvis slept.", "Elvis"))
        await asyncio.sleep(0.05)
        doomed.cancel()
        runtime.opened.set()
        statuses = [score.status for score in await asyncio.gather(*tasks)]
        with pytest.raises(asyncio.CancelledError):
            await doomed
        await asyncio.to_thread(engine.close)
        return statuses, runtime.closed

    assert asyncio.run(main()) == (["scored"] * 5, True)


def test_timings_name_the_roles_that_served_the_request() -> None:
    with Engine(world()) as engine:
        timings = engine.score("Elvis was born in 1936.", "Elvis came in 1935.").timings
    assert set(timings.stages_ms) == {"spans", "qg", "qa", "nli"}
    assert timings.total_ms > 0


def test_the_options_of_a_request_limit_that_request_only() -> None:
    def slow(call: Classify) -> Outcome:
        time.sleep(0.05)
        return Classified("neutral", {"neutral": 1.0}, 0, Read(1, 1, 1))

    with Engine(world(spans=lambda call: (), nli=slow)) as engine:
        late = engine.score("hello", "Some Knowledge", options=Options(deadline_ms=5))
        assert (late.status, late.value) == ("deadline", None)
        assert engine.score("hello", "Some Knowledge").value == 0.5


def test_close_may_be_called_twice() -> None:
    scheduler = Scheduler(FakeRuntime({"nli": label}))
    scheduler.close()
    scheduler.close()


def test_cache_statistics_count_hits_and_misses() -> None:
    scheduler = Scheduler(FakeRuntime({"nli": label}))
    for _ in range(2):
        scheduler.submit([ask("a")], 8).future.result(5)
    assert scheduler.cache_info == (1, 1, 1)
    scheduler.close()


def test_a_runtime_that_fails_to_describe_a_role_fails_the_task_alone() -> None:
    class Defective(FakeRuntime):
        def batch(self, role: str) -> int:
            if role == "nli":
                raise ZeroDivisionError("no batch size")
            return 1

        def worker_pool(self, role: str) -> str:
            return "moon" if role == "qa" else "host"

    def personal() -> Steps[MetricResult]:
        (result,) = yield [IsPersonal("my?")]
        return MetricResult("m", "scored", float(result))

    def far() -> Steps[MetricResult]:
        yield [Answer("who?", ("p",))]
        raise AssertionError

    scheduler = Scheduler(Defective({"nli": label, "qa": answer, "spans": lambda call: True}))
    no_batch, no_pool, fine = scheduler.submit([ask("a"), far(), personal()], 8).future.result(5).outcomes
    assert "no batch size" in no_batch.message
    assert "runs on the pool 'moon'; there are device, host" in no_pool.message
    assert fine.value == 1.0
    scheduler.close()


def test_a_defect_that_ends_the_scheduler_answers_every_caller(caplog: pytest.LogCaptureFixture) -> None:
    runtime, scheduler = make_gated_scheduler()
    first = scheduler.submit([ask("a")], 8)
    assert runtime.entered.wait(5)
    scheduler._expire = None  # type: ignore[method-assign, assignment]  # a defect that no guard catches
    second = scheduler.submit([ask("b")], 8)
    for job in (first, second):
        with pytest.raises(EngineClosed, match=r"The engine has stopped: TypeError.*Load another"):
            job.future.result(5)
    assert "the scheduler stopped" in caplog.text
    assert not scheduler.accepts_jobs
    with pytest.raises(EngineClosed, match="has stopped"):
        scheduler.submit([ask("a")], 8)
    runtime.opened.set()
    scheduler.close()


def test_a_batch_holds_calls_with_one_window_limit_and_none_of_finished_jobs() -> None:
    runtime, scheduler = make_gated_scheduler()
    first = scheduler.submit([ask("x")], 8)
    assert runtime.entered.wait(5)
    kept, cancelled, other_limit = (
        scheduler.submit([ask(name)], max_windows) for name, max_windows in (("a", 8), ("b", 8), ("c", 4))
    )
    scheduler.cancel(cancelled)
    cancelled.future.result(5)
    wait_for_calls(scheduler, 3)
    runtime.opened.set()
    for job in (first, kept, other_limit):
        job.future.result(5)
    batches = [[call.hypothesis for call in calls] for _, calls in runtime.batches]  # type: ignore[union-attr]
    assert batches == [["x"], ["a"], ["c"]]
    scheduler.close()


def test_cancelling_keeps_finished_results_and_does_nothing_to_a_finished_job() -> None:
    runtime, scheduler = make_gated_scheduler()

    def immediate() -> Steps[MetricResult]:
        yield from ()
        return MetricResult("immediate", "scored", 1.0)

    job = scheduler.submit([immediate(), ask("a")], 8)
    assert runtime.entered.wait(5)
    scheduler.cancel(job)
    done, stopped = job.future.result(5).outcomes
    assert (done.status, stopped.status) == ("scored", "cancelled")
    scheduler.cancel(job)  # The job is finished, so that this does nothing.
    runtime.opened.set()
    assert scheduler.submit([ask("b")], 8).future.result(5).outcomes[0].status == "scored"
    scheduler.close()


def test_an_error_that_the_runtime_raises_reaches_every_call_of_the_batch() -> None:
    class Broken(FakeRuntime):
        def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
            raise TooLong("the batch is too long")

    scheduler = Scheduler(Broken({"nli": label}))
    (outcome,) = scheduler.submit([ask("a")], 8).future.result(5).outcomes
    assert outcome == Failure("truncated", "the batch is too long")
    scheduler.close()


def test_jobs_are_served_by_priority_then_deadline_then_age() -> None:
    runtime = Gate({"nli": label}, batch=1, concurrent_requests=1)
    scheduler = Scheduler(runtime)
    jobs = [scheduler.submit([ask("first")], 8)]
    assert runtime.entered.wait(5)
    for name, deadline_ms, priority in (
        ("a", None, 0),
        ("b", 50_000, 0),
        ("c", 40_000, 0),
        ("d", None, -1),
        ("e", None, 0),
    ):
        jobs.append(scheduler.submit([ask(name)], 8, deadline_ms, priority))
    runtime.opened.set()
    assert [job.future.result(5).outcomes[0].status for job in jobs] == ["scored"] * 6
    assert [calls[0].hypothesis for _, calls in runtime.batches] == ["first", "c", "b", "a", "e", "d"]  # type: ignore[union-attr]
    scheduler.close()


def test_an_urgent_job_is_admitted_beside_bulk_work() -> None:
    runtime = Gate({"nli": label}, batch=1, concurrent_requests=1)
    scheduler = Scheduler(runtime)
    bulk = [scheduler.submit([ask("x", "y")], 8, None, -1), scheduler.submit([ask("z")], 8, None, -1)]
    assert runtime.entered.wait(5)
    urgent = scheduler.submit([ask("a")], 8)
    wait_for_calls(scheduler, 2)
    runtime.opened.set()
    for job in (urgent, *bulk):
        assert job.future.result(5).outcomes[0].status == "scored"
    assert [calls[0].hypothesis for _, calls in runtime.batches] == ["x", "a", "y", "z"]  # type: ignore[union-attr]
    scheduler.close()


def test_a_job_that_cannot_finish_in_time_is_dropped_before_any_work() -> None:
    def slow(call: Classify) -> Outcome:
        time.sleep(0.05)
        return label(call)

    runtime = FakeRuntime({"nli": slow}, batch=1, concurrent_requests=1)
    scheduler = Scheduler(runtime)
    assert scheduler.submit([ask("warm")], 8).future.result(5).outcomes[0].status == "scored"
    busy = scheduler.submit([ask("busy", "more")], 8)
    hopeless = scheduler.submit([ask("hopeless")], 8, 40.0).future.result(5)
    assert hopeless.outcomes[0].status == "deadline"
    assert "Nothing was computed" in hopeless.outcomes[0].message
    assert hopeless.timings.total_ms < 40
    assert busy.future.result(5).outcomes[0].status == "scored"
    # Nothing else is active now, so that it is tried: things may have become faster.
    tried = scheduler.submit([ask("tried")], 8, 40.0).future.result(5)
    assert "not finished within 40 ms" in tried.outcomes[0].message
    scheduler.close()
    assert [calls[0].hypothesis for _, calls in runtime.batches] == ["warm", "busy", "more", "tried"]  # type: ignore[union-attr]


def test_closing_with_drain_finishes_what_was_accepted() -> None:
    runtime = Gate({"nli": label}, batch=1, concurrent_requests=1)
    scheduler = Scheduler(runtime)
    jobs = [scheduler.submit([ask("a", "b")], 8), scheduler.submit([ask("c")], 8)]
    threading.Timer(0.05, runtime.opened.set).start()
    scheduler.close(drain=True)
    assert [job.future.result(5).outcomes[0].status for job in jobs] == ["scored", "scored"]


def test_closing_with_drain_cancels_what_is_unfinished_after_the_timeout() -> None:
    runtime, scheduler = make_gated_scheduler()
    jobs = [scheduler.submit([ask("a", "b")], 8), scheduler.submit([ask("c", "d")], 8, 60_000.0)]
    assert runtime.entered.wait(5)
    threading.Timer(0.1, runtime.opened.set).start()
    scheduler.close(drain=True, timeout_ms=10)
    assert [job.future.result(5).outcomes[0].message for job in jobs] == ["The engine was closed."] * 2


def test_a_callback_may_close_the_scheduler() -> None:
    scheduler = Scheduler(FakeRuntime({"nli": label}))
    closed = threading.Event()
    job = scheduler.submit([ask("a")], 8)
    job.future.add_done_callback(lambda future: (scheduler.close(), closed.set()))  # type: ignore[arg-type, return-value]
    assert closed.wait(5)


def test_a_long_step_of_a_task_delays_no_deadline() -> None:
    entered, left = threading.Event(), threading.Event()

    def long() -> Steps[MetricResult]:
        entered.set()
        assert left.wait(10)
        yield []
        raise AssertionError("a stopped task goes on")

    scheduler = Scheduler(FakeRuntime({"nli": label}))
    job = scheduler.submit([long()], 8, 20.0)
    assert entered.wait(5)
    assert job.future.result(5).outcomes[0].status == "deadline"
    left.set()
    scheduler.close()


def test_a_callback_that_exits_stops_nothing() -> None:
    def leave(future: object) -> None:
        raise SystemExit(3)

    runtime, scheduler = make_gated_scheduler()
    job = scheduler.submit([ask("a")], 8, None)
    job.future.add_done_callback(leave)
    runtime.opened.set()
    assert job.future.result(5).outcomes[0].value == 1.0
    assert scheduler.submit([ask("b")], 8, None).future.result(5).outcomes[0].value == 1.0
    scheduler.close()


def test_a_job_that_a_procedure_does_not_wait_for_is_cancelled() -> None:
    runtime, scheduler = make_gated_scheduler()
    job = scheduler.submit([ask("a")], 8, None)

    def procedure() -> Procedure[None]:
        job.future.cancel()
        yield job

    with pytest.raises(CancelledError):
        Pending(procedure(), scheduler.cancel).result()
    for _ in range(2000):
        if scheduler.statistics().stopped:
            break
        time.sleep(0.005)
    assert scheduler.statistics().stopped == {"cancelled": 1}
    runtime.opened.set()
    scheduler.close()
