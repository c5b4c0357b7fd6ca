"""What the last verdicts of a service say about its traffic, as gauges: the share that is inconsistent, and corrected.

Each worker counts its own last verdicts; shares are made of the sums when Prometheus asks, since shares do not add up.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from groundwire.engine import Verdict
from groundwire.monitor.prevalence import Interval, correct_share, count_errors, share
from groundwire.runtime.calibration import Calibration

RECENT = 1000
"""Verdicts of a worker that are counted."""
COUNTS = "groundwire_recent_verdicts"
LABELS = ("label", "fusion", "threshold")


class RecentVerdicts:
    """Counts the last verdicts in a gauge with ``LABELS``."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._recent: deque[tuple[str, str, str]] = deque()

    def add(self, verdict: Verdict) -> None:
        """Count a verdict, and forget the oldest of more than ``RECENT``."""
        has_threshold = verdict.threshold is not None and verdict.label in ("consistent", "inconsistent")
        key = (verdict.label, verdict.fusion, repr(verdict.threshold) if has_threshold else "")
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
        self._counts = Counter[tuple[str, str, str]]()
        for family in families:
            for sample in family.samples if family.name == COUNTS else ():
                key = (sample.labels["label"], sample.labels["fusion"], sample.labels["threshold"])
                self._counts[key] += int(sample.value)
        self._calibration = calibration

    def collect(self) -> Iterator[Metric]:
        """The shares, each as its value and its 95 % interval."""
        counts = {key: count for key, count in self._counts.items() if key[2] and count > 0}
        inconsistent = sum(count for (label, _, _), count in counts.items() if label == "inconsistent")
        total = sum(counts.values())
        if not total:
            return
        yield _make_family(
            "groundwire_inconsistent_share",
            "Share of the recent verdicts consistent and inconsistent that are inconsistent, with its 95 % interval.",
            share(inconsistent, total),
        )
        points = {(fusion, threshold) for _, fusion, threshold in counts}
        corrected = self._correct(inconsistent, total, *points.pop()) if len(points) == 1 else None
        if corrected is not None:
            yield _make_family(
                "groundwire_inconsistent_share_corrected",
                "The same, corrected for the error rates of the calibration.",
                corrected,
            )

    def _correct(self, inconsistent: int, total: int, fusion: str, threshold: str) -> Interval | None:
        if self._calibration is None:
            return None
        rates = count_errors(self._calibration, self._calibration.fusion(fusion), float(threshold))
        return None if rates is None else correct_share(inconsistent, total, rates)


def _make_family(name: str, text: str, interval: Interval) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["bound"])
    for bound, value in zip(("estimate", "low", "high"), interval, strict=True):
        family.add_metric([bound], value)
    return family
