"""What scores requests: one plan per configuration, one way to start jobs, one driver. Packages above build on it."""

from __future__ import annotations

import gc
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

import msgspec

from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.calls import Call, Compute
from groundwire.runtime.errors import ModelError
from groundwire.runtime.protocol import Capturing, Interruptible, Runtime

from ..metrics import METRICS, Metric
from ..metrics.base import skip
from ..metrics.requests import OutOfTime, ReadRequest, get_original, read_together
from ..processes.runtime import ProcessRuntime
from ..scheduling.admission import estimate_tokens
from ..scheduling.jobs import Failure, Job, JobResult, explain_defect
from ..scheduling.scheduler import ObserveBatch, Scheduler
from ..schema.options import Options
from ..schema.results import MetricResult, Request, Score, Status, Timings, Verdict
from ..schema.statistics import EngineStatistics
from ..schema.steps import Steps
from ..text.words import words
from ..verdict.score import build_score, build_sentence_score, locate_in_original
from .pending import Pending, Procedure
from .plan import Plan, check_options, make_plan

T = TypeVar("T")
Key: TypeAlias = tuple[Any, ...]
FOLD = "the verdict"
"""What draws a score from results, as logs and messages name it."""
FOLDING_THREADS = 2
"""Threads that resume procedures under asyncio: with more, the event loop would wait longer for its turn."""
FOLD_SECONDS = 0.25
"""Time after the deadline of a request in which a score is drawn from what there is."""
MAX_PLANS = 256
"""Plans that are kept, the last ones used."""


class Core:
    """The runtime, its scheduler and its calibration: the parts of one ``Engine``. Safe to use from many threads."""

    def __init__(
        self,
        runtime: Runtime,
        scheduler: Scheduler,
        calibration: Calibration | None,
        metrics: Sequence[str] | str | None = None,
    ) -> None:
        """Join the parts; ``metrics`` are those of requests that name none, None for those of the calibration."""
        self.runtime = runtime
        self.scheduler = scheduler
        self.calibration = calibration
        """How the metrics' values are read; None where none was fitted, and every verdict is ``unknown``."""
        self._metrics = metrics
        self._calibration_digest = "" if calibration is None else calibration.digest()
        self._plans: OrderedDict[Key, tuple[Plan, list[Metric]]] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(FOLDING_THREADS, "groundwire-fold")

    @property
    def is_open(self) -> bool:
        """Whether requests are accepted: False after ``close``, in a forked process, and after a defect."""
        return self.scheduler.accepts_jobs

    @property
    def processes(self) -> int:
        """Processes that compute now: 1, or those worker processes that run, which may be none for a while."""
        return self.runtime.running if isinstance(self.runtime, ProcessRuntime) else 1

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The worker processes that compute now; none where this process does."""
        return self.runtime.process_ids if isinstance(self.runtime, ProcessRuntime) else ()

    def close(self, *, drain: bool = False, timeout_ms: float | None = None) -> None:
        """End the scheduler and the runtime; as ``Engine.close``."""
        if self.scheduler.is_forked:
            return
        # Models are freed when their batches have ended; no request waits for these batches any more.
        interrupt = self.runtime.interrupt if isinstance(self.runtime, Interruptible) else None
        self.scheduler.close(drain=drain, timeout_ms=timeout_ms, on_answered=interrupt)
        self.runtime.close()

    def plan(self, metrics: Sequence[str] | str | None = None, options: Options | None = None) -> Plan:
        """Return the plan of a configuration; equal arguments get the same one.

        Args:
            metrics: Names of metrics or groups; None takes the metrics of the engine, else of the calibration.
            options: Options of the request; None takes the defaults.

        Raises:
            InvalidRequest: A name is unknown or needs a role that the bundle lacks, or an option is out of range.
        """
        metrics = self._metrics if metrics is None else metrics
        key = _make_key(metrics, options)
        if key is not None:
            with self._lock:
                if (cached := self._plans.get(key)) is not None:
                    self._plans.move_to_end(key)
                    return cached[0]
        registered = list(METRICS.values())  # kept with the plan: the key has their identities
        plan = make_plan(
            self.runtime.roles, self.runtime.identity, self.calibration, metrics, options, self._calibration_digest
        )
        if key is not None:
            with self._lock:
                self._plans[key] = plan, registered
                if len(self._plans) > MAX_PLANS:
                    self._plans.popitem(last=False)
        return plan

    def check_options(self, options: Options | None) -> Options:
        """Return the options, the defaults for None; InvalidRequest for a value out of range or a missing role."""
        return check_options(options, self.runtime.roles, self.calibration)

    def start(
        self,
        requests: Sequence[Request],
        plan: Plan,
        deadline_ms: float | None = None,
        *,
        is_bulk: bool = False,
        is_bounded: bool = True,
    ) -> Job[MetricResult]:
        """Start the metrics of several requests as one job: request by request, each with the plan's metrics in order.

        Args:
            requests: Requests whose texts are checked.
            plan: The metrics and options of each score.
            deadline_ms: Milliseconds from now, in place of the deadline of the options.
            is_bulk: Whether the job is served after the single requests of its priority.
            is_bounded: Whether the bound on tokens holds for it; False for a further job of an accepted request.

        Raises:
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts.
            EngineClosed: The engine is closed.
        """
        tasks = [task for request in read_together(requests) for task in self._make_tasks(request, plan)]
        size = count_tokens(requests, plan)
        return self.run(tasks, plan.options, deadline_ms, is_bulk=is_bulk, size=size, is_bounded=is_bounded)

    def _make_tasks(self, request: ReadRequest, plan: Plan) -> Iterator[Steps[MetricResult]]:
        """The generators of a plan's metrics, in order."""
        options, names = plan.complete, []
        if isinstance(self.runtime, ProcessRuntime):
            names = [name for name in plan.names if self.runtime.computes(name)]
            call = self.runtime.make_call(request.original, names, options)
        elif self.scheduler.unfinished < self.runtime.spare_requests:
            for metric in plan.metrics:
                options = metric.use_spare_time(options)
        for metric in plan.metrics:
            if not request.knowledge and not metric.rates_verifiability:
                yield skip(metric)
            elif metric.name in names:
                yield _take_result(call, names.index(metric.name))
            else:
                yield metric.compute(request, options, self.runtime.role_info)

    def statistics(self) -> EngineStatistics:
        """Return what the scheduler does and has done, with the batches of worker processes, if there are any, and the
        captures of graphs on a GPU."""
        statistics = self.scheduler.statistics()
        if isinstance(self.runtime, ProcessRuntime):
            return self.runtime.complete(statistics)
        if isinstance(self.runtime, Capturing):
            return msgspec.structs.replace(statistics, captures=self.runtime.captures)
        return statistics

    def run(
        self,
        tasks: Sequence[Steps[T]],
        options: Options,
        deadline_ms: float | None = None,
        *,
        is_bulk: bool = False,
        size: int = 0,
        is_bounded: bool = True,
    ) -> Job[T]:
        """Queue generators of model calls as one job, with the deadline, priority and tenant of ``options``.

        Args:
            tasks: Generators of rounds of model calls.
            options: Limits of what they may read, and when they are served.
            deadline_ms: Milliseconds from now, in place of the deadline of the options.
            is_bulk: Whether the job is served after the single requests of its priority.
            size: Estimated tokens that models read for it; 0 is not bounded.
            is_bounded: As for ``start``.
        """
        return self.scheduler.submit(
            tasks,
            options.max_windows,
            options.deadline_ms if deadline_ms is None else deadline_ms,
            options.priority,
            is_bulk=is_bulk,
            tenant=options.tenant,
            size=size,
            is_bounded=is_bounded,
        )

    def drive(self, procedure: Procedure[T]) -> Pending[T]:
        """Start a procedure and return the handle to wait for it."""
        return Pending(procedure, self.scheduler.cancel, self._threads)

    def score(
        self,
        request: Request,
        plan: Plan,
        deadline_ms: float | None = None,
        *,
        is_bulk: bool = False,
        is_bounded: bool = True,
        max_entries: int | None = None,
    ) -> Pending[Score]:
        """Start one request; the handle's result is its score. ``start`` describes the arguments.

        ``max_entries`` shortens the score where it is made: what is left out costs no process and no event loop.
        """
        if isinstance(self.runtime, ProcessRuntime) and all(map(self.runtime.computes, plan.names)):
            call = self.runtime.make_call(
                get_original(request), plan.names, plan.options, whole=True, max_entries=max_entries
            )
            size, tasks = count_tokens([request], plan), [_take_result(call, 0)]
            whole = self.run(tasks, plan.options, deadline_ms, is_bulk=is_bulk, size=size, is_bounded=is_bounded)
            self.runtime.hold(call, whole.future)
            return self.drive(_take_score(request, plan, whole))
        request = ReadRequest.of(request)
        job = self.start([request], plan, deadline_ms, is_bulk=is_bulk, is_bounded=is_bounded)
        return self.drive(self._fold(request, plan, job, max_entries))

    def score_together(
        self, requests: Sequence[Request], plan: Plan, deadline_ms: float | None = None
    ) -> Pending[tuple[Score, ...]]:
        """Start several requests as one job, which is accepted or refused as a whole; the result is their scores."""
        read = read_together(requests)
        return self.drive(self._fold_all(read, plan, self.start(read, plan, deadline_ms)))

    def _fold(self, request: Request, plan: Plan, job: Job[MetricResult], max_entries: int | None) -> Procedure[Score]:
        job_result: JobResult[MetricResult] = yield job
        end = self._find_end(job)
        return fold_outcomes(request, job_result.outcomes, job_result.timings, plan, end=end).shorten(max_entries)

    def _fold_all(
        self, requests: Sequence[Request], plan: Plan, job: Job[MetricResult]
    ) -> Procedure[tuple[Score, ...]]:
        job_result: JobResult[MetricResult] = yield job
        outcomes, size, end = job_result.outcomes, len(plan.metrics), self._find_end(job)
        return tuple(
            fold_outcomes(request, outcomes[index * size : (index + 1) * size], job_result.timings, plan, end=end)
            for index, request in enumerate(requests)
        )

    def _find_end(self, job: Job[Any]) -> float | None:
        """When the time ends in which the results of a job are to be folded; None for never."""
        left = self.scheduler.seconds_left(job)
        return None if left is None else time.monotonic() + left + FOLD_SECONDS

    def observe_batches(self, observe: ObserveBatch | None) -> None:
        """Call a function after every batch, on the scheduler's thread; it has to return at once.

        Args:
            observe: Gets the role of the batch (several are joined by ``+``), the number of its calls, and its
                milliseconds. There is one; None removes it.
        """
        self.scheduler.observe_batch = observe

    def warm_up(self, roles: Collection[str] | None = None) -> None:
        """Run the models of ``roles``, by default all, and the tokenizer of the rules once; ModelError when a model
        fails.

        A model of another language, which cannot read the English text of its call, is left as it is.
        """
        words("Warm.")  # loads spaCy
        job_result = self.run([_ask(call) for call in self.runtime.warm_calls(roles)], Options()).future.result()
        for outcome in job_result.outcomes:
            if isinstance(outcome, Failure) and outcome.status != "truncated":
                raise ModelError(f"Warming up failed: {outcome.message}")
        # Else Python looks at all objects during one of the first requests, which then waits a tenth of a second.
        gc.collect()


def _take_score(request: Request, plan: Plan, job: Job[Score]) -> Procedure[Score]:
    """The score of a worker process with the times of this one; without it, every metric has the same reason."""
    job_result: JobResult[Score] = yield job
    (outcome,) = job_result.outcomes
    if isinstance(outcome, Failure):
        results = [result_of(metric, outcome, "") for metric in plan.metrics]
        return make_unscored(outcome.status, outcome.message, plan, results, job_result.timings)
    timings = msgspec.structs.replace(job_result.timings, fold_ms=outcome.timings.fold_ms)
    return msgspec.structs.replace(outcome, timings=timings)


def _make_key(metrics: Any, options: Any) -> Key | None:
    """What a plan depends on, with the types of all values; None for arguments that only ``make_plan`` can refuse."""
    if metrics is not None and not isinstance(metrics, str | tuple | list):
        return None
    names = tuple(metrics) if isinstance(metrics, tuple | list) else metrics
    try:
        key = names, None if options is None else _encode(options), *map(id, METRICS.values())
        hash(key)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None
    return key


def _encode(options: Any) -> tuple[type, bytes]:
    return type(options), msgspec.msgpack.encode(options)


def count_tokens(requests: Sequence[Request], plan: Plan) -> int:
    """Return about how many tokens models read for the metrics of these requests."""
    options = plan.options
    spans = len(options.q2.spans or ())
    texts = [text for request in requests for text in (*_list_texts(request), *[request.response] * spans)]
    # Of the options, only the texts that may be as long as knowledge.
    texts += options.bertscore.idf_documents
    return estimate_tokens(texts, len(plan.metrics), options.q2.decoding)


def _list_texts(request: Request) -> Iterator[str]:
    yield request.response
    yield from request.knowledge
    yield from request.history
    for triple in request.triples:
        yield from (triple.subject, triple.predicate, triple.object)


def _take_result(call: Compute, index: int) -> Steps[Any]:
    """Ask a worker process for all metrics of a request, once for all of them, and return one outcome."""
    (computed,) = yield [call]
    return computed.outcomes[index]


def _ask(call: Call) -> Steps[bool]:
    yield [call]
    return True


def fold_outcomes(
    request: Request,
    outcomes: Sequence[MetricResult | Failure],
    timings: Timings,
    plan: Plan,
    *,
    is_sentence: bool = False,
    end: float | None = None,
) -> Score:
    """Return the score of ``request`` from one outcome per metric of the plan.

    A defect of the fold, or of a metric's record that it reads, ends no batch, file or stream: the score is ``failed``,
    its verdict ``unknown``, and the metrics keep their results; ``deadline`` after ``end``, of ``time.monotonic``.
    ``is_sentence``: the response was scored by itself and is a sentence of another. Metrics read the texts as they are
    shown; the score is about the texts as written.
    """
    read = ReadRequest.of(request).end_at(end)
    by_metric = zip(plan.metrics, outcomes, strict=True)
    results = tuple(result_of(metric, outcome, read.response) for metric, outcome in by_metric)
    try:
        build, started = build_sentence_score if is_sentence else build_score, time.monotonic()
        score = locate_in_original(build(read, results, timings, plan.criteria, plan.signature), read)
        fold_ms = (time.monotonic() - started) * 1000
        return msgspec.structs.replace(score, timings=msgspec.structs.replace(timings, fold_ms=fold_ms))
    except OutOfTime as error:
        return make_unscored("deadline", str(error), plan, results, timings)
    except Exception as error:
        return make_unscored("failed", explain_defect(FOLD, error).message, plan, results, timings)


def result_of(metric: Metric, outcome: MetricResult | Failure, response: str) -> MetricResult:
    """Return what a metric gave about a response; a metric without a result has a status that says why."""
    if isinstance(outcome, Failure):
        return MetricResult(metric.name, outcome.status, message=outcome.message)
    return metric.check(outcome, response)


def make_unscored(
    status: Status,
    message: str,
    plan: Plan,
    results: Sequence[MetricResult] = (),
    timings: Timings | None = None,
) -> Score:
    """Return a score without a value and a verdict, for a reason that ``message`` gives."""
    verdict = Verdict("unknown", profile=plan.criteria.basis.profile, message=message)
    by_name = {result.name: result for result in results}
    return Score(status, None, verdict, by_name, (), None, timings or Timings(0.0, {}), plan.signature, message)
