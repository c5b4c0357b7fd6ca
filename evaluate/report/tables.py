"""The tables of a report: their rows and columns. One template draws them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from groundwire.monitor.records import MIN_RESPONSES, Estimate, Shift

from ..statistics.results import Decision, MetricFigures, PartRates, SetFigures, VerdictFigures

Kind: TypeAlias = Literal["number", "share", "count", "range", "heat", "difference", "word"]
"""How a value is shown: with three decimals, in per cent, as a count, always with its interval (the intervals of other
kinds are shown on request), on a background whose strength grows with the value above 0.5, as points (hundredths) with
a sign and always with their interval, or as it is."""
Value: TypeAlias = Estimate | float | int | str | None


class Column(NamedTuple):
    """One column, with a value for every row of its table."""

    label: str
    about: str
    """The meaning of the label, in a sentence."""
    kind: Kind
    values: tuple[Value, ...]
    group: str = ""
    """Heading over several neighbouring columns."""
    best: float | None = None
    """The value that is marked as the best; None marks none."""
    examples: tuple[int | None, ...] = ()
    """How many examples each value is of, where these are fewer than the set's; None elsewhere."""


class Table(NamedTuple):
    """Rows by name, and columns that are not empty."""

    caption: str
    head: str
    """What the rows are."""
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    lead: str = ""
    """The highlighted row."""
    sorted_by: int | None = None
    """The index of the column by which the rows are sorted, descending."""

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """Headings over the columns, and how many columns each spans."""
        groups: list[tuple[str, int]] = []
        for column in self.columns:
            if groups and groups[-1][0] == column.group:
                groups[-1] = (column.group, groups[-1][1] + 1)
            else:
                groups.append((column.group, 1))
        return tuple(groups)


def plain_number(value: Value) -> float | None:
    """The number of a value; None where it is missing, not finite, or a word."""
    plain = value.value if isinstance(value, Estimate) else value
    return None if plain is None or isinstance(plain, str) or not math.isfinite(plain) else float(plain)


def rank_metrics(figures: SetFigures) -> tuple[MetricFigures, ...]:
    """The metrics, best first: by ROC-AUC, without labels by ranking accuracy or correlation, then by name."""

    def merit(metric: MetricFigures) -> tuple[float, ...]:
        return tuple(-(plain_number(value) or 0.0) for value in (metric.roc_auc, metric.ranking, metric.spearman))

    return tuple(sorted(figures.metrics.values(), key=lambda metric: (*merit(metric), metric.metric)))


def may_name_best(figures: SetFigures) -> bool:
    """Whether the set has enough responses to mark the best metric of a column."""
    return figures.labelled >= MIN_RESPONSES


def build_overview_table(sets: Sequence[SetFigures]) -> Table:
    """ROC-AUC of every metric on every set that has labels: those measured on most sets first, then the best."""
    labelled = [
        figures
        for figures in sets
        if any(plain_number(metric_figures.roc_auc) is not None for metric_figures in figures.metrics.values())
    ]

    def merit(metric: str) -> tuple[int, float]:
        known_areas = [
            plain_number(figures.metrics[metric].roc_auc) for figures in labelled if metric in figures.metrics
        ]
        values = [value for value in known_areas if value is not None]
        return len(values), sum(values)

    names = {metric: None for figures in labelled for metric in figures.metrics}
    rows = sorted(names, key=lambda metric: (*(-part for part in merit(metric)), metric))
    columns = [
        _build_column(
            figures.name,
            f"{figures.labelled:,} labelled responses",
            "heat",
            [figures.metrics[metric].roc_auc if metric in figures.metrics else None for metric in rows],
            best=may_name_best(figures),
        )._replace(examples=tuple(_count_fewer(figures, metric) for metric in rows))
        for figures in labelled
    ]
    return Table("ROC-AUC of every metric on every set", "Metric", tuple(rows), _drop_empty(columns))


def _count_fewer(figures: SetFigures, metric: str) -> int | None:
    of_metric = figures.metrics.get(metric)
    return of_metric.examples if of_metric is not None and figures.count_missing(of_metric) else None


def build_metrics_table(figures: SetFigures) -> Table:
    """How well every metric agrees with human labels."""
    rows, named_best = rank_metrics(figures), may_name_best(figures)

    def column(
        label: str, about: str, get: Callable[[MetricFigures], Value], kind: Kind = "number", group: str = ""
    ) -> Column:
        return _build_column(
            label, about, kind, [get(metric) for metric in rows], group, named_best and kind != "count"
        )

    columns = [
        column(
            "Examples",
            "responses with a value of the metric and a human label or grade",
            lambda metric: metric.examples,
            "count",
        ),
        column(
            "ROC-AUC",
            "chance that a consistent response has a higher value than an inconsistent one",
            lambda metric: metric.roc_auc,
            "range",
        ),
        column(
            "Average precision",
            "area under the precision-recall curve of the class inconsistent",
            lambda metric: metric.average_precision,
        ),
    ]
    for origin in _list_origins(rows):
        group = "above 0.5" if origin == "0.5" else f"tuned on {origin}"
        if origin != "0.5":
            thresholds = [
                decision.threshold if (decision := _find_decision(metric, origin)) else None for metric in rows
            ]
            columns.append(
                _build_column(
                    "Threshold", "a response with this value or more counts as consistent", "number", thresholds, group
                )
            )
        for label, about, get in _DECIDED:
            columns.append(column(label, about, _get_decided(origin, get), group=group))
    columns += [
        column("Spearman", "rank correlation with human grades", lambda metric: metric.spearman, group="with grades"),
        column("Pearson", "linear correlation with human grades", lambda metric: metric.pearson, group="with grades"),
        column("Ranking", "share of pairs of one context in the right order", lambda metric: metric.ranking),
        column(
            "System level",
            "rank correlation of simulated systems' mean values with their quality",
            lambda metric: metric.system_level.correlation if metric.system_level else None,
        ),
    ]
    return _mark_sorted(
        Table(
            "How well every metric agrees with human labels",
            "Metric",
            _list_names(rows),
            _drop_empty(columns),
            figures.leading,
        )
    )


def build_decisions_table(figures: SetFigures) -> Table:
    """Precision and recall of both classes at every threshold."""
    rows = rank_metrics(figures)
    columns = [
        _build_column(
            label,
            about,
            "number",
            [_get_decided(origin, get)(metric) for metric in rows],
            "above 0.5" if origin == "0.5" else f"tuned on {origin}",
            may_name_best(figures),
        )
        for origin in _list_origins(rows)
        for label, about, get in _DETAILED
    ]
    return Table(
        "Precision and recall at the thresholds", "Metric", _list_names(rows), _drop_empty(columns), figures.leading
    )


def build_sources_table(figures: SetFigures) -> Table:
    """ROC-AUC by source, system, length, kind of sentence and language, with the number of responses.

    More than ``MAX_COLUMNS`` parts become rows, with the best metrics as columns.
    """
    rows = rank_metrics(figures)
    parts = dict.fromkeys(key for metric in rows for key in metric.by_source)
    keys = sorted(parts, key=lambda key: ("by source", *PARTS).index(split_part(key)[0]))
    if len(keys) > MAX_COLUMNS:
        across = [
            _build_column(metric.metric, "", "heat", [metric.by_source.get(key) for key in keys])._replace(
                examples=tuple(metric.part_examples.get(key) for key in keys)
            )
            for metric in rows[:MAX_COLUMNS]
        ]
        named = tuple(" ".join((group.removeprefix("by "), name)) for group, name in map(split_part, keys))
        return Table("ROC-AUC by part", "Part", named, _drop_empty(across))
    columns = [
        _build_column(
            name,
            "",
            "heat",
            [metric.by_source.get(key) for metric in rows],
            group,
            max(metric.part_examples.get(key, 0) for metric in rows) >= MIN_RESPONSES,
        )._replace(examples=tuple(metric.part_examples.get(key) for metric in rows))
        for key, (group, name) in zip(keys, map(split_part, keys), strict=True)
    ]
    return Table("ROC-AUC by part", "Metric", _list_names(rows), _drop_empty(columns), figures.leading)


def split_part(key: str) -> tuple[str, str]:
    """The heading of a key of ``MetricFigures.by_source``, and the part's name.

    >>> split_part("length=5–9 words"), split_part("wow")
    (('by length', '5–9 words'), ('by source', 'wow'))
    """
    prefix, equals, name = key.partition("=")
    group = f"by {prefix}"
    return (group, name) if equals and group in PARTS else ("by source", key)


def build_statuses_table(figures: SetFigures) -> Table:
    """Examples by status, for metrics that did not score all of them."""
    rows = [
        metric
        for metric in rank_metrics(figures)
        if any(count for name, count in metric.statuses.items() if name != "scored")
    ]
    names = {name: None for metric in rows for name, count in metric.statuses.items() if count}
    order = sorted(names, key=lambda name: (name != "scored", name))
    columns = [
        _build_column(
            name.replace("_", " "), STATUSES.get(name, ""), "count", [metric.statuses.get(name, 0) for metric in rows]
        )
        for name in order
    ]
    return Table("How often a metric scored", "Metric", _list_names(rows), _drop_empty(columns))


def build_system_level_table(figures: SetFigures) -> Table:
    """Mean values of simulated systems by their share of inconsistent responses."""
    rows = [metric for metric in rank_metrics(figures) if metric.system_level is not None]
    shares = {share: None for metric in rows if metric.system_level for share in metric.system_level.means}
    columns = [
        _build_column(
            "Contexts",
            "of which exactly one of two responses is inconsistent",
            "count",
            [metric.system_level.contexts if metric.system_level else None for metric in rows],
        ),
        _build_column(
            "Correlation",
            "Spearman, of a system's mean value with its quality",
            "number",
            [metric.system_level.correlation if metric.system_level else None for metric in rows],
            best=may_name_best(figures),
        ),
        *(
            _build_column(
                share.replace(" ", "\u00a0"),
                f"a system with {share} inconsistent responses",
                "number",
                [metric.system_level.means.get(share) if metric.system_level else None for metric in rows],
                "mean value by share of inconsistent responses",
            )
            for share in shares
        ),
    ]
    return Table("System level", "Metric", _list_names(rows), _drop_empty(columns))


def build_verdicts_table(profiles: Sequence[VerdictFigures]) -> Table:
    """How often each profile gives each verdict, and how often it is wrong."""
    labels = {label: None for figures in profiles for label in figures.labels}
    columns = [
        _build_column(
            "Balanced accuracy",
            "1 minus the mean of both error rates: 0.5 is a coin toss",
            "share",
            [figures.balanced_accuracy for figures in profiles],
        ),
        _build_column(
            "Threshold",
            "probability from which a response is called consistent",
            "number",
            [figures.threshold for figures in profiles],
        ),
        *(
            _build_column(
                label,
                LABELS.get(label, ""),
                "count",
                [figures.labels.get(label, 0) for figures in profiles],
                "verdicts given",
            )
            for label in labels
        ),
        _build_column(
            "Promised at most",
            "the calibration's bound on the false positive rate, for responses like its own",
            "share",
            [figures.max_false_positive_rate for figures in profiles],
        ),
        _build_column(
            "False positive rate",
            "share of consistent responses called inconsistent; positive: called inconsistent",
            "share",
            [figures.false_positive_rate for figures in profiles],
            "wrong",
        ),
        _build_column(
            "False negative rate",
            "share of inconsistent responses called consistent or unverifiable",
            "share",
            [figures.false_negative_rate for figures in profiles],
            "wrong",
        ),
        _build_column(
            "False positive rate, unverifiable",
            "share of responses that state nothing to check called inconsistent",
            "share",
            [figures.false_positive_rate_on_unverifiable for figures in profiles],
            "wrong",
        ),
        _build_column(
            "Verifiability accuracy",
            "share of responses that are correctly called verifiable or unverifiable",
            "share",
            [figures.verifiability_accuracy for figures in profiles],
        ),
        *_build_sure_columns(profiles),
    ]
    return Table("Verdicts by profile", "Profile", tuple(figures.profile for figures in profiles), _drop_empty(columns))


SURE = "sure"
"""The heading over the columns about labels that are sure, and those that are not."""


def _build_sure_columns(figures: Sequence[VerdictFigures | PartRates]) -> list[Column]:
    return [
        _build_column(
            "Share",
            "share of the labels consistent and inconsistent that is sure: outside the band in which labels are often "
            "wrong",
            "share",
            [of.coverage for of in figures],
            SURE,
        ),
        _build_column("Wrong", "share of the sure labels that is wrong", "share", [of.risk for of in figures], SURE),
        _build_column(
            "Wrong, not sure",
            "share of the other labels that is wrong",
            "share",
            [of.risk_if_unsure for of in figures],
            SURE,
        ),
    ]


def build_confusion_table(figures: VerdictFigures | None) -> Table:
    """What a profile calls the examples of each human label; without columns where there are no verdicts."""
    if figures is None:
        return Table("Delivered labels", "Human label", (), ())
    labels = {label: None for called in figures.called.values() for label in called}
    rows = tuple(name for name, called in figures.called.items() if called)
    columns = [
        _build_column(label, LABELS.get(label, ""), "count", [figures.called[row].get(label, 0) for row in rows])
        for label in labels
    ]
    return Table(f"Delivered labels, profile {figures.profile}", "Human label", rows, _drop_empty(columns))


def build_rates_table(figures: VerdictFigures | None) -> Table:
    """The error rates of a profile by part of the set: source, system, length, kind of sentence, language; without
    columns where there are no verdicts."""
    if figures is None:
        return Table("Error rates by part", "Part", (), ())
    rates = list(figures.by_part.values())
    columns = [
        _build_column(
            "Consistent", "consistent responses with a verdict", "count", [rate.consistent for rate in rates]
        ),
        _build_column(
            "False positive rate",
            "share of them called inconsistent",
            "share",
            [rate.false_positive_rate for rate in rates],
        ),
        _build_column(
            "Inconsistent", "inconsistent responses with a verdict", "count", [rate.inconsistent for rate in rates]
        ),
        _build_column(
            "False negative rate",
            "share of them called consistent or unverifiable",
            "share",
            [rate.false_negative_rate for rate in rates],
        ),
        *_build_sure_columns(rates),
    ]
    return Table(
        f"Error rates by part, profile {figures.profile}", "Part", tuple(figures.by_part), _drop_empty(columns)
    )


def build_shifts_table(shifts: Sequence[Shift], caption: str) -> Table:
    """How far responses are from others; without columns where ``shifts`` is empty."""
    columns = [
        _build_column("Responses", "that have the quantity", "count", [shift.responses for shift in shifts]),
        _build_column(
            "Stability index",
            "population stability index: below 0.1 alike, above 0.25 different, of fewer than 30 too few to tell",
            "number",
            [shift.index for shift in shifts],
        ),
        _build_column(
            "By chance up to",
            "what it is at most in 95 of 100 samples without any shift",
            "number",
            [shift.by_chance for shift in shifts],
        ),
        _build_column("Band", "what the index of so many responses says", "word", [shift.band for shift in shifts]),
    ]
    rows = tuple(shift.quantity for shift in shifts)
    return Table(caption, "Quantity", rows, _drop_empty(columns))


MAX_COLUMNS = 10
"""Columns of a breakdown, at most; more do not fit a page."""
PARTS = ("by system", "by length", "by sentences", "by language")
"""Headings of breakdowns; a part without one is a source."""
STATUSES = {
    "scored": "the metric has a value",
    "nothing_to_verify": "the metric found nothing it can check",
    "truncated": "the texts exceed the length limit",
    "deadline": "there was no time left",
    "cancelled": "the request was stopped",
    "failed": "a model failed",
    "invalid": "the input is not usable",
    "not_given": "the row has no number in this column",
}
LABELS = {
    "consistent": "the knowledge supports it",
    "inconsistent": "the knowledge does not support it",
    "unverifiable": "it states nothing that knowledge could confirm",
    "unknown": "a needed metric did not score",
}
_DECIDED: tuple[tuple[str, str, Callable[[Decision], Value]], ...] = (
    ("Accuracy", "share of responses decided correctly", lambda decision: decision.accuracy),
    (
        "F1 consistent",
        "harmonic mean of precision and recall of the class consistent",
        lambda decision: decision.consistent.f1,
    ),
    (
        "F1 incons.",
        "harmonic mean of precision and recall of the class inconsistent",
        lambda decision: decision.inconsistent.f1,
    ),
)
_DETAILED: tuple[tuple[str, str, Callable[[Decision], Value]], ...] = (
    ("Balanced accuracy", "mean of both classes' recall", lambda decision: decision.balanced_accuracy),
    ("Precision cons.", "share of those called consistent that are", lambda decision: decision.consistent.precision),
    ("Recall cons.", "share of consistent ones that are called so", lambda decision: decision.consistent.recall),
    (
        "Precision incons.",
        "share of those called inconsistent that are",
        lambda decision: decision.inconsistent.precision,
    ),
    ("Recall incons.", "share of inconsistent ones that are called so", lambda decision: decision.inconsistent.recall),
)


def _build_column(
    label: str, about: str, kind: Kind, values: Sequence[Value], group: str = "", best: bool = False
) -> Column:
    numbers = [value for value in map(plain_number, values) if value is not None]
    top = max(numbers) if best and len(numbers) > 1 else None
    return Column(label, about, kind, tuple(values), group, top)


def _drop_empty(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns that have a value."""
    return tuple(
        column
        for column in columns
        if any(isinstance(value, str) or plain_number(value) is not None for value in column.values)
    )


def _list_names(rows: Sequence[MetricFigures]) -> tuple[str, ...]:
    return tuple(metric.metric for metric in rows)


def _mark_sorted(table: Table) -> Table:
    """``table`` with the column by which ``rank_metrics`` sorted."""
    labels = [column.label for column in table.columns]
    by = next((labels.index(label) for label in ("ROC-AUC", "Ranking", "Spearman") if label in labels), None)
    return table._replace(sorted_by=by)


def _list_origins(rows: Sequence[MetricFigures]) -> tuple[str, ...]:
    """The origins of the thresholds, 0.5 first."""
    origins = {decision.origin: None for metric in rows for decision in metric.decisions}
    return tuple(sorted(origins, key=lambda origin: origin != "0.5"))


def _find_decision(metric: MetricFigures, origin: str) -> Decision | None:
    return next((decision for decision in metric.decisions if decision.origin == origin), None)


def _get_decided(origin: str, get: Callable[[Decision], Value]) -> Callable[[MetricFigures], Value]:
    def value(metric: MetricFigures) -> Value:
        decision = _find_decision(metric, origin)
        return get(decision) if decision else None

    return value
