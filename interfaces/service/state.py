"""What the requests of one service share."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from groundwire.engine import Engine, InvalidRequest

from .chats import RememberedChats
from .health import Readiness
from .monitoring import Monitoring
from .records import Metrics
from .settings import Settings, read_tenants, read_tokens
from .usage import read_usage


class Service:
    """One engine with its readiness and its numbers."""

    def __init__(self, engine: Engine, settings: Settings, now: Callable[[], float] = time.monotonic) -> None:
        """Raises InvalidRequest for metrics that the engine's bundle cannot compute, and for unusable tokens."""
        self.engine = engine
        self.settings = settings
        self.now = now
        self.tokens = read_tokens(settings)
        self.tenants = read_tenants(settings)
        """Tenants by their tokens."""
        self.monitoring = Monitoring(engine.core.calibration)
        engine.core.observe_batches(self.monitoring.add_batch)
        self.metrics = self._choose_metrics()
        """Those of requests that name none; None if the bundle has none that could be computed."""
        self.readiness = Readiness(engine, self.metrics, now)
        self.open_streams = 0
        self.chats = RememberedChats()
        """Requests to models that a gateway has shown."""
        self.threads = ThreadPoolExecutor(1, "groundwire-decode")
        """For work on large bodies: one thread, as each holds the event loop up a little."""

    def _choose_metrics(self) -> tuple[str, ...] | None:
        if self.settings.metrics:
            return self.engine.plan(self.settings.metrics).names
        try:
            return self.engine.plan().names
        except InvalidRequest:  # a bundle that repairs or generates, and scores nothing
            return None

    def choose_metrics(self, metrics: Metrics | None) -> Metrics | None:
        """The metrics of a request: the metrics that it names, else the server's."""
        return self.metrics if metrics is None else metrics

    async def update_gauges(self) -> None:
        """Show what is going on now. Worker processes that do not answer take a second, and hold nothing else up."""
        statistics = await asyncio.to_thread(self.engine.statistics)
        workers = self.engine.core.process_ids
        self.monitoring.update_usage("server", *await asyncio.to_thread(read_usage, (os.getpid(),)))
        if workers:
            self.monitoring.update_usage("workers", *await asyncio.to_thread(read_usage, workers))
        self.monitoring.streams.set(self.open_streams)
        self.monitoring.ready.set(self.readiness.is_ready)
        self.monitoring.update_engine(statistics)
