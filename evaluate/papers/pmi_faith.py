"""Tables 1, 2, 3 and 9 of the PMI-Faith paper: BEGIN, with thresholds tuned on its development set.

The paper pools the three sources. Scores are normalised by the development set's smallest and largest value and cut
where F1 of "Fully attributable" is best there. Normalising moves no response across the threshold, so all tables but
the last work in the metrics' own units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .runs import Judged, JudgedSet, Measured, Run

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
}
"""The paper's names of metrics."""
SOURCES = {"CMU": "cmu", "TC": "tc", "WoW": "wow"}
PAPER_ROWS = 11_059


class _Values(NamedTuple):
    """One metric on the rows on which it scored."""

    values: Floats
    consistent: Bools
    sources: tuple[str, ...]


def table_1(runs: Sequence[Run]) -> Measured:
    """Precision, recall and F1 of consistent, and accuracy."""
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    found = Measured()
    for run in runs:
        for name, metric in METRICS.items():
            test, threshold = _values(run.sets, metric, found, "test"), _threshold(run, metric, found)
            if test is None or threshold is None:
                continue
            called = test.values >= threshold
            precision, recall, f1, _ = precision_recall_fscore_support(
                test.consistent, called, average="binary", zero_division=0.0
            )
            found.put(name, "Precision", float(precision))
            found.put(name, "Recall", float(recall))
            found.put(name, "F1", float(f1))
            found.put(name, "Accuracy", float(accuracy_score(test.consistent, called)))
    return found


def table_2(runs: Sequence[Run]) -> Measured:
    """F1 of consistent by source, at the threshold of all."""
    import numpy as np
    from sklearn.metrics import f1_score

    found = Measured()
    for run in runs:
        for name, metric in METRICS.items():
            test, threshold = _values(run.sets, metric, found, "test"), _threshold(run, metric, found)
            if test is None or threshold is None:
                continue
            for column, source in SOURCES.items():
                there = np.array([one == source for one in test.sources])
                if there.any():
                    f1 = f1_score(test.consistent[there], test.values[there] >= threshold, zero_division=0.0)
                    found.put(name, column, float(f1))
    return found


def table_3(runs: Sequence[Run]) -> Measured:
    """Correlation of values and labels, and the area under the ROC curve."""
    import numpy as np
    from scipy.stats import pearsonr, spearmanr
    from sklearn.metrics import roc_auc_score

    found = Measured()
    for run in runs:
        for name, metric in METRICS.items():
            test = _values(run.sets, metric, found, "test")
            if test is None or len(np.unique(test.values)) < 2 or len(np.unique(test.consistent)) < 2:
                continue
            truth = test.consistent.astype(float)
            found.put(name, "Spearman", float(spearmanr(test.values, truth).statistic))
            found.put(name, "Pearson", float(pearsonr(test.values, truth).statistic))
            found.put(name, "AUROC", float(roc_auc_score(test.consistent, test.values)))
    return found


def table_9(runs: Sequence[Run]) -> Measured:
    """The development set's smallest and largest value, and the threshold between them, 0–1."""
    found = Measured()
    for run in runs:
        for name, metric in METRICS.items():
            tuned, threshold = _values(run.development, metric, found, "development"), _threshold(run, metric, found)
            if tuned is None or threshold is None:
                continue
            low, high = float(tuned.values.min()), float(tuned.values.max())
            found.put(name, "Min", low)
            found.put(name, "Max", high)
            found.put(name, "Threshold", (threshold - low) / (high - low) if high > low else None)
    return found


def _threshold(run: Run, metric: str, found: Measured) -> float | None:
    """The value from which F1 of consistent is best on the development set."""
    from groundwire.evaluate.statistics.estimates import best_f1_threshold

    tuned = _values(run.development, metric, found, "development")
    if tuned is None:
        if _values(run.sets, metric, found, "test") is not None:
            found.note("Thresholds need the development set: give its files with --dev, and evaluate them too.")
        return None
    return best_f1_threshold(tuned.values, tuned.consistent)


def _values(sets: Sequence[JudgedSet], metric: str, found: Measured, which: str) -> _Values | None:
    """The metric on all rows of BEGIN; None when it scored on none."""
    import numpy as np

    rows = [one for each in sets for one in each.rows if one.row.source in SOURCES.values()]
    scored = [(one, value) for one in rows if one.row.label is not None and (value := _value(one, metric)) is not None]
    if not scored:
        return None
    if len(scored) < len(rows):
        found.note(f"{metric} scored {len(scored)} of {len(rows)} {which} rows.")
    return _Values(
        np.array([value for _, value in scored], dtype=np.float64),
        np.array([one.row.label == 1 for one, _ in scored], dtype=np.bool_),
        tuple(one.row.source for one, _ in scored),
    )


def _value(one: Judged, metric: str) -> float | None:
    """A detector counts by its decision, as the paper has it."""
    return one.decision(metric) if metric.startswith("detector.") else one.value(metric)


def sources(runs: Sequence[Run], found: Measured) -> Measured:
    """Say of how many responses from where the figures are."""
    for run in runs:
        counts = Counter(one.row.source for one in run.rows() if one.row.source in SOURCES.values())
        if found.cells and counts.total() != PAPER_ROWS:
            there = ", ".join(f"{counts[source]:,} {name}" for name, source in SOURCES.items() if counts[source])
            found.note(f"Measured on {counts.total():,} responses ({there}); the paper has {PAPER_ROWS:,}.")
    return found
