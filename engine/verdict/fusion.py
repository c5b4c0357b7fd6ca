"""What a verdict is drawn from: the numbers that a fusion reads, the fusion, its threshold, and rules that refute.

A fixed threshold has to be exceeded: of a value of 0.5 at the threshold 0.5 the Q² paper says inconsistent, and so does
this. A fitted threshold is itself the value of a development example that counts as consistent, so values from it on do
(PMI-Faith, table 9: best F1 on the development set).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from groundwire.runtime.calibration import Calibration, Fusion, Scale

from ..metrics import Metric, find
from ..metrics.base import HasRange
from ..schema.results import MetricResult, Verdict
from ..text.words import find_overlaps, words
from ..values.tokens import NEGATIONS, iterate_tokens


def features(results: Mapping[str, MetricResult]) -> dict[str, float]:
    """Every number that ``results`` has: a scored metric's value by its name, the others as ``metric.feature``."""
    numbers = {name: result.value for name, result in results.items() if result.value is not None}
    for name, result in results.items():
        metric = find(name)
        if metric is not None and result.value is not None and result.explanation is not None:
            numbers |= {f"{name}.{key}": number for key, number in metric.features(result.explanation).items()}
    return numbers


def features_of_part(
    results: Mapping[str, MetricResult], start: int, end: int, *, in_response: bool = False
) -> dict[str, float]:
    """Those numbers about the characters ``start`` to ``end`` of the response, a sentence of it.

    Numbers that only a whole response has are left out, F1 with the knowledge for example, and with ``in_response``
    numbers of a model that reads the sentence apart from the response (``Metric.apart``).
    """
    numbers: dict[str, float] = {}
    for name, result in results.items():
        metric = find(name)
        if metric is not None and result.value is not None and not (in_response and metric.apart):
            of_part = metric.part(result, start, end)
            numbers |= {f"{name}.{key}" if key else name: number for key, number in of_part.items()}
    return numbers


def find_feature(name: str) -> tuple[Metric, str] | None:
    """The metric of a feature and the feature's key in it (``""`` for its value); None for an unknown metric.

    >>> metric, key = find_feature("detector.mine.worst")
    >>> metric.name, key
    ('detector.mine', 'worst')
    """
    prefix, _, key = name.rpartition(".")
    metric = find(prefix)
    # A detector's name has a dot of its own, so only a key that the metric knows is split off.
    if metric is not None and key in (*metric.evidence, *metric.lower_is_better, *metric.uninformative):
        return metric, key
    metric = find(name) or metric
    return None if metric is None else (metric, name.removeprefix(metric.name).lstrip("."))


def is_apart(feature: str) -> bool:
    """Whether a model reads a sentence apart from its response for a feature (``Metric.apart``)."""
    metric_feature = find_feature(feature)
    return metric_feature is not None and metric_feature[0].apart


def reads_in_response(names: Iterable[str]) -> bool:
    """Whether a model reads sentences in their response for one of the features (``Metric.in_context``).

    A fusion of them scores responses as a whole, and no model reads a sentence apart from its response.
    """
    return any(metric.in_context for metric, _ in filter(None, map(find_feature, names)))


def says_enough(weights: Mapping[str, float], uncounted: Collection[str], names: Collection[str]) -> bool:
    """Whether the features ``names`` of a sentence have half of the weight that a sentence can have.

    Where a model reads the sentence in its response, that is the weight without features of the sentence apart from it,
    and a feature that counts what speaks against a text is 0 where there is nothing to count.

    Args:
        weights: The weights of a fusion's features.
        uncounted: Features that are 0 where there is nothing to count.
        names: Features that the sentence has.
    """
    in_response = reads_in_response(weights)
    read = {name: abs(weight) for name, weight in weights.items() if not (in_response and is_apart(name))}
    have = sum(weight for name, weight in read.items() if name in names or (in_response and name in uncounted))
    return 2 * have >= sum(read.values())


def rates_verifiability(feature: str) -> bool:
    """Whether a feature says if there is anything to check (``Metric.verifiability``)."""
    metric_feature = find_feature(feature)
    return metric_feature is not None and metric_feature[0].verifiability == metric_feature[1]


def find_verifiability(numbers: Mapping[str, float]) -> float | None:
    """How verifiable the text of these features is, 0–1; None where no metric says so."""
    return next((number for name, number in numbers.items() if rates_verifiability(name)), None)


def is_probability(feature: str) -> bool:
    """Whether a feature is a model's probability, so that its logit counts."""
    metric_feature = find_feature(feature)
    return metric_feature is not None and metric_feature[1] in metric_feature[0].probabilities


def name_metric(feature: str) -> str:
    """The name of the metric that a feature is a number of; the feature's own for an unknown metric."""
    metric_feature = find_feature(feature)
    return feature if metric_feature is None else metric_feature[0].name


def choose_fusion(calibration: Calibration, metrics: Collection[str]) -> Fusion:
    """The fusion for a request that asks for ``metrics``.

    A fusion fits if its needed features are numbers of these metrics. The first fusion, whose metrics are the default,
    is taken where it misses nothing: more metrics do not change the default verdict. Else the fitting fusion that reads
    most of them is taken, and among equals the fusion that misses least; if none fits, the fusion that lacks the fewest
    metrics.
    """

    def rank(fusion: Fusion) -> tuple[int, bool, int, int]:
        lacking = {name_metric(feature.name) for feature in fusion.features if feature.needed}.difference(metrics)
        read = sum(name_metric(feature.name) in metrics for feature in fusion.features)
        missing = len(fusion.features) - read
        return len(lacking), missing > 0 or fusion is not calibration.fusions[0], -read, missing

    return min(calibration.fusions, key=rank)


def list_unread(fusion: Fusion, metrics: Collection[str]) -> list[str]:
    """The features of a fusion that are of none of ``metrics``: a verdict without them promises no bound."""
    return [feature.name for feature in fusion.features if name_metric(feature.name) not in metrics]


HALF = 0.5
"""The fixed threshold of values from 0 to 1."""


def is_consistent(value: float, threshold: float, *, fitted: bool) -> bool:
    """Whether a value counts as consistent.

    >>> is_consistent(0.5, 0.5, fitted=False), is_consistent(0.5, 0.5, fitted=True)
    (False, True)
    """
    return bool(are_consistent(np.float64(value), threshold, fitted=fitted))


def are_consistent(values: np.float64 | NDArray[np.float64], threshold: float, *, fitted: bool) -> NDArray[np.bool_]:
    """Which values count as consistent; none that is NaN."""
    return np.asarray(values >= threshold if fitted else values > threshold)


def normalized(value: float, scale: Scale) -> float:
    """Min-max form with the development set's bounds, 0–1 (PMI-Faith, §4)."""
    if scale.high <= scale.low:
        return 0.0
    return min(1.0, max(0.0, (value - scale.low) / (scale.high - scale.low)))


def decide_metrics(results: Iterable[MetricResult], calibration: Calibration | None) -> list[MetricResult]:
    """The results, with ``decision`` where the calibration has a threshold for the metric.

    Metrics that do not say whether the response is supported (verifiability) get none.
    """
    return [_decide(result, calibration.scales.get(result.name) if calibration else None) for result in results]


def _decide(result: MetricResult, scale: Scale | None) -> MetricResult:
    metric = find(result.name)
    if result.value is None or scale is None or metric is None or "" in metric.uninformative:
        return result
    consistent = is_consistent(normalized(result.value, scale), scale.threshold, fitted=True)
    return msgspec.structs.replace(result, decision="consistent" if consistent else "inconsistent")


class Refutation(NamedTuple):
    """What a metric refutes by itself (``Metric.refutes``)."""

    feature: str
    """As contributions name it: ``values.contradicted``."""
    probability: float
    """Of being consistent, at most."""


def find_refutation(numbers: Mapping[str, float], weighed: Collection[str] = ()) -> Refutation | None:
    """The strongest refutation that the features of a response or of a sentence tell of, or None.

    A fusion weighs the features that it reads, so the features ``weighed`` refute nothing by themselves.
    """
    refutations = []
    for name, number in numbers.items():
        prefix, _, key = name.rpartition(".")
        metric = find(prefix) if name not in weighed else None
        for refutes in metric.refutes if metric is not None and number > 0 else ():
            if key == refutes.feature:
                refutations.append(Refutation(name, refutes.probability))
    return min(refutations, key=lambda refutation: refutation.probability, default=None)


def refute(verdict: Verdict, refutation: Refutation | None) -> Verdict:
    """The verdict with the share of its probability that ``refutation`` leaves, which has the part of a contribution.

    So the probability is at most the refutation's, and refuted responses keep their order: thresholds can be drawn
    between them. A verdict without a probability keeps it that way.
    """
    if refutation is None or verdict.probability is None or verdict.threshold is None:
        return verdict
    return _move(verdict, refutation.feature, verdict.probability * refutation.probability)


class Confirmation(NamedTuple):
    """What speaks for a text by itself (``Metric.confirms``)."""

    feature: str
    """As contributions name it: ``values.supported``."""
    logit: float


def find_confirmation(results: Mapping[str, MetricResult], response: str, start: int, end: int) -> Confirmation | None:
    """What speaks for the characters ``start`` to ``end``, in which no metric doubts another content word; or None.

    A negation turns words that the knowledge has into what it denies, so nothing speaks for it.

    Doubts are about words (``Metric.word_weight``). The fusion has the number of a metric that doubts whole sentences.
    """
    if any(token.lower in NEGATIONS for token in iterate_tokens(response[start:end])):
        return None
    scored = [
        (metric, result) for name, result in results.items() if result.value is not None and (metric := find(name))
    ]
    for metric, result in scored:
        confirms = metric.confirms
        numbers = metric.part(result, start, end) if confirms is not None else {}
        if confirms is None or not numbers.get(confirms.feature) or any(numbers.get(key) for key in confirms.unless):
            continue
        doubting = [(other, about) for other, about in scored if other.word_weight is not None and other is not metric]
        doubts = [
            span for other, about in doubting for span in other.spans(about) if span.start < end and start < span.end
        ]
        parts = [part for part in confirms.ranges(result) if start <= part.start < end]
        disputed, others = _split_doubts(response, doubts, parts)
        if doubting and not others:
            return Confirmation(
                f"{metric.name}.{confirms.feature}", confirms.disputed_logit if disputed else confirms.logit
            )
    return None


def _split_doubts(response: str, doubts: Sequence[HasRange], parts: Sequence[HasRange]) -> tuple[int, int]:
    """How many content words of ``doubts`` are in ``parts``, and how many are not."""
    content = [word for word in words(response) if word.content] if doubts else []
    bounds = [(word.start, word.end) for word in content]
    doubted = [bool(spans) for spans in find_overlaps(bounds, doubts)]
    inside = [bool(spans) for spans in find_overlaps(bounds, parts)]
    return (
        sum(doubt and part for doubt, part in zip(doubted, inside, strict=True)),
        sum(doubt and not part for doubt, part in zip(doubted, inside, strict=True)),
    )


def confirm(verdict: Verdict, confirmation: Confirmation | None) -> Verdict:
    """The verdict with the probability that ``confirmation`` gives it, which has the part of a contribution.

    A verdict without a probability keeps it that way.
    """
    if confirmation is None or verdict.probability is None or verdict.threshold is None:
        return verdict
    odds = math.exp(logit(verdict.probability) + confirmation.logit)
    return _move(verdict, confirmation.feature, odds / (1 + odds))


def _move(verdict: Verdict, feature: str, probability: float) -> Verdict:
    """The verdict with another probability, for the sake of a feature."""
    assert verdict.probability is not None
    assert verdict.threshold is not None
    contributions = {**(verdict.contributions or {}), feature: logit(probability) - logit(verdict.probability)}
    consistent = is_consistent(probability, verdict.threshold, fitted=True)
    return replace(
        verdict,
        label="consistent" if consistent else "inconsistent",
        probability=probability,
        contributions=contributions,
        message="" if verdict.label == "unverifiable" else verdict.message,
    )


def states_amounts(numbers: Mapping[str, float]) -> bool:
    """Whether a metric's number says that a text states something that can be checked (``Metric.states``)."""
    for name, number in numbers.items():
        prefix, _, key = name.rpartition(".")
        metric = find(prefix)
        if metric is not None and metric.states and key == metric.states and number > 0:
            return True
    return False


CONTRADICTED = 0.9
"""Probability of a contradiction from which a sentence stated something. Small talk beside the knowledge reaches 0.85:
"Poor birds, though." (recipes/research/measured.md)."""


def is_contradicted(numbers: Mapping[str, float]) -> bool:
    """Whether a metric is sure that the knowledge says the opposite (``Metric.contradicts``)."""
    for name, number in numbers.items():
        prefix, _, key = name.rpartition(".")
        metric = find(prefix)
        if metric is not None and metric.contradicts and key == metric.contradicts and number >= CONTRADICTED:
            return True
    return False


def logit(probability: float) -> float:
    """The inverse of ``decision.sigmoid``, finite for every probability."""
    bounded = min(max(probability, 1e-12), 1 - 1e-12)
    return math.log(bounded / (1 - bounded))
