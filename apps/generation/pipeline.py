"""Generates responses, scores them with metrics, and builds the result.

The work of one request is a procedure, so that threads and asyncio wait for it in the same way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from groundwire.engine import Engine, Options, Pending, Plan
from groundwire.engine.extend import Failure, Knowledge, Metrics, Procedure, estimate_tokens, signature
from groundwire.engine.schema.results import Timings
from groundwire.metrics import Steps
from groundwire.runtime.calls import GeneratedSequence
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Runtime

from . import candidates
from .options import GenerationOptions
from .records import GeneratedResponse, GeneratedToken, Generation, GenerationStatus
from .settings import GenerationSettings, format_settings, make_settings

ROLE = "generator"
EMBEDDED = "generator"
"""The embedded bundle with that role."""


class Generator:
    """Generates responses that rest on knowledge: PMI-Decode, by the model of role ``generator``.

    >>> with Engine.load("generator") as engine:                                               # doctest: +SKIP
    ...     Generator(engine).generate("Honey never spoils.", ["Does honey go bad?"]).responses[0].text
    """

    def __init__(self, engine: Engine) -> None:
        """Use the models of ``engine``, from any thread.

        Args:
            engine: The engine with the response generator. The caller closes it.
        """
        self._core = engine.core

    def generate(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        options: GenerationOptions | None = None,
        *,
        metrics: Metrics = None,
        scoring: Options | None = None,
    ) -> Generation:
        """Generate responses to ``history`` that rest on ``knowledge``.

        With ``metrics``, or with ``GenerationOptions.n_candidates``, metrics score every candidate and the most
        faithful come first: by the verdict's probability, else by the first metric.

        Args:
            knowledge: The text that responses should rest on, or several passages.
            history: The utterances before the response, oldest first.
            options: How to generate; None takes the defaults.
            metrics: Metrics that score the candidates, as for ``Engine.score``.
            scoring: Options of the scores, and the deadline of the whole request; None takes the defaults.

        Returns:
            The responses. A status says what happened to a valid request.

        Raises:
            InvalidRequest: An argument is not usable, or the engine has no generator.
        """
        return self._start(knowledge, history, options, metrics, scoring).result()

    async def agenerate(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        options: GenerationOptions | None = None,
        *,
        metrics: Metrics = None,
        scoring: Options | None = None,
    ) -> Generation:
        """Generate in asyncio, as ``generate``; cancelling the awaiting task gives the request up."""
        return await self._start(knowledge, history, options, metrics, scoring)

    def stream(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        options: GenerationOptions | None = None,
        *,
        scoring: Options | None = None,
    ) -> GenerationStream:
        """Generate one response and yield its text as it is decoded. Nothing is checked by metrics.

        Args:
            knowledge: As for ``generate``.
            history: As for ``generate``.
            options: As for ``generate``. Greedy search and sampling yield each token's text as it is decoded, beam
                methods yield the text at the end.
            scoring: The deadline, and the limits on texts; None takes the defaults.

        Returns:
            An iterator of text; its ``result`` is the Generation.

        Raises:
            InvalidRequest: As for ``generate``, and for ``n_candidates`` or ``n`` above 1.
        """
        limits = self._check(scoring)
        settings = make_settings(knowledge, history, options, limits)
        if settings.options.n_candidates is not None or settings.n_candidates > 1:
            raise InvalidRequest(
                f"Generator.stream generates one response and does not check it; n={settings.options.n} and "
                f"n_candidates={settings.options.n_candidates} were given. Leave both out, or call Generator.generate."
            )
        request_signature = f"{signature(self._core.runtime.identity, (), limits)}|{format_settings(settings)}"
        return GenerationStream(self._core.runtime, settings, request_signature, limits.deadline_ms)

    def _check(self, scoring: Options | None) -> Options:
        """The options; InvalidRequest if no bundle has the role ``generator``."""
        limits = self._core.check_options(scoring)
        if ROLE not in self._core.runtime.roles:
            raise InvalidRequest(
                f"Generator needs the role {ROLE!r}; the bundle has {', '.join(sorted(self._core.runtime.roles))}. "
                f"Load the embedded generator, Engine.load({EMBEDDED!r}), or beside a bundle that scores, "
                f"Engine.load('compact', extra=[{EMBEDDED!r}]); or one that you exported (groundwire export {ROLE} "
                "--source ID_OR_DIR --out DIRECTORY)."
            )
        return limits

    def _start(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        options: GenerationOptions | None,
        metrics: Metrics,
        scoring: Options | None,
    ) -> Pending[Generation]:
        limits = self._check(scoring)
        settings = make_settings(knowledge, history, options, limits, has_metrics=metrics is not None)
        is_checked = metrics is not None or settings.options.n_candidates is not None
        plan = self._core.plan(metrics, limits) if is_checked else None
        return self._core.drive(self._generate(settings, plan, limits))

    def _generate(self, settings: GenerationSettings, plan: Plan | None, limits: Options) -> Procedure[Generation]:
        signed = signature(self._core.runtime.identity, (), limits) if plan is None else plan.signature
        names, request_signature = () if plan is None else plan.names, f"{signed}|{format_settings(settings)}"
        job_result = yield self._core.run([_generate(settings)], limits, size=_count_tokens(settings))
        (sequences,) = job_result.outcomes
        if isinstance(sequences, Failure):
            return _make_generation(
                sequences.status, (), settings, names, job_result.timings, request_signature, sequences.message
            )
        if isinstance(sequences, InvalidRequest):
            raise sequences
        responses = [_make_response(sequence, index) for index, sequence in enumerate(sequences)]
        timings = job_result.timings
        if plan is not None:
            responses = candidates.drop_duplicates(responses)
            requests = candidates.make_requests(responses, settings.call, limits)
            if requests:
                left_ms = None if limits.deadline_ms is None else max(0.0, limits.deadline_ms - timings.total_ms)
                checked = yield self._core.start(requests, plan, left_ms, is_bounded=False)
                timings = timings + checked.timings
                responses = candidates.rank_responses(responses, requests, checked, plan)
        best = tuple(responses[: settings.options.n])
        return _make_generation("generated", best, settings, names, timings, request_signature)


def _count_tokens(settings: GenerationSettings) -> int:
    """About how many tokens the model reads and generates."""
    call, sequences = settings.call, settings.n_candidates
    return estimate_tokens((*call.knowledge, *call.history), sequences) + sequences * call.decoding.max_new_tokens


def _generate(settings: GenerationSettings) -> Steps[tuple[GeneratedSequence, ...] | InvalidRequest]:
    try:
        (sequences,) = yield [settings.call]
    except InvalidRequest as error:
        # Only the model knows some limits, such as the number of its positions.
        return error
    generated: tuple[GeneratedSequence, ...] = sequences
    return generated


class GenerationStream(Iterator[str]):
    """The text of a response, part by part as it is decoded; no part splits a character.

    ``result`` is the whole Generation after the last part. ``next`` raises the model's errors. The deadline bounds the
    time of decoding, not the time between two calls of ``next``: after it the stream ends, and the result has the
    status ``deadline`` and no response.
    """

    def __init__(
        self, runtime: Runtime, settings: GenerationSettings, request_signature: str, deadline_ms: float | None = None
    ) -> None:
        """Use ``Generator.stream``, which makes these parts.

        Args:
            runtime: The runtime of the response generator.
            settings: The prompt and the settings of decoding.
            request_signature: The signature of the result.
            deadline_ms: Milliseconds of decoding, at most; None has no bound.
        """
        self._settings = settings
        self._sign = request_signature
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
    settings: GenerationSettings,
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
