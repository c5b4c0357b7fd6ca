"""One metric against what people said: everything in ``MetricFigures``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_curve

from groundwire.engine.metrics import find
from groundwire.evaluate.scores.metric_values import FUSED, Column

from .estimates import Bools, Floats, areas, classification, estimate, pearson
from .human_labels import People
from .results import ClassFigures, Curve, Decision, Estimate, Histogram, MetricFigures, Reliability
from .system_level import system_level

HISTOGRAM_BINS = 20
RELIABILITY_BINS = 10
CURVE_POINTS = 200
"""A curve keeps so many of its corners, evenly spaced."""


class Threshold(NamedTuple):
    """Where a metric's values are cut."""

    value: float
    origin: str
    tuned_on: int = 0


def bounded(metric: str) -> bool:
    """Whether the metric's values go from 0 to 1, so that 0.5 can be a threshold."""
    known = find(metric)
    return known is None or known.bounds == (0.0, 1.0)


def probability(metric: str) -> bool:
    """Whether the metric's value claims to be the probability of "consistent"."""
    return metric == FUSED or metric.startswith("detector.")


def agreement(
    metric: str, column: Column, people: People, thresholds: Iterable[Threshold], parts: Mapping[str, Bools]
) -> MetricFigures:
    """The figures of one metric; ``parts`` are the rows [rows] of each source and system."""
    values = column.values
    known, graded = people.known(values), people.graded(values)
    seen, truth = values[known], people.consistent[known]
    both = bool(known.any())
    area, precision = people.samples.measure(areas(seen, truth), known) if both else (None, None)
    linear = people.samples.measure(pearson(values[graded], people.grades[graded]), graded) if graded.any() else None
    by_part = {name: _estimated(people.auc(values, part)) for name, part in parts.items()}
    return MetricFigures(
        metric=metric,
        rows=int(((people.labelled | np.isfinite(people.grades)) & np.isfinite(values)).sum()),
        statuses=column.statuses,
        roc_auc=_estimated(area),
        average_precision=_estimated(precision),
        decisions=tuple(_decisions(values, thresholds, people, known)) if both else (),
        spearman=_estimated(people.rank_correlation(values)),
        pearson=_estimated(linear),
        ranking=_estimated(people.ranking(values)),
        systems=system_level(*people.duels(values), people.repeats, people.seed),
        roc=_roc(seen, truth) if both else None,
        precision_recall=_precision_recall(seen, truth) if both else None,
        histogram=_histogram(seen, truth, (0.0, 1.0) if bounded(metric) else None) if both else None,
        reliability=reliability(seen, truth) if both and probability(metric) else None,
        by_source={name: one for name, one in by_part.items() if one is not None},
    )


def _estimated(numbers: Floats | None) -> Estimate | None:
    return None if numbers is None else estimate(numbers)


def _decisions(values: Floats, thresholds: Iterable[Threshold], people: People, known: Bools) -> Iterator[Decision]:
    for one in thresholds:
        statistic = classification(values[known] >= one.value, people.consistent[known])
        figures = [estimate(row) for row in people.samples.measure(statistic, known)]
        whole = [figure for figure in figures if figure is not None]
        if len(whole) < len(figures):  # of a handful of rows, no sample had both classes
            continue
        accuracy, balanced, *classes = whole
        yield Decision(
            threshold=one.value,
            origin=one.origin,
            accuracy=accuracy,
            balanced_accuracy=balanced,
            consistent=ClassFigures(*classes[:3]),
            inconsistent=ClassFigures(*classes[3:]),
            tuned_on=one.tuned_on,
        )


def _roc(values: Floats, consistent: Bools) -> Curve:
    false, true, _ = roc_curve(consistent, values)
    return _curve(false, true)


def _precision_recall(values: Floats, consistent: Bools) -> Curve:
    precision, recall, _ = precision_recall_curve(~consistent, -values)
    return _curve(recall[::-1], precision[::-1])


def _curve(x: Floats, y: Floats) -> Curve:
    """The corners, the first and the last among them, to five digits: what a plot can show."""
    kept = np.unique(np.linspace(0, len(x) - 1, CURVE_POINTS).round().astype(int))
    return Curve(tuple(np.round(x[kept], 5).tolist()), tuple(np.round(y[kept], 5).tolist()))


def _histogram(values: Floats, consistent: Bools, bounds: tuple[float, float] | None) -> Histogram:
    edges = np.histogram_bin_edges(values, HISTOGRAM_BINS, bounds)
    right, wrong = (np.histogram(values[part], edges)[0].tolist() for part in (consistent, ~consistent))
    return Histogram(tuple(edges.tolist()), tuple(right), tuple(wrong))


def reliability(probabilities: Floats, consistent: Bools) -> Reliability:
    """Predicted against observed in bins of equal width, and the expected calibration error (Naeini et al. 2015)."""
    bins = np.minimum((probabilities * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)
    rows = np.bincount(bins, minlength=RELIABILITY_BINS)
    filled = rows > 0
    rows = rows[filled]
    predicted = np.bincount(bins, probabilities, RELIABILITY_BINS)[filled] / rows
    observed = np.bincount(bins, consistent, RELIABILITY_BINS)[filled] / rows
    error = float((rows * np.abs(predicted - observed)).sum() / rows.sum())
    return Reliability(tuple(predicted.tolist()), tuple(observed.tolist()), tuple(rows.tolist()), error)
