"""Rows and their scores into figures. Pure: no model runs here, so figures are made again as often as one likes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from groundwire.engine.metrics.claims import VERIFIABLE
from groundwire.engine.schema.results import Score, Verdict
from groundwire.engine.verdict.decision import decide
from groundwire.evaluate.datasets.examples import Row, apart
from groundwire.evaluate.scores.metric_values import FUSED, Column, columns
from groundwire.runtime.calibration import Calibration, ProfileName

from .agreement import Threshold, agreement, bounded
from .error_analysis import asked_by_q2, mistakes
from .estimates import Bools, best_f1_threshold, estimate, roc_auc
from .human_labels import People
from .results import MetricFigures, QuestionFigures, SetFigures, VerdictFigures, VerifiabilityFigures

VERIFIABILITY = "verifiability"
"""The metric that judges whether there is anything to check, and no consistency."""
MAX_PARTS = 30
"""Sources, or systems, beyond which there is no breakdown: it would have a few rows each."""


class Development(NamedTuple):
    """A labelled set on which thresholds are tuned."""

    name: str
    rows: Sequence[Row]
    scores: Sequence[Score]

    def apart_from(self, rows: Iterable[Row]) -> Development:
        """Without the rows that share a passage of knowledge with ``rows``: on those, a threshold would be told."""
        kept = [place for place, clear in enumerate(apart(self.rows, rows)) if clear]
        return Development(self.name, [self.rows[i] for i in kept], [self.scores[i] for i in kept])


def analyse(
    name: str,
    rows: Sequence[Row],
    scores: Sequence[Score],
    *,
    calibration: Calibration | None = None,
    development: Development | None = None,
    seed: int = 0,
    repeats: int = 1000,
) -> SetFigures:
    """All figures of one set; ``scores`` are those of ``rows``, in their order.

    ``calibration`` draws the verdicts again, whatever the scores were made with. ``repeats`` is the number of samples
    behind every interval, drawn with ``seed``.
    """
    people = People(rows, repeats, seed)
    found = columns(scores, calibration)
    notes: list[str] = []
    tuned = _tuned(rows, development, calibration, notes) if development else {}
    parts = dict(_parts(rows, notes))
    metrics = {
        metric: agreement(metric, column, people, _thresholds(metric, tuned), parts)
        for metric, column in found.items()
        if metric != VERIFIABILITY
    }
    leading = _leading(metrics)
    labels = Counter(row.label for row in rows)
    return SetFigures(
        name=name,
        rows=len(rows),
        labels={"consistent": labels[1], "inconsistent": labels[0], "none": labels[None]},
        metrics=metrics,
        verdicts=tuple(
            _verdict_figures(profile, [decide(score.metrics, calibration, profile) for score in scores], rows, people)
            for profile in (calibration.profiles if calibration else ())
        ),
        questions=_questions(scores, people),
        mistakes=mistakes(rows, scores, found, leading, people) if leading else (),
        leading=leading,
        verifiability=_verifiability(rows, found.get(VERIFIABILITY), people),
        notes=tuple(notes),
    )


def _tuned(
    rows: Sequence[Row], development: Development, calibration: Calibration | None, notes: list[str]
) -> dict[str, Threshold]:
    """The threshold of each metric with the best F1 on the development set."""
    clear = development.apart_from(rows)
    if left_out := len(development.rows) - len(clear.rows):
        notes.append(
            f"Thresholds are tuned on {len(clear.rows)} of the {len(development.rows)} rows of {development.name}: "
            f"{left_out} share knowledge with this set."
        )
    labelled: Bools = np.array([row.label is not None for row in clear.rows], dtype=bool)
    consistent: Bools = np.array([row.label == 1 for row in clear.rows], dtype=bool)
    found = {}
    for metric, column in columns(clear.scores, calibration).items():
        known = labelled & np.isfinite(column.values)
        best = best_f1_threshold(column.values[known], consistent[known])
        if best is not None:
            found[metric] = Threshold(best, development.name, int(known.sum()))
    if not found:
        notes.append(f"No threshold could be tuned on {development.name}: it needs rows of both classes that scored.")
    return found


def _thresholds(metric: str, tuned: Mapping[str, Threshold]) -> Iterator[Threshold]:
    if bounded(metric):
        yield Threshold(0.5, "0.5")
    if metric in tuned:
        yield tuned[metric]


def _parts(rows: Sequence[Row], notes: list[str]) -> Iterator[tuple[str, Bools]]:
    """The rows of each source and of each system, where there are several."""
    for kind, prefix, names in (
        ("sources", "", [row.source for row in rows]),
        ("systems", "system=", [row.system for row in rows]),
    ):
        different = list(dict.fromkeys(name for name in names if name))
        if len(different) > MAX_PARTS:
            notes.append(f"There are {len(different)} {kind}, too many for figures of each.")
        elif len(different) > 1:
            for name in different:
                yield f"{prefix}{name}", np.array([one == name for one in names], dtype=bool)


def _leading(metrics: Mapping[str, MetricFigures]) -> str:
    areas = {name: found.roc_auc.value for name, found in metrics.items() if found.roc_auc is not None}
    return FUSED if FUSED in areas else max(areas, key=lambda name: areas[name], default="")


def _verdict_figures(
    profile: ProfileName, verdicts: Sequence[Verdict], rows: Sequence[Row], people: People
) -> VerdictFigures:
    """Rates over the rows that got a verdict; ``unknown`` is none, and is counted in ``labels``."""
    labels = np.array([verdict.label for verdict in verdicts])
    known: Bools = labels != "unknown"
    alarm: Bools = labels == "inconsistent"
    unverifiable: Bools = labels == "unverifiable"
    said: Bools = np.array([row.verifiable is not None for row in rows], dtype=bool)
    nothing: Bools = np.array([row.verifiable is False for row in rows], dtype=bool)
    consistent, inconsistent = people.consistent & known, people.inconsistent & known
    return VerdictFigures(
        profile=profile,
        labels=dict(Counter(verdict.label for verdict in verdicts).most_common()),
        false_positive_rate=people.share(alarm & consistent, consistent),
        false_negative_rate=people.share(~alarm & inconsistent, inconsistent),
        alarms_on_unverifiable=people.share(alarm & nothing & known, nothing & known),
        verifiability_accuracy=people.share((unverifiable == nothing) & said & known, said & known),
    )


def _verifiability(rows: Sequence[Row], column: Column | None, people: People) -> VerifiabilityFigures | None:
    """The metric against what people said of the same question."""
    if column is None:
        return None
    said: Bools = np.array([row.verifiable is not None for row in rows], dtype=bool)
    checkable: Bools = np.array([row.verifiable is True for row in rows], dtype=bool)
    known = said & np.isfinite(column.values)
    accuracy = people.share(((column.values >= VERIFIABLE) == checkable) & known, known)
    if accuracy is None:
        return None
    area = people.samples.measure(roc_auc(column.values[known], checkable[known]), known)
    return VerifiabilityFigures(int(known.sum()), accuracy, estimate(area))


def _questions(scores: Sequence[Score], people: People) -> QuestionFigures | None:
    """How often Q² found a question, and how often the knowledge had no answer."""
    found = [asked_by_q2(score) for score in scores]
    asked = np.array([one is not None for one in found], dtype=bool)
    kept = [one or () for one in found]
    counts = np.array([len(one) for one in kept], dtype=np.float64)
    unanswered = np.array([sum(c.knowledge_answer is None for c in one) for one in kept], dtype=np.float64)
    with_a_question = people.share(asked & (counts > 0), asked)
    no_answer = people.share(unanswered, counts)
    if with_a_question is None or no_answer is None:
        return None
    return QuestionFigures(with_a_question, int(counts.sum()), no_answer)
