"""Whether a server should be sent requests: its models are warm, and a real score has just been made."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from groundwire.engine import Engine, GroundwireError, Options
from groundwire.engine.extend import make_request

from . import logs
from .problems import Refusal, refuse_stopped

PROBE_SECONDS = 10.0
"""A score that is not older counts as just made, so that health checks cost one score in this time at most."""
PROBE_MS = 60_000.0
"""The first score of a process loads what it needs for sentences, on a busy machine for seconds."""
PROBE_PRIORITY = 100
WAIT_SECONDS = 5.0
"""For a probe's score, before a health check says that there is none: orchestrators wait for a few seconds."""
LOOK_SECONDS = 0.1
"""Between two looks at the worker processes meanwhile."""
KNOWLEDGE = "Bees make honey from nectar. A jar of honey keeps for many years."


class Readiness:
    """Warms an engine, and scores a response whenever a health check asks and the last score is old.

    ``metrics`` are the probe's; None if the engine cannot score, as with a bundle that only repairs.
    """

    def __init__(self, engine: Engine, metrics: tuple[str, ...] | None, now: Callable[[], float]) -> None:
        self._engine = engine
        self._metrics = metrics
        self._now = now
        self._numbers = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._probe: asyncio.Task[None] | None = None
        self._probed_at: float | None = None
        self.is_warm = False
        self.is_draining = False
        self.problem = ""
        """Why the last warm-up or probe failed, or is not finished; empty after a probe that succeeded."""

    @property
    def is_ready(self) -> bool:
        """Whether ``check`` would let requests in, as far as it is known without a score."""
        core = self._engine.core
        return self.is_warm and core.is_open and core.processes > 0 and not self.is_draining and not self.problem

    def begin(self) -> None:
        """Start to warm the engine in the background, unless it is warm or being warmed."""
        if self._task is None or (self._task.done() and not self.is_warm):
            self._task = asyncio.create_task(self._warm())

    async def wait(self) -> None:
        """Return when the engine is warm, or has failed to become so."""
        self.begin()
        assert self._task is not None
        await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Give the warm-up up."""
        for task in (self._task, self._probe):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @contextmanager
    def refuse_stop(self) -> Iterator[None]:
        """Raise Refusal ``closed`` where the block is cancelled because the server stops."""
        try:
            yield
        except asyncio.CancelledError as error:
            if not self.is_draining:
                raise
            detail = "The server has stopped before the answer was complete; ask another one."
            raise Refusal("closed", detail) from error

    def check_computes(self) -> None:
        """Raise Refusal ``not_ready`` while models are being warmed, if that failed, and while no process computes."""
        if refusal := self.find_refusal():
            raise refusal

    def find_refusal(self) -> Refusal | None:
        """What ``check_computes`` raises."""
        if not self.is_warm:
            detail = self.problem or "The models are being warmed up."
        elif not self._engine.core.processes:
            detail = "No worker process computes: all of them have ended and are being replaced."
        else:
            return None
        return Refusal("not_ready", f"{detail} Try again in a second.", headers={"Retry-After": "1"})

    async def check(self) -> None:
        """Raise Refusal ``not_ready`` or ``closed`` unless the server should be sent requests."""
        if self.is_draining:
            raise Refusal("closed", "The server is about to stop; ask another one.")
        if not self._engine.core.is_open:
            raise Refusal("closed", "The engine is closed or has failed; restart the server.")
        self.check_computes()
        if self._probed_at is None or self._now() - self._probed_at >= PROBE_SECONDS:
            if self._probe is None or self._probe.done():
                self._probe = asyncio.create_task(self._score())
            await self._wait_for(self._probe)
        if self.problem:
            raise Refusal("not_ready", self.problem)

    async def _wait_for(self, probe: asyncio.Task[None]) -> None:
        """Return when a probe is over, which goes on where this gives up."""
        for _ in range(round(WAIT_SECONDS / LOOK_SECONDS)):
            await asyncio.wait((probe,), timeout=LOOK_SECONDS)
            if probe.done():
                return
            self.check_computes()
        self.problem = f"A score of the server's own is not finished after {WAIT_SECONDS:g} s."
        raise Refusal("not_ready", self.problem)

    async def _warm(self) -> None:
        try:
            await asyncio.to_thread(self._engine.warmup)
        except GroundwireError as error:
            self.problem = f"The models cannot be warmed up: {error}"
            logs.write(logging.ERROR, "warm-up failed", error=str(error))
            return
        await self._score()
        self.is_warm = not self.problem
        logs.write(logging.INFO if self.is_warm else logging.ERROR, "warmed up", problem=self.problem or None)

    async def _score(self) -> None:
        """Score a text that is not in the cache, before all requests."""
        started = self._now()
        if self._metrics is None:
            self._probed_at, self.problem = started, ""
            return
        response = f"Bees make honey. Jar number {next(self._numbers)} keeps for many years."
        try:
            plan = self._engine.plan(self._metrics, Options(priority=PROBE_PRIORITY))
            request = make_request(response, KNOWLEDGE, options=plan.options)
            score = await self._engine.core.score(request, plan, PROBE_MS, is_bounded=False)
            messages = [result.message for result in score.metrics.values() if result.value is None]
            statuses = [result.status for result in score.metrics.values()]
            refuse_stopped(score.status, statuses, " ".join(messages))
            self._probed_at, self.problem = started, ""
        except (GroundwireError, Refusal) as error:
            self._probed_at = None
            self.problem = f"A score of the server's own failed: {error}"
            logs.write(logging.ERROR, "probe failed", error=str(error))
