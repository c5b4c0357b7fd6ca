"""The fusion: one probability of "consistent" from the features of several metrics.

It is a logistic regression on standardized features whose weights may not have the wrong sign: more support in any
metric never lowers the probability. A penalty shrinks the weights towards each other, not to 0. That costs a little on
the fitted set and is what carries over to others, where a free regression learns a set's habits (how long
its inconsistent responses are, say): sums of standardized features with equal weights are known to predict as well as
fitted ones beyond the data they were fitted on (Dawes 1979). Every set counts the same, and within a set both classes
do. The strength of the penalty is the one with which left-out sets are ranked best; the common size of the weights is
then fitted again without a penalty, which makes the outputs probabilities.

The model reads features that speak for or against the *response*: a feature that also falls when the response leaves
out a part of the knowledge (F1, recall, BLEU) says nothing against it. Probabilities count as logits. ``docs/adr``, nr
23, has what each of this gains, and which features the embedded bundle's verdict reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold

from groundwire.engine import MetricResult, Request
from groundwire.engine.verdict import (
    REFUTING,
    SentenceWeights,
    find_feature,
    find_refutation,
    is_contradicted,
    reads_in_response,
)
from groundwire.runtime.bundles.calibration import Quantity, bounded_logit
from groundwire.runtime.errors import InvalidRequest

from ..statistics.estimates import Floats
from .profiles import MAX_FALSE_POSITIVE_RATE

PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Factors of the squared distances of the weights from their mean, relative to the mean log-loss; the last one makes
all weights equal."""
FOLDS = 5
MIN_SHARE = 0.6
"""Share of a set's examples that must have a feature for the model to read it; the others count as its mean."""
NESTED = 1000
"""Examples from which on the penalty hardly depends on a fold."""
MIN_CLASS = 20
"""Examples of each class that a fit needs."""
SMALLEST_PROBABILITY = 1e-12
"""A probability counts as this at least, so that its logit is finite."""


class LabelledFeatures(NamedTuple):
    """The label of a response and the features of its score (``groundwire.engine.verdict.fusion``)."""

    set: str
    group: str
    """Examples of one group (the same knowledge, say) stay in one fold."""
    label: int
    """1 consistent, 0 inconsistent."""
    features: Mapping[str, float]
    sentences: tuple[Mapping[str, float], ...] = ()
    """The features of each sentence (``features_of_part``) of a response of several; else empty."""
    quantities: Mapping[Quantity, float] = {}
    """How the response looks (``groundwire.monitor.shift.describe_texts``)."""
    digest: str = ""
    """``Example.digest``; empty for an example whose text is not known."""
    request: Request = Request("", ())
    results: Mapping[str, MetricResult] = {}
    """The results of metrics that the features are of: the verdict is drawn from them."""


@dataclass(frozen=True, slots=True)
class FusionOptions:
    """How to fit, by default as ``groundwire calibrate`` does."""

    features: tuple[str, ...] | None = None
    """Features to read; None takes all that are evidence (``MetricNumber.is_evidence``) and that enough examples have,
    or, where there are none, all that enough examples have."""
    penalties: tuple[float, ...] = PENALTIES
    needed: tuple[str, ...] = ()
    """Features without which the verdict is unknown; by default the largest in weight, which together have half of
    all weight."""
    verifiable: float | None = 0.5
    """Verifiability below which a response is called unverifiable, when that metric is read."""
    seed: int = 13
    cost_of_missed: float = 1.0
    """How many false positives a missed error costs, above 0, where consistent and inconsistent responses are equally
    frequent: what the threshold of ``balanced`` weighs. 1 gives the best balanced accuracy."""
    balanced: float | None = None
    """The threshold of ``balanced``, from 0 to 1, in place of the one that the examples give: labels stay near those of
    another calibration, and the rates say how often it errs."""
    max_false_positive_rate: float = MAX_FALSE_POSITIVE_RATE
    """What ``lenient`` promises: the share, above 0 and below 1, of consistent responses like the fitted ones that are
    called inconsistent at most."""
    whole: bool | None = None
    """Whether responses of several sentences are scored as a whole (``Fusion.whole``); by default where a feature is of
    a metric that reads sentences in their response (``Metric.reads_sentences``)."""

    @property
    def moves_thresholds(self) -> bool:
        """Whether the thresholds are drawn for another purpose than by default."""
        return (self.cost_of_missed, self.max_false_positive_rate) != (1.0, MAX_FALSE_POSITIVE_RATE)


@dataclass(frozen=True)
class FusionModel:
    """A linear model of standardized features."""

    names: tuple[str, ...]
    mean: Floats
    deviation: Floats
    weight: Floats
    intercept: float
    whole: bool = False
    """As ``Fusion.whole``."""

    def predict_probabilities(self, features: Sequence[Mapping[str, float]]) -> Floats:
        """Probability of "consistent" [N]; a missing feature counts as its mean."""
        return np.asarray(expit(self.predict_logits(features)))

    def predict_logits(self, features: Sequence[Mapping[str, float]]) -> Floats:
        """Logit of the probability [N]."""
        table = (tabulate_features(features, self.names) - self.mean) / self.deviation
        return np.asarray(np.nan_to_num(table) @ self.weight + self.intercept)

    def predict_responses(self, examples: Sequence[LabelledFeatures], verifiable: float | None) -> Floats:
        """Logit of the verdict's probability [N], as ``groundwire.engine.verdict.decision`` draws it.

        The worst sentence that states something decides, or the whole response where the sentences say too little; a
        refutation lowers the probability. A model of ``whole`` responses lets the response decide, and
        the sentences that a feature speaks against which counts nothing else.
        """
        wholes = [example.features for example in examples]
        logits = self._predict_refuted(wholes)
        parts = [self._find_stated(sentences, verifiable) for sentences in self._list_read(examples)]
        of_parts = iter(self._predict_refuted([numbers for stated in parts for numbers in stated]))
        for index, stated in enumerate(parts):
            decided = [next(of_parts) for _ in stated]
            if self.whole:
                opposed = [value for value, numbers in zip(decided, stated, strict=True) if self._opposes(numbers)]
                logits[index] = min([logits[index], *opposed])
            elif decided:
                logits[index] = min(decided)
        return logits

    def _list_read(self, examples: Sequence[LabelledFeatures]) -> list[Sequence[Mapping[str, float]]]:
        """The sentences of each example, with the features that the verdict on a sentence reads."""
        if not reads_in_response(self.names):
            return [example.sentences for example in examples]
        names = {name for example in examples for numbers in example.sentences for name in numbers}
        apart = {name for name in names if find_feature(name).metric.reads_sentences == "apart"}
        return [
            [{name: value for name, value in numbers.items() if name not in apart} for numbers in example.sentences]
            for example in examples
        ]

    def _opposes(self, numbers: Mapping[str, float]) -> bool:
        """Whether a feature that counts what speaks against a text, so that its mean is 0, counts something."""
        return any(numbers.get(name, 0) > 0 for name, mean in zip(self.names, self.mean, strict=True) if mean == 0)

    def _find_stated(
        self, sentences: Sequence[Mapping[str, float]], verifiable: float | None
    ) -> list[Mapping[str, float]]:
        """The sentences that state something; none where half of the weight has nothing to say about one of them."""
        stated = [
            numbers
            for numbers in sentences
            if verifiable is None
            or (rate := _find_verifiability(numbers)) is None
            or rate >= verifiable
            or find_refutation(numbers) is not None
            or is_contradicted(numbers)
        ]
        return stated if all(map(self._weights.suffice, stated)) else []

    @cached_property
    def _weights(self) -> SentenceWeights:
        return SentenceWeights.of(dict(zip(self.names, zip(self.weight, self.mean, strict=True), strict=True)))

    def _predict_refuted(self, features: Sequence[Mapping[str, float]]) -> Floats:
        if not features:
            return np.zeros(0)
        refutations = [find_refutation(numbers, self.names) for numbers in features]
        logits = self.predict_logits(features)
        for index, refutation in enumerate(refutations):
            if refutation is not None:
                logits[index] = logit(max(REFUTING[refutation] * expit(logits[index]), SMALLEST_PROBABILITY))
        return logits


Predict: TypeAlias = Callable[[Sequence[LabelledFeatures]], Floats]
"""The logits of the verdicts on responses [N]."""


def select_model(examples: Sequence[LabelledFeatures], options: FusionOptions) -> tuple[FusionModel, float]:
    """The model and its penalty: the one with which left-out sets, or folds of a single set, are ranked best.

    InvalidRequest when a class has fewer than ``MIN_CLASS`` examples, or no feature is on enough examples.
    """
    check_classes([example.label for example in examples], "have scores")
    names = options.features or choose_features(examples)
    absent = [name for name in names if not any(name in example.features for example in examples)]
    if absent:
        raise InvalidRequest(
            f"No example has the feature {', '.join(absent)}; there are "
            f"{', '.join(dict.fromkeys(name for example in examples for name in example.features))}."
        )
    if not names:
        raise InvalidRequest(f"No metric scored {MIN_SHARE:.0%} of the examples of every set; ask for other metrics.")
    penalty = _select_penalty(examples, names, options)
    return _fit_with(examples, names, penalty, options), penalty


def _select_penalty(examples: Sequence[LabelledFeatures], names: Sequence[str], options: FusionOptions) -> float:
    """The penalty with which what is left out is ranked best; of equally good ones the strongest."""
    parts = _split_left_out(examples, options.seed)
    areas = {
        penalty: np.mean([_measure_left_out(examples, part, names, penalty) for part in parts])
        for penalty in options.penalties
    }
    return max(penalty for penalty, area in areas.items() if area >= max(areas.values()))


def _fit_with(
    examples: Sequence[LabelledFeatures], names: Sequence[str], penalty: float, options: FusionOptions
) -> FusionModel:
    return rescale_model(fit_model(examples, names, penalty, options.whole), examples, options.verifiable)


def choose_features(examples: Sequence[LabelledFeatures]) -> tuple[str, ...]:
    """The features that the model reads when the caller names none."""
    names = dict.fromkeys(name for example in examples for name in example.features)
    sets = {example.set for example in examples}
    frequent = [
        name
        for name in names
        if find_feature(name).number.about == "support"
        and min(np.mean([name in e.features for e in examples if e.set == set_name]) for set_name in sets) >= MIN_SHARE
    ]
    evidence = tuple(name for name in frequent if find_feature(name).number.is_evidence)
    return evidence or tuple(frequent)


def _find_verifiability(numbers: Mapping[str, float]) -> float | None:
    """How verifiable the text of these features is, 0–1, for the classifier that finds most to verify; None without
    any."""
    rates = (value for name, value in numbers.items() if find_feature(name).number.rates_verifiability)
    return max(rates, default=None)


def rescale_model(
    model: FusionModel, examples: Sequence[LabelledFeatures], verifiable: float | None = None
) -> FusionModel:
    """``model`` with its weights times one factor and another intercept, both with the least loss, unpenalized.

    The loss counts verdicts on responses: the minimum over several sentences is lower than one of them, so an
    intercept that was fitted to whole responses would be too low.
    """
    logits = model.predict_responses(examples, verifiable)
    targets, weights = smooth_labels(labels_of(examples)), weigh_examples(examples)

    def loss(theta: Floats) -> tuple[float, Floats]:
        scaled = theta[0] * logits + theta[1]
        slope = weights * (expit(scaled) - targets)
        return float(weights @ (np.logaddexp(0, scaled) - targets * scaled)), np.array([slope @ logits, slope.sum()])

    optimum = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=[(0, 1000), (None, None)], method="L-BFGS-B")
    factor, shift = (float(parameter) for parameter in optimum.x)
    return replace(model, weight=model.weight * factor, intercept=model.intercept * factor + shift)


def fit_model(
    examples: Sequence[LabelledFeatures], names: Sequence[str], penalty: float, whole: bool | None = None
) -> FusionModel:
    """Logistic regression with weights of the right sign that are shrunk towards each other.

    ``penalty`` times the squared distances from their mean is added to the loss; for lower-is-better features, to its
    opposite.
    """
    table = tabulate_features([e.features for e in examples], names)
    targets, weights = smooth_labels(labels_of(examples)), weigh_examples(examples)
    present = ~np.isnan(table)
    share = np.where(present, weights[:, None], 0)
    mean = np.where(present, table, 0).T @ weights / np.maximum(share.sum(0), 1e-12)
    # A text without anything to count has 0 of what speaks against it.
    numbers = [find_feature(name).number for name in names]
    mean[[number.is_lower_better and not number.is_probability for number in numbers]] = 0
    spread = np.sqrt((np.where(present, table - mean, 0) ** 2 * share).sum(0) / np.maximum(share.sum(0), 1e-12))
    deviation = np.where(spread > 1e-9, spread, 1.0)
    upwards = np.array([-1.0 if number.is_lower_better else 1.0 for number in numbers])
    x = np.nan_to_num((table - mean) / deviation) * upwards

    def loss(theta: Floats) -> tuple[float, Floats]:
        logits = x @ theta[1:] + theta[0]
        slope = weights * (expit(logits) - targets)
        distance = theta[1:] - theta[1:].mean()
        value = weights @ (np.logaddexp(0, logits) - targets * logits) + penalty * distance @ distance
        return float(value), np.concatenate([[slope.sum()], x.T @ slope + 2 * penalty * distance])

    bounds = [(None, None), *[(0, 1000)] * len(names)]
    optimum = minimize(loss, np.zeros(len(names) + 1), jac=True, bounds=bounds, method="L-BFGS-B")
    whole = reads_in_response(names) if whole is None else whole
    return FusionModel(tuple(names), mean, deviation, upwards * optimum.x[1:], float(optimum.x[0]), whole)


def fit_without_folds(
    examples: Sequence[LabelledFeatures], names: Sequence[str], penalty: float, options: FusionOptions
) -> Iterator[tuple[FusionModel, NDArray[Any]]]:
    """For each fold, the model that is fitted without it, and the indices of its examples.

    ``penalty`` is that of all examples. Where these are fewer than ``NESTED`` it may owe much to the fold, so it is
    selected without it again.
    """
    for train, test in split_examples(examples, options.seed):
        fitted = [examples[i] for i in train]
        without = _select_penalty(fitted, names, options) if len(examples) < NESTED else penalty
        yield _fit_with(fitted, names, without, options), test


def leave_one_out(
    examples: Sequence[LabelledFeatures], families: Mapping[str, str], options: FusionOptions | None = None
) -> dict[str, Predict]:
    """For each set, a fusion fitted without any set of its family: what carries over from the others alone."""
    options = options or FusionOptions()
    models: dict[str, Predict] = {}
    for name in dict.fromkeys(example.set for example in examples):
        rest = [example for example in examples if families[example.set] != families[name]]
        models[name] = partial(select_model(rest, options)[0].predict_responses, verifiable=options.verifiable)
    return models


def tabulate_features(features: Sequence[Mapping[str, float]], names: Sequence[str]) -> Floats:
    """The features ``names`` of each response [responses, names], probabilities as logits; NaN where it lacks one."""
    reads = [(name, bounded_logit if find_feature(name).number.is_probability else float) for name in names]
    rows = [[read(values[name]) if name in values else np.nan for name, read in reads] for values in features]
    return np.array(rows, dtype=np.float64).reshape(len(features), len(names))


def labels_of(examples: Sequence[LabelledFeatures]) -> Floats:
    """1.0 for consistent, 0.0 for inconsistent [N]."""
    return np.array([example.label for example in examples], dtype=np.float64)


def smooth_labels(labels: Floats) -> Floats:
    """The labels [N] as probabilities: n of n examples of a class count as n + 1 of n + 2 (Platt 1999).

    A few examples in a perfect order are no certainty, and would want weights without a bound.
    """
    right, wrong = (labels == 1).sum(), (labels == 0).sum()
    return np.asarray(np.where(labels == 1, (right + 1) / (right + 2), 1 / (wrong + 2)))


def weigh_examples(examples: Sequence[LabelledFeatures]) -> Floats:
    """Weights [N] that add up to 1; every class of every set has the same share."""
    counts: dict[tuple[str, int], int] = {}
    for example in examples:
        counts[example.set, example.label] = counts.get((example.set, example.label), 0) + 1
    return np.array([1 / (counts[example.set, example.label] * len(counts)) for example in examples])


def _split_left_out(examples: Sequence[LabelledFeatures], seed: int) -> list[NDArray[np.int64]]:
    """The examples that are left out in turn: a set, or a fold when there is only one set."""
    names = list(dict.fromkeys(example.set for example in examples))
    if len(names) == 1:
        return [test for _, test in split_examples(examples, seed)]
    return [np.array([i for i, example in enumerate(examples) if example.set == name]) for name in names]


def split_examples(examples: Sequence[LabelledFeatures], seed: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """For each fold, the indices of the other examples and of its own.

    Every group is in one fold, unless that leaves fewer than ``FOLDS``, as where all examples are about one handbook.
    """
    strata = [f"{example.set}/{example.label}" for example in examples]
    groups = list_groups(examples)
    if len(set(groups)) < FOLDS:
        groups = [str(index) for index in range(len(examples))]
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(examples)), strata, groups))


def list_groups(examples: Sequence[LabelledFeatures]) -> list[str]:
    """The group of each example [N]; examples of two sets are in two."""
    return [f"{example.set}/{example.group}" for example in examples]


def _measure_left_out(
    examples: Sequence[LabelledFeatures], part: NDArray[np.int64], names: Sequence[str], penalty: float
) -> float:
    """ROC-AUC on ``part`` of a model fitted on the rest."""
    left_out = set(part.tolist())
    rest = [example for i, example in enumerate(examples) if i not in left_out]
    tests = [examples[i] for i in sorted(left_out)]
    if len(set(labels_of(tests))) < 2 or len(set(labels_of(rest))) < 2:
        return 0.5
    model = fit_model(rest, names, penalty)
    return float(roc_auc_score(labels_of(tests), model.predict_probabilities([e.features for e in tests])))


def check_classes(labels: Sequence[int | None], has: str = "are labelled") -> None:
    """Raise InvalidRequest when either label, 1 or 0, is on fewer than ``MIN_CLASS`` examples.

    ``has`` says what the counted examples have in common. Nothing needs to be scored for it.
    """
    counts = Counter(labels)
    if min(counts[0], counts[1]) < MIN_CLASS:
        raise InvalidRequest(
            f"{counts[1]} consistent and {counts[0]} inconsistent examples {has}; a calibration needs at least "
            f"{MIN_CLASS} of each. Label {max(0, MIN_CLASS - counts[1])} more consistent and "
            f"{max(0, MIN_CLASS - counts[0])} more inconsistent ones."
        )
