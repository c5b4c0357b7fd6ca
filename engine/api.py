"""The engine: load a bundle once, score from anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Never, Self

from msgspec.structs import replace

from groundwire.runtime.arguments import check_integer, check_number, check_path, check_sequence, check_weights
from groundwire.runtime.calibration import Calibration
from groundwire.runtime.calls import Call
from groundwire.runtime.errors import InvalidRequest, ModelError
from groundwire.runtime.kserve.server import Backend, Endpoint, check_backend
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.device import DeviceChoice
from groundwire.runtime.protocol import Runtime
from groundwire.runtime.triples import Triple

from .correction.pipeline import CorrectionPipeline, CorrectionSettings
from .evidence import check_packet, compare_scores, compare_settings, compare_texts, conclude, make_packet
from .generation.options import GenerationOptions
from .generation.pipeline import GenerationPipeline, GenerationStream
from .generation.records import Generation
from .generation.settings import Settings, make_settings
from .kg import KnowledgeGraph
from .many import Item, Window, ascore_in_order, check_items, score_in_order, to_request
from .nph.pipeline import NphPipeline
from .nph.steps import RefineOptions
from .plan import Plan, check_options, make_plan
from .scheduling.jobs import Finished, Job, Unfinished
from .scheduling.scheduler import ObserveBatch, Scheduler
from .scheduling.sequences import Jobs, arun_jobs, run_jobs
from .scheduling.steps import Steps
from .schema.evidence import EvidencePacket, Verification, VerificationStatus
from .schema.options import Options
from .schema.repairs import Correction, Critique, Refinement
from .schema.results import MetricResult, Ranked, Request, Score
from .schema.statistics import EngineStatistics
from .schema.validation import make_request
from .scoring import PendingScore, results_of, start, start_all
from .streaming.core import StreamCore
from .streaming.policies import Correct, Policy, Refine, check_policy, check_stream
from .streaming.stream import ResponseStream

IN_FLIGHT = 64
"""Requests ``score_many`` keeps in flight at most: enough to fill batches, few enough to bound memory."""

Knowledge = str | Sequence[str]
Triples = Sequence[Triple | tuple[str, str, str]]


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
        cache_bytes: int = 64_000_000,
        tenant_weights: Mapping[str, float] | None = None,
    ) -> None:
        """An engine over any runtime; ``load`` is the usual way.

        ``calibration`` replaces the runtime's own, ``max_waiting`` bounds the unfinished requests, ``cache_bytes`` the
        memory of cached model calls and their results. ``tenant_weights`` (above 0) are the shares of the engine's time
        that the values of ``Options.tenant`` get while requests wait; one that it does not name has weight 1.
        """
        if isinstance(runtime, str | Path):
            raise InvalidRequest(f"runtime is {str(runtime)!r}; pass a runtime, or open a bundle with Engine.load.")
        if not isinstance(calibration, Calibration | None):
            raise InvalidRequest(f"calibration is {type(calibration).__name__}; pass a Calibration, or None.")
        max_waiting = check_integer("max_waiting", max_waiting, 1)
        cache_bytes = check_integer("cache_bytes", cache_bytes, 0)
        self._runtime = runtime
        self._calibration = calibration or runtime.calibration
        self._max_waiting = max_waiting
        self._scheduler = Scheduler(
            runtime,
            max_waiting=max_waiting,
            cache_bytes=cache_bytes,
            tenant_weights=check_weights("tenant_weights", tenant_weights or {}),
        )
        self._nph = NphPipeline(runtime, self._scheduler)
        self._correction = CorrectionPipeline(runtime, self._scheduler)
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
        calibration: str | Path | None = None,
        verify: bool = True,
        max_waiting: int = 4096,
        cache_bytes: int = 64_000_000,
        tenant_weights: Mapping[str, float] | None = None,
        device_memory_mb: int | None = None,
        strict: bool = False,
        backend: Backend = "local",
        url: str | Endpoint | None = None,
    ) -> Engine:
        """Open a bundle: the name of an embedded one, a directory that ``groundwire export`` wrote, or one on the hub:
        ``hf://ORG/NAME@REVISION`` (needs ``groundwire[hub]``; nothing else opens a connection).

        ``extra`` are further bundles whose roles are added; no role may be in two of them, and the calibration is that
        of the first.

        ``device`` is ``auto``, ``cpu``, ``cuda`` or ``tensorrt``; ``cuda:1`` is the second GPU. Nothing falls back
        silently. ``device_memory_mb`` bounds the MiB of a GPU that all engines of this process take together.
        ``strict`` runs encoders and question generation on CUDA at one shape each, and language models at one for each
        length, so that no bit of their results depends on what is scored beside them; a CPU needs none of it.
        ``precision`` refuses a bundle of another one. ``threads`` is how many CPU threads to use; None takes the usable
        processors.
        ``calibration`` is a file of ``Calibration.save`` to use instead of the bundle's own. ``verify`` compares every
        file with its digest first, about a second for each gigabyte; without it the signature says ``unverified``.

        With ``backend="kserve"`` the graphs run on a model server at ``url`` (docs/guides/scale-out.md), and ``device``
        is the kind whose graphs it has; needs ``groundwire[kserve]``.
        Raises BundleError, DeviceError, InvalidRequest, or ServerError.
        """
        max_waiting = check_integer("max_waiting", max_waiting, 1)  # before a bundle is loaded for seconds
        cache_bytes = check_integer("cache_bytes", cache_bytes, 0)
        tenant_weights = check_weights("tenant_weights", tenant_weights or {})
        chosen = None if calibration is None else Calibration.load(check_path("calibration", calibration))
        runtime: Runtime
        if endpoint := check_backend(
            backend, url, threads=threads, device_memory_mb=device_memory_mb, strict=strict or None
        ):
            runtime = LocalRuntime.connect(bundle, endpoint, device, precision, extra, verify=verify)
        else:
            runtime = LocalRuntime.load(
                bundle,
                device,
                precision,
                threads,
                extra,
                verify=verify,
                device_memory_mb=device_memory_mb,
                strict=strict,
            )
        return cls(
            runtime,
            calibration=chosen,
            max_waiting=max_waiting,
            cache_bytes=cache_bytes,
            tenant_weights=tenant_weights,
        )

    @classmethod
    async def aload(
        cls,
        bundle: str | Path = "compact",
        device: DeviceChoice = "auto",
        precision: str | None = None,
        threads: int | None = None,
        *,
        extra: Sequence[str | Path] = (),
        calibration: str | Path | None = None,
        verify: bool = True,
        max_waiting: int = 4096,
        cache_bytes: int = 64_000_000,
        tenant_weights: Mapping[str, float] | None = None,
        device_memory_mb: int | None = None,
        strict: bool = False,
        backend: Backend = "local",
        url: str | Endpoint | None = None,
    ) -> Engine:
        """``load`` for asyncio, on a thread of its own, so that the event loop goes on."""
        return await asyncio.to_thread(
            cls.load,
            bundle,
            device,
            precision,
            threads,
            extra=extra,
            calibration=calibration,
            verify=verify,
            max_waiting=max_waiting,
            cache_bytes=cache_bytes,
            tenant_weights=tenant_weights,
            device_memory_mb=device_memory_mb,
            strict=strict,
            backend=backend,
            url=url,
        )

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
        facts of a knowledge graph, which are the knowledge where no text is given; ``metrics`` is a list of names,
        or a group: ``all``, ``paper``, ``fast``; by default those of the verdict, or Q² alone in a bundle without a
        calibration. Raises InvalidRequest for unusable input; what happens to a valid request is a status of the Score,
        never an exception.
        """
        plan = self._plan(metrics, options)
        pending = self._start(make_request(response, knowledge, history, plan.options, triples), plan)
        try:
            return pending.build(pending.job.future.result())
        except BaseException:
            self._scheduler.cancel(pending.job)
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
        plan = self._plan(metrics, options)
        pending = self._start(make_request(response, knowledge, history, plan.options, triples), plan)
        try:
            return pending.build(await asyncio.wrap_future(pending.job.future))
        except asyncio.CancelledError:
            self._scheduler.cancel(pending.job)
            raise

    def score_many(
        self,
        items: Iterable[Item],
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Score]:
        """Yield one Score per item, in order, with a bounded number of requests in flight and no more held in memory.

        As many are in flight as keep the device busy, 64 at most; while other callers fill the engine, it waits.
        An item is a Request, a pair (response, knowledge), or a mapping with ``response``, ``knowledge`` or ``triples``
        (or both), and perhaps ``history``. An unusable item yields status ``invalid`` and the others go on.
        ``progress`` is called with the number of scores yielded so far.
        """
        plan = self._plan(metrics, options)  # a wrong name raises before the first item is read
        if progress is not None and not callable(progress):
            raise InvalidRequest(f"progress is {type(progress).__name__}; pass a function of the number of scores.")
        return self._score_many(check_items(items), plan, progress)

    def _score_many(self, items: Iterable[Item], plan: Plan, progress: Callable[[int], None] | None) -> Iterator[Score]:
        window = self._open_window(plan)
        try:
            for done, score in enumerate(score_in_order(items, window), 1):
                yield score
                if progress is not None:
                    progress(done)
        finally:
            for pending in window.clear():
                self._scheduler.cancel(pending.job)

    async def ascore_many(
        self,
        items: Iterable[Item] | AsyncIterable[Item],
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> AsyncIterator[Score]:
        """``score_many`` for asyncio, of an iterable or an asynchronous one."""
        window = self._open_window(self._plan(metrics, options))
        try:
            async for score in ascore_in_order(
                items if isinstance(items, AsyncIterable) else check_items(items), window
            ):
                yield score
        finally:
            for pending in window.clear():
                self._scheduler.cancel(pending.job)

    def _open_window(self, plan: Plan) -> Window:
        size = min(IN_FLIGHT, self._max_waiting, 8 * self._runtime.concurrent_requests)
        return Window(lambda request: start(request, plan, self._runtime, self._scheduler, is_bulk=True), plan, size)

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
        candidates, plan, job = self._start_ranking(candidates, knowledge, history, triples, metric, options)
        try:
            return _rank(candidates, plan, job.future.result())
        except BaseException:
            self._scheduler.cancel(job)
            raise

    async def arank(
        self,
        candidates: Sequence[str],
        knowledge: Knowledge = (),
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        metric: str = "pmi",
        options: Options | None = None,
    ) -> tuple[Ranked, ...]:
        """``rank`` for asyncio; cancelling the awaiting task cancels the request."""
        candidates, plan, job = self._start_ranking(candidates, knowledge, history, triples, metric, options)
        try:
            return _rank(candidates, plan, await asyncio.wrap_future(job.future))
        except asyncio.CancelledError:
            self._scheduler.cancel(job)
            raise

    def _start_ranking(
        self,
        candidates: Sequence[str],
        knowledge: Knowledge,
        history: Sequence[str],
        triples: Triples,
        metric: str,
        options: Options | None,
    ) -> tuple[tuple[str, ...], Plan, Job[MetricResult]]:
        candidates = check_sequence("candidates", candidates, "a list of responses")
        if not candidates:
            raise InvalidRequest("candidates is empty; pass a list of responses.")
        plan = self._plan((metric,), options)
        requests = [make_request(candidate, knowledge, history, plan.options, triples) for candidate in candidates]
        if len(plan.metrics) > 1:
            raise InvalidRequest(f"metric={metric!r} is a group; rank by one of {', '.join(plan.names)}.")
        return candidates, plan, start_all(requests, plan, self._runtime, self._scheduler)

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
        return self._nph.critique(response, history, triples, graph, hops, self._check_options(options))

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
        mask_all: bool = False,
        veto: bool = True,
        options: Options | None = None,
    ) -> Refinement:
        """Put entities of a knowledge graph in the place of names that it does not support: Neural Path Hunter.

        Roles ``critic`` and ``retriever``. Candidates lie within ``hops`` triples of what the dialogue is about; with
        ``type_aware`` those are preferred that play a part in the graph that what they replace plays too; for a name
        that is not in the graph, a role ``spans`` (``extra=["compact"]``) recognises its type. Where none
        has ``min_probability``, 0–1, or the critic doubts the result as much as the response, nothing is changed and
        the status is ``refused``. ``top`` candidates of each mention are reported. With ``mask_all`` every name is
        masked, flagged or not, and without ``veto`` the best repair is taken whatever the critic makes of it; both are
        for comparisons with the paper. Raises InvalidRequest as ``critique``.
        """
        settings = RefineOptions(hops, top, type_aware, min_probability, mask_all, veto)
        return self._nph.refine(response, history, triples, graph, settings, self._check_options(options))

    async def arefine(
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
        mask_all: bool = False,
        veto: bool = True,
        options: Options | None = None,
    ) -> Refinement:
        """``refine`` for asyncio; cancelling the awaiting task cancels the request."""
        settings = RefineOptions(hops, top, type_aware, min_probability, mask_all, veto)
        return await self._nph.arefine(response, history, triples, graph, settings, self._check_options(options))

    def correct(
        self,
        response: str,
        knowledge: Knowledge,
        *,
        history: Sequence[str] = (),
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
        max_drafts: int = 4,
        remove_sentences: bool = False,
    ) -> Correction:
        """Put words of the knowledge in the place of those that it does not support, or leave these out.

        The response is scored as by ``score``. For each inconsistent sentence, values, answers and words of the
        knowledge are drafted in the place of its unsupported words, or parts of it are left out. ``max_drafts``
        of these in all, at least one for each sentence, are scored together by the metrics that read both texts once.
        The best is taken if the sentence is more probably consistent with it; otherwise nothing is changed, and the
        status is ``refused``. With ``remove_sentences`` a whole inconsistent sentence may be left out if others remain.
        No name and no number is written that neither the knowledge nor the response has, and everything else stays as
        it is, character by character. Without a verdict nothing is corrected. Raises InvalidRequest as ``score``.
        """
        return run_jobs(
            self._correction_jobs(response, knowledge, history, metrics, options, max_drafts, remove_sentences),
            self._scheduler,
        )

    async def acorrect(
        self,
        response: str,
        knowledge: Knowledge,
        *,
        history: Sequence[str] = (),
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
        max_drafts: int = 4,
        remove_sentences: bool = False,
    ) -> Correction:
        """``correct`` for asyncio; cancelling the awaiting task cancels the request."""
        return await arun_jobs(
            self._correction_jobs(response, knowledge, history, metrics, options, max_drafts, remove_sentences),
            self._scheduler,
        )

    def _correction_jobs(
        self,
        response: str,
        knowledge: Knowledge,
        history: Sequence[str],
        metrics: Sequence[str] | str | None,
        options: Options | None,
        max_drafts: int,
        remove_sentences: bool,
    ) -> Jobs[Correction]:
        plan = self._plan(metrics, options)
        request = make_request(response, knowledge, history, plan.options)
        settings = CorrectionSettings(check_integer("max_drafts", max_drafts, 1), remove_sentences)
        if not isinstance(remove_sentences, bool):
            raise InvalidRequest(f"remove_sentences is {remove_sentences!r:.200}; allowed are True and False.")
        return self._correction.make_jobs(request, plan, settings)

    def generate(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        generation: GenerationOptions = GenerationOptions(),  # noqa: B008 - a frozen record
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> Generation:
        """Generate responses to ``history`` that rest on ``knowledge``: PMI-Decode, by the model of role ``generator``.

        ``generation`` says how. With ``metrics``, or with ``GenerationOptions.n_candidates``, the metrics score every
        candidate (default: the bundle's own, as for ``score``) and the most faithful come first: by the verdict's
        probability, else by the first metric. Raises InvalidRequest for unusable input; what happens to a valid request
        is a status.
        """
        return self._generation.generate(*self._generation_request(knowledge, history, generation, metrics, options))

    async def agenerate(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        generation: GenerationOptions = GenerationOptions(),  # noqa: B008 - a frozen record
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> Generation:
        """``generate`` for asyncio; cancelling the awaiting task cancels the request."""
        request = self._generation_request(knowledge, history, generation, metrics, options)
        return await self._generation.agenerate(*request)

    def generate_stream(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        generation: GenerationOptions = GenerationOptions(),  # noqa: B008 - a frozen record
        *,
        options: Options | None = None,
    ) -> GenerationStream:
        """Generate one response and yield its text piece by piece; the stream's ``result`` is the Generation.

        Greedy search and sampling yield each piece as it is decoded, beam methods yield the text at the end. Nothing is
        checked by metrics: InvalidRequest if ``generation`` has ``n_candidates`` or ``n`` above 1, and for unusable
        input as in ``generate``.
        """
        options = self._check_options(options)
        self._generation.check_roles()
        return self._generation.stream(make_settings(knowledge, history, generation, options), options)

    def _generation_request(
        self,
        knowledge: Knowledge,
        history: Sequence[str],
        generation: GenerationOptions,
        metrics: Sequence[str] | str | None,
        options: Options | None,
    ) -> tuple[Settings, tuple[str, ...], Options]:
        options = self._check_options(options)
        self._generation.check_roles()
        settings = make_settings(knowledge, history, generation, options, has_metrics=metrics is not None)
        is_checked = metrics is not None or generation.n_candidates is not None
        return settings, self.metric_names(metrics) if is_checked else (), options

    def stream(
        self,
        knowledge: Knowledge = (),
        history: Sequence[str] = (),
        *,
        triples: Triples = (),
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
        policy: Policy | None = None,
    ) -> ResponseStream:
        """Open the stream of a response that is checked while it is written, and held back until it is.

        ``knowledge``, ``history``, ``triples``, ``metrics`` and ``options`` are those of ``score``; the deadline of the
        options is that of each sentence's check. ``policy`` says what happens to a sentence by its verdict, or without
        one; by default all but consistent sentences and those that state nothing end the stream. Raises InvalidRequest
        for unusable input.

        >>> with engine.stream("Honey never spoils.") as stream:                               # doctest: +SKIP
        ...     for delta in model_output:
        ...         for event in stream.feed(delta):
        ...             show(event)
        ...     score = stream.finish()
        """
        plan = self._plan(metrics, options)
        policy = check_policy(policy)
        check_stream(plan, policy, self._runtime.roles, triples)
        request = make_request("-", knowledge, history, plan.options, triples)

        def repair(sentence: str, action: Refine | Correct) -> str | None:
            if isinstance(action, Correct):
                correction = self.correct(
                    sentence, request.knowledge, history=history, metrics=plan.names, options=plan.options
                )
                return correction.response if correction.status == "corrected" else None
            known = None if action.graph is not None else triples
            refined = self.refine(sentence, history, triples=known, graph=action.graph, options=plan.options)
            return refined.response if refined.status == "refined" else None

        core = StreamCore(
            request,
            plan,
            policy,
            lambda request, deadline_ms: start(request, plan, self._runtime, self._scheduler, deadline_ms),
            self._scheduler.cancel,
            repair,
        )
        return ResponseStream(core, self._scheduler.check_open)

    def evidence(
        self,
        score: Score,
        response: str,
        knowledge: Knowledge = (),
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        options: Options | None = None,
        created: datetime | None = None,
        texts: bool = False,
    ) -> EvidencePacket:
        """One document for an audit: what a score of this engine depends on, and what it was; ``verify`` checks it.

        The other arguments are those that ``score`` was called with. ``created`` has a time zone; None is now. The
        packet has digests of the texts, and with ``texts`` the texts themselves; without, it quotes nothing of them.
        Raises InvalidRequest for a score of other settings or another response, and for one without results.
        """
        if not isinstance(score, Score) or not score.metrics:
            raise InvalidRequest("score has no results; pass a Score of this engine whose status is not invalid.")
        plan = self._plan(tuple(score.metrics), options)
        request = make_request(response, knowledge, history, plan.options, triples)
        return make_packet(score, request, plan, self._runtime.identity, created, texts=texts)

    def verify(self, packet: EvidencePacket, request: Request | None = None) -> Verification:
        """Score the request of a packet again, and compare everything; ``Verification.status`` says how it ended.

        ``request`` has the texts where the packet does not. A deadline of the packet's options is not kept. Raises
        InvalidRequest where this engine cannot compute the packet's metrics.
        """
        if contradictions := check_packet(packet):
            return conclude("changed", contradictions)
        plan = self._plan(packet.metrics, replace(packet.options, deadline_ms=None, priority=0))
        settings = compare_settings(packet, plan, self._runtime.identity)
        request = packet.texts if request is None else request
        if request is None:
            return conclude("no_texts", settings=settings)
        request = to_request(request, plan.options)
        if other_texts := compare_texts(packet, request):
            return conclude("other_texts", other_texts, settings)
        score = self.score(
            request.response,
            request.knowledge,
            history=request.history,
            triples=request.triples,
            metrics=plan.names,
            options=plan.options,
        )
        differences = compare_scores(packet, score, same_settings=not settings)
        status: VerificationStatus = "verified" if not differences else "other_settings" if settings else "different"
        return conclude(status, differences, settings)

    def warmup(self) -> None:
        """Run every model once, so that the first request pays for nothing but itself; ModelError when one fails.

        A model of another language, which cannot read the English text of its call, is left as it is.
        """
        job = self._scheduler.submit([_warm_up(call) for call in self._runtime.warm_calls()], Options().max_windows)
        for outcome in job.future.result().outcomes:
            if isinstance(outcome, Unfinished) and outcome.status != "truncated":
                raise ModelError(f"Warming up failed: {outcome.message}")

    def close(self, *, drain: bool = False, timeout_ms: float | None = None) -> None:
        """Accept no more requests, answer all that were accepted, and free the models; later calls raise EngineClosed.

        Unfinished requests end with status ``cancelled``: at once, or with ``drain`` after ``timeout_ms`` (None: all of
        them finish). In a forked process it does nothing: threads and models belong to the process that loaded them.
        """
        if timeout_ms is not None:
            timeout_ms = check_number("timeout_ms", timeout_ms, 0)
        self._scheduler.close(drain=drain, timeout_ms=timeout_ms)
        if not self._scheduler.is_forked:
            self._runtime.close()

    @property
    def is_healthy(self) -> bool:
        """Whether the engine accepts requests: False after ``close``, in a forked process, and after a defect that
        stopped it (the log says which; load another engine)."""
        return self._scheduler.accepts_jobs

    def __reduce__(self) -> Never:
        raise TypeError(
            "An engine cannot be sent to another process: its models and threads belong to this one. "
            "Load one in every process, for example at the first use of groundwire.score()."
        )

    @property
    def runtime(self) -> Runtime:
        """What runs the models."""
        return self._runtime

    @property
    def calibration(self) -> Calibration | None:
        """How the metrics' values are read; None where none was fitted, and every verdict is ``unknown``."""
        return self._calibration

    @property
    def cache_info(self) -> tuple[int, int, int]:
        """Cached model calls, hits and misses."""
        return self._scheduler.cache_info

    def statistics(self) -> EngineStatistics:
        """What the engine is doing now, and what it has done since it was loaded."""
        return self._scheduler.statistics()

    def observe_batches(self, observe: ObserveBatch | None) -> None:
        """Call ``observe`` after every batch, with its role (several are joined by ``+``), the number of its calls, and
        its milliseconds.

        It is called on the engine's own thread, and has to return at once. There is one; None removes it.
        """
        self._scheduler.observe_batch = observe

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def metric_names(self, metrics: Sequence[str] | str | None = None) -> tuple[str, ...]:
        """The metrics that ``score`` computes for this argument: groups spelt out, each name once."""
        return self._plan(metrics, None).names

    def signature(self, metrics: Sequence[str] | str | None = None, options: Options | None = None) -> str:
        """What ``Score.signature`` is for these metrics and options."""
        return self._plan(metrics, options).signature

    def _plan(self, metrics: Sequence[str] | str | None, options: Options | None) -> Plan:
        return make_plan(self._runtime.roles, self._runtime.identity, self._calibration, metrics, options)

    def _check_options(self, options: Options | None) -> Options:
        return check_options(options, self._runtime.roles, self._calibration)

    def _start(self, request: Request, plan: Plan) -> PendingScore:
        return start(request, plan, self._runtime, self._scheduler)


def _rank(candidates: Sequence[str], plan: Plan, finished: Finished[MetricResult]) -> tuple[Ranked, ...]:
    results = results_of(plan.metrics * len(candidates), finished.outcomes)
    ranked = [Ranked(*candidate) for candidate in zip(candidates, range(len(candidates)), results, strict=True)]
    return tuple(sorted(ranked, key=lambda item: (item.result.value is None, -(item.result.value or 0.0))))


def _warm_up(call: Call) -> Steps[bool]:
    yield [call]
    return True
