"""The handle of a request: waiting from threads and asyncio, giving up, and what procedures may wait for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from groundwire.engine import Engine, EngineClosed, InvalidRequest, Options, Pending, Request, StreamClosed
from groundwire.engine.core.pending import NeedsAsyncio, Procedure
from groundwire.engine.scheduling.jobs import JobResult
from groundwire.engine.schema.steps import Steps
from groundwire.generation import Generator
from groundwire.guard import Guard
from groundwire.repair import Corrector, Critic, Refiner
from groundwire.runtime.calls import Classify
from groundwire.runtime.errors import ModelError
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from tests.support import generation, graph_world
from tests.support.correcting import CALIBRATION, entail

REQUEST = Request("It has four strings.", ("It has four strings.",))
VIOLIN = "The violin is old. It has four strings."
ROLES: dict[str, Callable[[Any], Outcome]] = {
    "nli": entail,
    "critic": graph_world.critic,
    "retriever": graph_world.retriever,
    "generator": generation.generator,
    "lm": generation.language_model,
}


class Gate:
    """Models that answer when the gate is open."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.opened = threading.Event()

    def guard(self, answer: Callable[[Any], Outcome]) -> Callable[[Any], Outcome]:
        def wait(call: Any) -> Outcome:
            self.asked.set()
            assert self.opened.wait(60)
            return answer(call)

        return wait


@contextmanager
def open_engine(*, is_open: bool = False) -> Iterator[tuple[Engine, Gate]]:
    """An engine over the models of all verbs, which wait for a gate."""
    gate = Gate()
    roles = {role: gate.guard(answer) for role, answer in ROLES.items()}
    if is_open:
        gate.opened.set()
    with Engine(FakeRuntime(roles, calibration=CALIBRATION, role_info=graph_world.FACTS)) as engine:
        try:
            yield engine, gate
        finally:
            gate.opened.set()


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


# One request


def test_a_request_is_started_by_submission() -> None:
    with open_engine() as (engine, gate):
        pending = engine.submit(REQUEST)
        assert gate.asked.wait(60)
        assert not pending.done
        gate.opened.set()
        assert pending.result(60).verdict.label == "consistent"
        assert pending.done


def test_a_result_may_be_asked_for_again_in_every_way() -> None:
    async def wait(pending: Pending[Any]) -> Any:
        return await pending

    with open_engine(is_open=True) as (engine, _):
        pending = engine.submit(REQUEST)
        score = asyncio.run(wait(pending))
        assert pending.result() is pending.result(0) is asyncio.run(wait(pending)) is score
        assert score.metrics == engine.score(REQUEST.response, REQUEST.knowledge).metrics


def test_a_timeout_leaves_the_request_running() -> None:
    with open_engine() as (engine, gate):
        pending = engine.submit(REQUEST)
        for timeout in (0, 0.01):
            with pytest.raises(TimeoutError):
                pending.result(timeout)
        assert engine.statistics().stopped == {}
        gate.opened.set()
        assert pending.result(60).status == "scored"


def test_cancelling_ends_the_request_with_a_status_and_leaves_others() -> None:
    with open_engine() as (engine, gate):
        kept, given_up = engine.submit(REQUEST), engine.submit(Request("It has six strings.", (VIOLIN,)))
        assert gate.asked.wait(60)
        given_up.cancel()
        score = given_up.result(60)
        assert (score.status, score.verdict.label) == ("cancelled", "unknown")
        gate.opened.set()
        assert kept.result(60).status == "scored"
        kept.cancel()  # The request is finished, so that this does nothing.
        assert kept.result().status == "scored"
        assert engine.statistics().stopped == {"cancelled": 1}


def test_cancelling_wakes_the_thread_that_waits() -> None:
    with open_engine() as (engine, gate), ThreadPoolExecutor(1) as pool:
        pending = engine.submit(REQUEST)
        waiting = pool.submit(pending.result)
        assert gate.asked.wait(60)
        pending.cancel()
        assert waiting.result(60).status == "cancelled"


def test_a_second_waiter_is_refused_and_the_first_gets_the_result() -> None:
    async def wait_twice(pending: Pending[Any], gate: Gate) -> Any:
        first = asyncio.ensure_future(pending)
        await asyncio.sleep(0)
        with pytest.raises(InvalidRequest, match="Another thread or task waits"):
            await pending
        gate.opened.set()
        return await first

    with open_engine() as (engine, gate), ThreadPoolExecutor(1) as pool:
        pending = engine.submit(REQUEST)
        waiting = pool.submit(pending.result)
        wait_until(pending._lock.locked)
        with pytest.raises(InvalidRequest, match="wait for it in one place"):
            pending.result()
        gate.opened.set()
        assert waiting.result(60).status == "scored"
    with open_engine() as (engine, gate):
        assert asyncio.run(wait_twice(engine.submit(REQUEST), gate)).status == "scored"
        assert engine.statistics().stopped == {}


def test_an_unusable_request_is_refused_at_submission() -> None:
    with open_engine(is_open=True) as (engine, _), pytest.raises(InvalidRequest, match="response is empty"):
        engine.submit(Request(" ", ("It has four strings.",)))


# Procedures


def ask(text: str) -> Steps[str]:
    (answer,) = yield [Classify("nli", (VIOLIN,), text)]
    return str(answer.label)


def wait_for_everything(engine: Engine, threads: list[int]) -> Procedure[list[Any]]:
    """A procedure that waits for a job, a function and a coroutine function."""

    async def ask_a_service() -> int:
        await asyncio.sleep(0)
        return threading.get_ident()

    job_result: JobResult[str] = yield engine.core.run([ask("It has six strings.")], Options())
    threads.append(threading.get_ident())
    function = yield threading.get_ident
    threads.append(threading.get_ident())
    coroutine = yield ask_a_service
    threads.append(threading.get_ident())
    return [job_result.outcomes, function, coroutine]


def test_a_procedure_waits_for_jobs_functions_and_coroutines() -> None:
    """Under ``await`` the procedure and a function run on other threads, a coroutine on the event loop's."""
    threads: list[int] = []

    async def main(engine: Engine) -> list[Any]:
        return await engine.core.drive(wait_for_everything(engine, threads))

    with open_engine(is_open=True) as (engine, _):
        outcomes, function, coroutine = asyncio.run(main(engine))
    here = threading.get_ident()
    assert outcomes == ("contradiction",)
    assert coroutine == here != function
    assert here not in threads


def test_without_asyncio_a_function_runs_on_the_waiting_thread_and_a_coroutine_is_refused() -> None:
    threads: list[int] = []
    with open_engine(is_open=True) as (engine, _):
        pending = engine.core.drive(wait_for_everything(engine, threads))
        for _ in range(2):
            with pytest.raises(NeedsAsyncio, match="use the asynchronous methods"):
                pending.result()
        assert not pending.done
    assert threads == [threading.get_ident()] * 2


def test_an_error_of_a_procedure_is_raised_again_at_every_wait() -> None:
    async def wait(pending: Pending[None]) -> None:
        await pending

    def fail(engine: Engine) -> Procedure[None]:
        yield engine.core.run([ask("It is old.")], Options())
        raise ModelError("broken")

    with open_engine(is_open=True) as (engine, _):
        for first, second in ((Pending.result, Pending.result), (lambda p: asyncio.run(wait(p)), Pending.result)):
            pending = engine.core.drive(fail(engine))
            with pytest.raises(ModelError, match="broken") as error:
                first(pending)
            with pytest.raises(ModelError) as again:
                second(pending)
            assert again.value is error.value
            assert pending.done


def test_an_error_before_the_first_wait_is_raised_by_the_start() -> None:
    def fail() -> Procedure[None]:
        raise ModelError("broken")
        yield

    with open_engine(is_open=True) as (engine, _), pytest.raises(ModelError, match="broken"):
        engine.core.drive(fail())


def test_a_function_that_fails_is_called_again_at_the_next_wait() -> None:
    results: list[Exception | str] = [ValueError("not now"), "It has four strings."]

    def call() -> str:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def procedure(engine: Engine) -> Procedure[tuple[Any, ...]]:
        text = yield call
        job_result: JobResult[str] = yield engine.core.run([ask(text)], Options())
        return job_result.outcomes

    with open_engine(is_open=True) as (engine, _):
        pending = engine.core.drive(procedure(engine))
        with pytest.raises(ValueError, match="not now"):
            pending.result()
        assert pending.result() == ("entailment",)


def test_who_waited_without_asyncio_may_wait_with_it() -> None:
    async def wait(pending: Pending[list[Any]]) -> list[Any]:
        return await pending

    with open_engine(is_open=True) as (engine, _):
        pending = engine.core.drive(wait_for_everything(engine, []))
        with pytest.raises(NeedsAsyncio):
            pending.result()
        assert asyncio.run(wait(pending))[0] == ("contradiction",)


def test_a_request_that_is_given_up_between_two_jobs_cancels_the_next() -> None:
    """A task that is cancelled while its procedure runs on another thread starts no job that goes on."""
    running, resumed = threading.Event(), threading.Event()

    def procedure(engine: Engine) -> Procedure[Any]:
        yield engine.core.run([ask("It is old.")], Options())
        running.set()
        assert resumed.wait(60)
        job_result: JobResult[str] = yield engine.core.run([ask("It has six strings.")], Options())
        return job_result.outcomes[0]

    async def main(engine: Engine, gate: Gate) -> None:
        task = asyncio.ensure_future(engine.core.drive(procedure(engine)))
        await asyncio.to_thread(running.wait, 60)
        gate.opened.clear()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        resumed.set()
        await asyncio.to_thread(wait_until, lambda: engine.statistics().stopped == {"cancelled": 1})

    with open_engine(is_open=True) as (engine, gate):
        asyncio.run(main(engine, gate))


# Closing


def test_an_engine_is_closed_in_asyncio_while_the_event_loop_goes_on() -> None:
    """With ``drain`` what was accepted is finished first, which here takes a turn of the event loop."""

    async def main(engine: Engine, gate: Gate) -> str:
        async with engine as entered:
            assert entered is engine
            pending = engine.submit(REQUEST)
            await asyncio.to_thread(gate.asked.wait, 60)
            closing = asyncio.ensure_future(engine.aclose(drain=True))
            await asyncio.to_thread(wait_until, lambda: not engine.core.is_open)
            gate.opened.set()
            await closing
            return (await pending).status

    with open_engine() as (engine, gate):
        assert asyncio.run(main(engine, gate)) == "scored"
        with pytest.raises(EngineClosed):
            engine.submit(REQUEST)
        assert isinstance(engine.core.runtime, FakeRuntime)
        assert engine.core.runtime.closed


# All verbs

AWAITS: dict[str, Callable[[Engine], Awaitable[Any]]] = {
    "submit": lambda engine: engine.submit(REQUEST),
    "ascore": lambda engine: engine.ascore("It has six strings.", VIOLIN),
    "ascore_many": lambda engine: anext(aiter(engine.ascore_many([("It has six strings.", VIOLIN)]))),
    "arank": lambda engine: engine.arank(["It is old.", "It is new."], VIOLIN, metric="nli"),
    "acorrect": lambda engine: Corrector(engine).acorrect("It has six strings.", VIOLIN),
    "acritique": lambda engine: Critic(engine).acritique("Alien stars Kate Winslet.", graph_world.FILMS),
    "arefine": lambda engine: Refiner(engine).arefine("Alien stars Kate Winslet.", graph_world.FILMS),
    "agenerate": lambda engine: Generator(engine).agenerate(VIOLIN, ["Is it old?"]),
    "afeed": lambda engine: Guard(engine).open(VIOLIN).afeed("It has six strings. It"),
}


@pytest.mark.parametrize("verb", AWAITS)
def test_cancelling_the_awaiting_task_gives_the_request_up(verb: str) -> None:
    async def main(engine: Engine, gate: Gate) -> None:
        task = asyncio.ensure_future(AWAITS[verb](engine))
        assert await asyncio.to_thread(gate.asked.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_until, lambda: engine.statistics().active == 0)
        assert engine.statistics().stopped == {"cancelled": engine.statistics().finished}
        gate.opened.set()
        assert (await engine.ascore("It has four strings.", VIOLIN)).verdict.label == "consistent"

    with open_engine() as (engine, gate):
        asyncio.run(main(engine, gate))


CALLS: dict[str, tuple[Callable[[Engine], Any], Callable[[Any], object]]] = {
    "score": (lambda engine: engine.score("It has six strings.", VIOLIN), lambda score: score.status),
    "score_many": (lambda engine: list(engine.score_many([("It has six.", VIOLIN)])), lambda scores: scores[0].status),
    "rank": (
        lambda engine: engine.rank(["It is old.", "It is new."], VIOLIN, metric="nli"),
        lambda ranked: ranked[1].result.status,
    ),
    "correct": (lambda engine: Corrector(engine).correct("It has six strings.", VIOLIN), lambda result: result.status),
    "critique": (
        lambda engine: Critic(engine).critique("Alien stars Kate Winslet.", graph_world.FILMS),
        lambda result: result.status,
    ),
    "refine": (
        lambda engine: Refiner(engine).refine("Alien stars Kate Winslet.", graph_world.FILMS),
        lambda result: result.status,
    ),
    "generate": (lambda engine: Generator(engine).generate(VIOLIN, ["Is it old?"]), lambda result: result.status),
}


@pytest.mark.parametrize("verb", CALLS)
def test_a_thread_that_waits_gets_a_status_when_its_request_is_given_up(verb: str) -> None:
    """By closing the engine, which ends all of them."""
    call, read_status = CALLS[verb]
    with open_engine() as (engine, gate), ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(call, engine)
        assert gate.asked.wait(60)
        closing = pool.submit(engine.close)
        assert read_status(waiting.result(60)) == "cancelled"
        gate.opened.set()
        closing.result(60)


def test_a_thread_that_feeds_a_stream_gets_an_error_when_the_stream_is_closed() -> None:
    with open_engine() as (engine, gate), ThreadPoolExecutor(1) as pool:
        stream = Guard(engine).open(VIOLIN)
        feeding = pool.submit(stream.feed, "It has six strings. It")
        assert gate.asked.wait(60)
        stream.close()
        with pytest.raises(StreamClosed):
            feeding.result(60)
        wait_until(lambda: engine.statistics().stopped == {"cancelled": 1})


def test_a_procedure_that_a_cancelled_task_leaves_on_a_thread_can_be_closed_as_soon_as_it_settles() -> None:
    """No other task may wait for it before; a soak met "generator already executing"."""
    running, goes_on = threading.Event(), threading.Event()

    def procedure() -> Procedure[None]:
        yield lambda: None
        running.set()
        assert goes_on.wait(60)
        yield lambda: None

    async def main() -> None:
        work = procedure()
        pending = Pending(work, lambda job: None)
        waiting = asyncio.ensure_future(pending)
        assert await asyncio.to_thread(running.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(InvalidRequest, match="in one place"):
            await pending
        settling = asyncio.ensure_future(pending.settle())
        for _ in range(3):
            await asyncio.sleep(0)
            settling.cancel()
        assert not settling.done()
        goes_on.set()
        await settling
        work.close()

    asyncio.run(main())


def test_a_request_can_be_waited_for_when_the_loop_that_left_it_on_a_thread_has_closed() -> None:
    running, goes_on, threads = threading.Event(), threading.Event(), ThreadPoolExecutor(1)

    def procedure() -> Procedure[str]:
        yield lambda: None
        running.set()
        assert goes_on.wait(60)
        return "done"

    async def main() -> None:
        waiting = asyncio.ensure_future(pending)
        assert await asyncio.to_thread(running.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    pending = Pending(procedure(), lambda job: None, threads)
    asyncio.run(main())
    with pytest.raises(InvalidRequest, match="in one place"):
        pending.result()
    goes_on.set()
    threads.shutdown(wait=True)
    assert pending.result(60) == "done"
