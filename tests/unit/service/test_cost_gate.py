"""Admission by cost: what is let in, what waits, and when a refused caller should come again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from groundwire.service.cost_gate import BULK_SHARE, CostGate, Ticket
from groundwire.service.problems import Refusal


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_cost_counts_and_not_the_number() -> None:
    gate = CostGate(100, Clock())
    with gate.enter(60), gate.enter(40):
        with pytest.raises(Refusal, match="about 100 of 100 tokens") as refused:
            gate.enter(1)
        assert refused.value.code == "overloaded"
    tickets = [gate.enter(1) for _ in range(100)]
    assert (gate.used, gate.count) == (100, 100)
    for ticket in tickets:
        ticket.release()
        ticket.release()
    assert (gate.used, gate.count) == (0, 0), "a ticket is given back once"


def test_what_costs_more_than_the_capacity_is_let_in_alone() -> None:
    gate = CostGate(100, Clock())
    with gate.enter(1000), pytest.raises(Refusal):
        gate.enter(1)
    with gate.enter(1), pytest.raises(Refusal):
        gate.enter(1000)


@pytest.mark.parametrize(("rate", "cost", "seconds"), [(10.0, 50, 5), (10.0, 100, 10), (1000.0, 50, 1), (0.1, 50, 60)])
def test_the_time_to_come_again_follows_from_the_measured_rate(rate: float, cost: int, seconds: int) -> None:
    clock = Clock()
    gate = CostGate(100, clock)
    assert gate.retry_seconds(50) == 1, "nothing was measured"
    for _ in range(5):
        with gate.enter(100):
            clock.seconds += 100 / rate
        clock.seconds += 1000  # idle time says nothing about the rate
    with gate.enter(100):
        assert gate.retry_seconds(cost) == seconds


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_bulk_work_waits_in_its_order_and_leaves_room() -> None:
    async def test() -> None:
        gate = CostGate(100, Clock())
        order: list[int] = []

        async def work(number: int, cost: int) -> Ticket:
            ticket = await gate.wait(cost)
            order.append(number)
            return ticket

        first = await work(0, 60)
        waiting = [asyncio.create_task(work(number, cost)) for number, cost in ((1, 40), (2, 5), (3, 5))]
        await asyncio.sleep(0)
        assert order == [0], "a small one does not overtake"
        with gate.enter(40):
            first.release()
            await asyncio.gather(*waiting[:1])
            assert order == [0, 1], "one at a time has a place, whatever single requests take"
            for task in waiting[1:]:
                assert not task.done()
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2, 3]
        assert gate.used == 50 == gate.capacity * BULK_SHARE

    run(test)


def test_who_no_longer_waits_takes_no_place() -> None:
    async def test() -> None:
        gate = CostGate(100, Clock())
        ticket = gate.enter(100)
        tasks = [asyncio.create_task(gate.wait(50)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        ticket.release()  # the turn of the first, which is being cancelled, is skipped
        await asyncio.sleep(0)
        assert tasks[0].cancelled() or await asyncio.wait_for(asyncio.shield(tasks[1]), 1)
        assert gate.used == 50
        tasks[2].cancel()
        (await tasks[1]).release()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (gate.used, gate.count) == (0, 0)

    run(test)


class GateMachine(RuleBasedStateMachine):
    """Any order of entering, waiting, leaving and giving up keeps the books right."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.gate = CostGate(100, Clock())
        self.tickets: list[Ticket] = []
        self.waiting: list[asyncio.Task[Ticket]] = []

    def settle(self) -> None:
        async def turn() -> None:
            for _ in range(5):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turn())
        self.tickets += [task.result() for task in self.waiting if task.done() and not task.cancelled()]
        self.waiting = [task for task in self.waiting if not task.done()]

    @rule(cost=st.integers(1, 150))
    def enter(self, cost: int) -> None:
        fits = not self.gate.used or self.gate.used + cost <= 100
        try:
            self.tickets.append(self.gate.enter(cost))
            assert fits
        except Refusal:
            assert not fits

    @rule(cost=st.integers(1, 150))
    def wait(self, cost: int) -> None:
        self.waiting.append(self.loop.create_task(self.gate.wait(cost)))
        self.settle()

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), also=st.booleans())
    def leave(self, data: st.DataObject, also: bool) -> None:
        if also and self.waiting:
            data.draw(st.sampled_from(self.waiting)).cancel()
        self.tickets.pop(data.draw(st.integers(0, len(self.tickets) - 1))).release()
        if not also and self.waiting:  # after its turn has come, perhaps
            data.draw(st.sampled_from(self.waiting)).cancel()
        self.settle()

    @invariant()
    def the_books_are_right(self) -> None:
        assert self.gate.used == sum(ticket.cost for ticket in self.tickets)
        assert self.gate.count == len(self.tickets)
        assert self.gate.used <= 100 or self.gate.count == 1
        assert self.gate.count or not self.waiting, "nobody waits at an empty gate"  # terms: literal

    def teardown(self) -> None:
        for task in self.waiting:
            task.cancel()
        self.settle()
        self.loop.close()


TestGate = GateMachine.TestCase
TestGate.settings = settings(max_examples=60, stateful_step_count=20)
