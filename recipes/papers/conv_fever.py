"""Tables 2 and 4 to 12 of "Rome was built in 1776": detectors against the labels of the crowd and of the experts.

A detector decides by its most probable label; a response counts for every model and decoding that generated it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groundwire.evaluate.datasets.plain import JOINT

from .runs import Measured, ScoredExample, ScoredRun

EXPERT = {
    "FactCC": "detector.factcc",
    "ALBERT + VitC": "detector.vitaminc",
    "ALBERT + VitC + FEVER": "detector.vitaminc-fever",
    "ALBERT + MNLI": "detector.mnli",
    "ALBERT + MNLI + VitC": "detector.vitaminc-mnli",
    "BERT-base Conv-FEVER": "detector.conv-fever",
}
"""Detectors by their row of table 5."""
CROWD = {
    4: "detector.conv-fever",
    6: "detector.conv-fever",
    8: "detector.mnli",
    9: "detector.vitaminc",
    10: "detector.vitaminc-fever",
    11: "detector.vitaminc-mnli",
    12: "detector.factcc",
}
"""The detector of each table that has only one."""
SOURCES = {"GT": "gt", "KNN": "knn", "DPR": "dpr"}
DECODINGS = {"BS": "beam search", "NS": "nucleus", "DBS": "DBS"}
MODELS = {"small": "GPT2-small", "medium": "GPT2-medium", "large": "GPT2-large", "XL": "GPT2-xlarge"}
CLASSES = {"Consistent": 1, "Inconsistent": 0}


def measure_conv_fever_table_2(runs: Sequence[ScoredRun]) -> Measured:
    """Mean grade of factual consistency, and the share of hallucinations in per cent, of each configuration."""
    measured = Measured()
    for run in runs:
        for row, model, examples in _iterate_configurations(run):
            grades = [scored.example.grade for scored in examples if scored.example.grade is not None]
            answers = [scored.example.hallucinated for scored in examples if scored.example.hallucinated is not None]
            measured.put(row, f"{model} F", sum(grades) / len(grades) if grades else None)
            measured.put(row, f"{model} H", 100 * sum(answers) / len(answers) if answers else None)
    return measured


def measure_conv_fever_table_5(runs: Sequence[ScoredRun]) -> Measured:
    """Precision, recall and F1 of both classes against the experts' labels."""
    measured = Measured()
    for run in runs:
        examples = [
            scored
            for scored in run.all_examples()
            if scored.example.source == "expert" and scored.example.label is not None
        ]
        for name, metric in EXPERT.items():
            for title, label in CLASSES.items():
                figures = _score_class(examples, metric, label)
                for column, value in zip(("P", "R", "F1"), figures or (), strict=False):
                    measured.put(name, f"{title} {column}", value)
    return measured


def measure_conv_fever_table_7(runs: Sequence[ScoredRun]) -> Measured:
    """Labelled responses of each configuration."""
    measured = Measured()
    for run in runs:
        for row, model, examples in _iterate_configurations(run):
            measured.put(row, model, len(examples))
    return measured


def measure_crowd_table(number: int, runs: Sequence[ScoredRun]) -> Measured:
    """F1 of both classes by configuration, of one detector."""
    measured, metric = Measured(), CROWD[number]
    for run in runs:
        for row, model, examples in _iterate_configurations(run):
            decided = sum(scored.decision(metric) is not None for scored in examples)
            if 0 < decided < len(examples):
                measured.note(f"{row} {model}: {metric} scored {decided} of {len(examples)} examples.")
            for short, label in (("C", 1), ("IC", 0)):
                figures = _score_class(examples, metric, label)
                measured.put(row, f"{model} F1({short})", figures[2] if figures else None)
    return measured


def _iterate_configurations(run: ScoredRun) -> Iterator[tuple[str, str, list[ScoredExample]]]:
    """The labelled examples of each retriever, decoding and model, where there are any."""
    labelled = [
        scored for scored in run.all_examples() if scored.example.verifiable and scored.example.label is not None
    ]
    for retriever, source in SOURCES.items():
        for short, decoding in DECODINGS.items():
            for model, full in MODELS.items():
                examples = [
                    scored
                    for scored in labelled
                    if scored.example.source == source and f"{full}/{decoding}" in scored.example.system.split(JOINT)
                ]
                if examples:
                    yield f"{retriever} {short}", model, examples


def _score_class(examples: Sequence[ScoredExample], metric: str, label: int) -> tuple[float, float, float] | None:
    """Precision, recall and F1 of one class, in per cent; None when the detector scored no example."""
    from sklearn.metrics import precision_recall_fscore_support

    decided = [
        (scored.example.label, decision) for scored in examples if (decision := scored.decision(metric)) is not None
    ]
    if not decided:
        return None
    truth, predicted = zip(*decided, strict=True)
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, predicted, pos_label=label, average="binary", zero_division=0.0
    )
    return 100 * float(precision), 100 * float(recall), 100 * float(f1)
