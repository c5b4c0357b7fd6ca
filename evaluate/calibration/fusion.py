"""Fits what a verdict needs: how much each metric counts, and where to draw the line.

The fusion is a logistic regression on standardized numbers whose weights may not have the wrong sign: more support in
any metric never lowers the probability. And a penalty draws them to one another, not to 0. That costs a little on the
set it was fitted on and is what carries over to others, where a free regression learns a set's habits (how long its
wrong responses are, say): sums of standardized numbers with equal weights are known to predict as well as fitted ones
beyond the rows they were fitted on (Dawes 1979). Every set counts the same, and within a set both classes do. The
strength of the penalty is the one with which sets that were left out are ranked best; the common size of the weights is
fitted anew, which makes probabilities of them.

It reads what speaks for the *response*: numbers that also fall when the response leaves out a part of the knowledge
(F1, recall, BLEU) say nothing against it. Measured on the development sets of the embedded bundle, each left out in
turn, mean ROC-AUC: 0.825 with all 25 numbers, 0.845 with these; with weights drawn to 0 instead of one another 0.803.

Operating points are drawn from probabilities of folds that the fit has not seen, and so are the rates they state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold

from groundwire.engine.verdict.decision import normalized
from groundwire.evaluate.statistics.estimates import best_f1_threshold
from groundwire.runtime.calibration import Calibration, Feature, Profile, ProfileName, Scale
from groundwire.runtime.errors import InvalidRequest

Floats = NDArray[np.float64]

NO_EVIDENCE = ("verifiability", ".asked")
"""Endings of the numbers that say how much there is to check, and not whether it holds."""
LOWER_IS_BETTER = (".no_answer", ".contradiction", ".missing")
"""Endings of the numbers that grow with what is wrong."""
EVIDENCE = (
    *(
        "q2",
        "q2.no_answer",
        "nli.expected",
        "nli.worst",
        "overlap_precision",
        "overlap.missing",
        "pmi",
        "token_classifier",
    ),
    *("bertscore.precision", "bertscore.worst"),
)
"""Numbers that speak for or against the response, each once: twins (Q² without inference, UPMI) are left to a caller's
choice. Those of detectors belong to them too."""
DETECTOR = "detector."
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Of the squared distances of the weights from their mean, relative to the mean log-loss; the last leaves none."""
FOLDS = 5
KNOTS = 24
"""Of a scale, at most."""
MIN_SHARE = 0.6
"""Of a set's rows that must have a number for it to be read; the others count as its mean."""
MIN_CLASS = 20
"""Rows of each class that a fit needs."""
STRICT_MISSES = 0.1
LENIENT_ALARMS = 0.05


class Example(NamedTuple):
    """A labelled response and the numbers that ``groundwire.engine.verdict.features`` finds in its score."""

    set: str
    group: str
    """Rows of one group (the same knowledge, say) stay in one fold."""
    label: int
    """1 consistent, 0 inconsistent."""
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a caller may settle; the defaults are what ``groundwire calibrate`` uses."""

    features: tuple[str, ...] | None = None
    """Numbers to read; None takes those of ``EVIDENCE`` and of detectors that enough rows have, or all that they have
    where there are none of these."""
    penalties: tuple[float, ...] = PENALTIES
    needed: tuple[str, ...] = ()
    """Numbers without which there is no verdict; by default the weightiest, which together have half of all weight."""
    verifiable: float | None = 0.5
    """Verifiability below which a response is called unverifiable, when that metric is read."""
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Fitted:
    """A linear model in standardized numbers."""

    names: tuple[str, ...]
    mean: Floats
    deviation: Floats
    weight: Floats
    intercept: float

    def probabilities(self, numbers: Sequence[Mapping[str, float]]) -> Floats:
        """Of "consistent" [N]; a missing number counts as its mean."""
        return np.asarray(1 / (1 + np.exp(-self.margins(numbers))))

    def margins(self, numbers: Sequence[Mapping[str, float]]) -> Floats:
        """Their logits [N]."""
        table = (_table(numbers, self.names) - self.mean) / self.deviation
        return np.asarray(np.nan_to_num(table) @ self.weight + self.intercept)


def calibrate(examples: Sequence[Example], metrics: Sequence[str], choice: Choice | None = None) -> Calibration:
    """Everything a verdict needs, from labelled responses.

    ``metrics`` are those that were computed; the calibration asks for the ones it reads, and for verifiability when it
    was among them. InvalidRequest when a class has fewer than ``MIN_CLASS`` rows, or no number is had by enough rows.
    """
    choice = choice or Choice()
    model, penalty = choose(examples, choice)
    unseen = _unseen(examples, model.names, penalty, choice.seed)
    # Of weights that are as good as equal, those of numbers that more rows have come first: they can be asked for.
    held = (~np.isnan(_table([e.numbers for e in examples], model.names))).mean(0)
    order = np.lexsort((-held, -np.abs(model.weight).round(3)))
    used = [int(i) for i in order if abs(model.weight[i]) > 1e-4]
    needed = choice.needed or _weightiest(model, used)
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
    asked = tuple(name for name in metrics if any(_of(feature.name, name) for feature in features))
    checks = [name for name in metrics if name.endswith("verifiability")]
    return Calibration(
        fitted_on=tuple(dict.fromkeys(example.set for example in examples)),
        rows=len(examples),
        metrics=(*asked, *checks),
        intercept=round(model.intercept, 6),
        features=features,
        profiles=profiles(unseen, _labels(examples), _weights(examples)),
        scales={name: scale for name in metrics if (scale := _scale(examples, name)) is not None},
        verifiable=choice.verifiable if checks else None,
    )


def choose(examples: Sequence[Example], choice: Choice) -> tuple[Fitted, float]:
    """The model and its penalty: the one with which left-out sets, or folds of a single one, are ranked best."""
    _check(examples)
    names = choice.features or readable(examples)
    if not names:
        raise InvalidRequest(f"No metric scored on {MIN_SHARE:.0%} of the rows of every set; ask for others.")
    parts = _parts(examples, choice.seed)
    scores = [np.mean([_left_out(examples, part, names, penalty) for part in parts]) for penalty in choice.penalties]
    penalty = choice.penalties[int(np.argmax(scores))]
    return scaled(fit(examples, names, penalty), examples), penalty


def readable(examples: Sequence[Example]) -> tuple[str, ...]:
    """The numbers that the fusion reads when the caller names none."""
    names = dict.fromkeys(name for example in examples for name in example.numbers)
    sets = {example.set for example in examples}
    held = [
        name
        for name in names
        if not name.endswith(NO_EVIDENCE)
        and min(np.mean([name in e.numbers for e in examples if e.set == one]) for one in sets) >= MIN_SHARE
    ]
    return tuple(name for name in held if name in EVIDENCE or name.startswith(DETECTOR)) or tuple(held)


def scaled(model: Fitted, examples: Sequence[Example]) -> Fitted:
    """``model`` with its weights times one factor and another intercept: those with the least loss, unpenalized."""
    margins = model.margins([example.numbers for example in examples])
    signs, weights = 2 * _labels(examples) - 1, _weights(examples)

    def loss(theta: Floats) -> tuple[float, Floats]:
        margin = signs * (theta[0] * margins + theta[1])
        slope = -weights * signs / (1 + np.exp(np.clip(margin, -50, 50)))
        return float(weights @ np.logaddexp(0, -margin)), np.array([slope @ margins, slope.sum()])

    # A perfect order would want an infinite factor.
    found = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=[(0, 1000), (None, None)], method="L-BFGS-B")
    factor, shift = (float(one) for one in found.x)
    return replace(model, weight=model.weight * factor, intercept=model.intercept * factor + shift)


def fit(examples: Sequence[Example], names: Sequence[str], penalty: float) -> Fitted:
    """Logistic regression with weights of the right sign that are drawn to one another.

    ``penalty`` times the squared distances from their mean is added to the loss; towards lower-is-better numbers, to
    its opposite.
    """
    table, labels, weights = _table([e.numbers for e in examples], names), _labels(examples), _weights(examples)
    held = ~np.isnan(table)
    share = np.where(held, weights[:, None], 0)
    mean = np.where(held, table, 0).T @ weights / np.maximum(share.sum(0), 1e-12)
    spread = np.sqrt((np.where(held, table - mean, 0) ** 2 * share).sum(0) / np.maximum(share.sum(0), 1e-12))
    deviation = np.where(spread > 1e-9, spread, 1.0)
    upwards = np.array([-1.0 if name.endswith(LOWER_IS_BETTER) else 1.0 for name in names])
    x = np.nan_to_num((table - mean) / deviation) * upwards
    signs = 2 * labels - 1

    def loss(theta: Floats) -> tuple[float, Floats]:
        margin = signs * (x @ theta[1:] + theta[0])
        slope = -weights * signs / (1 + np.exp(np.clip(margin, -50, 50)))
        apart = theta[1:] - theta[1:].mean()
        value = weights @ np.logaddexp(0, -margin) + penalty * apart @ apart
        return float(value), np.concatenate([[slope.sum()], x.T @ slope + 2 * penalty * apart])

    # A perfect order would want weights without a bound.
    bounds = [(None, None), *[(0, 1000)] * len(names)]
    found = minimize(loss, np.zeros(len(names) + 1), jac=True, bounds=bounds, method="L-BFGS-B")
    return Fitted(tuple(names), mean, deviation, upwards * found.x[1:], float(found.x[0]))


def profiles(probabilities: Floats, labels: Floats, weights: Floats) -> dict[ProfileName, Profile]:
    """Three operating points with the rates they have on these rows.

    ``balanced`` makes the larger of both rates smallest, ``strict`` misses at most a tenth, ``lenient`` raises false
    alarms on at most a twentieth.
    """
    order = np.unique(probabilities)
    candidates = np.concatenate([[0.0], (order[1:] + order[:-1]) / 2, [1.0]])
    wrong, right = labels == 0, labels == 1
    misses = np.array([weights[wrong & (probabilities >= c)].sum() for c in candidates]) / weights[wrong].sum()
    alarms = np.array([weights[right & (probabilities < c)].sum() for c in candidates]) / weights[right].sum()
    # Of equal ones, the one with the smaller sum.
    middle = int(np.argmin(np.maximum(misses, alarms) + 1e-6 * (misses + alarms)))
    strict = max(middle, int(np.argmax(misses <= STRICT_MISSES)))
    lenient = min(middle, int(np.flatnonzero(alarms <= LENIENT_ALARMS)[-1]))
    chosen: dict[ProfileName, int] = {"balanced": middle, "strict": strict, "lenient": lenient}
    return {
        name: Profile(
            threshold=round(float(candidates[at]), 4),
            false_positive_rate=round(float(alarms[at]), 4),
            false_negative_rate=round(float(misses[at]), 4),
        )
        for name, at in chosen.items()
    }


def _weightiest(model: Fitted, order: Sequence[int]) -> tuple[str, ...]:
    """The first of ``order`` that make up half of the weight: less evidence than that gives no verdict."""
    shares = np.cumsum(np.abs(model.weight[list(order)])) / np.abs(model.weight).sum()
    return tuple(model.names[i] for i in order[: int(np.searchsorted(shares, 0.5)) + 1])


def _of(number: str, metric: str) -> bool:
    return number == metric or number.startswith(f"{metric}.")


def _scale(examples: Sequence[Example], metric: str) -> Scale | None:
    """Of a metric that scored in both classes and says more than one thing; else None."""
    kept = [e for e in examples if metric in e.numbers]
    values, labels = np.array([e.numbers[metric] for e in kept]), _labels(kept)
    if len(set(labels)) < 2 or len(set(values)) < 2:
        return None
    weights = _weights(kept)
    plain = Scale(low=float(values.min()), high=float(values.max()), threshold=0.0, knots=())
    cut = normalized(best_f1_threshold(values, labels == 1) or 0.0, plain)
    fitted = IsotonicRegression(y_min=0, y_max=1, increasing=True).fit(values, labels, sample_weight=weights)
    x, y = fitted.X_thresholds_, fitted.y_thresholds_
    keep = np.unique(np.linspace(0, len(x) - 1, min(KNOTS, len(x))).round().astype(int))
    knots = tuple((round(float(x[i]), 6), round(float(y[i]), 4)) for i in keep)
    return Scale(low=round(plain.low, 6), high=round(plain.high, 6), threshold=round(cut, 6), knots=knots)


def _unseen(examples: Sequence[Example], names: Sequence[str], penalty: float, seed: int) -> Floats:
    """Each example's probability by a model fitted without its fold."""
    out = np.zeros(len(examples))
    for train, test in _folds(examples, seed):
        known = [examples[i] for i in train]
        model = scaled(fit(known, names, penalty), known)
        out[test] = model.probabilities([examples[i].numbers for i in test])
    return out


def _parts(examples: Sequence[Example], seed: int) -> list[NDArray[np.int64]]:
    """What is left out in turn: a set, or a fold when there is only one set."""
    names = list(dict.fromkeys(example.set for example in examples))
    if len(names) == 1:
        return [test for _, test in _folds(examples, seed)]
    return [np.array([i for i, example in enumerate(examples) if example.set == name]) for name in names]


def _folds(examples: Sequence[Example], seed: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    strata = [f"{example.set}/{example.label}" for example in examples]
    groups = [f"{example.set}/{example.group}" for example in examples]
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(examples)), strata, groups))


def _left_out(examples: Sequence[Example], part: NDArray[np.int64], names: Sequence[str], penalty: float) -> float:
    out = set(part.tolist())
    rest, held = [e for i, e in enumerate(examples) if i not in out], [examples[i] for i in sorted(out)]
    if len(set(_labels(held))) < 2 or len(set(_labels(rest))) < 2:
        return 0.5
    model = fit(rest, names, penalty)
    return float(roc_auc_score(_labels(held), model.probabilities([example.numbers for example in held])))


def _table(numbers: Sequence[Mapping[str, float]], names: Sequence[str]) -> Floats:
    return np.array([[row.get(name, np.nan) for name in names] for row in numbers], dtype=np.float64)


def _labels(examples: Sequence[Example]) -> Floats:
    return np.array([example.label for example in examples], dtype=np.float64)


def _weights(examples: Sequence[Example]) -> Floats:
    """They add up to 1; every class of every set has the same share."""
    counts: dict[tuple[str, int], int] = {}
    for example in examples:
        counts[example.set, example.label] = counts.get((example.set, example.label), 0) + 1
    return np.array([1 / (counts[example.set, example.label] * len(counts)) for example in examples])


def _check(examples: Sequence[Example]) -> None:
    counts = {label: sum(example.label == label for example in examples) for label in (0, 1)}
    if min(counts.values()) < MIN_CLASS:
        raise InvalidRequest(
            f"{counts[1]} consistent and {counts[0]} inconsistent rows have scores; a calibration needs at least "
            f"{MIN_CLASS} of each. Give more labelled rows."
        )


Scorer = Callable[[Sequence[Mapping[str, float]]], Floats]


def leave_one_out(
    examples: Sequence[Example], families: Mapping[str, str], choice: Choice | None = None
) -> dict[str, Scorer]:
    """For each set, a fusion fitted without any set of its family: what a set learns from others alone."""
    choice = choice or Choice()
    names = dict.fromkeys(example.set for example in examples)
    out: dict[str, Scorer] = {}
    for name in names:
        rest = [example for example in examples if families[example.set] != families[name]]
        out[name] = choose(rest, choice)[0].probabilities
    return out
