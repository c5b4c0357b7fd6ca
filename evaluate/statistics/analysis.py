"""Figures from examples and their scores. Pure: no model runs here, so figures can be recomputed at any time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from groundwire.engine import Score, Verdict
from groundwire.engine.schema.results import Label
from groundwire.engine.verdict import VERIFIABLE, choose_fusion, find_feature
from groundwire.monitor.kinds import find_language, list_kinds, name_lengths
from groundwire.monitor.shift import describe_texts
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest

from ..datasets.examples import Example, flag_unshared_knowledge
from ..datasets.source import LeftOut
from ..scores.metric_values import DEFAULT_PROFILE, VERDICT, MetricValues, collect_metric_values, decide_examples
from .agreement import HALF, Threshold, is_bounded, measure_agreement
from .citing import measure_citing
from .delivered import DeliveredLabels
from .error_analysis import find_errors, list_kept_questions
from .estimates import Bools, Floats, best_f1_threshold, roc_auc
from .human_labels import MIN_GROUPS, HumanLabels
from .marking import measure_marking
from .results import (
    Curve,
    ErrorThreshold,
    MetricFigures,
    PartRates,
    QuestionFigures,
    SetFigures,
    TradeOff,
    VerdictFigures,
    VerifiabilityFigures,
)
from .shift import compare_with_calibration, explain_shift

LENGTHS = 3
"""Groups by length, at most."""
MAX_PARTS = 30
"""Most sources, or systems, with figures of their own; with more, each would have a few examples only."""


class Development(NamedTuple):
    """A labelled set on which thresholds are tuned."""

    name: str
    examples: Sequence[Example]
    scores: Sequence[Score]

    def without_knowledge_of(self, examples: Iterable[Example]) -> Development:
        """Leave out the examples that share a passage of knowledge with other examples.

        A threshold that is tuned on those leaks from the test set.

        Args:
            examples: The examples of the test set.

        Returns:
            The set without these examples and their scores.
        """
        unshared_examples = [
            i for i, unshared in enumerate(flag_unshared_knowledge(self.examples, examples)) if unshared
        ]
        return Development(
            self.name, [self.examples[i] for i in unshared_examples], [self.scores[i] for i in unshared_examples]
        )


def select_unfitted(
    name: str, examples: Sequence[Example], scores: Sequence[Score], calibration: Calibration | None
) -> tuple[list[Example], list[Score]]:
    """Leave out the examples that a calibration was fitted to: its verdicts on them are better than on others.

    Args:
        name: Name of the set.
        examples: The labelled responses.
        scores: The scores of ``examples``, in their order.
        calibration: The calibration that draws the verdicts; None, or one of an earlier version,
            leaves all examples.

    Returns:
        The other examples, and their scores.

    Raises:
        InvalidRequest: It was fitted to all that have a label or a grade.
    """
    digests = frozenset((calibration.row_digests if calibration else ()) or ())
    remaining = [index for index, example in enumerate(examples) if not digests or example.digest not in digests]
    labelled = {
        index for index, example in enumerate(examples) if example.label is not None or example.grade is not None
    }
    if len(remaining) < len(examples) and labelled.isdisjoint(remaining):
        raise InvalidRequest(
            f"The calibration was fitted to all {len(labelled)} labelled examples of {name}, so figures of them say "
            "nothing about other responses. Give examples that it was not fitted to, or fit it to a part of these. The "
            "rates that `groundwire calibrate` prints are of rows that the fit had not seen."
        )
    return [examples[index] for index in remaining], [scores[index] for index in remaining]


def analyse(
    name: str,
    examples: Sequence[Example],
    scores: Sequence[Score],
    *,
    calibration: Calibration | None = None,
    development: Development | None = None,
    left_out: LeftOut | None = None,
    fitted: int = 0,
    seed: int = 0,
    repeats: int = 1000,
    max_false_positive_rate: float | None = None,
) -> SetFigures:
    """Compute all figures of one set.

    Args:
        name: Name of the set.
        examples: The labelled responses.
        scores: The scores of ``examples``, in their order.
        calibration: The calibration that draws the verdicts again, whatever the scores were made with; None keeps them.
        development: Scored examples on which thresholds are tuned; None tunes none.
        left_out: Broken examples of the set's file; None where all were read.
        fitted: How many further examples ``select_unfitted`` left out.
        seed: Seed of the bootstrap samples.
        repeats: Samples for every interval, 1 or more.
        max_false_positive_rate: A bound, from 0.001 to below 1, whose threshold is measured beside the profiles; None
            measures the profiles alone.

    Returns:
        Agreement with human labels by metric, error analysis, and notes.

    Raises:
        InvalidRequest: The calibration cannot promise the rate.
    """
    human = HumanLabels(examples, repeats, seed)
    columns = collect_metric_values(examples, scores, calibration)
    notes: list[str] = []
    if left_out:
        count, first = left_out.examples, ", ".join(left_out.first)
        more = f" and {count - len(left_out.first)} more" if count > len(left_out.first) else ""
        notes.append(
            f"Broken examples of the file are left out: {count} ({first}{more}). All figures are of the others."
        )
    if fitted:
        notes.append(
            f"The calibration was fitted to {fitted} of the {fitted + len(examples)} examples. They are left out: all "
            f"figures are of the other {len(examples)}."
        )
    notes += _note_repeated(examples)
    if not human.by_context and len(examples) >= MIN_GROUPS:
        notes.append("Intervals may be too narrow: the examples share too few contexts to draw samples of contexts.")
    tuned = _tune_thresholds(examples, development, calibration, notes) if development else {}
    parts = dict(_split_parts(examples, notes))
    metrics = {
        metric: measure_agreement(metric, column, human, _list_thresholds(metric, column, tuned), parts)
        for metric, column in columns.items()
        if not find_feature(metric).number.rates_verifiability
    }
    leading = _choose_leading(metrics)
    verdicts: dict[str, list[Verdict]] = {}
    if calibration is not None:
        for profile in calibration.fusions[0].profiles:
            verdicts[profile] = decide_examples(examples, scores, calibration, profile)
        if (rate := max_false_positive_rate) is not None:
            verdicts[f"at most {100 * rate:g} %"] = decide_examples(
                examples, scores, calibration, DEFAULT_PROFILE, rate
            )
    if calibration and leading == VERDICT and (lacking := _list_lacking(scores, calibration)):
        notes.append(
            f"The metrics of {len(lacking)} numbers that the verdict reads were not asked for ({', '.join(lacking)}). "
            "These numbers count as their means, so the verdict is another than the calibrated one, and promises no "
            "false positive rate."
        )
    error_threshold: ErrorThreshold | None = None
    called: list[Label] = []
    if leading == VERDICT:
        error_threshold, called = _read_verdicts(verdicts)
    elif leading:
        thresholds = _list_thresholds(leading, columns[leading], tuned)
        error_threshold, called = _call_examples(columns[leading], thresholds, human)
    if leading and (area := metrics[leading].roc_auc) is not None and area.high < HALF:
        notes.append(
            f"{leading} gives inconsistent responses the higher values (ROC-AUC {area.value:.3f}): check that label 1 "
            "is consistent."
        )
    shifts = compare_with_calibration(examples, scores, calibration)
    if any(shift.band != "alike" for shift in shifts):
        notes.append(explain_shift(shifts))
    labels = Counter(example.label for example in examples)
    unverifiable = sum(example.label is None and example.verifiable is False for example in examples)
    return SetFigures(
        name=name,
        examples=len(examples),
        labels={
            "consistent": labels[1],
            "inconsistent": labels[0],
            "unverifiable": unverifiable,
            "none": labels[None] - unverifiable,
        },
        metrics=metrics,
        verdicts=tuple(
            measure_verdicts(profile, of_profile, examples, human, parts) for profile, of_profile in verdicts.items()
        ),
        trade_off=_trace_trade_off(verdicts[_choose_profile(verdicts)], human) if verdicts else None,
        risk_coverage=_trace_risk(verdicts[_choose_profile(verdicts)], human) if verdicts else None,
        questions=_measure_questions(scores, human),
        errors=find_errors(examples, scores, columns, leading, called, human) if leading else (),
        error_threshold=error_threshold,
        leading=leading,
        verifiability=_measure_verifiability(examples, _find_verifiability(columns), human),
        notes=tuple(notes),
        marking=measure_marking(examples, scores, human),
        citing=measure_citing(examples, scores, human),
        left_out=left_out,
        fitted=fitted,
        shifts=shifts,
    )


def _note_repeated(examples: Sequence[Example]) -> Iterator[str]:
    """A note about labelled responses that occur more than once with the same knowledge and history."""
    labels: dict[tuple[str, str], set[int]] = {}
    repeated = 0
    for example in examples:
        if example.label is not None:
            key = (example.digest, example.group)
            repeated += key in labels
            labels.setdefault(key, set()).add(example.label)
    if repeated:
        contradictory = sum(len(of_response) > 1 for of_response in labels.values())
        yield (
            f"Labelled responses that repeat another one with the same knowledge and history: {repeated}. Each counts. "
            f"Responses with two labels: {contradictory}."
        )


def _list_lacking(scores: Sequence[Score], calibration: Calibration) -> list[str]:
    """The numbers of the verdict's fusion whose metrics no score has."""
    asked = {name for score in scores for name in score.metrics}
    names = [feature.name for feature in choose_fusion(calibration, asked).features]
    return [name for name in names if find_feature(name).metric.name not in asked]


def _tune_thresholds(
    examples: Sequence[Example], development: Development, calibration: Calibration | None, notes: list[str]
) -> dict[str, Threshold]:
    """The threshold of each metric with the best F1 on the development set."""
    unshared = development.without_knowledge_of(examples)
    if left_out := len(development.examples) - len(unshared.examples):
        notes.append(
            f"Thresholds are tuned on {len(unshared.examples)} of the {len(development.examples)} examples of "
            f"{development.name}: {left_out} share knowledge with this set."
        )
    labelled: Bools = np.array([example.label is not None for example in unshared.examples], dtype=bool)
    consistent: Bools = np.array([example.label == 1 for example in unshared.examples], dtype=bool)
    thresholds = {}
    for metric, column in collect_metric_values(unshared.examples, unshared.scores, calibration).items():
        measured = labelled & np.isfinite(column.values)
        best = best_f1_threshold(column.values[measured], consistent[measured])
        if best is not None:
            thresholds[metric] = Threshold(best, development.name, int(measured.sum()))
    if not thresholds:
        notes.append(f"No threshold could be tuned on {development.name}: it needs scored examples of both classes.")
    return thresholds


def _list_thresholds(metric: str, column: MetricValues, tuned: Mapping[str, Threshold]) -> Iterator[Threshold]:
    if is_bounded(metric, column.values):
        yield Threshold(HALF, "0.5")
    if metric in tuned:
        yield tuned[metric]


def _split_parts(examples: Sequence[Example], notes: list[str]) -> Iterator[tuple[str, Bools]]:
    """The examples of each source, system, length, kind of sentence and language, where there are several."""
    lengths = [describe_texts(example.response, example.knowledge).get("words") for example in examples]
    for kind, prefix, names in (
        ("sources", "", [(example.source,) for example in examples]),
        ("systems", "system=", [(example.system,) for example in examples]),
        ("lengths", "length=", [(name,) for name in name_lengths(lengths, LENGTHS)]),
        ("kinds", "sentences=", [list_kinds(example.response) for example in examples]),
        ("languages", "language=", [(example.language or find_language(example.response),) for example in examples]),
    ):
        different = list(dict.fromkeys(name for of_example in names for name in of_example if name))
        if kind == "lengths":
            different.sort(key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
        if len(different) > MAX_PARTS:
            notes.append(f"There are {len(different)} {kind}, too many for figures of each.")
        elif len(different) > 1:
            for part in different:
                yield f"{prefix}{part}", np.array([part in of_example for of_example in names], dtype=bool)


def _choose_leading(metrics: Mapping[str, MetricFigures]) -> str:
    areas = {name: figures.roc_auc.value for name, figures in metrics.items() if figures.roc_auc is not None}
    return VERDICT if VERDICT in areas else max(areas, key=lambda name: areas[name], default="")


def _choose_profile(verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    return DEFAULT_PROFILE if DEFAULT_PROFILE in verdicts else next(iter(verdicts))


def _read_verdicts(verdicts: Mapping[str, Sequence[Verdict]]) -> tuple[ErrorThreshold, list[Label]]:
    """The threshold of the default profile, or of the first one, and its verdicts."""
    profile = _choose_profile(verdicts)
    threshold = next(verdict.threshold for verdict in verdicts[profile] if verdict.threshold is not None)
    return ErrorThreshold(threshold, f"profile {profile}"), [verdict.label for verdict in verdicts[profile]]


def _call_examples(
    column: MetricValues, thresholds: Iterable[Threshold], human: HumanLabels
) -> tuple[ErrorThreshold, list[Label]]:
    """The last of a metric's thresholds, or else the best on its own examples, and what it calls each example."""
    labelled = human.select_labelled(column.values)
    best = best_f1_threshold(column.values[labelled], human.consistent[labelled])
    assert best is not None  # a leading metric has a ROC-AUC, so it has values of both classes
    *_, threshold = (Threshold(best, "this set", int(labelled.sum())), *thresholds)
    called = threshold.call_consistent(column.values)
    return ErrorThreshold(threshold.value, threshold.origin), [
        "consistent" if consistent else "inconsistent" for consistent in called
    ]


def measure_verdicts(
    profile: str,
    verdicts: Sequence[Verdict],
    examples: Sequence[Example],
    human: HumanLabels,
    parts: Mapping[str, Bools],
) -> VerdictFigures:
    """Measure the rates of the examples that got a verdict; ``unknown`` is not one and is counted in ``labels`` only.

    Args:
        profile: Its name, for the figures.
        verdicts: The verdicts on the examples.
        examples: The labelled examples, in the same order.
        human: Their labels, and the samples of the intervals.
        parts: By name, which of the examples are in a part.

    Returns:
        The rates with their intervals.
    """
    labels = np.array([verdict.label for verdict in verdicts])
    decided: Bools = labels != "unknown"
    positive: Bools = labels == "inconsistent"
    unverifiable: Bools = labels == "unverifiable"
    labelled: Bools = np.array([example.verifiable is not None for example in examples], dtype=bool)
    nothing: Bools = np.array([example.verifiable is False for example in examples], dtype=bool)
    delivered = DeliveredLabels(human.consistent, human.inconsistent, positive, unverifiable, decided)
    false_positives, consistent = delivered.false_positives
    missed, inconsistent = delivered.missed
    called = human.labelled & decided & ~unverifiable
    sure: Bools = called & np.array([verdict.sure for verdict in verdicts], dtype=bool)
    unsure, wrong = called & ~sure, positive == human.consistent
    classes = {"consistent": human.consistent, "inconsistent": human.inconsistent}
    return VerdictFigures(
        profile=profile,
        labels=dict(Counter(labels.tolist()).most_common()),
        threshold=next((verdict.threshold for verdict in verdicts if verdict.threshold is not None), None),
        balanced_accuracy=human.estimate(human.balanced_accuracy(positive, decided), *human.count_classes(decided)),
        called={name: dict(Counter(labels[members].tolist()).most_common()) for name, members in classes.items()},
        by_part={
            name: PartRates(
                consistent=int((consistent & part).sum()),
                false_positive_rate=float(false_positives[consistent & part].mean()),
                inconsistent=int((inconsistent & part).sum()),
                false_negative_rate=float(missed[inconsistent & part].mean()),
                coverage=_measure_share(sure, called & part),
                risk=_measure_share(wrong, sure & part),
                risk_if_unsure=_measure_share(wrong, unsure & part),
            )
            for name, part in parts.items()
            if (consistent & part).any() and (inconsistent & part).any()
        },
        false_positive_rate=human.share(false_positives, consistent),
        false_negative_rate=human.share(missed, inconsistent),
        false_positive_rate_on_unverifiable=human.share(positive & nothing & decided, nothing & decided),
        verifiability_accuracy=human.share((unverifiable == nothing) & labelled & decided, labelled & decided),
        max_false_positive_rate=next((bound for v in verdicts if (bound := v.max_false_positive_rate)), None),
        coverage=human.share(sure, called),
        risk=human.share(wrong & sure, sure),
        risk_if_unsure=human.share(wrong & unsure, unsure),
    )


def _measure_share(part: Bools, whole: Bools) -> float | None:
    return float(part[whole].mean()) if whole.any() else None


THRESHOLDS = np.linspace(0.01, 0.99, 99)
"""Thresholds of a trade-off."""


def _select_rated(verdicts: Sequence[Verdict], human: HumanLabels) -> tuple[Floats, Bools]:
    """The probability by which a threshold calls each example inconsistent, and which examples have a label and one.

    A response that states nothing is not called inconsistent at any threshold.
    """
    probabilities = np.array(
        [
            1.0 if verdict.label == "unverifiable" else np.nan if verdict.probability is None else verdict.probability
            for verdict in verdicts
        ]
    )
    return probabilities, human.labelled & np.isfinite(probabilities)


def _trace_trade_off(verdicts: Sequence[Verdict], human: HumanLabels) -> TradeOff | None:
    probabilities, rated = _select_rated(verdicts, human)
    right, wrong = (np.sort(probabilities[rated & members]) for members in (human.consistent, human.inconsistent))
    if not len(right) or not len(wrong):
        return None
    flagged = np.searchsorted(right, THRESHOLDS) / len(right)
    missed = 1 - np.searchsorted(wrong, THRESHOLDS) / len(wrong)
    return TradeOff(*(tuple(np.round(numbers, 4).tolist()) for numbers in (THRESHOLDS, flagged, missed)))


def _trace_risk(verdicts: Sequence[Verdict], human: HumanLabels) -> Curve | None:
    """Errors of the surest labels, from the surest tenth to all (selective prediction: El-Yaniv and Wiener 2010)."""
    threshold = next((verdict.threshold for verdict in verdicts if verdict.threshold is not None), None)
    probabilities, rated = _select_rated(verdicts, human)
    if threshold is None or not rated.any():
        return None
    rated &= np.array([verdict.label != "unverifiable" for verdict in verdicts])
    distances = np.abs(_logits(probabilities[rated]) - _logits(np.array([threshold])))
    wrong = (probabilities[rated] >= threshold) != human.consistent[rated]
    count = len(wrong)
    if count < MIN_GROUPS:
        return None
    errors = np.cumsum(wrong[np.argsort(-distances, kind="stable")])
    sizes = np.unique(np.linspace(count / 10, count, 50).round().astype(int))
    return Curve(tuple((sizes / count).round(4).tolist()), tuple((errors[sizes - 1] / sizes).round(4).tolist()))


def _logits(probabilities: Floats) -> Floats:
    bounded = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(bounded / (1 - bounded))


def _find_verifiability(columns: Mapping[str, MetricValues]) -> MetricValues | None:
    return next((column for metric, column in columns.items() if find_feature(metric).number.rates_verifiability), None)


def _measure_verifiability(
    examples: Sequence[Example], column: MetricValues | None, human: HumanLabels
) -> VerifiabilityFigures | None:
    """The metric that rates verifiability against the human labels of the same question."""
    if column is None:
        return None
    labelled: Bools = np.array([example.verifiable is not None for example in examples], dtype=bool)
    checkable: Bools = np.array([example.verifiable is True for example in examples], dtype=bool)
    rated = labelled & np.isfinite(column.values)
    accuracy = human.share(((column.values >= VERIFIABLE) == checkable) & rated, rated)
    if accuracy is None:
        return None
    area = human.samples.measure(roc_auc(column.values[rated], checkable[rated]), rated)
    contexts = [human.count_contexts(rated & part) for part in (checkable, ~checkable)]
    return VerifiabilityFigures(int(rated.sum()), accuracy, human.estimate(area, *contexts))


def _measure_questions(scores: Sequence[Score], human: HumanLabels) -> QuestionFigures | None:
    """How often Q² found a question, and how often the knowledge had no answer."""
    of_scores = [list_kept_questions(score) for score in scores]
    computed = np.array([questions is not None for questions in of_scores], dtype=bool)
    counts = np.array([len(questions or ()) for questions in of_scores], dtype=np.float64)
    unanswered = np.array(
        [sum(question.knowledge_answer is None for question in questions or ()) for questions in of_scores],
        dtype=np.float64,
    )
    with_question = human.share(computed & (counts > 0), computed)
    no_answer = human.share(unanswered, counts)
    if with_question is None or no_answer is None:
        return None
    return QuestionFigures(with_question, int(counts.sum()), no_answer)
