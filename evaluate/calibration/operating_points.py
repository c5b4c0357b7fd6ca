"""Fits a calibration: the fusions' weights, their operating points, and a scale for each metric.

Operating points are drawn from verdicts on folds that the fit has not seen (``profiles.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from groundwire.engine.verdict import REFUTING, decide_again, find_feature
from groundwire.metrics import find
from groundwire.monitor.shift import describe_distributions
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion, Profile, ProfileName, Scale
from groundwire.runtime.errors import InvalidRequest

from ..statistics.agreement import HALF
from ..statistics.estimates import best_balanced_threshold
from .fusion import (
    FusionModel,
    FusionOptions,
    LabelledFeatures,
    choose_features,
    fit_without_folds,
    labels_of,
    select_model,
    split_examples,
    tabulate_features,
)
from .profiles import HeldOutVerdicts, make_points

SMALLEST_WEIGHT = 1e-4
"""A feature with less counts nothing."""


class FittedFusion(NamedTuple):
    """A fusion, and the verdicts on left-out responses that its operating points are drawn from."""

    fusion: Fusion
    held_out: HeldOutVerdicts


def fit_calibration(
    examples: Sequence[LabelledFeatures],
    metrics: Sequence[str],
    options: FusionOptions | None = None,
    name: str | None = None,
) -> Calibration:
    """Everything a verdict needs, from labelled responses; as ``fit_fusions``."""
    options = options or FusionOptions()
    fitted = fit_fusions(examples, metrics, options, name)
    return build_calibration([of.fusion for of in fitted], examples, metrics, options)


def fit_fusions(
    examples: Sequence[LabelledFeatures], metrics: Sequence[str], options: FusionOptions, name: str | None = None
) -> list[FittedFusion]:
    """The fusions of labelled responses.

    ``metrics`` are the computed metrics; each fusion asks for the ones it reads, and for verifiability when it was
    among them. Besides ``full``, which may read all of them, ``fast`` is fitted to the metrics of that group, unless
    ``full`` reads no others. With ``name`` there is one fusion, of that name: the calibration of a bundle that loads
    beside another one (``runtime.bundles.calibration.join_calibrations``). InvalidRequest when a class has fewer than
    ``fusion.MIN_CLASS`` examples, or no feature is on enough examples or separates the classes.
    """
    full = fit_fusion(name or "full", examples, metrics, options)
    if full is None:
        raise InvalidRequest(
            f"No value of {', '.join(metrics)} is higher for consistent examples than for inconsistent ones; ask for "
            "other metrics, and check that label 1 is consistent."
        )
    fusions = [full]
    fast = [name for name in metrics if (metric := find(name)) is not None and "fast" in metric.groups]
    quick = [select_features(example, fast) for example in examples]
    wanted = tuple(
        name for name in options.features or choose_features(quick) if find_feature(name).metric.name in fast
    )
    if name is None and not set(full.fusion.metrics) <= set(fast) and wanted:
        fitted = fit_fusion("fast", quick, fast, replace(options, features=wanted))
        fusions += [fitted] if fitted is not None else []
    return fusions


def build_calibration(
    fusions: Sequence[Fusion], examples: Sequence[LabelledFeatures], metrics: Sequence[str], options: FusionOptions
) -> Calibration:
    """The calibration of fusions that were fitted to labelled responses."""
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
        return {name: value for name, value in features.items() if find_feature(name).metric.name in metrics}

    return example._replace(
        features=keep(example.features),
        sentences=tuple(map(keep, example.sentences)),
        results={name: result for name, result in example.results.items() if name in metrics},
    )


def fit_fusion(
    name: str, examples: Sequence[LabelledFeatures], metrics: Sequence[str], options: FusionOptions
) -> FittedFusion | None:
    """A fusion of the examples' features, and its operating points; None if no feature separates the classes."""
    model, penalty = select_model(examples, options)
    # Where weights are as good as equal, features that more examples have come first: they can be asked for.
    present = ~np.isnan(tabulate_features([e.features for e in examples], model.names))
    order = np.lexsort((-present.mean(0), -np.abs(model.weight).round(3)))
    used = [int(i) for i in order if abs(model.weight[i]) > SMALLEST_WEIGHT]
    if not used:
        return None
    needed = {*options.needed} & {*model.names} or {*_choose_needed(model, used)}
    fusion = _build_fusion(name, model, used, needed, metrics)
    fits = (
        (_build_fusion(name, without, _find_used(without), needed, fusion.metrics), test)
        for without, test in fit_without_folds(examples, model.names, penalty, options)
    )
    held_out = draw_verdicts(fits, examples, needed, options)
    return FittedFusion(draw_points(fusion, held_out, examples, options), held_out)


def _build_fusion(
    name: str, model: FusionModel, used: Sequence[int], needed: Collection[str], metrics: Sequence[str]
) -> Fusion:
    """The fusion of a model's features ``used``; it has no operating points yet."""
    features = tuple(
        Feature(
            name=model.names[i],
            mean=round(float(model.mean[i]), 6),
            deviation=round(float(model.deviation[i]), 6),
            weight=round(float(model.weight[i]), 6),
            needed=model.names[i] in needed,
            logit=find_feature(model.names[i]).number.is_probability,
        )
        for i in used
    )
    sources = {find_feature(feature.name).metric.name for feature in features}
    read = tuple(name for name in metrics if name in sources)
    checks = [name for name in metrics if name not in read and (_checks_verifiability(name) or _refutes(name))]
    return Fusion(
        name=name,
        metrics=(*read, *checks),
        intercept=round(model.intercept, 6),
        features=features,
        profiles={},
        whole=model.whole,
    )


def decide_kept(fusion: Fusion, examples: Sequence[LabelledFeatures], options: FusionOptions) -> HeldOutVerdicts:
    """The verdicts of a fusion on examples that it was not fitted to.

    Where the examples are few, the verdicts that its own operating points were drawn from count too.
    """
    needed = {feature.name for feature in fusion.features if feature.needed}
    asked = [select_features(example, fusion.metrics) for example in examples]
    fits = ((fusion, test) for _, test in split_examples(examples, options.seed))
    return draw_verdicts(fits, asked, needed, options)._replace(prior=fusion.held_out)


def draw_points(
    fusion: Fusion,
    held_out: HeldOutVerdicts,
    examples: Sequence[LabelledFeatures],
    options: FusionOptions,
    keep: Mapping[ProfileName, Profile] = MappingProxyType({}),
) -> Fusion:
    """The fusion with the operating points that left-out verdicts on the examples give.

    The profiles ``balanced`` and ``strict`` of ``keep`` stay where they are.
    """
    quantities = [
        {**example.quantities, "probability": float(probability)}
        for example, probability in zip(examples, held_out.probabilities, strict=True)
        if example.label and not np.isnan(probability)
    ]
    thresholds: dict[ProfileName, float] = {name: profile.threshold for name, profile in keep.items()}
    if options.balanced is not None:
        thresholds["balanced"] = options.balanced
    points = make_points(held_out, options.cost_of_missed, options.max_false_positive_rate, thresholds)
    return msgspec.structs.replace(fusion, **points._asdict(), distributions=describe_distributions(quantities))


def draw_verdicts(
    fits: Iterable[tuple[Fusion, NDArray[np.intp]]],
    examples: Sequence[LabelledFeatures],
    needed: Collection[str],
    options: FusionOptions,
) -> HeldOutVerdicts:
    """The verdicts that the engine draws by fusions, each on the rows of its fold, which it was not fitted to.

    ``needed`` are the features without which a row has no probability.
    """
    probabilities = np.full(len(examples), np.nan)
    unverifiable = np.zeros(len(examples), dtype=bool)
    folds = np.zeros(len(examples), dtype=np.int64)
    for fold, (fusion, test) in enumerate(fits):
        drawn = Calibration(fitted_on=(), rows=0, fusions=(fusion,), scales={}, verifiable=options.verifiable)
        folds[test] = fold
        for index in test:
            example = examples[index]
            # The threshold changes neither what is kept here of a verdict.
            verdict = decide_again(example.request, example.results, drawn, "balanced", threshold=HALF)[0]
            unverifiable[index] = verdict.label == "unverifiable"
            if verdict.probability is not None and set(needed) <= example.features.keys():
                probabilities[index] = verdict.probability
    sets = np.array([example.set for example in examples])
    parts = sets if len(set(sets)) > 1 else folds
    return HeldOutVerdicts(labels_of(examples) == 1, probabilities, unverifiable, parts, len(set(sets)))


def _find_used(model: FusionModel) -> list[int]:
    return [index for index, weight in enumerate(model.weight) if abs(weight) > SMALLEST_WEIGHT]


def _checks_verifiability(name: str) -> bool:
    metric = find(name)
    return metric is not None and metric.rates_verifiability


def _refutes(name: str) -> bool:
    return any(find_feature(feature).metric.name == name for feature in REFUTING)


def _choose_needed(model: FusionModel, order: Sequence[int]) -> tuple[str, ...]:
    """The first of ``order`` that make up half of the weight: less evidence than that gives no verdict."""
    shares = np.cumsum(np.abs(model.weight[list(order)])) / np.abs(model.weight).sum()
    return tuple(model.names[i] for i in order[: int(np.searchsorted(shares, 0.5)) + 1])


def _fit_scale(examples: Sequence[LabelledFeatures], metric: str) -> Scale | None:
    """The scale of a metric; None where its values do not separate the classes."""
    measured = [e for e in examples if metric in e.features]
    values, labels = np.array([e.features[metric] for e in measured]), labels_of(measured)
    best = best_balanced_threshold(values, labels == 1) if len(measured) else None
    if best is None:
        return None
    plain = Scale(low=float(values.min()), high=float(values.max()), threshold=0.0)
    threshold = plain.normalize(best)
    return Scale(low=round(plain.low, 6), high=round(plain.high, 6), threshold=round(threshold, 6))
