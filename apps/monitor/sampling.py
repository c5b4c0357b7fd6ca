"""Scores a share of a server's responses beside its work, and counts the verdicts."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType

from groundwire.engine import Engine, Options, Request, Score
from groundwire.engine.extend import Knowledge, Metrics, make_request
from groundwire.runtime.errors import InvalidRequest

from .prevalence import summarize_verdicts
from .records import Estimate, SampledTraffic


class Monitor:
    """Draws responses, scores them one after another on a thread of its own, and counts their verdicts.

    Make one with ``monitor``. Every method may be called from any thread.
    """

    def __init__(
        self,
        engine: Engine,
        rate: float,
        metrics: Metrics,
        options: Options | None,
        max_waiting: int,
        on_score: Callable[[Request, Score], None] | None,
    ) -> None:
        """Start the thread.

        Args:
            engine: As for ``monitor``, like all arguments.
            rate: Share of the responses.
            metrics: Names of metrics, or a group.
            options: Options of the requests.
            max_waiting: Responses that wait.
            on_score: Called with each score.

        Raises:
            InvalidRequest: As ``monitor`` raises it.
        """
        if not 0 < rate <= 1:
            raise InvalidRequest(f"rate is {rate}; pass the share of responses to score, above 0 and at most 1.")
        if max_waiting < 1:
            raise InvalidRequest(f"max_waiting is {max_waiting}; pass 1 or more.")
        self._engine, self._rate, self._on_score = engine, rate, on_score
        self._plan = engine.plan(metrics, options)
        self._waiting = queue.Queue[Request | None](max_waiting)
        self._lock = threading.Lock()
        self._is_closed = False
        self._counts: Counter[str] = Counter()
        self._verdicts: Counter[tuple[str, str, float | None]] = Counter()
        self._thread = threading.Thread(target=self._run, name="groundwire-monitor", daemon=True)
        self._thread.start()

    def add(self, response: str, knowledge: Knowledge, history: Sequence[str] = ()) -> bool:
        """Offer a response and return at once.

        The digest of the texts decides, as for ``groundwire report --rate``, so equal texts are all drawn or none.

        Args:
            response: The response.
            knowledge: One or several passages.
            history: Utterances before the response, oldest first.

        Returns:
            Whether it will be scored. It is not where it is not drawn, where the texts are not usable, and where
            ``max_waiting`` drawn responses wait already or the monitor is closed; all but the first are counted.
        """
        outcome = "offered"
        try:
            request = make_request(response, knowledge, history, self._plan.options)
            if is_drawn(request.digest(), self._rate):
                if self._is_closed:
                    raise queue.Full
                self._waiting.put_nowait(request)
                outcome = "drawn"
        except (InvalidRequest, queue.Full) as error:
            outcome = "invalid" if isinstance(error, InvalidRequest) else "dropped"
        with self._lock:
            self._counts.update({"offered", outcome})
        return outcome == "drawn"

    def summarize(self) -> SampledTraffic:
        """Return the counts and shares of the responses that have been scored so far."""
        with self._lock:
            counts, verdicts = self._counts.copy(), self._verdicts.copy()
        labels: Counter[str] = Counter()
        for (label, _, _), count in verdicts.items():
            labels[label] += count
        share, corrected = summarize_verdicts(verdicts, self._plan.calibration)
        return SampledTraffic(
            offered=counts["offered"],
            drawn=counts["drawn"],
            dropped=counts["dropped"],
            invalid=counts["invalid"],
            failed=counts["failed"],
            labels=dict(labels),
            share=share and Estimate(*share),
            corrected=corrected and Estimate(*corrected),
        )

    def close(self) -> None:
        """Score what waits, and end the thread; further responses are not scored."""
        if not self._is_closed:
            self._is_closed = True
            self._waiting.put(None)
            self._thread.join()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while (request := self._waiting.get()) is not None:
            try:
                score = self._engine.submit(request, self._plan).result()
                if self._on_score is not None:
                    self._on_score(request, score)
            except Exception:  # the engine is overloaded or closed, or on_score failed: the next one is scored
                with self._lock:
                    self._counts["failed"] += 1
                continue
            verdict = score.verdict
            with self._lock:
                self._verdicts[verdict.label, verdict.fusion, verdict.threshold] += 1


def monitor(
    engine: Engine,
    *,
    rate: float = 0.05,
    metrics: Metrics = "fast",
    options: Options | None = None,
    max_waiting: int = 100,
    on_score: Callable[[Request, Score], None] | None = None,
) -> Monitor:
    """Score a share of a busy server's responses beside its work.

    Args:
        engine: The engine, which may be the server's own.
        rate: Share, above 0 up to 1, of the responses that are drawn.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.
        max_waiting: Drawn responses that wait to be scored, at most; more are dropped and counted.
        on_score: Called on the monitor's thread with each request and its score, to write them down, say.

    Returns:
        A monitor. Close it, or use it as a context manager.

    Raises:
        InvalidRequest: An argument is out of range, or the bundle cannot compute the metrics.
    """
    return Monitor(engine, rate, metrics, options, max_waiting, on_score)


def is_drawn(digest: str, rate: float) -> bool:
    """Whether a request belongs to the share ``rate``, 0–1, of all requests; a higher rate keeps it.

    >>> [is_drawn("4000000000000000", rate) for rate in (0.2, 0.3, 1.0)]
    [False, True, True]
    """
    return int(digest, 16) < rate * float(16 ** len(digest))
