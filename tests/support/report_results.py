"""Results for tests of the report: simulated scores, measured with scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn import metrics as measure

from groundwire.engine.schema.results import UnsupportedSpan
from groundwire.evaluate.statistics.results import (
    SCHEMA,
    ClassFigures,
    Curve,
    Decision,
    ErrorCase,
    ErrorThreshold,
    Histogram,
    MarkingFigures,
    MetricFigures,
    PartRates,
    QuestionFigures,
    Reliability,
    Results,
    SetFigures,
    SystemLevel,
    TradeOff,
    VerdictFigures,
    VerifiabilityFigures,
)
from groundwire.monitor.records import Estimate, Shift

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

SHARPNESS = {
    "verdict": 1.9,
    "q2": 1.25,
    "q2_no_nli": 1.1,
    "nli": 1.35,
    "detector.facts": 1.6,
    "overlap": 0.9,
    "overlap_precision": 1.15,
    "bleu": 0.7,
    "pmi": 0.8,
}
"""How far a simulated metric pulls the two classes apart, in standard deviations."""
PROBABILITIES = ("verdict", "detector.facts")


def build_errors() -> tuple[ErrorCase, ...]:
    """Six examples that a metric gets wrong; their spans are in and out of order, separate, nested and overlapping."""
    return (
        _build_error(
            "q2wow-0412",
            1,
            0.07,
            "Yes, Bob Ross hosted it from 1983 to 1994, and it ran in the US, Canada and Latin America too!",
            (
                'He was the creator and host of "The Joy of Painting", an instructional television program that aired '
                "from 1983 to 1994 on PBS in the United States, and also aired in Canada, Latin America, and Europe.",
            ),
            [("the US", "mismatch", "the United States", ("q2",)), ("Latin America", "less_likely", "", ("pmi",))],
            (("Where did the show run?", "the US", "the United States"), ("Who hosted it?", "Bob Ross", "")),
            history=("Do you know The Joy of Painting?", "I do! Was that the one with the happy little trees?"),
            source="dodeca",
        ),
        _build_error(
            "q2wow-0077",
            0,
            0.94,
            "Elvis Presley was born on January 8, 1936, in Tupelo, and moved to Memphis when he was 13.",
            (
                "Elvis Aaron Presley was born on January 8, 1935 in Tupelo, Mississippi.",
                "He moved to Memphis, Tennessee with his family when he was 13 years old.",
            ),
            [
                ("moved to Memphis when he was 13", "not_entailed", "", ("nli",)),
                ("January 8, 1936", "contradiction", "January 8, 1935", ("q2", "nli")),
                ("1936, in Tupelo", "detected", "", ("detector.facts", "token_classifier")),
                ("1936", "not_in_knowledge", "", ("overlap",)),
            ],
            (("When was Elvis Presley born?", "January 8, 1936", "January 8, 1935"),),
            history=("Who is your favourite singer?",),
            source="memnet",
        ),
        _build_error(
            "begin-1911",
            0,
            0.91,
            "I love blue too. It is the colour of the sky and the sea, and it means hope in Sweden.",
            ("Blue is one of the three primary colours of pigments in painting and traditional colour theory.",),
            [
                ("the colour of the sky and the sea", "no_answer", "", ("q2",)),
                ("hope in Sweden", "no_answer", "", ("q2",)),
            ],
            (
                ("What is blue the colour of?", "the sky and the sea", ""),
                ("What does blue mean?", "hope in Sweden", ""),
            ),
            source="memnet",
        ),
        _build_error(
            "begin-0003",
            1,
            0.18,
            "It is a dish of thinly sliced raw fish.",
            (
                "Sashimi is a Japanese delicacy consisting of very fresh raw fish or meat sliced into thin pieces. "
                * 12,
            ),
            [],
            (),
            history=("Have you ever had sashimi?",) * 5,
            source="dodeca",
        ),
        _build_error(
            "multilingual-1",
            1,
            0.22,
            "The word is “سلام”, which means peace; in Hebrew it is “שלום”.",
            ("Salam (سلام) is an Arabic word that means ‘peace’; it is cognate to the Hebrew shalom (שלום).",),
            [("שלום", "not_in_knowledge", "", ("overlap",))],
            (),
            source="dodeca",
        ),
        _build_error(
            "short-1",
            0,
            0.88,
            "No, it was founded in 1911.",
            ("The company was founded in 1910 by Carl Friedrich.",),
            [("1911", "contradiction", "1910", ("q2",))],
            (("When was the company founded?", "1911", "1910"),),
            source="memnet",
        ),
    )


SETS: Mapping[str, Mapping[str, float]] = {
    "q2_wow_600": SHARPNESS,
    "begin_wow_test": {"verdict": 1.4, "nli": 1.6, "overlap": 1.7},
}


def results(count: int = 400, sets: Mapping[str, Mapping[str, float]] = SETS, seed: int = 7) -> Results:
    """Labelled sets of ``count`` examples with every figure there is, and one set that has grades alone.

    ``sets`` are the metrics by set, with their sharpness.
    """
    made = [labelled(name, count, seed + index, sharpness) for index, (name, sharpness) in enumerate(sets.items())]
    return Results(
        schema=SCHEMA,
        when="2025-11-21T12:04:33Z",
        signature="groundwire:0.1.0|bundle:compact@0123456789ab|precision:int8|device:cpu|metrics:q2+nli|options:default",
        seed=seed,
        repeats=1000,
        sets=(*made, graded("usr_topicalchat", count, seed)),
    )


def labelled(name: str, count: int, seed: int, sharpness: Mapping[str, float] = SHARPNESS) -> SetFigures:
    """A set with labels, two systems, verdicts, questions and errors."""
    random = np.random.default_rng(seed)
    labels = (random.random(count) < 0.56).astype(np.int64)
    system = random.random(count) < 0.5
    difficulty = random.normal(0, 0.8, count)
    figures = {}
    for metric, sharpness_of_metric in sharpness.items():
        hidden = sharpness_of_metric * (labels - 0.5) + difficulty + random.normal(0, 0.9, count)
        figures[metric] = _figures(metric, labels, _values(metric, hidden), system, seed)
    return SetFigures(
        name=name,
        examples=count + 12,
        labels={"consistent": int(labels.sum()), "inconsistent": int((1 - labels).sum()), "none": 12},
        metrics=figures,
        verdicts=tuple(
            VerdictFigures(
                profile=profile,
                labels={"consistent": a, "inconsistent": b, "unverifiable": c, "unknown": d},
                false_positive_rate=_estimate(false_positives, count),
                false_negative_rate=_estimate(false_negatives, count),
                false_positive_rate_on_unverifiable=_estimate(false_positives / 3, 60),
                verifiability_accuracy=_estimate(0.81, count),
                max_false_positive_rate=promised,
                coverage=_estimate(0.32, count),
                risk=_estimate(0.09, count // 3),
                risk_if_unsure=_estimate(0.27, count // 2),
                threshold=threshold,
                balanced_accuracy=_estimate(1 - (false_positives + false_negatives) / 2, count),
                called={
                    "consistent": {"consistent": 200, "inconsistent": 40},
                    "inconsistent": {"inconsistent": 130, "consistent": 40, "unverifiable": 8},
                },
                by_part={
                    "system=ours": PartRates(120, false_positives, 90, false_negatives, 0.3, 0.08, 0.26),
                    "system=theirs": PartRates(120, false_positives / 2, 88, false_negatives / 2, 0.35, None, 0.2),
                },
            )
            for profile, a, b, c, d, false_positives, false_negatives, promised, threshold in (
                ("balanced", 210, 150, 40, 12, 0.17, 0.21, None, 0.47),
                ("strict", 160, 205, 40, 7, 0.34, 0.08, None, 0.61),
                ("lenient", 262, 98, 40, 12, 0.06, 0.41, 0.05, 0.22),
            )
        ),
        shifts=(
            Shift("probability", 190, 0.04, 0.13, "alike"),
            Shift("length in words", 190, 0.19, 0.13, "shifted"),
            Shift("word overlap with the knowledge", 190, 0.42, 0.13, "different"),
        ),
        trade_off=TradeOff(
            tuple(n / 100 for n in range(1, 100)),
            tuple((n / 100) ** 2 for n in range(1, 100)),
            tuple((1 - n / 100) ** 2 for n in range(1, 100)),
        ),
        risk_coverage=Curve(tuple(n / 10 for n in range(1, 11)), tuple(n / 50 for n in range(1, 11))),
        questions=QuestionFigures(_estimate(0.86, count), 2 * count, _estimate(0.31, 2 * count)),
        errors=build_errors(),
        error_threshold=ErrorThreshold(0.41, "profile balanced"),
        leading="verdict" if "verdict" in figures else max(figures, key=lambda metric: _auc(figures[metric])),
        verifiability=VerifiabilityFigures(count, _estimate(0.79, count), _estimate(0.85, count)),
        marking=MarkingFigures(
            count,
            ClassFigures(_estimate(0.71, count), _estimate(0.64, count), _estimate(0.67, count)),
            ClassFigures(_estimate(0.52, count), _estimate(0.47, count), _estimate(0.49, count)),
        ),
        notes=("14 examples of begin_wow_dev share knowledge with this set and were left out of the tuning.",),
    )


def graded(name: str, count: int, seed: int) -> SetFigures:
    """A set that has grades and pairs, but no labels."""
    random = np.random.default_rng(seed)
    figures = {
        metric: MetricFigures(
            metric=metric,
            examples=count,
            statuses={"scored": count},
            spearman=_estimate(0.3 * sharpness_of_metric + random.normal(0, 0.02), count),
            pearson=_estimate(0.28 * sharpness_of_metric, count),
            ranking=_estimate(0.5 + 0.2 * sharpness_of_metric, count),
        )
        for metric, sharpness_of_metric in SHARPNESS.items()
    }
    return SetFigures(name=name, examples=count, labels={"none": count}, metrics=figures)


def _figures(metric: str, labels: Ints, values: Floats, system: np.ndarray, seed: int) -> MetricFigures:
    scored = np.random.default_rng(seed).random(len(labels)) > (0.04 if metric.startswith(("q2", "overlap")) else 0)
    y, x = labels[scored], values[scored]
    false, true, _ = measure.roc_curve(y, x)
    precision, recall, _ = measure.precision_recall_curve(1 - y, -x)
    edges = np.histogram_bin_edges(x, bins=20)
    top = float(np.median(x))
    lost = int((~scored).sum())
    thresholds = [(0.5, "0.5")] if metric not in ("bleu", "pmi") else []
    return MetricFigures(
        metric=metric,
        examples=int(scored.sum()),
        statuses={"scored": len(y)} | ({"nothing_to_verify": lost - lost // 4, "truncated": lost // 4} if lost else {}),
        roc_auc=_estimate(measure.roc_auc_score(y, x), len(y)),
        average_precision=_estimate(measure.average_precision_score(1 - y, -x), len(y)),
        decisions=tuple(
            _decision(y, x, threshold, origin) for threshold, origin in (*thresholds, (top, "begin_wow_dev"))
        ),
        ranking=_estimate(measure.roc_auc_score(y, x) + 0.01, 244),
        system_level=SystemLevel(
            244,
            _estimate(0.92, 40),
            {f"{share} %": float(x.mean() - share / 200) for share in (5, 10, 15, 20, 25)},
        )
        if metric in ("q2", "nli", "overlap")
        else None,
        roc=Curve(tuple(false), tuple(true)),
        precision_recall=Curve(tuple(recall), tuple(precision)),
        histogram=Histogram(
            tuple(edges),
            tuple(int(count) for count in np.histogram(x[y == 1], edges)[0]),
            tuple(int(count) for count in np.histogram(x[y == 0], edges)[0]),
        ),
        reliability=_reliability(y, x) if metric in PROBABILITIES else None,
        by_source={
            f"system={name}": _estimate(measure.roc_auc_score(y[part[scored]], x[part[scored]]), int(part.sum()))
            for name, part in (("dodeca", system), ("memnet", ~system))
        }
        | {"first half": _estimate(measure.roc_auc_score(y[: len(y) // 2], x[: len(y) // 2]), len(y) // 2)},
    )


def _values(metric: str, hidden: Floats) -> Floats:
    """Values on the metric's own scale."""
    squeezed = 1 / (1 + np.exp(-1.6 * hidden))
    if metric == "pmi":
        return hidden
    if metric == "bleu":
        return 60 * squeezed**2
    return np.round(squeezed * 4) / 4 if metric.startswith("q2") else squeezed


def _decision(y: Ints, x: Floats, threshold: float, origin: str) -> Decision:
    predicted = (x >= threshold).astype(np.int64)
    precision, recall, f1, _ = measure.precision_recall_fscore_support(y, predicted, labels=[0, 1], zero_division=0.0)
    classes = [
        ClassFigures(*(_estimate(float(values[index]), len(y)) for values in (precision, recall, f1)))
        for index in (0, 1)
    ]
    return Decision(
        threshold=threshold,
        origin=origin,
        accuracy=_estimate(measure.accuracy_score(y, predicted), len(y)),
        balanced_accuracy=_estimate(measure.balanced_accuracy_score(y, predicted), len(y)),
        consistent=classes[1],
        inconsistent=classes[0],
        tuned_on=0 if origin == "0.5" else 391,
    )


def _reliability(y: Ints, x: Floats) -> Reliability:
    bins = np.minimum((x * 10).astype(int), 9)
    filled = [bin_index for bin_index in range(10) if (bins == bin_index).any()]
    predicted = [float(x[bins == bin_index].mean()) for bin_index in filled]
    observed = [float(y[bins == bin_index].mean()) for bin_index in filled]
    counts = [int((bins == bin_index).sum()) for bin_index in filled]
    error = sum(abs(a - b) * n for a, b, n in zip(predicted, observed, counts, strict=True)) / len(y)
    return Reliability(tuple(predicted), tuple(observed), tuple(counts), error)


def _estimate(value: float, count: int) -> Estimate:
    """With the normal interval of a share, which is close enough to look at."""
    value = float(value)
    half = 1.96 * float(np.sqrt(max(value * (1 - value), 0.02) / max(count, 1)))
    return Estimate(value, value - half, min(value + half, 1.0))


def _auc(figures: MetricFigures) -> float:
    return figures.roc_auc.value if figures.roc_auc else 0.0


def _build_error(
    example: str,
    label: int,
    value: float,
    response: str,
    knowledge: tuple[str, ...],
    spans: Sequence[tuple[str, str, str, tuple[str, ...]]],
    questions: tuple[tuple[str, str, str], ...],
    *,
    history: tuple[str, ...] = (),
    source: str,
) -> ErrorCase:
    return ErrorCase(
        example=example,
        label=label,
        called="inconsistent" if label else "consistent",
        value=value,
        distance=value if label == 0 else 1 - value,
        response=response,
        knowledge=knowledge,
        history=history,
        system=source,
        source="random split" if source == "dodeca" else "topic split",
        unsupported=tuple(
            UnsupportedSpan(
                text,
                response.index(text),
                response.index(text) + len(text),
                reason,  # type: ignore[arg-type]
                says,
                metrics[0],
                metrics,
            )
            for text, reason, says, metrics in spans
        ),
        values={"verdict": value, "q2": 0.5, "nli": 1 - value, "overlap": 0.41, "bleu": 23.4, "pmi": -0.62},
        questions=questions,
    )


TEXT = (
    '<script>window.hacked = 1</script> "quoted" \'single\' & &amp; <img src=x onerror="window.hacked = 1"> {{ 7 * 7 }}'
)
