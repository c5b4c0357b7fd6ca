"""A runtime that counts calls, batches and time per role."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.calls import Call, Generate, SequencePart
from groundwire.runtime.protocol import Identity, Outcome, RoleInfo, Runtime


class Stage(msgspec.Struct):
    """The work of one role."""

    calls: int = 0
    batches: int = 0
    """How often the role was run; the role itself may split a batch by length."""
    run_ms: float = 0.0


class Observed:
    """Forwards all calls to ``inner`` and keeps the sums."""

    def __init__(self, inner: Runtime) -> None:
        self._inner = inner
        self.stages: dict[str, Stage] = {}
        self._lock = threading.Lock()
        self.calls: list[Call] | None = None
        """Every call, in the order of completion, once this is set to a list."""

    @property
    def roles(self) -> frozenset[str]:
        """Those of the inner runtime."""
        return self._inner.roles

    @property
    def identity(self) -> Identity:
        """That of the inner runtime."""
        return self._inner.identity

    @property
    def calibration(self) -> Calibration | None:
        """That of the inner runtime."""
        return self._inner.calibration

    def role_info(self, role: str) -> RoleInfo:
        """As the inner runtime."""
        return self._inner.role_info(role)

    @property
    def worker_pools(self) -> Mapping[str, int]:
        """Those of the inner runtime."""
        return self._inner.worker_pools

    @property
    def spare_requests(self) -> int:
        """As the inner runtime."""
        return self._inner.spare_requests

    @property
    def concurrent_requests(self) -> int:
        """That of the inner runtime."""
        return self._inner.concurrent_requests

    def worker_pool(self, role: str) -> str:
        """As the inner runtime."""
        return self._inner.worker_pool(role)

    def batch_group(self, role: str) -> str:
        """As the inner runtime."""
        return self._inner.batch_group(role)

    def batch(self, role: str) -> int:
        """As the inner runtime."""
        return self._inner.batch(role)

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """Run the calls and count them."""
        started = time.perf_counter()
        outcomes = self._inner.run(role, calls, max_windows)
        spent_ms = (time.perf_counter() - started) * 1000
        with self._lock:
            stage = self.stages.setdefault(role, Stage())
            stage.calls += len(calls)
            stage.batches += 1
            stage.run_ms += spent_ms
            if self.calls is not None:
                self.calls += calls
        return outcomes

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """As the inner runtime; not counted."""
        return self._inner.stream(call)

    def warm_calls(self, roles: Collection[str] | None = None) -> Sequence[Call]:
        """As the inner runtime."""
        return self._inner.warm_calls(roles)

    def close(self) -> None:
        """Close the inner runtime."""
        self._inner.close()

    def take_stages(self) -> dict[str, Stage]:
        """Return the sums since the last time, and reset them."""
        stages, self.stages = self.stages, {}
        return stages
