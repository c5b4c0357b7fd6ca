"""The tables of a report: what is in their columns, and which columns there are. A template draws them all alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from groundwire.evaluate.statistics.results import Decision, Estimate, MetricFigures, SetFigures, VerdictFigures

Kind: TypeAlias = Literal["number", "share", "count", "range", "heat"]
"""How a value is shown: with three decimals, in per cent, as a count, with its interval at all times (the others' are
shown on request), or on a background as strong as the value is above 0.5."""
Value: TypeAlias = Estimate | float | int | None


class Column(NamedTuple):
    """One column, with a value for every row of its table."""

    label: str
    about: str
    """What the label means, in a sentence."""
    kind: Kind
    values: tuple[Value, ...]
    group: str = ""
    """Heading over several neighbouring columns."""
    best: float | None = None
    """The value that is marked as the best; None marks none."""


class Table(NamedTuple):
    """Rows by name, and columns that are not empty."""

    caption: str
    head: str
    """What the rows are."""
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    lead: str = ""
    """The row that is set apart."""
    sorted_by: int | None = None
    """The column whose values fall from row to row."""

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """Headings over the columns, and how many columns each spans."""
        found: list[tuple[str, int]] = []
        for column in self.columns:
            if found and found[-1][0] == column.group:
                found[-1] = (column.group, found[-1][1] + 1)
            else:
                found.append((column.group, 1))
        return tuple(found)


def number(value: Value) -> float | None:
    """The number of a value; None where there is none or it is not finite."""
    plain = value.value if isinstance(value, Estimate) else value
    return None if plain is None or not math.isfinite(plain) else float(plain)


def ranked(figures: SetFigures) -> tuple[MetricFigures, ...]:
    """The metrics, best first: by ROC-AUC, without labels by ranking accuracy or correlation, then by name."""

    def merit(one: MetricFigures) -> tuple[float, ...]:
        return tuple(-(number(value) or 0.0) for value in (one.roc_auc, one.ranking, one.spearman))

    return tuple(sorted(figures.metrics.values(), key=lambda one: (*merit(one), one.metric)))


def overview(sets: Sequence[SetFigures]) -> Table:
    """ROC-AUC of every metric on every set that has labels: those measured on most sets first, then the best."""
    labelled = [one for one in sets if any(number(each.roc_auc) is not None for each in one.metrics.values())]

    def merit(metric: str) -> tuple[int, float]:
        found = [number(one.metrics[metric].roc_auc) for one in labelled if metric in one.metrics]
        values = [value for value in found if value is not None]
        return len(values), sum(values)

    names = {metric: None for one in labelled for metric in one.metrics}
    rows = sorted(names, key=lambda metric: (*(-part for part in merit(metric)), metric))
    columns = [
        _column(
            one.name,
            f"{one.rows:,} responses",
            "heat",
            [one.metrics[metric].roc_auc if metric in one.metrics else None for metric in rows],
            best=True,
        )
        for one in labelled
    ]
    return Table("ROC-AUC of every metric on every set", "Metric", tuple(rows), _kept(columns))


def metrics(figures: SetFigures) -> Table:
    """How well every metric agrees with people."""
    rows = ranked(figures)

    def column(
        label: str, about: str, get: Callable[[MetricFigures], Value], kind: Kind = "number", group: str = ""
    ) -> Column:
        return _column(label, about, kind, [get(one) for one in rows], group, kind != "count")

    columns = [
        column(
            "Rows", "responses on which the metric scored and people gave a judgement", lambda one: one.rows, "count"
        ),
        column(
            "ROC-AUC",
            "chance that a consistent response has a higher value than an inconsistent one",
            lambda one: one.roc_auc,
            "range",
        ),
        column(
            "Average precision",
            "area under the precision-recall curve of the class inconsistent",
            lambda one: one.average_precision,
        ),
    ]
    for origin in _origins(rows):
        group = "at 0.5" if origin == "0.5" else f"tuned on {origin}"
        if origin != "0.5":
            thresholds = [decision.threshold if (decision := _at(one, origin)) else None for one in rows]
            columns.append(
                _column("Threshold", "value from which a response counts as consistent", "number", thresholds, group)
            )
        for label, about, get in _DECIDED:
            columns.append(column(label, about, _of(origin, get), group=group))
    columns += [
        column("Spearman", "rank correlation with people's grades", lambda one: one.spearman, group="with grades"),
        column("Pearson", "linear correlation with people's grades", lambda one: one.pearson, group="with grades"),
        column("Ranking", "share of pairs of one context in the right order", lambda one: one.ranking),
        column(
            "System level",
            "rank correlation of simulated systems' mean values with their quality",
            lambda one: one.systems.correlation if one.systems else None,
        ),
    ]
    return _sorted(
        Table("How well every metric agrees with people", "Metric", _names(rows), _kept(columns), figures.leading)
    )


def decisions(figures: SetFigures) -> Table:
    """Precision and recall of both classes at every threshold."""
    rows = ranked(figures)
    columns = [
        _column(
            label,
            about,
            "number",
            [_of(origin, get)(one) for one in rows],
            "at 0.5" if origin == "0.5" else f"tuned on {origin}",
            True,
        )
        for origin in _origins(rows)
        for label, about, get in _DETAILED
    ]
    return Table("Precision and recall at the thresholds", "Metric", _names(rows), _kept(columns), figures.leading)


def sources(figures: SetFigures) -> Table:
    """ROC-AUC by part of the set and by system; many of them are the rows, and the best metrics the columns."""
    rows = ranked(figures)
    keys = sorted({key for one in rows for key in one.by_source}, key=lambda key: (key.startswith(_SYSTEM), key))
    if len(keys) > MAX_COLUMNS:
        across = [
            _column(one.metric, "", "heat", [one.by_source.get(key) for key in keys]) for one in rows[:MAX_COLUMNS]
        ]
        return Table(
            "ROC-AUC by source",
            "Part",
            tuple(key.replace("=", " ", 1) if key.startswith(_SYSTEM) else key for key in keys),
            _kept(across),
        )
    columns = [
        _column(
            key.removeprefix(_SYSTEM),
            "",
            "heat",
            [one.by_source.get(key) for one in rows],
            "by system" if key.startswith(_SYSTEM) else "by source",
            True,
        )
        for key in keys
    ]
    return Table("ROC-AUC by source", "Metric", _names(rows), _kept(columns), figures.leading)


def statuses(figures: SetFigures) -> Table:
    """What became of every row, for metrics that did not score all of them."""
    rows = [one for one in ranked(figures) if any(count for name, count in one.statuses.items() if name != "scored")]
    names = {name: None for one in rows for name, count in one.statuses.items() if count}
    order = sorted(names, key=lambda name: (name != "scored", name))
    columns = [
        _column(name.replace("_", " "), STATUSES.get(name, ""), "count", [one.statuses.get(name, 0) for one in rows])
        for name in order
    ]
    return Table("How often a metric scored", "Metric", _names(rows), _kept(columns))


def systems(figures: SetFigures) -> Table:
    """Simulated systems: their mean values by their share of inconsistent responses."""
    rows = [one for one in ranked(figures) if one.systems is not None]
    shares = {share: None for one in rows if one.systems for share in one.systems.means}
    columns = [
        _column(
            "Contexts",
            "of which exactly one of two responses is inconsistent",
            "count",
            [one.systems.contexts if one.systems else None for one in rows],
        ),
        _column(
            "Correlation",
            "Spearman, of a system's mean value with its quality",
            "number",
            [one.systems.correlation if one.systems else None for one in rows],
            best=True,
        ),
        *(
            _column(
                share.replace(" ", "\u00a0"),
                f"a system with {share} inconsistent responses",
                "number",
                [one.systems.means.get(share) if one.systems else None for one in rows],
                "mean value by share of inconsistent responses",
            )
            for share in shares
        ),
    ]
    return Table("Systems told apart", "Metric", _names(rows), _kept(columns))


def verdicts(given: Sequence[VerdictFigures]) -> Table:
    """What the profiles say, and how often they are wrong."""
    labels = {label: None for one in given for label in one.labels}
    columns = [
        *(
            _column(
                label, LABELS.get(label, ""), "count", [one.labels.get(label, 0) for one in given], "verdicts given"
            )
            for label in labels
        ),
        _column(
            "False alarms",
            "share of consistent responses called inconsistent",
            "share",
            [one.false_positive_rate for one in given],
            "wrong",
        ),
        _column(
            "Misses",
            "share of inconsistent responses called consistent or unverifiable",
            "share",
            [one.false_negative_rate for one in given],
            "wrong",
        ),
        _column(
            "Alarms on nothing",
            "share of responses that state nothing to check, called inconsistent",
            "share",
            [one.alarms_on_unverifiable for one in given],
            "wrong",
        ),
        _column(
            "Verifiability told",
            "share of responses of which it is told rightly whether they state anything to check",
            "share",
            [one.verifiability_accuracy for one in given],
        ),
    ]
    return Table("Verdicts by profile", "Profile", tuple(one.profile for one in given), _kept(columns))


MAX_COLUMNS = 10
"""Columns of a breakdown; more do not fit a page."""
_SYSTEM = "system="
STATUSES = {
    "scored": "the metric has a value",
    "nothing_to_verify": "the metric found nothing it can judge",
    "truncated": "the texts exceed what may be read",
    "deadline": "there was no time left",
    "cancelled": "the request was stopped",
    "failed": "a model failed",
    "invalid": "the input is not usable",
}
LABELS = {
    "consistent": "the knowledge supports it",
    "inconsistent": "the knowledge does not support it",
    "unverifiable": "it states nothing that knowledge could confirm",
    "unknown": "a needed metric did not score",
}
_DECIDED: tuple[tuple[str, str, Callable[[Decision], Value]], ...] = (
    ("Accuracy", "share of responses decided rightly", lambda one: one.accuracy),
    ("F1 consistent", "harmonic mean of precision and recall of the class consistent", lambda one: one.consistent.f1),
    ("F1 incons.", "harmonic mean of precision and recall of the class inconsistent", lambda one: one.inconsistent.f1),
)
_DETAILED: tuple[tuple[str, str, Callable[[Decision], Value]], ...] = (
    ("Balanced accuracy", "mean of both classes' recall", lambda one: one.balanced_accuracy),
    ("Precision cons.", "share of those called consistent that are", lambda one: one.consistent.precision),
    ("Recall cons.", "share of consistent ones that are called so", lambda one: one.consistent.recall),
    ("Precision incons.", "share of those called inconsistent that are", lambda one: one.inconsistent.precision),
    ("Recall incons.", "share of inconsistent ones that are called so", lambda one: one.inconsistent.recall),
)


def _column(label: str, about: str, kind: Kind, values: Sequence[Value], group: str = "", best: bool = False) -> Column:
    found = [value for value in map(number, values) if value is not None]
    top = max(found) if best and len(found) > 1 else None
    return Column(label, about, kind, tuple(values), group, top)


def _kept(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Those that have a value."""
    return tuple(one for one in columns if any(number(value) is not None for value in one.values))


def _names(rows: Sequence[MetricFigures]) -> tuple[str, ...]:
    return tuple(one.metric for one in rows)


def _sorted(table: Table) -> Table:
    """With the column named by which ``ranked`` sorted."""
    labels = [column.label for column in table.columns]
    by = next((labels.index(label) for label in ("ROC-AUC", "Ranking", "Spearman") if label in labels), None)
    return table._replace(sorted_by=by)


def _origins(rows: Sequence[MetricFigures]) -> tuple[str, ...]:
    """Where thresholds come from, 0.5 first."""
    found = {decision.origin: None for one in rows for decision in one.decisions}
    return tuple(sorted(found, key=lambda origin: origin != "0.5"))


def _at(one: MetricFigures, origin: str) -> Decision | None:
    return next((decision for decision in one.decisions if decision.origin == origin), None)


def _of(origin: str, get: Callable[[Decision], Value]) -> Callable[[MetricFigures], Value]:
    def value(one: MetricFigures) -> Value:
        decision = _at(one, origin)
        return get(decision) if decision else None

    return value
