"""One metric against human labels: everything in ``MetricFigures``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_curve

from groundwire.engine.verdict import find_feature
from groundwire.metrics import find
from groundwire.monitor.records import Estimate

from ..scores.metric_values import VERDICT, MetricValues
from .estimates import Bools, Floats, areas, classification, pearson
from .human_labels import HumanLabels
from .results import ClassFigures, Curve, Decision, Histogram, MetricFigures, Reliability
from .system_level import simulate_systems

HISTOGRAM_BINS = 20
RELIABILITY_BINS = 10
CURVE_POINTS = 200
"""Points that a curve keeps of its corners, evenly spaced."""
HALF = 0.5
"""The fixed threshold of values from 0 to 1."""


class Threshold(NamedTuple):
    """The value that separates consistent from inconsistent responses.

    A fixed threshold has to be exceeded: of a value of 0.5 at the threshold 0.5 the Q² paper says inconsistent. A tuned
    threshold is itself the value of an example that counts as consistent (PMI-Faith, table 9).
    """

    value: float
    origin: str
    tuned_on: int | None = None
    """Examples that it was tuned on; None for a fixed threshold."""

    def call_consistent(self, values: Floats) -> Bools:
        """Return which values count as consistent; none that is NaN.

        Args:
            values: Values [examples].

        Returns:
            True [examples] where a value exceeds the threshold, or, if it was tuned, reaches it.
        """
        return np.asarray(values > self.value if self.tuned_on is None else values >= self.value)


def is_bounded(metric: str, values: Floats) -> bool:
    """Whether the metric's values go from 0 to 1, so that 0.5 can be a threshold.

    A metric that is not known here, such as a score column, is bounded where its ``values`` are.
    """
    record = find(metric)
    if record is not None:
        return record.bounds == (0.0, 1.0)
    known_values = values[np.isfinite(values)]
    return bool(((known_values >= 0) & (known_values <= 1)).all())


def is_probability(metric: str) -> bool:
    """Whether the metric's value claims to be the probability of "consistent"."""
    return metric == VERDICT or find_feature(metric).number.is_probability


def measure_agreement(
    metric: str,
    column: MetricValues,
    labels: HumanLabels,
    thresholds: Iterable[Threshold],
    parts: Mapping[str, Bools],
) -> MetricFigures:
    """The figures of one metric; ``parts`` are the examples [examples] of each source, system, …"""
    values = column.values
    labelled, graded = labels.select_labelled(values), labels.select_graded(values)
    known_values, consistent = values[labelled], labels.consistent[labelled]
    both = bool(labelled.any())
    sampled_areas = labels.samples.measure(areas(known_values, consistent), labelled) if both else (None, None, None)
    area, precision, consistent_precision = sampled_areas
    linear = labels.samples.measure(pearson(values[graded], labels.grades[graded]), graded) if graded.any() else None
    of_parts = {
        name: labels.estimate(labels.roc_auc(values, part), *labels.count_classes(part & labelled))
        for name, part in parts.items()
    }
    by_source = {name: figure for name, figure in of_parts.items() if figure is not None}
    return MetricFigures(
        metric=metric,
        examples=int(((labels.labelled | np.isfinite(labels.grades)) & np.isfinite(values)).sum()),
        statuses=column.statuses,
        roc_auc=labels.estimate(area, *labels.count_classes(labelled)),
        average_precision=labels.estimate(precision),
        average_precision_consistent=labels.estimate(consistent_precision),
        decisions=tuple(_decide(values, thresholds, labels, labelled)) if both else (),
        spearman=labels.estimate(labels.rank_correlation(values)),
        pearson=labels.estimate(linear),
        ranking=labels.estimate(labels.ranking(values), labels.pairs.contexts),
        system_level=simulate_systems(*labels.values_of_only_pairs(values), labels.repeats, labels.seed),
        roc=_trace_roc(known_values, consistent) if both else None,
        precision_recall=_trace_precision_recall(-known_values, ~consistent) if both else None,
        precision_recall_consistent=_trace_precision_recall(known_values, consistent) if both else None,
        histogram=_count_values(known_values, consistent, (0.0, 1.0) if is_bounded(metric, values) else None)
        if both
        else None,
        reliability=measure_reliability(known_values, consistent) if both and is_probability(metric) else None,
        brier=_measure_brier(values, labels, labelled) if both and is_probability(metric) else None,
        by_source=by_source,
        part_examples={name: int((labelled & parts[name]).sum()) for name in by_source},
    )


def _decide(
    values: Floats, thresholds: Iterable[Threshold], labels: HumanLabels, labelled: Bools
) -> Iterator[Decision]:
    for threshold in thresholds:
        called = threshold.call_consistent(values)
        statistic = classification(called[labelled], labels.consistent[labelled])
        right, wrong = labels.consistent, labels.inconsistent
        # What accuracy, precision and recall are shares of; balanced accuracy is a mean of two, and F1 is none.
        wholes = ((~called | called,), (right, wrong), (called,), (right,), (), (~called,), (wrong,), ())
        contexts = [[labels.count_contexts(labelled & whole) for whole in of_figure] for of_figure in wholes]
        sampled = labels.samples.measure(statistic, labelled)
        estimates = [labels.estimate(numbers, *counts) for numbers, counts in zip(sampled, contexts, strict=True)]
        defined = [figure for figure in estimates if figure is not None]
        if len(defined) < len(estimates):  # of a handful of examples, no sample had both classes
            continue
        accuracy, balanced, *classes = defined
        yield Decision(
            threshold=threshold.value,
            origin=threshold.origin,
            accuracy=accuracy,
            balanced_accuracy=balanced,
            consistent=ClassFigures(*classes[:3]),
            inconsistent=ClassFigures(*classes[3:]),
            tuned_on=threshold.tuned_on or 0,
        )


def _trace_roc(values: Floats, consistent: Bools) -> Curve:
    inconsistent_passed, consistent_passed, _ = roc_curve(consistent, values)
    return _thin_curve(inconsistent_passed, consistent_passed)


def _trace_precision_recall(values: Floats, wanted: Bools) -> Curve:
    """Precision by recall of the class ``wanted``, whose examples should have the highest values."""
    precision, recall, _ = precision_recall_curve(wanted, values)
    return _thin_curve(recall[::-1], precision[::-1])


def _thin_curve(x: Floats, y: Floats) -> Curve:
    """The corners, the first and the last among them, to five digits: what a plot can show."""
    indices = np.unique(np.linspace(0, len(x) - 1, CURVE_POINTS).round().astype(int))
    return Curve(tuple(np.round(x[indices], 5).tolist()), tuple(np.round(y[indices], 5).tolist()))


def _count_values(values: Floats, consistent: Bools, bounds: tuple[float, float] | None) -> Histogram:
    edges = np.histogram_bin_edges(values, HISTOGRAM_BINS, bounds)
    right, wrong = (np.histogram(values[part], edges)[0].tolist() for part in (consistent, ~consistent))
    return Histogram(tuple(edges.tolist()), tuple(right), tuple(wrong))


def _measure_brier(probabilities: Floats, labels: HumanLabels, labelled: Bools) -> Estimate | None:
    """Brier score (Brier 1950), with its interval."""
    squares = np.where(labelled, (probabilities - labels.consistent) ** 2, 0.0)
    return labels.share(squares, labelled)


def measure_reliability(probabilities: Floats, consistent: Bools) -> Reliability:
    """Predicted against observed in bins of equal width, and the expected calibration error (Naeini et al. 2015)."""
    bins = np.minimum((probabilities * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)
    counts = np.bincount(bins, minlength=RELIABILITY_BINS)
    filled = counts > 0
    counts = counts[filled]
    predicted = np.bincount(bins, probabilities, RELIABILITY_BINS)[filled] / counts
    observed = np.bincount(bins, consistent, RELIABILITY_BINS)[filled] / counts
    error = float((counts * np.abs(predicted - observed)).sum() / counts.sum())
    return Reliability(tuple(predicted.tolist()), tuple(observed.tolist()), tuple(counts.tolist()), error)
