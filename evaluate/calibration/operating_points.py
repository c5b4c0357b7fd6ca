"""Fits a calibration: the fusion's weights, the operating points of its profiles, and a scale for each metric.

Operating points are drawn from probabilities of folds that the fit has not seen, and so are the rates they state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from groundwire.engine.verdict.threshold import normalized
from groundwire.runtime.calibration import Calibration, Feature, Profile, ProfileName, Scale

from ..statistics.estimates import Floats, best_f1_threshold
from .fusion import (
    FusionModel,
    FusionOptions,
    LabelledFeatures,
    labels_of,
    predict_held_out,
    select_model,
    tabulate_features,
    weigh_examples,
)

STRICT_FALSE_NEGATIVE_RATE = 0.1
LENIENT_FALSE_POSITIVE_RATE = 0.05


def fit_calibration(
    examples: Sequence[LabelledFeatures], metrics: Sequence[str], options: FusionOptions | None = None
) -> Calibration:
    """Everything a verdict needs, from labelled responses.

    ``metrics`` are those that were computed; the calibration asks for the ones it reads, and for verifiability when it
    was among them. InvalidRequest when a class has fewer than ``fusion.MIN_CLASS`` examples, or no feature is on enough
    examples.
    """
    options = options or FusionOptions()
    model, penalty = select_model(examples, options)
    held_out = predict_held_out(examples, model.names, penalty, options.seed)
    # Of weights that are as good as equal, those of features that more examples have come first: they can be asked for.
    coverage = (~np.isnan(tabulate_features([e.features for e in examples], model.names))).mean(0)
    order = np.lexsort((-coverage, -np.abs(model.weight).round(3)))
    used = [int(i) for i in order if abs(model.weight[i]) > 1e-4]
    needed = options.needed or _choose_needed(model, used)
    features = tuple(
        Feature(
            name=model.names[i],
            mean=round(float(model.mean[i]), 6),
            deviation=round(float(model.deviation[i]), 6),
            weight=round(float(model.weight[i]), 6),
            needed=model.names[i] in needed,
        )
        for i in used
    )
    read = tuple(name for name in metrics if any(_is_feature_of(feature.name, name) for feature in features))
    checks = [name for name in metrics if name.endswith("verifiability")]
    return Calibration(
        fitted_on=tuple(dict.fromkeys(example.set for example in examples)),
        rows=len(examples),
        metrics=(*read, *checks),
        intercept=round(model.intercept, 6),
        features=features,
        profiles=choose_profiles(held_out, labels_of(examples), weigh_examples(examples)),
        scales={name: scale for name in metrics if (scale := _fit_scale(examples, name)) is not None},
        verifiable=options.verifiable if checks else None,
    )


def choose_profiles(probabilities: Floats, labels: Floats, weights: Floats) -> dict[ProfileName, Profile]:
    """Three operating points with the rates they have on these examples. Positive: a response is called inconsistent.

    ``balanced`` makes the larger of both rates smallest, ``strict`` has a false negative rate of at most a tenth,
    ``lenient`` a false positive rate of at most a twentieth.
    """
    order = np.unique(probabilities)
    candidates = np.concatenate([[0.0], (order[1:] + order[:-1]) / 2, [1.0]])
    wrong, right = labels == 0, labels == 1
    false_negative_rates = (
        np.array([weights[wrong & (probabilities >= c)].sum() for c in candidates]) / weights[wrong].sum()
    )
    false_positive_rates = (
        np.array([weights[right & (probabilities < c)].sum() for c in candidates]) / weights[right].sum()
    )
    # Of equal ones, the one with the smaller sum.
    balanced = int(
        np.argmin(
            np.maximum(false_negative_rates, false_positive_rates)
            + 1e-6 * (false_negative_rates + false_positive_rates)
        )
    )
    strict = max(balanced, int(np.argmax(false_negative_rates <= STRICT_FALSE_NEGATIVE_RATE)))
    lenient = min(balanced, int(np.flatnonzero(false_positive_rates <= LENIENT_FALSE_POSITIVE_RATE)[-1]))
    chosen: dict[ProfileName, int] = {"balanced": balanced, "strict": strict, "lenient": lenient}
    return {
        name: Profile(
            threshold=round(float(candidates[index]), 4),
            false_positive_rate=round(float(false_positive_rates[index]), 4),
            false_negative_rate=round(float(false_negative_rates[index]), 4),
        )
        for name, index in chosen.items()
    }


def _choose_needed(model: FusionModel, order: Sequence[int]) -> tuple[str, ...]:
    """The first of ``order`` that make up half of the weight: less evidence than that gives no verdict."""
    shares = np.cumsum(np.abs(model.weight[list(order)])) / np.abs(model.weight).sum()
    return tuple(model.names[i] for i in order[: int(np.searchsorted(shares, 0.5)) + 1])


def _is_feature_of(feature: str, metric: str) -> bool:
    return feature == metric or feature.startswith(f"{metric}.")


def _fit_scale(examples: Sequence[LabelledFeatures], metric: str) -> Scale | None:
    """The scale of a metric with different values and examples of both classes; else None."""
    kept = [e for e in examples if metric in e.features]
    values, labels = np.array([e.features[metric] for e in kept]), labels_of(kept)
    if len(set(labels)) < 2 or len(set(values)) < 2:
        return None
    plain = Scale(low=float(values.min()), high=float(values.max()), threshold=0.0)
    threshold = normalized(best_f1_threshold(values, labels == 1) or 0.0, plain)
    return Scale(low=round(plain.low, 6), high=round(plain.high, 6), threshold=round(threshold, 6))
