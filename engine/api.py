"""The engine: load a bundle once, score from anywhere."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, overload

from groundwire.engine.scheduling.steps import Steps
from groundwire.runtime.calibration import Calibration
from groundwire.runtime.calls import Call, Decoding
from groundwire.runtime.errors import InvalidRequest, ModelError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.session import DeviceChoice
from groundwire.runtime.protocol import Runtime
from groundwire.runtime.triples import Triple

from .generation.pipeline import GenerationPipeline, GenerationStream
from .generation.records import Generation
from .generation.settings import MAX_TOKENS, Method, make_settings
from .kg import KnowledgeGraph
from .metrics import GROUPS, select
from .metrics.claims import VERIFIABILITY
from .nph.pipeline import NphPipeline
from .nph.records import Critique, Refinement
from .nph.steps import RefineOptions
from .scheduling.scheduler import Finished, Job, Scheduler
from .schema.options import Options
from .schema.results import MetricResult, Ranked, Request, Score, Timings, Verdict
from .schema.validation import make_request
from .signature import signature
from .verdict.score import build_score

IN_FLIGHT = 64
"""Requests ``score_many`` keeps in flight: enough to fill batches, few enough to bound memory."""
DEFAULT_METRICS = ("q2",)

Knowledge = str | Sequence[str]
Triples = Sequence[Triple | tuple[str, str, str]]
Item = Request | tuple[str, Knowledge] | dict[str, Any]


class Engine:
    """Scores responses with the models of one bundle. Safe to use from many threads at once.

    >>> with Engine.load() as engine:                                                          # doctest: +SKIP
    ...     score = engine.score("Bob Ross hosted the show.", "Bob Ross was its creator and host.")
    ...     score.value, score.unsupported
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        calibration: Calibration | None = None,
        max_waiting: int = 4096,
        cache_chars: int = 8_000_000,
    ) -> None:
        """An engine over any runtime; ``load`` is the usual way.

        ``calibration`` stands for the runtime's own, ``max_waiting`` bounds the unfinished requests, ``cache_chars``
        the characters of cached model calls and the bytes of the token vectors among their results.
        """
        self._runtime = runtime
        self._calibration = calibration or runtime.calibration
        self._scheduler = Scheduler(runtime, max_waiting=max_waiting, cache_chars=cache_chars)
        self._nph = NphPipeline(runtime, self._scheduler)
        self._generation = GenerationPipeline(runtime, self._scheduler, self._calibration)

    @classmethod
    def load(
        cls,
        bundle: str | Path = "compact",
        device: DeviceChoice = "auto",
        precision: str | None = None,
        threads: int | None = None,
        *,
        extra: Sequence[str | Path] = (),
        calibration: Path | None = None,
        max_waiting: int = 4096,
        cache_chars: int = 8_000_000,
    ) -> Engine:
        """Open a bundle: the name of an embedded one, or a directory that ``groundwire export`` wrote.

        ``extra`` are further bundles whose roles are added; no role may be in two of them, and the calibration is that
        of the first.

        ``device`` is ``auto``, ``cpu``, ``cuda`` or ``tensorrt``; nothing falls back silently. ``precision`` refuses a
        bundle of another one. ``threads`` is how many CPU threads to use; None takes the usable processors.
        ``calibration`` is a file of ``Calibration.save`` to use instead of the bundle's own. Raises BundleError,
        DeviceError or InvalidRequest.
        """
        own = None if calibration is None else Calibration.load(calibration)
        runtime = LocalRuntime.load(bundle, device, precision, threads, extra)
        return cls(runtime, calibration=own, max_waiting=max_waiting, cache_chars=cache_chars)

    def score(
        self,
        response: str,
        knowledge: Knowledge = (),
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> Score:
        """Score one response and wait for the result.

        ``knowledge`` is a string or several passages; ``history`` the utterances before, oldest first; ``triples`` are
        facts of a knowledge graph, which stand for the knowledge where there is none; ``metrics`` is a list of names,
        or a group: ``all``, ``paper``, ``fast`` (default Q²). Raises InvalidRequest for unusable input; what happens to
        a valid request is a status of the Score, never an exception.
        """
        options = self._checked(options)
        request = make_request(response, knowledge, history, options, triples)
        flying = self._submit(request, metrics, options)
        try:
            return self._score(flying, flying.job.future.result())
        except BaseException:
            self._scheduler.cancel(flying.job)
            raise

    async def ascore(
        self,
        response: str,
        knowledge: Knowledge = (),
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> Score:
        """``score`` for asyncio; cancelling the awaiting task gives the request up."""
        options = self._checked(options)
        request = make_request(response, knowledge, history, options, triples)
        flying = self._submit(request, metrics, options)
        try:
            return self._score(flying, await asyncio.wrap_future(flying.job.future))
        except asyncio.CancelledError:
            self._scheduler.cancel(flying.job)
            raise

    def score_many(
        self,
        items: Iterable[Item],
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Score]:
        """Yield one Score per item, in order, with up to 64 requests in flight and no more held in memory.

        An item is a Request, a pair (response, knowledge), or a mapping with ``response``, ``knowledge`` or ``triples``
        (or both), and perhaps ``history``. An unusable item yields status ``invalid`` and the others go on.
        ``progress`` is called with the number of scores yielded so far.
        """
        options = self._checked(options)
        names = self.metric_names(metrics)  # so that a wrong name is told before the first item is read
        flying: deque[_Flying | Score] = deque()
        done = 0
        try:
            for item in items:
                try:
                    flying.append(self._submit(_as_request(item, options), names, options))
                except InvalidRequest as error:
                    flying.append(_invalid(str(error), options, self.signature(names, options)))
                while len(flying) >= IN_FLIGHT:
                    yield self._land(flying.popleft())
                    done += 1
                    if progress is not None:
                        progress(done)
            while flying:
                yield self._land(flying.popleft())
                done += 1
                if progress is not None:
                    progress(done)
        finally:
            for one in flying:
                if not isinstance(one, Score):
                    self._scheduler.cancel(one.job)

    def rank(
        self,
        candidates: Sequence[str],
        knowledge: Knowledge = (),
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        metric: str = "pmi",
        options: Options | None = None,
    ) -> tuple[Ranked, ...]:
        """Order candidate responses to one turn by a metric, best first; those that did not score come last.

        All candidates are asked about at once, so what they share is computed once: equal calls, and for ``pmi`` the
        document and the history, which the language model reads a single time. ``knowledge`` and ``triples`` are those
        of ``score``. Ties keep their order. Raises InvalidRequest for unusable input, as ``score`` does.
        """
        if isinstance(candidates, str) or not candidates:
            raise InvalidRequest("candidates is one string or empty; pass a list of responses.")
        options = self._checked(options)
        requests = [make_request(candidate, knowledge, history, options, triples) for candidate in candidates]
        names = self.metric_names((metric,))
        if len(names) > 1:
            raise InvalidRequest(f"metric={metric!r} is a group; rank by one of {', '.join(names)}.")
        (chosen,) = select(names, self._runtime)
        tasks = [(chosen.name, chosen.steps(request, options)) for request in requests]
        job = self._scheduler.submit(tasks, options.max_windows, options.deadline_ms)
        try:
            results = job.future.result().results
        except BaseException:
            self._scheduler.cancel(job)
            raise
        found = [
            Ranked(request.response, i, one) for i, (request, one) in enumerate(zip(requests, results, strict=True))
        ]
        return tuple(sorted(found, key=lambda one: (one.result.value is None, -(one.result.value or 0.0))))

    def critique(
        self,
        response: str,
        history: Sequence[str] = (),
        *,
        triples: Triples | None = None,
        graph: KnowledgeGraph | None = None,
        hops: int = 1,
        options: Options | None = None,
    ) -> Critique:
        """Which names of a response a knowledge graph does not support: Neural Path Hunter's critic (role ``critic``).

        Pass ``triples``, all of which are read, or a ``graph``, of which is read what lies within ``hops`` triples of
        the entities in history and response and bears on them. Raises InvalidRequest for unusable input; what happens
        to a valid request is a status.
        """
        return self._nph.critique(response, history, triples, graph, hops, self._checked(options))

    def refine(
        self,
        response: str,
        history: Sequence[str] = (),
        *,
        triples: Triples | None = None,
        graph: KnowledgeGraph | None = None,
        hops: int = 1,
        top: int = 5,
        type_aware: bool = True,
        min_probability: float = 0.05,
        options: Options | None = None,
    ) -> Refinement:
        """Put entities of a knowledge graph in the place of names that it does not support: Neural Path Hunter.

        Roles ``critic`` and ``retriever``. Candidates lie within ``hops`` triples of what the dialogue is about; with
        ``type_aware`` those are preferred that play a part in the graph that what they replace plays too. Where none
        has ``min_probability``, 0–1, or the critic doubts the result as much as the response, nothing is changed and
        the status is ``refused``. ``top`` candidates of each mention are reported. Raises InvalidRequest as
        ``critique``.
        """
        settings = RefineOptions(hops, top, type_aware, min_probability)
        return self._nph.refine(response, history, triples, graph, settings, self._checked(options))

    @overload
    def generate(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        *,
        alpha: float = ...,
        top_p: float = ...,
        method: Method | Decoding = ...,
        n: int = ...,
        n_candidates: int | None = ...,
        metrics: Sequence[str] | str | None = ...,
        stream: Literal[False] = ...,
        seed: int = ...,
        max_tokens: int = ...,
        options: Options | None = ...,
    ) -> Generation: ...

    @overload
    def generate(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        *,
        alpha: float = ...,
        top_p: float = ...,
        method: Method | Decoding = ...,
        stream: Literal[True],
        seed: int = ...,
        max_tokens: int = ...,
        options: Options | None = ...,
    ) -> GenerationStream: ...

    def generate(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        *,
        alpha: float = 0.25,
        top_p: float = 0.6,
        method: Method | Decoding = "beam",
        n: int = 1,
        n_candidates: int | None = None,
        metrics: Sequence[str] | str | None = None,
        stream: bool = False,
        seed: int = 0,
        max_tokens: int = MAX_TOKENS,
        options: Options | None = None,
    ) -> Generation | GenerationStream:
        """Write responses to ``history`` that rest on ``knowledge``: PMI-Decode, by the model of role ``generator``.

        At every step the next token is judged by ``alpha · cpmi + (1 − alpha) · log_prob`` (CPMI: how much more
        probable the knowledge makes it) among the most probable tokens that together have ``top_p``. ``alpha`` 0 is the
        model's plain decoding, 1 asks PMI alone; the defaults are what the paper recommends to stay relevant.
        ``method`` is ``greedy``, ``beam`` (4 beams, or ``n`` if more), ``sampling``, ``nucleus`` (sampling from the
        0.9 most probable), ``beam_sampling``, or a decoding record, which then also says the length. What is drawn
        depends on ``seed`` and the texts alone. ``max_tokens`` (1–1,023) bounds a response.

        ``n`` best responses are returned. With ``metrics``, or with ``n_candidates``, that many are written, scored by
        the metrics (default: the bundle's own, as for ``score``) and ranked, the most faithful first: by the verdict's
        probability, else by the first metric. With ``stream`` the text of one response comes piece by piece: as it is
        decoded for ``greedy``, ``sampling`` and ``nucleus``, and at the end for beams. Raises InvalidRequest for
        unusable input; what happens to a valid request is a status.
        """
        options = self._checked(options)
        self._generation.needs_generator()
        checks = self.metric_names(metrics) if metrics is not None or n_candidates is not None else ()
        settings = make_settings(
            knowledge, history, alpha, top_p, method, n, n_candidates, seed, max_tokens, options, checked=bool(checks)
        )
        if not stream:
            return self._generation.write(settings, checks, options)
        if checks:
            raise InvalidRequest("stream=True writes without checking; leave metrics and n_candidates out.")
        return self._generation.stream(settings, options)

    async def agenerate(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        *,
        alpha: float = 0.25,
        top_p: float = 0.6,
        method: Method | Decoding = "beam",
        n: int = 1,
        n_candidates: int | None = None,
        metrics: Sequence[str] | str | None = None,
        seed: int = 0,
        max_tokens: int = MAX_TOKENS,
        options: Options | None = None,
    ) -> Generation:
        """``generate`` for asyncio; cancelling the awaiting task gives the request up."""
        options = self._checked(options)
        self._generation.needs_generator()
        checks = self.metric_names(metrics) if metrics is not None or n_candidates is not None else ()
        settings = make_settings(
            knowledge, history, alpha, top_p, method, n, n_candidates, seed, max_tokens, options, checked=bool(checks)
        )
        return await self._generation.awrite(settings, checks, options)

    def warmup(self) -> None:
        """Run every model once, so that the first request pays for nothing but itself; ModelError when one fails."""
        job = self._scheduler.submit([("warmup", _warm(self._runtime.warm_calls()))], Options().max_windows, None)
        (result,) = job.future.result().results
        if result.status != "scored":
            raise ModelError(f"Warming up failed: {result.message}")

    def close(self) -> None:
        """Cancel what is unfinished and free the models; later calls raise EngineClosed."""
        self._scheduler.close()
        self._runtime.close()

    @property
    def runtime(self) -> Runtime:
        """What runs the models."""
        return self._runtime

    @property
    def calibration(self) -> Calibration | None:
        """How the metrics' values are read; None when nobody fitted it, and every verdict is ``unknown``."""
        return self._calibration

    @property
    def cache_info(self) -> tuple[int, int, int]:
        """Cached model calls, hits and misses."""
        return self._scheduler.cache_info

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def metric_names(self, metrics: Sequence[str] | str | None = None) -> tuple[str, ...]:
        """The metrics that ``score`` computes for this argument: groups spelt out, each name once."""
        if isinstance(metrics, str):
            if metrics not in GROUPS:
                raise InvalidRequest(
                    f"metrics={metrics!r} is one string; pass a list of names, or one of {', '.join(GROUPS)}."
                )
            metrics = (metrics,)
        usual = self._calibration.metrics if self._calibration else DEFAULT_METRICS
        names = usual if metrics is None else tuple(metrics)
        return tuple(metric.name for metric in select(names, self._runtime))

    def signature(self, metrics: Sequence[str] | str | None = None, options: Options | None = None) -> str:
        """What ``Score.signature`` says for these metrics and options."""
        return signature(self._runtime.identity, self.metric_names(metrics), options or Options(), self._calibration)

    def _checked(self, options: Options | None) -> Options:
        options = options or Options()
        if self._calibration is not None:
            self._calibration.profile(options.profile)  # a wrong name is told before anything is computed
        if options.claim_filter == "verifiable" and VERIFIABILITY not in self._runtime.roles:
            raise InvalidRequest(
                f"Options.claim_filter is 'verifiable', but the bundle has no role {VERIFIABILITY!r}; "
                "export one into it, or judge the whole response."
            )
        return options

    def _submit(self, request: Request, metrics: Sequence[str] | str | None, options: Options) -> _Flying:
        names = self.metric_names(metrics)
        chosen = select(names, self._runtime)
        tasks = [(metric.name, metric.steps(request, options)) for metric in chosen]
        job = self._scheduler.submit(tasks, options.max_windows, options.deadline_ms)
        return _Flying(job, request, options, self.signature(names, options))

    def _land(self, flying: _Flying | Score) -> Score:
        return flying if isinstance(flying, Score) else self._score(flying, flying.job.future.result())

    def _score(self, flying: _Flying, finished: Finished) -> Score:
        return build_score(
            flying.request.response,
            finished.results,
            finished.timings,
            self._calibration,
            flying.options,
            flying.signature,
        )


class _Flying(NamedTuple):
    """A request in flight."""

    job: Job
    request: Request
    options: Options
    signature: str


def _warm(calls: Sequence[Call]) -> Steps[MetricResult]:
    yield calls
    return MetricResult("warmup", "scored", 1.0)


def _as_request(item: Item, options: Options) -> Request:
    if isinstance(item, Request):
        return make_request(item.response, item.knowledge, item.history, options, item.triples)
    if isinstance(item, dict):
        triples = item.get("triples") or ()
        absent = [
            name for name in ("response", "knowledge") if name not in item and not (name == "knowledge" and triples)
        ]
        if absent:
            raise InvalidRequest(f"The item has no {' and no '.join(absent)}; it has {', '.join(map(str, item))}.")
        knowledge = () if triples and item.get("knowledge") is None else item["knowledge"]
        return make_request(item["response"], knowledge, item.get("history") or (), options, triples)
    if isinstance(item, tuple) and len(item) == 2:
        return make_request(*item, options=options)
    raise InvalidRequest(f"An item is a Request, a pair or a mapping; this is {type(item).__name__}.")


def _invalid(message: str, options: Options, sign: str) -> Score:
    verdict = Verdict("unknown", profile=options.profile, message=message)
    return Score("invalid", None, verdict, {}, (), None, Timings(0.0, {}), sign, message)
