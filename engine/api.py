"""The engine: load a bundle once, score from anywhere; and the default engine of each process."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Never, Self, TypeAlias

from groundwire.runtime.arguments import Suggesting, check_number
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.ort.device import DeviceChoice
from groundwire.runtime.protocol import Runtime
from groundwire.runtime.texts.characters import is_digits
from groundwire.runtime.triples import Triple

from .core.core import Core
from .core.many import Item, RequestWindow, ascore_in_order, check_items, score_window, start_ranking, to_request
from .core.pending import Pending
from .core.plan import Plan
from .processes.opening import open_runtime
from .scheduling.scheduler import Scheduler
from .schema.knowledge import KnowledgeItem
from .schema.load_options import LoadOptions, check_load_options
from .schema.options import Options
from .schema.results import Ranked, Request, Score
from .schema.statistics import EngineStatistics
from .schema.validation import make_request

IN_FLIGHT = 64
"""Requests that ``score_many`` keeps in flight at most: enough to fill batches, few enough to bound memory."""

Knowledge: TypeAlias = KnowledgeItem | Sequence[KnowledgeItem]
"""A text, a ``Passage``, a ``ToolCall``, a JSON object such as a tool's result, or several of these; or the messages of
a chat, which are read for the instructions and the tool log in them."""
Triples: TypeAlias = Sequence[Triple | tuple[str, str, str]]
Metrics: TypeAlias = Sequence[str] | str | None


class Engine(Suggesting):
    """Scores responses with the models of one bundle. Safe to use from many threads at once.

    >>> with Engine.load() as engine:                                                          # doctest: +SKIP
    ...     score = engine.score("Bob Ross hosted the show.", "Bob Ross was its creator and host.")
    ...     score.verdict.label, score.unsupported
    """

    _other_words: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("predict", "predict_proba"), "groundwire.adapters.sklearn.VerdictClassifier"),
        **dict.fromkeys(("check", "verify", "validate", "detect"), "score"),
        **dict.fromkeys(("score_batch", "batch", "map"), "score_many"),
        "metrics": "plan().names",
        "evaluate": "groundwire.evaluate(rows, engine)",
        "calibrate": "groundwire.calibrate(rows, engine)",
        "correct": "groundwire.Corrector(engine).correct",
        "stream": "groundwire.Guard(engine).open",
        "guard": "groundwire.Guard(engine).open",
    }

    def __init__(self, runtime: Runtime, options: LoadOptions | None = None, *, metrics: Metrics = None) -> None:
        """Make an engine over any runtime; ``load`` is the usual way.

        Args:
            runtime: The runtime of the models, a ``FakeRuntime`` in tests.
            options: Calibration, bounds and tenants; None takes the defaults.
            metrics: As for ``load``.

        Raises:
            InvalidRequest: An argument is of another type.
        """
        if isinstance(runtime, str | Path):
            raise InvalidRequest(f"runtime is {str(runtime)!r}; pass a runtime, or open a bundle with Engine.load.")
        options = check_load_options(options)
        scheduler = Scheduler(
            runtime,
            max_waiting=options.max_waiting,
            max_waiting_tokens=options.max_waiting_tokens,
            cache_bytes=options.cache_bytes,
            tenant_weights=options.tenant_weights,
        )
        self._core = Core(runtime, scheduler, options.loaded_calibration or runtime.calibration, metrics)
        self._max_in_flight = min(IN_FLIGHT, options.max_waiting)

    @classmethod
    def load(
        cls,
        bundle: str | Path = "compact",
        device: DeviceChoice = "auto",
        *,
        threads: int | None = None,
        extra: Sequence[str | Path] = (),
        processes: int = 1,
        metrics: Metrics = None,
        options: LoadOptions | None = None,
    ) -> Engine:
        """Open a bundle. In asyncio, ``await asyncio.to_thread(Engine.load)`` keeps the event loop going.

        Args:
            bundle: Name of an embedded bundle, a directory that ``groundwire export`` wrote, or a bundle on the hub,
                ``hf://ORG/NAME@REVISION`` (needs ``groundwire[hub]``; nothing else opens a connection).
            device: ``auto``, ``cpu``, ``cuda``, ``tensorrt`` or ``tensorrt-rtx``; ``cuda:1`` is the second GPU. Nothing
                falls back silently.
            threads: CPU threads, 1 or more; None takes the usable processors.
            extra: Further bundles whose roles are added. No role may be in two of them; ``ROLE=BUNDLE`` takes one role,
                in place of the role of that name in the bundles before it. The fusions of the first calibration count,
                and the other calibrations add the fusions that it lacks. With ``compact`` the bundle ``reader`` loads
                too, where it is installed.
            processes: Processes that compute, 1–256, each with its share of the threads and models of its own, which
                take as much memory again. More than one raise the throughput, as only one thread of a process runs
                Python at a time. One that ends is replaced, and what it was asked is asked again.
            metrics: Names of metrics or groups (``default``, ``fast``, ``paper``, ``all``) of requests that name none;
                None takes the metrics of the verdict, or Q² alone in a bundle without a calibration.
            options: Everything else; None takes the defaults.

        Returns:
            An engine whose models are loaded. Close it, or use it as a context manager.

        Raises:
            BundleError: A bundle is missing, damaged, of another schema or of another precision.
            DeviceError: The device is missing, or its libraries are.
            ModelError: A worker process ended while it loaded.
            InvalidRequest: An argument is out of range.
            ServerError: A model server does not answer as the protocol says.
        """
        options = check_load_options(options)
        engine = cls(open_runtime(bundle, device, threads, extra, processes, options), options, metrics=metrics)
        if metrics is not None:
            try:
                engine.plan()
            except InvalidRequest:
                engine.close()
                raise
        return engine

    def score(
        self,
        response: str,
        knowledge: Knowledge = (),
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        metrics: Metrics = None,
        options: Options | None = None,
    ) -> Score:
        """Score one response and wait for the result.

        Args:
            response: The text to check, in English.
            knowledge: What the response should rest on: a text, a passage, a tool call, a JSON object such as a tool's
                result, or several of these.
            history: The utterances before the response, oldest first.
            triples: Facts of a knowledge graph; without ``knowledge`` they are the knowledge.
            metrics: Names of metrics or groups (``default``, ``fast``, ``paper``, ``all``), joined as you like:
                ``["default", "quotations"]``, or with commas; None takes those of ``load``.
            options: Settings of metrics and verdict, and when the request is served; None takes the defaults.

        Returns:
            The score. Its status, never an exception, says what happened to a valid request.

        Raises:
            InvalidRequest: An argument is not usable; the message says what is allowed.
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts.
            EngineClosed: The engine is closed.
        """
        plan = self.plan(metrics, options)
        return self._core.score(make_request(response, knowledge, history, plan.options, triples), plan).result()

    async def ascore(
        self,
        response: str,
        knowledge: Knowledge = (),
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        metrics: Metrics = None,
        options: Options | None = None,
    ) -> Score:
        """Score one response in asyncio; as ``score``. Cancelling the awaiting task gives the request up."""
        plan = self.plan(metrics, options)
        return await self._core.score(make_request(response, knowledge, history, plan.options, triples), plan)

    def submit(self, request: Request, plan: Plan | None = None) -> Pending[Score]:
        """Start a request and return at once.

        Args:
            request: The texts.
            plan: The metrics and options, from ``plan``; None takes the default metrics and options.

        Returns:
            A handle: ``result(timeout)`` or ``await`` waits for the score, ``cancel`` gives the request up.

        Raises:
            InvalidRequest: The request is not usable.
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts.
            EngineClosed: The engine is closed.
        """
        plan = plan or self.plan()
        return self._core.score(to_request(request, plan.options), plan)

    def score_many(
        self,
        items: Iterable[Item],
        *,
        metrics: Metrics = None,
        options: Options | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Score]:
        """Yield one score per item, in order, with a bounded number of requests in flight and no more held in memory.

        Args:
            items: Requests, pairs (response, knowledge), or mappings with ``response``, ``knowledge`` or ``triples``
                (or both), and perhaps ``history``; or a table of pandas, Polars or Arrow with these columns.
            metrics: As for ``score``.
            options: As for ``score``.
            progress: Called with the number of scores yielded so far.

        Returns:
            An iterator of scores. An unusable item gets the status ``invalid``, and the others go on.

        Raises:
            InvalidRequest: ``metrics``, ``options`` or ``progress`` is not usable, or ``items`` is a single item.
        """
        plan = self.plan(metrics, options)  # a wrong name raises before the first item is read
        if progress is not None and not callable(progress):
            raise InvalidRequest(f"progress is {type(progress).__name__}; pass a function of the number of scores.")
        return score_window(check_items(items), self._open_window(plan), progress)

    async def ascore_many(
        self,
        items: Iterable[Item] | AsyncIterable[Item],
        *,
        metrics: Metrics = None,
        options: Options | None = None,
    ) -> AsyncIterator[Score]:
        """Score items in asyncio, as ``score_many``; ``items`` may be asynchronous."""
        window = self._open_window(self.plan(metrics, options))
        try:
            async for score in ascore_in_order(
                items if isinstance(items, AsyncIterable) else check_items(items), window
            ):
                yield score
        finally:
            window.cancel()

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
        """Order candidate responses to one turn by a metric, best first; candidates without a score come last.

        All candidates are asked about at once, so what they share is computed once: equal calls, and for ``pmi`` the
        document and the history, which the language model reads a single time.

        Args:
            candidates: Responses, one or more.
            knowledge: As for ``score``.
            history: As for ``score``.
            triples: As for ``score``.
            metric: Name of one metric.
            options: As for ``score``.

        Returns:
            The candidates with their results; ties keep their order.

        Raises:
            InvalidRequest: An argument is not usable.
        """
        return start_ranking(self._core, candidates, knowledge, history, triples, metric, options).result()

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
        """Order candidate responses in asyncio, as ``rank``. Cancelling the awaiting task gives the request up."""
        return await start_ranking(self._core, candidates, knowledge, history, triples, metric, options)

    def plan(self, metrics: Metrics = None, options: Options | None = None) -> Plan:
        """Decide what requests with these metrics and options compute; equal arguments get the same plan.

        Args:
            metrics: As for ``score``.
            options: As for ``score``.

        Returns:
            The plan, with the ``names`` of its metrics and the ``signature`` of its scores.

        Raises:
            InvalidRequest: A name is unknown or needs a role that the bundle lacks, or an option is out of range.
        """
        return self._core.plan(metrics, options)

    def statistics(self) -> EngineStatistics:
        """Return what the engine is doing now, and what it has done since it was loaded."""
        return self._core.statistics()

    def warmup(self, metrics: Metrics = None) -> None:
        """Run models and the tokenizer of the rules once, so that the first request pays for nothing but itself.

        Args:
            metrics: Names of metrics or groups, whose models are run; None runs every model of the bundle. On a GPU
                a model takes seconds, and memory for each of its shapes: ``engine.plan().names`` are the default
                metrics.

        Raises:
            InvalidRequest: A name is unknown or needs a role that the bundle lacks.
            ModelError: A model failed.
        """
        self._core.warm_up(None if metrics is None else self.plan(metrics).roles)

    def close(self, *, drain: bool = False, timeout_ms: float | None = None) -> None:
        """Accept no more requests, answer all that were accepted, and free the models; later calls raise EngineClosed.

        In a forked process it does nothing: threads and models belong to the process that loaded them.

        Args:
            drain: Whether unfinished requests may finish; otherwise they end with status ``cancelled`` at once.
            timeout_ms: Milliseconds after which a drain ends; None lets all of them finish.
        """
        if timeout_ms is not None:
            timeout_ms = check_number("timeout_ms", timeout_ms, 0)
        self._core.close(drain=drain, timeout_ms=timeout_ms)

    async def aclose(self, *, drain: bool = False, timeout_ms: float | None = None) -> None:
        """Close the engine in asyncio, as ``close``, while the event loop goes on."""
        await asyncio.to_thread(self.close, drain=drain, timeout_ms=timeout_ms)

    @property
    def core(self) -> Core:
        """What the packages above the engine build on: runtime, calibration, scheduler, plans and procedures."""
        return self._core

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __reduce__(self) -> Never:
        raise TypeError(
            "An engine cannot be sent to another process: its models and threads belong to this one. "
            "Load one in every process, for example at the first use of groundwire.score()."
        )

    def _open_window(self, plan: Plan) -> RequestWindow:
        size = min(self._max_in_flight, 8 * self._core.runtime.concurrent_requests)
        return RequestWindow(lambda request: self._core.score(request, plan, is_bulk=True), plan, size)


_lock = threading.Lock()
_default: list[Engine] = []
_inherited: list[Engine] = []
"""The default engines of the processes that this one was forked from: freeing their models would wait for threads that
do not exist here."""


def default_engine() -> Engine:
    """The engine that ``score`` uses, loaded at the first use and closed when the process ends.

    The environment chooses it: ``GROUNDWIRE_BUNDLE`` (default: compact), ``GROUNDWIRE_DEVICE`` (auto) and
    ``GROUNDWIRE_THREADS`` (all usable processors). A forked process loads its own.
    """
    with _lock:
        if not _default:
            _default.append(_load_from_environment())
            atexit.register(_default[0].close)
        return _default[0]


def _load_from_environment() -> Engine:
    """The engine that the environment variables describe; InvalidRequest when one is not usable."""
    threads = os.environ.get("GROUNDWIRE_THREADS") or None
    if threads is not None and not is_digits(threads):
        raise InvalidRequest(f"GROUNDWIRE_THREADS={threads!r} is not a number; give 1 or more, or leave it unset.")
    return Engine.load(
        os.environ.get("GROUNDWIRE_BUNDLE") or "compact",
        os.environ.get("GROUNDWIRE_DEVICE") or "auto",
        threads=None if threads is None else int(threads),
    )


def _forget_default() -> None:
    """In a forked process: another thread may have held the lock, and the engine's threads do not exist."""
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_default)
    _default.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_default)


def score(
    response: str,
    knowledge: Knowledge = (),
    *,
    history: Sequence[str] = (),
    triples: Triples = (),
    metrics: Metrics = None,
    options: Options | None = None,
) -> Score:
    """Score one response on the default engine, as ``Engine.score``.

    Raises:
        BundleError: The default bundle cannot be loaded.
    """
    return default_engine().score(
        response, knowledge, history=history, triples=triples, metrics=metrics, options=options
    )
