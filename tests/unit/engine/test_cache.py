"""The cache of results against a plain list: what it holds, in which order, in how many bytes."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from groundwire.engine.scheduling.calls import ENTRY_BYTES, Cache, Key, count_bytes
from groundwire.runtime.calls import Classified, Classify, Read

KEYS = [Key(Classify("nli", ("a",) * count, "b" * count), windows) for count in (0, 1, 50) for windows in (1, 2)]
OUTCOMES = [Classified(label, {label: 1.0}, 0, Read(1, 1, 1)) for label in ("", "x", "y" * 700)]
COSTS = [ENTRY_BYTES + count_bytes(key.call) + count_bytes(outcome) for key in KEYS for outcome in OUTCOMES]


class CacheMachine(RuleBasedStateMachine):
    """Puts and gets in any order; the model has the least recently used entry first."""

    @initialize(max_bytes=st.integers(0, 3 * max(COSTS)) | st.sampled_from([ENTRY_BYTES - 1, *COSTS]))
    def make(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.cache = Cache(max_bytes)
        self.model: dict[Key, Classified] = {}
        self.hits = self.misses = 0

    def count_model(self) -> int:
        return sum(ENTRY_BYTES + count_bytes(key.call) + count_bytes(outcome) for key, outcome in self.model.items())

    @rule(key=st.sampled_from(KEYS), outcome=st.sampled_from(OUTCOMES))
    def put(self, key: Key, outcome: Classified) -> None:
        self.cache.put(key, outcome)
        if key in self.model or ENTRY_BYTES + count_bytes(key.call) + count_bytes(outcome) > self.max_bytes:
            return
        self.model[key] = outcome
        while self.count_model() > self.max_bytes:
            del self.model[next(iter(self.model))]

    @rule(key=st.sampled_from(KEYS))
    def get(self, key: Key) -> None:
        outcome = self.model.pop(key, None)
        assert self.cache.get(key) is outcome
        if outcome is None:
            self.misses += 1
        else:
            self.hits += 1
            self.model[key] = outcome

    @invariant()
    def check(self) -> None:
        assert len(self.cache) == len(self.model)
        assert self.cache.bytes == self.count_model() <= self.max_bytes
        assert (self.cache.hits, self.cache.misses) == (self.hits, self.misses)


CacheMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestCache = CacheMachine.TestCase


def test_a_cache_of_no_bytes_keeps_nothing() -> None:
    cache = Cache(0)
    cache.put(KEYS[0], OUTCOMES[0])
    assert (len(cache), cache.get(KEYS[0]), cache.bytes) == (0, None, 0)
