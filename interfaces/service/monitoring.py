"""What Prometheus reads: the numbers of one service, and what its last verdicts say about its traffic.

Each worker counts its own last verdicts; the share that is inconsistent, and corrected, is made of their sums when
Prometheus asks, since shares do not add up.
"""

from __future__ import annotations

import collections
from collections import deque
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from groundwire.engine import EngineStatistics, MetricResult, Score, Verdict
from groundwire.engine.schema.results import Timings
from groundwire.monitor.prevalence import Interval, summarize_verdicts
from groundwire.runtime.bundles.calibration import Calibration

RECENT = 1000
"""Verdicts that are counted."""
COUNTS = "groundwire_recent_verdicts"
LABELS = ("label", "fusion", "threshold")
OWN = "own"
"""Threshold of the verdicts whose request chose it itself, or by a rate: there are thousands."""
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
CALLS = (1, 2, 4, 8, 16, 32, 64, 128)


class Monitoring:
    """Counts requests, verdicts and times. ``docs/guides/serving.md`` lists the names."""

    def __init__(self, calibration: Calibration | None = None) -> None:
        """Verdicts are drawn with ``calibration``: its errors correct their share."""
        self._calibration = calibration
        self._registry = registry = CollectorRegistry()

        def count(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"groundwire_{name}", text, labels, registry=registry)

        def time(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(f"groundwire_{name}", text, labels, registry=registry, buckets=SECONDS)

        def show(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"groundwire_{name}", text, labels, registry=registry)

        self.requests = count("requests", "Requests that were answered, by path and HTTP status.", "route", "status")
        self.request_seconds = time("request_duration_seconds", "Time from arrival to answer.", "route")
        self.queue_seconds = time("queue_duration_seconds", "Time before the engine began with a request.")
        self.stage_seconds = time("stage_duration_seconds", "Run time of the batches of a request, by role.", "role")
        self.batch_seconds = time("batch_duration_seconds", "Run time of a batch, by role.", "role")
        self.batch_size = Histogram(
            "groundwire_batch_size", "Calls in a batch, by role.", ("role",), registry=registry, buckets=CALLS
        )
        self.queue_size = show("queue_size", "Requests that are accepted and not finished.")
        self.queue_tokens = show("queue_tokens", "Estimated tokens of the requests that are not finished.")
        self.active = show("active_requests", "Requests that the engine works on; the others of the queue wait.")
        self.processes = show("processes", "Processes that compute: fewer while an ended process is replaced.")
        self.configured = show("configured_processes", "Processes that the server was started with.")
        self._restarts = count("process_restarts", "Worker processes that were started in place of others.")
        self.waiting_calls = show("waiting_calls", "Model calls that wait for a batch.")
        self.streams = show("streams", "Responses that are being checked while they are written.")
        self.ready = show("ready", "1 while the server is ready for requests, as far as /readyz knows; else 0.")
        self.verdicts = count("verdicts", "Verdicts, by label and profile.", "label", "profile")
        self._recent = RecentVerdicts(show("recent_verdicts", "The last 1,000 verdicts.", *LABELS))
        self.results = count("metric_results", "Results of metrics, by status.", "metric", "status")
        self.not_checked = count("not_checked", "Parts of answers that were not checked.", "part", "reason")
        self.refusals = count("refusals", "Requests, and lines of them, without a result.", "route", "code")
        self.open_connections = show("open_connections", "Connections of clients, WebSockets among them.")
        self.loop_lag_seconds = time("loop_lag_seconds", "Delay of the event loop, on which /healthz is answered.")
        self.fold_seconds = time("fold_duration_seconds", "Time in which scores are drawn from results.")
        self._cpu_seconds = count("cpu_seconds", "Processor time of the processes, by part.", "part")
        self.resident_bytes = show("resident_bytes", "Resident memory of the processes, by part.", "part")
        self.descriptors = show("file_descriptors", "Open file descriptors of the processes, by part.", "part")
        self.max_descriptors = show("max_file_descriptors", "File descriptors that a process may have.")
        self.connections_closed = count(
            "connections_closed", "Connections that the server has closed, by reason.", "reason"
        )
        self._cache_hits = count("cache_hits", "Model calls that were answered from the cache.")
        self._cache_misses = count("cache_misses", "Model calls that were run.")
        self.captured_shapes = show("captured_shapes", "Shapes of batches that a GPU runs as one captured graph.")
        self._uncaptured_runs = count("uncaptured_runs", "Runs on a GPU that were launched kernel by kernel.")
        self._failed_captures = count("failed_captures", "Captures of graphs on a GPU that failed.")
        self._totals = collections.defaultdict[Counter, float](float)

    def add_score(self, score: Score) -> None:
        """Count a score: its verdict, its metrics, and where its time went."""
        verdict = score.verdict
        self.verdicts.labels(verdict.label, verdict.profile or "rate").inc()
        self._recent.add(verdict)
        for result in score.metrics.values():
            self.add_result(result)
        self.add_timings(score.timings)

    def add_result(self, result: MetricResult) -> None:
        """Count the result of one metric."""
        self.results.labels(result.name, result.status).inc()

    def add_timings(self, timings: Timings) -> None:
        """Count where the time of a request went."""
        self.queue_seconds.observe(timings.queued_ms / 1000)
        self.fold_seconds.observe(timings.fold_ms / 1000)
        for role, ms in timings.stages_ms.items():
            self.stage_seconds.labels(role).observe(ms / 1000)

    def add_batch(self, role: str, calls: int, ms: float) -> None:
        """Count a batch of the engine's; from any thread."""
        self.batch_size.labels(role).observe(calls)
        self.batch_seconds.labels(role).observe(ms / 1000)

    def update_engine(self, statistics: EngineStatistics) -> None:
        """Show what the engine does, and add what it has counted since the last call; what is older adds nothing."""
        self.queue_size.set(statistics.unfinished)
        self.queue_tokens.set(statistics.unfinished_tokens)
        self.active.set(statistics.active)
        self.processes.set(statistics.processes)
        self.configured.set(statistics.configured_processes)
        self.waiting_calls.set(sum(statistics.waiting_calls.values()))
        self.captured_shapes.set(statistics.captures.captured)
        self._add_growing(self._cache_hits, statistics.cache_hits)
        self._add_growing(self._cache_misses, statistics.cache_misses)
        self._add_growing(self._restarts, statistics.restarts)
        self._add_resettable(self._uncaptured_runs, statistics.captures.uncaptured)
        self._add_resettable(self._failed_captures, statistics.captures.failed)

    def update_usage(self, part: str, cpu_seconds: float, resident_bytes: int, descriptors: int) -> None:
        """Show what a part of the server uses: ``server``, its own process, or ``workers``, all worker processes."""
        self._add_resettable(self._cpu_seconds.labels(part), cpu_seconds)
        self.resident_bytes.labels(part).set(resident_bytes)
        self.descriptors.labels(part).set(descriptors)

    def _add_growing(self, counter: Counter, total: int) -> None:
        """Add what is new in a total that only grows: a lower one is older."""
        counter.inc(max(total - self._totals[counter], 0))
        self._totals[counter] = max(total, self._totals[counter])

    def _add_resettable(self, counter: Counter, total: float) -> None:
        """Add what is new in a total of all processes, which is less than before where one was replaced."""
        counter.inc(max(total - self._totals[counter], 0))
        self._totals[counter] = total

    def render(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self._registry) + render_shares(self._registry, self._calibration)


class RecentVerdicts:
    """Counts the last verdicts in a gauge with ``LABELS``."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._recent: deque[tuple[str, str, str]] = deque()

    def add(self, verdict: Verdict) -> None:
        """Count a verdict, and forget the oldest of more than ``RECENT``."""
        has_threshold = verdict.threshold is not None and verdict.label in ("consistent", "inconsistent")
        threshold = OWN if verdict.profile is None else repr(verdict.threshold)
        key = (verdict.label, verdict.fusion, threshold if has_threshold else "")
        self._recent.append(key)
        self._gauge.labels(*key).inc()
        if len(self._recent) > RECENT:
            self._gauge.labels(*self._recent.popleft()).dec()


def render_shares(registry: CollectorRegistry, calibration: Calibration | None) -> bytes:
    """The shares of the verdicts that ``registry`` has counted, in Prometheus' text format; empty without any.

    Corrected is the share of the verdicts by one fusion at one threshold, whose errors the calibration knows
    (``engine.prevalence``); with several of them there is none.
    """
    shares = CollectorRegistry()
    shares.register(_Shares(list(registry.collect()), calibration))
    return generate_latest(shares)


class _Shares(Collector):
    def __init__(self, families: Iterable[Metric], calibration: Calibration | None) -> None:
        self._counts = collections.Counter[tuple[str, str, float | None]]()
        for family in families:
            for sample in family.samples if family.name == COUNTS else ():
                label, fusion, threshold = (sample.labels[name] for name in LABELS)
                bound = None if threshold in ("", OWN) else float(threshold)
                self._counts[label, fusion, bound] += int(sample.value)
        self._calibration = calibration

    def collect(self) -> Iterator[Metric]:
        """The shares, each as its value and its 95 % interval."""
        called, corrected = summarize_verdicts(self._counts, self._calibration)
        if called is not None:
            yield _make_family(
                "groundwire_inconsistent_share",
                "Share of the recent verdicts consistent and inconsistent that are inconsistent, with its interval.",
                called,
            )
        if corrected is not None:
            yield _make_family(
                "groundwire_inconsistent_share_corrected",
                "The same, corrected for the error rates of the calibration.",
                corrected,
            )


def _make_family(name: str, text: str, interval: Interval) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["bound"])
    for bound, value in zip(("estimate", "low", "high"), interval, strict=True):
        family.add_metric([bound], value)
    return family
