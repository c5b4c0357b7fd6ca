"""What happens in one simulation: a runtime with faults, and tasks of many kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from groundwire.engine.schema.steps import Steps
from groundwire.runtime.calls import Call, Classified, Classify, Read
from groundwire.runtime.errors import DeviceError, GroundwireError, ModelError, TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome

HOST_ROLES = ("spans",)
ROLES = ("nli", "qa", "detector.a", *HOST_ROLES)
BATCH_GROUPS = (("nli", "detector.a"),)
RECOVERED = "recovered"


def answer(call: Call, max_windows: int) -> str:
    """What a call must be answered with, and no other."""
    assert isinstance(call, Classify)
    return f"{call.role}:{call.hypothesis}:{max_windows}"


class FaultyRuntime(FakeRuntime):
    """Answers calls, fails at random, and remembers which calls failed alone, or with the device."""

    def __init__(self, random: Random) -> None:
        super().__init__(
            dict.fromkeys(ROLES),  # type: ignore[arg-type]  # ``run`` answers
            batch=random.choice((1, 2, 3, 64)),
            concurrent_batches=random.randint(1, 3),
            concurrent_requests=random.choice((1, 2, 4, 64)),
            batch_groups=BATCH_GROUPS,
        )
        self._random = random
        self._fault_rate = random.choice((0.0, 0.0, 0.05, 0.5))
        self.is_lost = False
        self.violations: list[str] = []
        self.failed: set[tuple[Call, int]] = set()

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """Results, or one of: an exception, too few results, too many, a poisoned batch, a lost device."""
        self.batches.append((role, tuple(calls)))
        if not all(isinstance(call, Classify) and self.batch_group(call.role) == role for call in calls):
            self.violations.append(f"a batch of {role} has calls of another group")
        fault = self._random.choice(FAULTS) if self._random.random() < self._fault_rate else ""
        fails = bool(fault) or self.is_lost or any(is_poison(call) for call in calls)
        if self.is_lost or (fails and len(calls) == 1):
            self.failed.update((call, max_windows) for call in calls)
        if self.is_lost:
            raise DeviceError("the device is lost")
        outcomes: list[Outcome] = [
            TooLong("too long") if is_too_long(call) else Classified(answer(call, max_windows), {}, 0, Read(1, 1, 1))
            for call in calls
        ]
        if any(is_poison(call) for call in calls):
            raise MemoryError("a poisoned batch")
        if fault == "raise":
            raise ModelError("a fault")
        if fault == "exit":
            raise SystemExit(1)
        return outcomes[1:] if fault == "too few" else [*outcomes, outcomes[0]] if fault == "too many" else outcomes


FAULTS = ("raise", "exit", "too few", "too many")


def is_poison(call: Call) -> bool:
    """Spoils every batch that it is in."""
    return isinstance(call, Classify) and call.hypothesis == "poison"


def is_too_long(call: Call) -> bool:
    """Gets an error of its own, which fails no batch."""
    return isinstance(call, Classify) and call.hypothesis == "too long"


class TaskRecord:
    """A task's behaviour, what it asked, and what it saw."""

    def __init__(self, random: Random, max_windows: int) -> None:
        self.max_windows = max_windows
        self.behaviour = random.choice(BEHAVIOURS)
        self.rounds = [self._make_round(random) for _ in range(random.choice((0, 1, 1, 2, 3)))]
        self.bad_round = random.randrange(len(self.rounds) + 1)
        self.wrong_results: list[object] = []
        self.is_open = False

    @staticmethod
    def _make_round(random: Random) -> tuple[Call, ...]:
        texts = random.choices(
            (*"abcdefgh", "poison", "too long"), (*([6] * 8), 1, 1), k=random.choice((0, 1, 1, 2, 4))
        )
        return tuple(Classify(random.choice(ROLES), ("p",), text) for text in texts)

    def is_value(self, value: object, failed: Callable[[Call], bool]) -> bool:
        """Whether ``value`` is what the task gives alone, but for rounds with ``failed`` calls it recovered from."""
        if not isinstance(value, tuple):
            return False
        left = list(value)
        for calls in self.rounds:
            expected = [answer(call, self.max_windows) for call in calls]
            if self.behaviour == "recover" and left[:1] == [RECOVERED] and any(map(failed, calls)):
                del left[0]
            elif left[: len(expected)] == expected:
                del left[: len(expected)]
            else:
                return False
        return not left

    def steps(self) -> Steps[Any]:
        """The generator of the task."""
        self.is_open = True
        values: list[str] = []
        try:
            for index, calls in enumerate(self.rounds):
                self._misbehave(index)
                if self.behaviour == "garbage" and index == self.bad_round:
                    yield [["unhashable"]]  # type: ignore[list-item]
                try:
                    results = yield calls
                except GroundwireError:
                    if self.behaviour != "recover":
                        raise
                    values.append(RECOVERED)
                    continue
                expected = [answer(call, self.max_windows) for call in calls]
                labels = [getattr(result, "label", result) for result in results]
                if labels != expected:
                    self.wrong_results.append((labels, expected))
                values += labels
            self._misbehave(len(self.rounds))
            while self.behaviour == "endless":
                yield self.rounds[0] if self.rounds else []
            return None if self.behaviour == "nothing" else tuple(values)
        finally:
            self.is_open = False
            if self.behaviour == "stubborn":
                yield []

    def _misbehave(self, index: int) -> None:
        if index == self.bad_round and self.behaviour in EXCEPTIONS:
            raise EXCEPTIONS[self.behaviour]


EXCEPTIONS: Mapping[str, BaseException] = {
    "defect": ZeroDivisionError("a defect"),
    "recursion": RecursionError("a defect"),
    "exit": SystemExit(2),
}
BEHAVIOURS = (*["plain"] * 12, *EXCEPTIONS, "recover", "garbage", "nothing", "stubborn", "endless")
