"""Generates responses, scores them with metrics, and builds the result.

The work of one request is a generator of the scheduler's jobs, so that a thread or asyncio can wait for each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from groundwire.runtime.calibration import Calibration
from groundwire.runtime.calls import GeneratedSequence
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Runtime

from ..plan import make_plan
from ..scheduling.jobs import Unfinished
from ..scheduling.scheduler import Scheduler
from ..scheduling.sequences import Jobs, add_timings, arun_jobs, run_jobs
from ..scheduling.steps import Steps
from ..schema.options import Options
from ..schema.results import Timings
from ..scoring import start_all
from ..signature import signature
from . import candidates
from .records import GeneratedResponse, GeneratedToken, Generation, GenerationStatus
from .settings import Settings, format_settings

ROLE = "generator"
EMBEDDED = "generator"
"""The embedded bundle with that role."""


class GenerationPipeline:
    """Generates responses with one runtime. Safe to use from many threads at once, as the scheduler is."""

    def __init__(self, runtime: Runtime, scheduler: Scheduler, calibration: Calibration | None) -> None:
        self._runtime = runtime
        self._scheduler = scheduler
        self._calibration = calibration

    def check_roles(self) -> None:
        """Raise InvalidRequest if no bundle has the role ``generator``."""
        if ROLE not in self._runtime.roles:
            raise InvalidRequest(
                f"Engine.generate needs the role {ROLE!r}; the bundle has {', '.join(sorted(self._runtime.roles))}. "
                f"Load the embedded generator, Engine.load({EMBEDDED!r}), or beside a bundle that scores, "
                f"Engine.load('compact', extra=[{EMBEDDED!r}]); or one that you exported (groundwire export {ROLE} "
                "--source ID_OR_DIR --out DIRECTORY)."
            )

    def generate(self, settings: Settings, metrics: Sequence[str], options: Options) -> Generation:
        """Generate responses, score them with ``metrics`` (names; may be empty) and rank them."""
        return run_jobs(self._make_jobs(settings, metrics, options), self._scheduler)

    async def agenerate(self, settings: Settings, metrics: Sequence[str], options: Options) -> Generation:
        """``generate`` for asyncio."""
        return await arun_jobs(self._make_jobs(settings, metrics, options), self._scheduler)

    def stream(self, settings: Settings, options: Options) -> GenerationStream:
        """Return a stream of the text of one response."""
        if settings.options.n_candidates is not None or settings.n_candidates > 1:
            raise InvalidRequest(
                f"Engine.generate_stream generates one response and does not check it; n={settings.options.n} and "
                f"n_candidates={settings.options.n_candidates} were given. Leave both out, or call Engine.generate."
            )
        sign = self._signature(settings, (), options)
        return GenerationStream(self._runtime, settings, sign, options.deadline_ms)

    def _make_jobs(self, settings: Settings, metrics: Sequence[str], options: Options) -> Jobs[Generation]:
        sign = self._signature(settings, metrics, options)
        finished = yield self._scheduler.submit(
            [_generate(settings)], options.max_windows, options.deadline_ms, options.priority, tenant=options.tenant
        )
        (sequences,) = finished.outcomes
        if isinstance(sequences, Unfinished):
            return _make_generation(sequences.status, (), settings, metrics, finished.timings, sign, sequences.message)
        if isinstance(sequences, InvalidRequest):
            raise sequences
        responses = [_make_response(sequence, index) for index, sequence in enumerate(sequences)]
        timings = finished.timings
        if metrics:
            responses = candidates.drop_duplicates(responses)
            requests = candidates.make_requests(responses, settings.call, options)
            if requests:
                plan = make_plan(self._runtime.roles, self._runtime.identity, self._calibration, metrics, options)
                left_ms = None if options.deadline_ms is None else max(0.0, options.deadline_ms - timings.total_ms)
                checked = yield start_all(requests, plan, self._runtime, self._scheduler, left_ms)
                timings = add_timings(timings, checked.timings)
                responses = candidates.rank_responses(responses, requests, checked, plan)
        best = tuple(responses[: settings.options.n])
        return _make_generation("generated", best, settings, metrics, timings, sign)

    def _signature(self, settings: Settings, metrics: Sequence[str], options: Options) -> str:
        calibration = self._calibration if metrics else None
        return f"{signature(self._runtime.identity, tuple(metrics), options, calibration)}|{format_settings(settings)}"


def _generate(settings: Settings) -> Steps[tuple[GeneratedSequence, ...] | InvalidRequest]:
    try:
        (sequences,) = yield [settings.call]
    except InvalidRequest as error:
        # Only the model knows some limits, such as the number of its positions.
        return error
    generated: tuple[GeneratedSequence, ...] = sequences
    return generated


class GenerationStream(Iterator[str]):
    """The text of a response, piece by piece as it is decoded; no piece splits a character.

    ``result`` is the whole Generation after the last piece. ``next`` raises the model's errors. The deadline bounds the
    time of decoding, not the time between two calls of ``next``: after it the stream ends, and the result has the
    status ``deadline`` and no response.
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
                message = f"Not generated within {self._deadline_ms:.0f} ms; raise Options.deadline_ms."
                self._result = self._make_result("deadline", (), message)
                break
            if part.sequence is not None:
                self._result = self._make_result("generated", (_make_response(part.sequence, 0),))
            if part.text:
                return part.text
        raise StopIteration

    def _make_result(
        self, status: GenerationStatus, responses: tuple[GeneratedResponse, ...], message: str = ""
    ) -> Generation:
        timings = Timings(self._spent_ms, {ROLE: self._spent_ms})
        return _make_generation(status, responses, self._settings, (), timings, self._sign, message)

    @property
    def result(self) -> Generation:
        """The response with its tokens; InvalidRequest before the stream has ended."""
        if self._result is None:
            raise InvalidRequest("The response is not complete; take all pieces of the stream first.")
        return self._result


def _make_generation(
    status: GenerationStatus,
    responses: tuple[GeneratedResponse, ...],
    settings: Settings,
    metrics: Sequence[str],
    timings: Timings,
    signature: str,
    message: str = "",
) -> Generation:
    return Generation(
        status=status,
        responses=responses,
        options=settings.options,
        decoding=settings.call.decoding,
        metrics=tuple(metrics),
        timings=timings,
        signature=signature,
        message=message,
    )


def _make_response(sequence: GeneratedSequence, index: int) -> GeneratedResponse:
    tokens, start = [], 0
    for token in sequence.tokens:
        end = start + len(token.text)
        tokens.append(GeneratedToken(token.id, start, end, token.log_prob, token.cpmi))
        start = end
    cpmi = [token.cpmi for token in tokens if token.cpmi is not None]
    return GeneratedResponse(
        text=sequence.text,
        score=sequence.score,
        log_prob=sum(token.log_prob for token in tokens) / max(1, len(tokens)),
        cpmi=sum(cpmi) / len(cpmi) if cpmi else None,
        tokens=tuple(tokens),
        finished=sequence.finished,
        index=index,
    )
