"""Tables 1, 2, 3 and 9 of the PMI-Faith paper: BEGIN, with thresholds tuned on its development set.

The paper pools the three sources. Scores are normalised by the development set's smallest and largest value and cut
where F1 of "Fully attributable" is best there. Normalising moves no response across the threshold, so all tables but
the last work in the metrics' own units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from groundwire.metrics import is_detector

from .runs import Measured, ScoredExample, ScoredRun, ScoredSet

if TYPE_CHECKING:
    from groundwire.evaluate.statistics.estimates import Bools, Floats

METRICS = {
    "U-F1": "overlap",
    "BLEU": "bleu",
    "RougeL": "rouge_l",
    "BERTScore": "bertscore",
    "FaithCritic": "detector.faithcritic",
    "Q²": "q2",
    "UPMI-Faith": "upmi",
    "PMI-Faith": "pmi",
    "Overlap precision": "overlap_precision",
}
"""The rows of the tables: the paper's names of metrics, and a baseline that it has not."""
SOURCES = {"CMU": "cmu", "TC": "tc", "WoW": "wow"}
PAPER_EXAMPLES = 11_059


class _Values(NamedTuple):
    """One metric on the examples that it scored."""

    values: Floats
    consistent: Bools
    sources: tuple[str, ...]


def measure_pmi_table_1(runs: Sequence[ScoredRun]) -> Measured:
    """Precision, recall and F1 of consistent, and accuracy."""
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    measured = Measured()
    for run in runs:
        for name, metric in METRICS.items():
            test, threshold = (
                _collect_values(run.sets, metric, measured, "test"),
                _tune_threshold(run, metric, measured),
            )
            if test is None or threshold is None:
                continue
            predicted = test.values >= threshold
            precision, recall, f1, _ = precision_recall_fscore_support(
                test.consistent, predicted, average="binary", zero_division=0.0
            )
            measured.put(name, "Precision", float(precision))
            measured.put(name, "Recall", float(recall))
            measured.put(name, "F1", float(f1))
            measured.put(name, "Accuracy", float(accuracy_score(test.consistent, predicted)))
    return measured


def measure_pmi_table_2(runs: Sequence[ScoredRun]) -> Measured:
    """F1 of consistent by source, at the threshold of all sources."""
    import numpy as np
    from sklearn.metrics import f1_score

    measured = Measured()
    for run in runs:
        for name, metric in METRICS.items():
            test, threshold = (
                _collect_values(run.sets, metric, measured, "test"),
                _tune_threshold(run, metric, measured),
            )
            if test is None or threshold is None:
                continue
            for column, source in SOURCES.items():
                of_source = np.array([name == source for name in test.sources])
                if of_source.any():
                    called = test.values[of_source] >= threshold
                    f1 = f1_score(test.consistent[of_source], called, zero_division=0.0)
                    measured.put(name, column, float(f1))
    return measured


def measure_pmi_table_3(runs: Sequence[ScoredRun]) -> Measured:
    """Correlation of values and labels, and the area under the ROC curve."""
    import numpy as np
    from scipy.stats import pearsonr, spearmanr
    from sklearn.metrics import roc_auc_score

    measured = Measured()
    for run in runs:
        for name, metric in METRICS.items():
            test = _collect_values(run.sets, metric, measured, "test")
            if test is None or len(np.unique(test.values)) < 2 or len(np.unique(test.consistent)) < 2:
                continue
            truth = test.consistent.astype(float)
            measured.put(name, "Spearman", float(spearmanr(test.values, truth).statistic))
            measured.put(name, "Pearson", float(pearsonr(test.values, truth).statistic))
            measured.put(name, "AUROC", float(roc_auc_score(test.consistent, test.values)))
    return measured


def measure_pmi_table_9(runs: Sequence[ScoredRun]) -> Measured:
    """The development set's smallest and largest value, and the threshold between them, 0–1."""
    measured = Measured()
    for run in runs:
        for name, metric in METRICS.items():
            tuned, threshold = (
                _collect_values(run.development, metric, measured, "development"),
                _tune_threshold(run, metric, measured),
            )
            if tuned is None or threshold is None:
                continue
            low, high = float(tuned.values.min()), float(tuned.values.max())
            measured.put(name, "Min", low)
            measured.put(name, "Max", high)
            measured.put(name, "Threshold", (threshold - low) / (high - low) if high > low else None)
    return measured


def _tune_threshold(run: ScoredRun, metric: str, measured: Measured) -> float | None:
    """The value from which F1 of consistent is best on the development set."""
    from groundwire.evaluate.statistics.estimates import best_f1_threshold

    tuned = _collect_values(run.development, metric, measured, "development")
    if tuned is None:
        if _collect_values(run.sets, metric, measured, "test") is not None:
            measured.note("Thresholds need the development set: give its files with --dev, and evaluate them too.")
        return None
    return best_f1_threshold(tuned.values, tuned.consistent)


def _collect_values(sets: Sequence[ScoredSet], metric: str, measured: Measured, split: str) -> _Values | None:
    """The metric on all examples of BEGIN; None when it scored none."""
    import numpy as np

    examples = [
        scored_example
        for scored_set in sets
        for scored_example in scored_set.examples
        if scored_example.example.source in SOURCES.values()
    ]
    scored = [
        (scored_example, value)
        for scored_example in examples
        if scored_example.example.label is not None and (value := _value_of(scored_example, metric)) is not None
    ]
    if not scored:
        return None
    if len(scored) < len(examples):
        measured.note(f"{metric} scored {len(scored)} of {len(examples)} {split} examples.")
    return _Values(
        np.array([value for _, value in scored], dtype=np.float64),
        np.array([scored_example.example.label == 1 for scored_example, _ in scored], dtype=np.bool_),
        tuple(scored_example.example.source for scored_example, _ in scored),
    )


def _value_of(scored_example: ScoredExample, metric: str) -> float | None:
    """The metric's value; of a detector its decision, as in the paper."""
    return scored_example.decision(metric) if is_detector(metric) else scored_example.value(metric)


def note_sources(runs: Sequence[ScoredRun], measured: Measured) -> Measured:
    """Note how many responses of each source were measured, unless they are the paper's."""
    for run in runs:
        counts = Counter(
            scored_example.example.source
            for scored_example in run.all_examples()
            if scored_example.example.source in SOURCES.values()
        )
        if measured.cells and counts.total() != PAPER_EXAMPLES:
            described = ", ".join(f"{counts[source]:,} {name}" for name, source in SOURCES.items() if counts[source])
            measured.note(f"Measured on {counts.total():,} responses ({described}); the paper has {PAPER_EXAMPLES:,}.")
    return measured
