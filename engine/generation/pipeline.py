"""Generation behind the engine's door: writes responses, has the metrics check them, and reports.

What has to be done is a plan: a generator of the scheduler's jobs, so that it can be waited for in a thread or in
asyncio.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeAlias

from groundwire.engine.plan import make_plan
from groundwire.engine.scheduling.jobs import Finished, Job, Unfinished
from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import Timings
from groundwire.engine.scoring import start_all
from groundwire.engine.signature import signature
from groundwire.runtime.calibration import Calibration
from groundwire.runtime.calls import GeneratedSequence
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Runtime

from . import candidates
from .records import GeneratedResponse, GeneratedToken, Generation, GenerationOptions, GenerationStatus
from .settings import Settings, spelled

ROLE = "generator"
Jobs: TypeAlias = Generator[Job[Any], Finished[Any], Generation]


class GenerationPipeline:
    """Writes responses with one runtime. Safe to use from many threads at once, as the scheduler is."""

    def __init__(self, runtime: Runtime, scheduler: Scheduler, calibration: Calibration | None) -> None:
        self._runtime = runtime
        self._scheduler = scheduler
        self._calibration = calibration

    def needs_generator(self) -> None:
        """Raise InvalidRequest when no bundle brings the role."""
        if ROLE not in self._runtime.roles:
            raise InvalidRequest(
                f"Engine.generate needs the role {ROLE!r}; the bundle has {', '.join(sorted(self._runtime.roles))}. "
                f"Export a model that writes responses (groundwire export {ROLE} --source ID_OR_DIR --out DIRECTORY) "
                "and load it with Engine.load(extra=[DIRECTORY])."
            )

    def write(self, settings: Settings, metrics: Sequence[str], options: Options) -> Generation:
        """Generate, check with ``metrics`` (names; perhaps none) and rank."""
        plan = self._plan(settings, metrics, options)
        job = next(plan)
        while True:
            try:
                finished = job.future.result()
            except BaseException:
                self._scheduler.cancel(job)
                raise
            try:
                job = plan.send(finished)
            except StopIteration as stop:
                found: Generation = stop.value
                return found

    async def awrite(self, settings: Settings, metrics: Sequence[str], options: Options) -> Generation:
        """``write`` for asyncio."""
        plan = self._plan(settings, metrics, options)
        job = next(plan)
        while True:
            try:
                finished = await asyncio.wrap_future(job.future)
            except asyncio.CancelledError:
                self._scheduler.cancel(job)
                raise
            try:
                job = plan.send(finished)
            except StopIteration as stop:
                found: Generation = stop.value
                return found

    def stream(self, settings: Settings, options: Options) -> GenerationStream:
        """The best response, as it is decoded."""
        if settings.n_candidates > 1:
            raise InvalidRequest(
                f"stream=True writes one response, not {settings.n_candidates}; leave n and n_candidates out."
            )
        sign = self._signature(settings, (), options)
        return GenerationStream(self._runtime, settings, sign, options.deadline_ms)

    def _plan(self, settings: Settings, metrics: Sequence[str], options: Options) -> Jobs:
        sign = self._signature(settings, metrics, options)
        effective = _effective(settings, metrics)
        finished = yield self._scheduler.submit([_generate(settings)], options.max_windows, options.deadline_ms)
        (sequences,) = finished.outcomes
        if isinstance(sequences, Unfinished):
            return Generation(sequences.status, (), effective, finished.timings, sign, sequences.message)
        if isinstance(sequences, InvalidRequest):
            raise sequences
        responses = [_response(sequence, index) for index, sequence in enumerate(sequences)]
        timings = finished.timings
        if metrics:
            distinct = candidates.distinct(responses)
            plan = make_plan(self._runtime.roles, self._runtime.identity, self._calibration, metrics, options)
            requests = candidates.to_requests(distinct, settings.call, options)
            if requests:
                left = None if options.deadline_ms is None else max(0.0, options.deadline_ms - timings.total_ms)
                checked = yield start_all(requests, plan, self._runtime, self._scheduler, left)
                timings = _together(timings, checked.timings)
                responses = candidates.rank(distinct, checked, plan)
            else:
                responses = distinct
        return Generation("written", tuple(responses[: settings.n]), effective, timings, sign)

    def _signature(self, settings: Settings, metrics: Sequence[str], options: Options) -> str:
        calibration = self._calibration if metrics else None
        return f"{signature(self._runtime.identity, tuple(metrics), options, calibration)}|{spelled(settings)}"


def _generate(settings: Settings) -> Steps[tuple[GeneratedSequence, ...] | InvalidRequest]:
    try:
        (sequences,) = yield [settings.call]
    except InvalidRequest as error:
        # What only the model knows to be out of range, as the number of its positions.
        return error
    generated: tuple[GeneratedSequence, ...] = sequences
    return generated


class GenerationStream(Iterator[str]):
    """The text of a response, in pieces as they are decoded; no piece splits a character.

    ``result`` is the whole Generation, once the last piece has been taken. Errors of the model are raised by ``next``.
    The deadline bounds the time of decoding, not that of the reader: when it has passed, the pieces end, and the
    result has the status ``deadline`` and no response.
    """

    def __init__(self, runtime: Runtime, settings: Settings, sign: str, deadline_ms: float | None = None) -> None:
        self._settings = settings
        self._sign = sign
        self._deadline_ms = math.inf if deadline_ms is None else deadline_ms
        self._spent_ms = 0.0
        self._result: Generation | None = None
        self._parts = runtime.stream(settings.call)

    def __next__(self) -> str:
        while self._result is None:
            started = time.perf_counter()
            part = next(self._parts)
            self._spent_ms += (time.perf_counter() - started) * 1000
            if self._spent_ms > self._deadline_ms:
                message = f"Not written within {self._deadline_ms:.0f} ms; raise Options.deadline_ms."
                self._result = self._ended("deadline", (), message)
                break
            if part.sequence is not None:
                self._result = self._ended("written", (_response(part.sequence, 0),))
            if part.text:
                return part.text
        raise StopIteration

    def _ended(
        self, status: GenerationStatus, responses: tuple[GeneratedResponse, ...], message: str = ""
    ) -> Generation:
        timings = Timings(self._spent_ms, {ROLE: self._spent_ms})
        return Generation(status, responses, _effective(self._settings, ()), timings, self._sign, message)

    @property
    def result(self) -> Generation:
        """The response with its tokens; InvalidRequest before the stream has ended."""
        if self._result is None:
            raise InvalidRequest("The response is not complete; take all pieces of the stream first.")
        return self._result


def _effective(settings: Settings, metrics: Sequence[str]) -> GenerationOptions:
    call = settings.call
    return GenerationOptions(call.alpha, call.top_p, call.decoding, settings.n, settings.n_candidates, tuple(metrics))


def _response(written: GeneratedSequence, index: int) -> GeneratedResponse:
    tokens, at = [], 0
    for token in written.tokens:
        tokens.append(GeneratedToken(token.id, at, at + len(token.text), token.log_prob, token.cpmi))
        at += len(token.text)
    gains = [token.cpmi for token in tokens if token.cpmi is not None]
    return GeneratedResponse(
        text=written.text,
        score=written.score,
        log_prob=sum(token.log_prob for token in tokens) / max(1, len(tokens)),
        cpmi=sum(gains) / len(gains) if gains else None,
        tokens=tuple(tokens),
        finished=written.finished,
        index=index,
    )


def _together(first: Timings, second: Timings) -> Timings:
    stages = dict(first.stages_ms)
    for role, spent in second.stages_ms.items():
        stages[role] = stages.get(role, 0.0) + spent
    return Timings(first.total_ms + second.total_ms, stages)
