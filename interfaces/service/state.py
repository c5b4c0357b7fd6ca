"""What the requests of one service share: its engine, its settings, and what is counted."""

from __future__ import annotations

import time
from collections.abc import Callable

from groundwire.engine import Engine, InvalidRequest

from .authorization import Authorizer, read_tokens
from .cost_gate import CostGate
from .monitoring import Monitoring
from .readiness import Readiness
from .records import Metrics
from .settings import Settings


class Service:
    """One engine with its admission, its readiness and its numbers."""

    def __init__(self, engine: Engine, settings: Settings, now: Callable[[], float] = time.monotonic) -> None:
        """Raises InvalidRequest for metrics that the engine's bundle cannot compute, and for unusable tokens."""
        self.engine = engine
        self.settings = settings
        self.now = now
        self.authorizer = Authorizer(read_tokens(settings))
        self.gate = CostGate(settings.max_queue_tokens, now)
        self.monitoring = Monitoring(engine.core.calibration)
        engine.core.observe_batches(self.monitoring.add_batch)
        self.metrics = self._choose_metrics()
        """Those of requests that name none; None if the bundle has none that could be computed."""
        self.readiness = Readiness(engine, self.metrics, now)
        self.open_streams = 0

    def _choose_metrics(self) -> tuple[str, ...] | None:
        if self.settings.metrics:
            return self.engine.plan(self.settings.metrics).names
        try:
            return self.engine.plan().names
        except InvalidRequest:  # a bundle that repairs or generates, and scores nothing
            return None

    def resolve_metrics(self, metrics: Metrics | None) -> tuple[str, ...]:
        """The metrics of a request: those that it names, else the server's. InvalidRequest for an unknown one."""
        return self.engine.plan(metrics if metrics is not None else self.metrics).names

    def update_gauges(self) -> None:
        """Show what is going on now."""
        self.monitoring.queue_size.set(self.gate.count)
        self.monitoring.queue_tokens.set(self.gate.used)
        self.monitoring.streams.set(self.open_streams)
        ready = self.readiness.is_warm and self.engine.core.is_open and not self.readiness.is_draining
        self.monitoring.ready.set(ready)
        self.monitoring.update_engine(self.engine.statistics())
