"""Fits a calibration: the fusions' weights, the operating points of their profiles, and a scale for each metric.

Operating points are drawn from probabilities of folds that the fit has not seen, and so are the rates they state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from msgspec import UNSET

from groundwire.engine.extend import REFUTING, find_threshold, is_probability, name_metric, normalized, smallest_level
from groundwire.metrics import find
from groundwire.monitor.shift import describe_distributions
from groundwire.runtime.bundles.calibration import (
    Calibration,
    Feature,
    Fusion,
    HeldOut,
    OrderStatistics,
    Profile,
    ProfileName,
    Scale,
)
from groundwire.runtime.errors import InvalidRequest

from ..statistics.estimates import Bools, Floats, best_f1_threshold
from .fusion import (
    FusionModel,
    FusionOptions,
    LabelledFeatures,
    choose_features,
    labels_of,
    predict_held_out,
    select_model,
    tabulate_features,
)

MAX_FALSE_POSITIVE_RATES: dict[ProfileName, float] = {"balanced": 0.15, "strict": 0.3, "lenient": 0.05}
"""What the profiles promise (docs/adr, nr 24)."""
MAX_ORDER_STATISTICS = 1000
"""Probabilities of each class that a calibration keeps."""
PRECISION = 1e6
"""Kept probabilities are multiples of its inverse."""


def fit_calibration(
    examples: Sequence[LabelledFeatures],
    metrics: Sequence[str],
    options: FusionOptions | None = None,
    name: str | None = None,
) -> Calibration:
    """Everything a verdict needs, from labelled responses.

    ``metrics`` are the computed metrics; each fusion asks for the ones it reads, and for verifiability when it was
    among them. Besides ``full``, which may read all of them, ``fast`` is fitted to the metrics of that group, unless
    ``full`` reads no others. With ``name`` there is one fusion, of that name: the calibration of a bundle that loads
    beside another one (``runtime.bundles.calibration.join_calibrations``). InvalidRequest when a class has fewer than
    ``fusion.MIN_CLASS`` examples, or no feature is on enough examples or separates the classes.
    """
    options = options or FusionOptions()
    full = fit_fusion(name or "full", examples, metrics, options)
    if full is None:
        raise InvalidRequest(
            f"No value of {', '.join(metrics)} is higher for consistent examples than for inconsistent ones; ask for "
            "other metrics, and check that label 1 is consistent."
        )
    fusions = [full]
    fast = [name for name in metrics if (metric := find(name)) is not None and "fast" in metric.groups]
    quick = [select_features(example, fast) for example in examples]
    wanted = tuple(name for name in options.features or choose_features(quick) if name_metric(name) in fast)
    if name is None and not set(full.metrics) <= set(fast) and wanted:
        fitted = fit_fusion("fast", quick, fast, replace(options, features=wanted))
        fusions += [fitted] if fitted is not None else []
    checks = any(map(_checks_verifiability, metrics))
    return Calibration(
        fitted_on=tuple(dict.fromkeys(example.set for example in examples)),
        rows=len(examples),
        row_digests=tuple(sorted({example.digest for example in examples if example.digest})) or UNSET,
        fusions=tuple(fusions),
        scales={name: scale for name in metrics if (scale := _fit_scale(examples, name)) is not None},
        verifiable=options.verifiable if checks else None,
    )


def select_features(example: LabelledFeatures, metrics: Sequence[str]) -> LabelledFeatures:
    """The example with the features of these metrics alone."""

    def keep(features: Mapping[str, float]) -> dict[str, float]:
        return {name: value for name, value in features.items() if name_metric(name) in metrics}

    return example._replace(features=keep(example.features), sentences=tuple(map(keep, example.sentences)))


def fit_fusion(
    name: str, examples: Sequence[LabelledFeatures], metrics: Sequence[str], options: FusionOptions
) -> Fusion | None:
    """A fusion of the examples' features, and its operating points; None if no feature separates the classes."""
    model, penalty = select_model(examples, options)
    held_out = predict_held_out(examples, model.names, penalty, options)
    # Where weights are as good as equal, features that more examples have come first: they can be asked for.
    present = ~np.isnan(tabulate_features([e.features for e in examples], model.names))
    order = np.lexsort((-present.mean(0), -np.abs(model.weight).round(3)))
    used = [int(i) for i in order if abs(model.weight[i]) > 1e-4]
    if not used:
        return None
    needed = {*options.needed} & {*model.names} or {*_choose_needed(model, used)}
    features = tuple(
        Feature(
            name=model.names[i],
            mean=round(float(model.mean[i]), 6),
            deviation=round(float(model.deviation[i]), 6),
            weight=round(float(model.weight[i]), 6),
            needed=model.names[i] in needed,
            logit=is_probability(model.names[i]),
        )
        for i in used
    )
    read = tuple(name for name in metrics if any(name_metric(feature.name) == name for feature in features))
    checks = [name for name in metrics if name not in read and (_checks_verifiability(name) or _refutes(name))]
    # A response without a needed feature gets no probability, so it says nothing about responses that have one.
    decided: Bools = np.asarray(present[:, [i for i in used if model.names[i] in needed]].all(1), dtype=bool)
    consistent = np.asarray(labels_of(examples) == 1)
    record = HeldOut(
        consistent=keep_order_statistics(held_out[decided & consistent]),
        inconsistent=keep_order_statistics(held_out[decided & ~consistent]),
    )
    quantities = [
        {**example.quantities, "probability": float(probability)}
        for example, probability, counts in zip(examples, held_out, decided & consistent, strict=True)
        if counts
    ]
    return Fusion(
        name=name,
        metrics=(*read, *checks),
        intercept=round(model.intercept, 6),
        features=features,
        profiles={
            profile: make_profile(record, held_out[decided], consistent[decided], level)
            for profile, level in MAX_FALSE_POSITIVE_RATES.items()
        },
        whole=model.whole,
        held_out=record,
        distributions=describe_distributions(quantities),
    )


def _checks_verifiability(name: str) -> bool:
    metric = find(name)
    return metric is not None and metric.rates_verifiability


def _refutes(name: str) -> bool:
    return any(name_metric(feature) == name for feature in REFUTING)


def keep_order_statistics(probabilities: Floats) -> OrderStatistics:
    """At most ``MAX_ORDER_STATISTICS`` of the probabilities [N], evenly spread over their ranks and rounded down."""
    count = len(probabilities)
    stored = min(count, MAX_ORDER_STATISTICS)
    ranks = np.arange(1, stored + 1) * count // max(stored, 1)
    values = np.sort(probabilities)[ranks - 1]
    return OrderStatistics(count=count, values=tuple(math.floor(value * PRECISION) / PRECISION for value in values))


def make_profile(record: HeldOut, probabilities: Floats, consistent: Bools, level: float) -> Profile:
    """The threshold that promises ``level``, with its rates on these held-out examples; 0, which calls nothing
    inconsistent, if they are too few for the promise."""
    possible = level >= smallest_level(record.consistent)
    threshold = find_threshold(record, level) if possible else 0.0
    positive = probabilities < threshold
    return Profile(
        threshold=threshold,
        max_false_positive_rate=level,
        false_positive_rate=round(float(positive[consistent].mean()), 4) if consistent.any() else 0.0,
        false_negative_rate=round(float((~positive)[~consistent].mean()), 4) if not consistent.all() else 1.0,
    )


def _choose_needed(model: FusionModel, order: Sequence[int]) -> tuple[str, ...]:
    """The first of ``order`` that make up half of the weight: less evidence than that gives no verdict."""
    shares = np.cumsum(np.abs(model.weight[list(order)])) / np.abs(model.weight).sum()
    return tuple(model.names[i] for i in order[: int(np.searchsorted(shares, 0.5)) + 1])


def _fit_scale(examples: Sequence[LabelledFeatures], metric: str) -> Scale | None:
    """The scale of a metric with different values and examples of both classes; else None."""
    measured = [e for e in examples if metric in e.features]
    values, labels = np.array([e.features[metric] for e in measured]), labels_of(measured)
    if len(set(labels)) < 2 or len(set(values)) < 2:
        return None
    plain = Scale(low=float(values.min()), high=float(values.max()), threshold=0.0)
    threshold = normalized(best_f1_threshold(values, labels == 1) or 0.0, plain)
    return Scale(low=round(plain.low, 6), high=round(plain.high, 6), threshold=round(threshold, 6))
