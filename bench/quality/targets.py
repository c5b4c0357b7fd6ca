"""The table of targets in docs/quality.md: what is wanted of the embedded bundle, and what was measured."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from sklearn.metrics import roc_auc_score

from groundwire.engine.schema.results import Score
from groundwire.engine.verdict import decide_again, features, reads_in_response
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.statistics.results import MetricFigures, SetFigures
from groundwire.metrics import bind_results, find
from groundwire.monitor.records import Estimate
from groundwire.runtime.bundles.calibration import Calibration

LABELS = Path(__file__).resolve().parent / "labels" / "q2_wow_unsupported.jsonl"
"""Unsupported words of 300 responses of q2_wow; ``labels/README.md`` says who marked them, and how."""
AREAS = (
    *(("q2_wow_600", "q2", "0.80"), ("q2_wow_600", "detector.consistency", "0.84"), ("q2_wow_600", "verdict", "0.86")),
    *(("fever_symmetric_test", "detector.consistency", "0.85"), ("begin_wow_test", "detector.consistency", "0.92")),
    *(("begin_wow_test", "verdict", "0.96"), ("begin_cmu_dev", "verdict", "0.97"), ("begin_tc_dev", "verdict", "0.94")),
    *(("factual_crowd_knn", "verdict", "0.83"), ("factual_crowd_dpr", "verdict", "0.76")),
)
"""Wanted ROC-AUC, by set and metric."""
FAST_LOSS = 0.015
"""What the metrics of the group fast may lose in ROC-AUC."""


class Measured(NamedTuple):
    """All that the table is made from."""

    sets: Mapping[str, Sequence[Example]]
    scores: Mapping[str, Sequence[Score]]
    calibration: Calibration | None
    figures: Mapping[str, SetFigures]
    reading: Mapping[str, Any]
    """Figures of reading comprehension; empty where it was not measured."""
    showcase: tuple[int, int] | None
    """Verdicts of the showcase that are right, and all of them."""


def write_targets(measured: Measured) -> Iterator[str]:
    """The lines of the table. What a run did not measure has no line."""
    yield from ("", "## Targets", "", "| set | figure | wanted | measured |", "|---|---|---|---|")
    figures = measured.figures
    if measured.reading:
        independent = measured.reading["independent"]
        yield f"| squad2_dev | F1 | ≥ 68 | {independent['f1']:.1f} |"
        yield f"| squad2_dev | no-answer accuracy | ≥ 65 % | {independent['no_answer_accuracy']:.1f} % |"
    q2 = find_metric(figures, "q2_wow_600", "q2")
    if q2 is not None:
        half = next(decision for decision in q2.decisions if decision.origin == "0.5")
        yield f"| q2_wow_600 | Q² accuracy above 0.5 | ≥ 74 % | {format_percent(half.accuracy)} |"
    for name, metric, wanted in AREAS:
        of_metric = find_metric(figures, name, metric)
        if of_metric is not None:
            yield f"| {name} | `{metric}` ROC-AUC | ≥ {wanted} | {format_interval(of_metric.roc_auc)} |"
    if "fever_symmetric_test" in figures:
        share = measure_inference(measured.sets["fever_symmetric_test"], measured.scores["fever_symmetric_test"])
        yield f"| fever_symmetric_test | inference, entailed or not | ≥ 80 % | {share:.1%} |"
    if "falke2019_pairs" in figures:
        share = measure_ranking(measured.sets["falke2019_pairs"], measured.scores["falke2019_pairs"])
        yield f"| falke2019_pairs | ranked by the probability of entailment | ≥ 72 % | {share:.1%} |"
    if measured.showcase is not None:
        yield f"| showcase | verdicts right | ≥ 56 of 60 | {measured.showcase[0]} of {measured.showcase[1]} |"
    yield from write_false_positives(figures)
    for name in ("factual_crowd_knn", "factual_crowd_dpr"):
        verifiability = figures[name].verifiability if name in figures else None
        if verifiability is not None:
            yield f"| {name} | `verifiability` accuracy | – | {format_percent(verifiability.accuracy)} |"
    for name, wanted in (("edits", "≥ 0.80"), ("q2_wow", "–")):
        marking = figures[name].marking if name in figures else None
        if marking is not None:
            yield f"| {name} | F1 of marked runs of words | {wanted} | {format_interval(marking.spans.f1)} |"
            yield f"| {name} | F1 of marked words | – | {format_interval(marking.words.f1)} |"
    for name in dict.fromkeys(name for name, metric, _ in AREAS if metric == "verdict"):
        both = measure_fast(measured, name)
        if both is not None:
            loss = both[0] - both[1]
            yield f"| {name} | `verdict` ROC-AUC lost by the group fast | ≤ {FAST_LOSS} | {loss:+.3f} ({both[1]:.3f}) |"
    for name in ("begin_tc_dev", "begin_cmu_dev"):
        measured_pmi = find_metric(figures, name, "pmi")
        if measured_pmi is not None:
            share = measured_pmi.examples / figures[name].labelled
            yield f"| {name} | responses that `pmi` scores | ≥ 98 % | {share:.1%} |"


def write_false_positives(figures: Mapping[str, SetFigures]) -> Iterator[str]:
    """Shares of ``inconsistent`` under ``balanced`` where nothing is wrong."""
    for name, set_figures in figures.items():
        verdicts = next((v for v in set_figures.verdicts if v.profile == "balanced"), None)
        if verdicts is None:
            continue
        nothing = verdicts.false_positive_rate_on_unverifiable
        if nothing is not None:
            wanted = "≤ 1 %" if name == "smalltalk" else "≤ 8 %"
            title = "inconsistent, of the responses with nothing to verify"
            yield f"| {name} | {title} | {wanted} | {format_percent(nothing)} |"
        consistent = verdicts.false_positive_rate
        if consistent is not None and name != "edits":
            yield f"| {name} | inconsistent, of the consistent | ≤ 12 % | {format_percent(consistent)} |"


def find_metric(figures: Mapping[str, SetFigures], name: str, metric: str) -> MetricFigures | None:
    """The figures of a metric on a set, where it was measured."""
    return figures[name].metrics.get(metric) if name in figures else None


def measure_inference(examples: Sequence[Example], scores: Sequence[Score]) -> float:
    """Share of the labelled examples that ``nli`` calls entailed where they are consistent, and only there."""
    pairs = [(example.label, score.metrics["nli"].value) for example, score in zip(examples, scores, strict=True)]
    return float(np.mean([(value == 1.0) == (label == 1) for label, value in pairs if label is not None]))


def measure_ranking(examples: Sequence[Example], scores: Sequence[Score]) -> float:
    """Share of the pairs of one context whose consistent response has the higher probability of entailment."""
    contexts: dict[str, dict[int, float]] = {}
    for example, score in zip(examples, scores, strict=True):
        if example.label is not None:
            contexts.setdefault(example.context, {})[example.label] = features(bind_results(score.metrics))[
                "nli.entailment"
            ]
    pairs = [both for both in contexts.values() if len(both) == 2]
    return float(np.mean([both[1] > both[0] for both in pairs]))


def measure_fast(measured: Measured, name: str) -> tuple[float, float] | None:
    """ROC-AUC of the verdict's probability from all metrics, and from the group fast, on the same examples."""
    calibration = measured.calibration
    if name not in measured.figures or calibration is None or len(calibration.fusions) < 2:
        return None
    if reads_in_response(feature.name for feature in calibration.fusions[0].features):
        return None  # the small models read no sentence, as the verdict of the group does
    rows = []
    for example, score in zip(measured.sets[name], measured.scores[name], strict=True):
        fast = {key: result for key, result in score.metrics.items() if is_fast(key)}
        both = [
            decide_again(example.request, metrics, calibration, "balanced")[0].probability
            for metrics in (score.metrics, fast)
        ]
        if example.label is not None and None not in both:
            rows.append((example.label, *both))
    labels, full, quick = zip(*rows, strict=True)
    return float(roc_auc_score(labels, full)), float(roc_auc_score(labels, quick))


def is_fast(metric: str) -> bool:
    """Whether a metric belongs to the group fast."""
    record = find(metric)
    return record is not None and "fast" in record.groups


def add_labels(examples: Sequence[Example]) -> list[Example]:
    """The examples; the examples in ``LABELS`` have their unsupported words."""
    rows = {row["id"]: row["unsupported"] for row in map(msgspec.json.decode, LABELS.read_bytes().splitlines())}
    return [
        msgspec.structs.replace(example, unsupported=tuple((part["start"], part["end"]) for part in rows[example.id]))
        if example.id in rows
        else example
        for example in examples
    ]


def count_showcase(bundle: str) -> tuple[int, int]:
    """How many verdicts of the showcase are right, and of how many."""
    script = Path(__file__).resolve().parent / "showcase.py"
    command = [sys.executable, str(script), "--bundle", bundle]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    counts = re.search(r"^(\d+) of (\d+) verdicts are right", printed, re.MULTILINE)
    if counts is None:
        raise ValueError(f"{script} printed no count of right verdicts.")
    return int(counts[1]), int(counts[2])


def format_interval(figure: Estimate | None) -> str:
    """A figure and its interval, both with three digits."""
    return "–" if figure is None else f"{figure.value:.3f} ({figure.low:.3f}–{figure.high:.3f})"


def format_percent(figure: Estimate | None) -> str:
    """A share and its interval in percent."""
    return "–" if figure is None else f"{figure.value:.1%} ({figure.low:.1%}–{figure.high:.1%})"
