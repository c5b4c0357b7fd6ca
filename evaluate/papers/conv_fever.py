"""Tables 4 to 12 of "Rome was built in 1776": detectors on the crowd's and the experts' judgements.

A detector decides by its most probable label; a response counts for every model and decoding that gave it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groundwire.evaluate.datasets.plain import JOINT

from .runs import Judged, Measured, Run

EXPERT = {
    "FactCC": "detector.factcc",
    "ALBERT + VitC": "detector.vitaminc",
    "ALBERT + VitC + FEVER": "detector.vitaminc-fever",
    "ALBERT + MNLI": "detector.mnli",
    "ALBERT + MNLI + VitC": "detector.vitaminc-mnli",
    "BERT-base Conv-FEVER": "detector.conv-fever",
}
"""The rows of table 5."""
CROWD = {
    4: "detector.conv-fever",
    6: "detector.conv-fever",
    8: "detector.mnli",
    9: "detector.vitaminc",
    10: "detector.vitaminc-fever",
    11: "detector.vitaminc-mnli",
    12: "detector.factcc",
}
"""The tables of one detector each."""
SOURCES = {"GT": "gt", "KNN": "knn", "DPR": "dpr"}
DECODINGS = {"BS": "beam search", "NS": "nucleus", "DBS": "DBS"}
MODELS = {"small": "GPT2-small", "medium": "GPT2-medium", "large": "GPT2-large", "XL": "GPT2-xlarge"}
CLASSES = {"Consistent": 1, "Inconsistent": 0}


def table_5(runs: Sequence[Run]) -> Measured:
    """Precision, recall and F1 of both classes on the experts' judgements."""
    found = Measured()
    for run in runs:
        rows = [one for one in run.rows() if one.row.source == "expert" and one.row.label is not None]
        for name, metric in EXPERT.items():
            for title, label in CLASSES.items():
                figures = _figures(rows, metric, label)
                for column, value in zip(("P", "R", "F1"), figures or (), strict=False):
                    found.put(name, f"{title} {column}", value)
    return found


def table_7(runs: Sequence[Run]) -> Measured:
    """How many responses of each configuration have a label."""
    found = Measured()
    for run in runs:
        for row, model, rows in _configurations(run):
            found.put(row, model, len(rows))
    return found


def crowd(number: int, runs: Sequence[Run]) -> Measured:
    """One detector by configuration: F1 of both classes."""
    found, metric = Measured(), CROWD[number]
    for run in runs:
        for row, model, rows in _configurations(run):
            decided = sum(one.decision(metric) is not None for one in rows)
            if 0 < decided < len(rows):
                found.note(f"{row} {model}: {metric} scored {decided} of {len(rows)} rows.")
            for short, label in (("C", 1), ("IC", 0)):
                figures = _figures(rows, metric, label)
                found.put(row, f"{model} F1({short})", figures[2] if figures else None)
    return found


def _configurations(run: Run) -> Iterator[tuple[str, str, list[Judged]]]:
    """The judged rows of each retriever and decoding, and of each model, where there are any."""
    judged = [one for one in run.rows() if one.row.verifiable and one.row.label is not None]
    for retriever, source in SOURCES.items():
        for short, decoding in DECODINGS.items():
            for model, full in MODELS.items():
                rows = [
                    one
                    for one in judged
                    if one.row.source == source and f"{full}/{decoding}" in one.row.system.split(JOINT)
                ]
                if rows:
                    yield f"{retriever} {short}", model, rows


def _figures(rows: Sequence[Judged], metric: str, label: int) -> tuple[float, float, float] | None:
    """Precision, recall and F1 of one class, in per cent; None when the detector decided on no row."""
    from sklearn.metrics import precision_recall_fscore_support

    decided = [(one.row.label, decision) for one in rows if (decision := one.decision(metric)) is not None]
    if not decided:
        return None
    truth, called = zip(*decided, strict=True)
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, called, pos_label=label, average="binary", zero_division=0.0
    )
    return 100 * float(precision), 100 * float(recall), 100 * float(f1)
