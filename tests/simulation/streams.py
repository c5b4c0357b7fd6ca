"""Streams in virtual time, over a runtime with faults: nothing leaves as checked that no model has seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from groundwire.engine import Options
from groundwire.engine.core.core import Core
from groundwire.engine.core.pending import Procedure
from groundwire.engine.scheduling.jobs import Job
from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.engine.schema.validation import make_request
from groundwire.guard import Fallback, Policy, Regenerate, Release
from groundwire.guard.core import StreamCore
from groundwire.guard.policies import OUTCOMES
from groundwire.guard.records import Event, SentenceEvent
from groundwire.runtime.calls import Call, role_of
from groundwire.runtime.errors import DeviceError, EngineClosed, ModelError, Overloaded, StreamClosed, TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome

from ..support.streams import CALIBRATION, KNOWLEDGE, METRICS, ROLES, text_of
from .threads import VirtualThreads

SENTENCES = ("Hi there!", "Honey {} is sweet.", "Honey {} is blue.", "It is {} golden.", "So it is, says Dr. {}.")
FAULTS = ("raise", "raise", "exit", "too few", "too many", "too long", "garbage")


class FaultyModels(FakeRuntime):
    """The models of ``tests.support.streams``, which fail at random; remembers what they have answered."""

    def __init__(self, random: Random) -> None:
        super().__init__(
            ROLES,
            batch=random.choice((1, 2, 64)),
            calibration=CALIBRATION,
            concurrent_batches=random.randint(1, 3),
            concurrent_requests=random.choice((1, 2, 64)),
        )
        self._random = random
        self._fault_rate = random.choice((0.0, 0.05, 0.3, 1.0))
        self.answered: set[tuple[str, str]] = set()
        """Roles and the texts that they were asked about."""

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """Results, or a fault of one of the kinds."""
        outcomes = list(super().run(role, calls, max_windows))
        fault = self._random.choice(FAULTS) if self._random.random() < self._fault_rate else ""
        if fault == "raise":
            raise self._random.choice((ModelError, DeviceError, MemoryError))("a fault")
        if fault == "exit":
            raise SystemExit(1)
        if fault in ("too few", "too many"):
            return outcomes[1:] if fault == "too few" else [*outcomes, outcomes[0]]
        if fault:
            failed = self._random.randrange(len(calls))
            outcomes[failed] = TooLong("too long") if fault == "too long" else "garbage"  # type: ignore[call-overload]
        self.answered.update(
            (role_of(call), text_of(call))
            for call, outcome in zip(calls, outcomes, strict=True)
            if not isinstance(outcome, TooLong | str)
        )
        return outcomes


class Client:
    """One stream: its pieces of text, and what came of it."""

    def __init__(self, simulation: StreamSimulation, number: int) -> None:
        self._world = simulation.world
        self._random = random = simulation.random
        texts = [random.choice(SENTENCES).format(f"{number}-{index}") for index in range(random.randint(1, 5))]
        self._text = " ".join(texts)
        actions = ("flag", "block", "redact", Fallback("No."), Regenerate(lambda event: "Honey is golden."))
        policy = Policy(
            **{outcome: random.choice(actions[: 4 if outcome == "overflow" else 5]) for outcome in OUTCOMES},
            max_held_words=random.choice((3, 200, 200, 200)),
            max_held_ms=random.choice((1.0, 50.0, 1e6, 1e6, 1e6)),
            deadline_ms=random.choice((None, None, None, 100.0)),
        )
        runtime, scheduler = simulation.runtime, simulation.scheduler
        options = Options(deadline_ms=random.choice((None, None, None, 5.0)))
        core = Core(runtime, scheduler, CALIBRATION)
        plan = core.plan(METRICS, options)
        self.core = StreamCore(
            make_request("-", KNOWLEDGE),
            plan,
            policy,
            lambda request, deadline_ms: core.start([request], plan, deadline_ms),
            scheduler.cancel,
            lambda before, sentence, action: None,
            self._world.now,
        )
        self._works = [*(lambda piece=piece: self.core.feed(piece) for piece in self._cut()), self.core.finish]
        self._work: Procedure[None] | None = None
        self.events: list[Event] = []
        self.ended = ""

    def _cut(self) -> list[str]:
        size = self._random.choice((1, 4, 1000))
        return [self._text[at : at + size] for at in range(0, len(self._text), size)]

    def go_on(self) -> None:
        """Begin the next call."""
        self._work = self._works[0]()
        self._resume(None)

    def _resume(self, result: Any) -> None:
        assert self._work is not None
        try:
            wait = self._work.send(result)
        except StopIteration:
            self._works.pop(0)
            self.events += self.core.events
            self.core.events.clear()
            if not self._works:
                self.ended = "finished"
                return
        except Overloaded:
            self._work.close()
            self.core.forget_jobs()
            if self._works[0] is not self.core.finish:
                self._works[0] = lambda: self.core.feed("")
        except (EngineClosed, StreamClosed) as error:
            self.core.forget_jobs()
            self.ended = type(error).__name__
            return
        else:
            if isinstance(wait, Job):
                wait.future.add_done_callback(lambda future: self._later(lambda: self._resume(future.result())))
            else:
                self._later(lambda: self._resume(wait()))
            return
        self._later(self.go_on, self._random.choice((0.0, 0.001, 0.02)))

    def _later(self, action: Callable[[], None], seconds: float = 0.0) -> None:
        self._world.at(self._world.now() + seconds, action)


class StreamSimulation:
    """Random streams, policies, deadlines, faults and closes; all from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.world = VirtualThreads(random)
        self.runtime = FaultyModels(random)
        self.scheduler = Scheduler(
            self.runtime,
            max_waiting=random.choice((1, 3, 100)),
            cache_bytes=random.choice((0, 1_000_000)),
            threads=self.world,
        )
        self.clients = [Client(self, number) for number in range(random.choice((1, 2, 5)))]
        for client in self.clients:
            self.world.at(random.random() * 0.05, client.go_on)
            if random.random() < 0.1:
                self.world.at(random.random() * 0.1, client.core.close)
        self.world.at(random.random() * 0.2 if random.random() < 0.2 else 60.0, self.scheduler.close)

    def run(self) -> list[str]:
        """Run everything; returns what must never happen and did."""
        self.world.run_loop()
        self.scheduler.close()
        return [*self.world.violations, *(problem for client in self.clients for problem in self._check(client))]

    def _check(self, client: Client) -> list[str]:
        problems = [] if client.ended else ["a stream hangs"]
        left = 0
        sentences = [event for event in client.events if isinstance(event, SentenceEvent)]
        released = [event for event in client.events if isinstance(event, Release)]
        for event in released:
            if event.start != left:
                problems.append(f"{event} follows what ended at {left}")
            left = event.end
            of_event = [sentence for sentence in sentences if event.start < sentence.end <= event.end]
            if event.checked and len(of_event) != 1 and event.end < len(client.core.text):
                problems.append(f"{event} is checked with {len(of_event)} sentences")
            if event.checked and event.action in ("release", "flag") and of_event:
                asked = (client.core.text, of_event[-1].text)
                if not all(any((role, text) in self.runtime.answered for text in asked) for role in ROLES):
                    problems.append(f"{event} was not checked")
                if event.outcome != of_event[-1].outcome:
                    problems.append(f"{event} is of a sentence that is {of_event[-1].outcome}")
            if event.action == "release" and event.outcome != "consistent":
                problems.append(f"{event} is not consistent")
            if event.action == "flag" and not event.checked and event.outcome in ("consistent", "inconsistent"):
                problems.append(f"{event} has a verdict")
        if client.ended == "finished" and "".join(event.text for event in released) != "".join(client.core.released):
            problems.append("what has left was not said")
        return problems
