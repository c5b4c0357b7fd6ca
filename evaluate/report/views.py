"""What the report shows of each set: its tables, its plots, and its scale of ROC-AUC."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from ..scores.metric_values import DEFAULT_PROFILE
from ..statistics.results import MetricFigures, SetFigures, VerdictFigures
from . import plots, tables
from .drawing import Drawing, save_drawing
from .tables import Table

MAX_HISTOGRAMS = 6
"""Metrics of a set whose values are drawn by class: the leading one and the best others."""


class Plot(NamedTuple):
    """A plot in the page; its files are ``plots/file.png`` and ``.svg``."""

    svg: Markup
    file: str
    caption: str


class Tick(NamedTuple):
    """A metric on the scale of ROC-AUC; positions are in per cent of the scale's length."""

    metric: str
    value: float
    position: float
    low: float
    high: float


class ChartScale(NamedTuple):
    """ROC-AUC of all metrics on one scale, best first."""

    start: float
    """Value at its left end; the right end is 1."""
    ticks: tuple[Tick, ...]


class SetView(NamedTuple):
    """A set with everything that its part of the page shows."""

    figures: SetFigures
    slug: str
    """The prefix of its ids and file names, unique in the page."""
    ranked: tuple[MetricFigures, ...]
    lead: MetricFigures | None
    scale: ChartScale | None
    curves: tuple[Plot, ...]
    histograms: tuple[Plot, ...]
    reliability: tuple[Plot, ...]
    metrics: Table
    decisions: Table
    sources: Table
    statuses: Table
    system_level: Table
    verdicts: Table
    confusion: Table
    rates: Table
    delivered: VerdictFigures | None
    """The verdicts under the default profile, or the first one."""
    shifts: Table
    has_kinds: bool
    """Whether parts by kinds of sentences, which overlap, are among ``sources``."""


def build_views(sets: Sequence[SetFigures], folder: Path) -> tuple[SetView, ...]:
    """The views of all sets; their plots are written to ``folder``."""
    slugs = _number_duplicates(_make_slug(figures.name) for figures in sets)
    return tuple(_build_view(figures, slug, folder) for figures, slug in zip(sets, slugs, strict=True))


def _build_view(figures: SetFigures, slug: str, folder: Path) -> SetView:
    ranked = tables.rank_metrics(figures)
    lead = figures.metrics.get(figures.leading)
    drawn = ([lead] if lead else []) + [metric for metric in ranked if metric is not lead]
    labelled = figures.labels.get("consistent", 0) + figures.labels.get("inconsistent", 0)
    share = figures.labels.get("inconsistent", 0) / labelled if labelled else None

    def plot(kind: str, drawing: Drawing, caption: str) -> Plot:
        file = f"{slug}-{kind}"
        save_drawing(drawing, folder / file)
        return Plot(drawing.inline, file, caption)

    curves = []
    if traced := sum(metric.roc is not None for metric in drawn):
        curves.append(plot("roc", plots.draw_roc(drawn, f"{slug}-roc"), f"ROC curves{_name_limit(traced)}"))
    if traced := sum(metric.precision_recall is not None for metric in drawn):
        drawing = plots.draw_precision_recall(drawn, f"{slug}-pr", share)
        caption = f"Precision and recall of inconsistent responses{_name_limit(traced)}"
        curves.append(plot("precision-recall", drawing, caption))
    if traced := sum(metric.precision_recall_consistent is not None for metric in drawn):
        rest = None if share is None else 1 - share
        drawing = plots.draw_precision_recall(drawn, f"{slug}-prc", rest, consistent=True)
        caption = f"Precision and recall of consistent responses{_name_limit(traced)}"
        curves.append(plot("precision-recall-consistent", drawing, caption))
    with_values = [(metric, metric.histogram) for metric in drawn if metric.histogram is not None][:MAX_HISTOGRAMS]
    names = _number_duplicates(_make_slug(metric.metric) for metric, _ in with_values)
    histograms = [
        plot(
            f"values-{name}",
            plots.draw_histogram(counts, f"{slug}-values-{name}", metric.metric, metric.decisions),
            f"Values of {metric.metric}",
        )
        for name, (metric, counts) in zip(names, with_values, strict=True)
    ]
    probabilities = [(metric.metric, metric.reliability) for metric in drawn if metric.reliability is not None]
    reliability = []
    if probabilities:
        drawing = plots.draw_reliability(probabilities, f"{slug}-reliability")
        caption = f"Probabilities, predicted and observed{_name_limit(len(probabilities))}"
        reliability.append(plot("reliability", drawing, caption))
    if figures.risk_coverage is not None:
        drawing = plots.draw_risk_coverage(figures.risk_coverage, f"{slug}-risk")
        reliability.append(plot("risk-coverage", drawing, "Wrong labels by how many responses are decided"))
    delivered = next((of for of in figures.verdicts if of.profile == DEFAULT_PROFILE), None)
    delivered = delivered or next(iter(figures.verdicts), None)
    return SetView(
        figures,
        slug,
        ranked,
        lead,
        _build_scale(ranked),
        tuple(curves),
        tuple(histograms),
        tuple(reliability),
        tables.build_metrics_table(figures),
        tables.build_decisions_table(figures),
        tables.build_sources_table(figures),
        tables.build_statuses_table(figures),
        tables.build_system_level_table(figures),
        tables.build_verdicts_table(figures.verdicts),
        tables.build_confusion_table(delivered),
        tables.build_rates_table(delivered),
        delivered,
        tables.build_shifts_table(figures.shifts, "Compared with the calibration"),
        any(key.startswith("sentences=") for metric in ranked for key in metric.by_source),
    )


def _name_limit(metrics: int) -> str:
    """What a caption adds when a plot cannot show all metrics."""
    return f" of {plots.MAX_CURVES} of {metrics} metrics, the best ones" if metrics > plots.MAX_CURVES else ""


def _build_scale(ranked: Sequence[MetricFigures]) -> ChartScale | None:
    areas = [
        (metric.metric, metric.roc_auc)
        for metric in ranked
        if metric.roc_auc and tables.plain_number(metric.roc_auc) is not None
    ]
    if not areas:
        return None
    start = min(0.5, *(math.floor(10 * area.value) / 10 for _, area in areas))

    def position_of(value: float) -> float:
        return 100 * min(max((value - start) / (1 - start), 0.0), 1.0) if start < 1 and math.isfinite(value) else 0.0

    ticks = (
        Tick(name, area.value, position_of(area.value), position_of(area.low), position_of(area.high))
        for name, area in areas
    )
    return ChartScale(start, tuple(ticks))


def _make_slug(name: str) -> str:
    """``name`` in letters, digits and hyphens: usable as an id, and as a file name on any system."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "set"


def _number_duplicates(slugs: Iterable[str]) -> list[str]:
    """The slugs, with a number after each repeated one."""
    unique: list[str] = []
    for slug in slugs:
        number, candidate = 1, slug
        while candidate in unique:
            number += 1
            candidate = f"{slug}-{number}"
        unique.append(candidate)
    return unique
