"""Plots of an evaluation: one function each, from figures to a drawing.

The same results give the same bytes. Nothing is shown by colour alone: curves differ in their dashes, classes in
hatching and in the side of the axis they are on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from groundwire.monitor.records import Estimate

from ..statistics.results import Curve, Decision, Histogram, MetricFigures, Reliability
from .drawing import (
    CARD,
    CONSISTENT,
    DASHES,
    FAINT,
    INCONSISTENT,
    INK,
    MARKERS,
    SERIES,
    SIZE,
    SMALL,
    Drawing,
    finish_drawing,
    open_figure,
)

MAX_CURVES = 5
"""Curves in one plot; more cannot be distinguished."""
_NOT_DRAWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
_NAME_LENGTH = 26


def draw_roc(metrics: Sequence[MetricFigures], name: str) -> Drawing:
    """ROC curves, the leading metric first; only metrics that have one, ``MAX_CURVES`` at most.

    ``name`` is a prefix for the ids in the inline form, so that a page may hold any number of plots.
    """
    curves = [(metric, metric.roc) for metric in metrics if metric.roc is not None][:MAX_CURVES]
    with open_figure(SIZE) as (figure, axes):
        axes.plot((0, 1), (0, 1), color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
        axes.text(
            0.52, 0.475, "a coin toss", color=FAINT, rotation=_measure_diagonal(axes), rotation_mode="anchor", size=8.5
        )
        _draw_curves(axes, curves, [metric.roc_auc for metric, _ in curves])
        axes.set(xlabel="share of inconsistent responses accepted", ylabel="share of consistent responses accepted")
        _add_legend(axes, "ROC-AUC")
        return finish_drawing(figure, name, f"ROC curves of {_join_names(metric for metric, _ in curves)}")


def draw_precision_recall(
    metrics: Sequence[MetricFigures], name: str, share: float | None, *, consistent: bool = False
) -> Drawing:
    """Precision and recall of the class inconsistent, or of ``consistent``, the leading metric first.

    ``share`` is the share of the class, 0–1, the precision of guessing; None draws no line for it.
    """
    traced = [
        (metric, metric.precision_recall_consistent if consistent else metric.precision_recall) for metric in metrics
    ]
    curves = [(metric, curve) for metric, curve in traced if curve is not None][:MAX_CURVES]
    with open_figure(SIZE) as (figure, axes):
        if share is not None:
            axes.axhline(share, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
            under = share > 0.1
            axes.text(
                0.995,
                share + (-0.015 if under else 0.012),
                f"guessing: {share:.2f}",
                color=FAINT,
                ha="right",
                va="top" if under else "bottom",
                size=8.5,
            )
        figures = [
            metric.average_precision_consistent if consistent else metric.average_precision for metric, _ in curves
        ]
        _draw_curves(axes, curves, figures, steps=True)
        if consistent:
            axes.set(xlabel="recall: consistent responses accepted", ylabel="precision: share of correct acceptances")
        else:
            axes.set(xlabel="recall: inconsistent responses flagged", ylabel="precision: share of correct flags")
        _add_legend(axes, "average precision")
        which = "consistent" if consistent else "inconsistent"
        names = _join_names(metric for metric, _ in curves)
        return finish_drawing(figure, name, f"Precision-recall curves of {names} for the class {which}")


def draw_histogram(counts: Histogram, name: str, metric: str, decisions: Sequence[Decision] = ()) -> Drawing:
    """Values of both classes, mirrored: consistent above the axis, inconsistent below, as shares of their class."""
    above, below = _compute_shares(counts.consistent), _compute_shares(counts.inconsistent)
    lefts, widths = counts.edges[:-1], [b - a for a, b in zip(counts.edges, counts.edges[1:], strict=False)]
    top = max((*above, *below, 0.01)) * 1.32
    with open_figure(SMALL) as (figure, axes):
        axes.bar(lefts, above, widths, align="edge", color=CONSISTENT, edgecolor=CARD, linewidth=0.7)
        axes.bar(
            lefts,
            [-share for share in below],
            widths,
            align="edge",
            color=CARD,
            edgecolor=INCONSISTENT,
            hatch="/////",
        )
        axes.axhline(0, color=INK, linewidth=0.9)
        low, high = counts.edges[0], counts.edges[-1]
        tuned = next((cut.threshold for cut in decisions if cut.origin != "0.5" and low <= cut.threshold <= high), None)
        tuned_at = 1.0 if tuned is None or high == low else (tuned - low) / (high - low)
        if tuned is not None:
            axes.axvline(tuned, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))
            outwards = (tuned_at > 0.5) == (0.22 < tuned_at < 0.78)
            axes.annotate(
                f"tuned {_format_threshold(tuned)}",
                (tuned, top),
                (4 if outwards else -4, -3),
                textcoords="offset points",
                ha="left" if outwards else "right",
                va="top",
                size=8.5,
                color=INK,
            )
        side: dict[str, Any] = {"transform": axes.transAxes, "size": 9} | (
            {"x": 0.015, "ha": "left"} if tuned_at > 0.5 else {"x": 0.985, "ha": "right"}
        )
        axes.text(y=0.985, s="consistent ▲", va="top", color=CONSISTENT, **side)
        axes.text(y=0.02, s="inconsistent ▼", va="bottom", color=INCONSISTENT, **side)
        edge = 0.01 * (high - low) or 0.5
        axes.set(ylim=(-top, top), xlim=(low - edge, high + edge), xlabel=_shorten_name(metric))
        axes.yaxis.set_major_locator(MaxNLocator(4, symmetric=True))
        axes.yaxis.set_major_formatter(lambda share, _: f"{abs(share):.0%}")
        axes.grid(axis="y")
        axes.tick_params(length=0)
        return finish_drawing(figure, name, f"Values of {_replace_undrawable(metric)} by class")


def draw_reliability(metrics: Sequence[tuple[str, Reliability]], name: str) -> Drawing:
    """Predicted probabilities against observed shares; a point's area grows with its examples."""
    shown = metrics[:MAX_CURVES]
    most = max((max(bins.examples, default=1) for _, bins in shown), default=1)
    with open_figure(SIZE) as (figure, axes):
        axes.plot((0, 1), (0, 1), color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
        handles = [Line2D([], [], color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)), label="0.000  perfect")]
        for number, (metric, bins) in enumerate(shown):
            colour, marker = SERIES[number], MARKERS[number]
            axes.plot(bins.predicted, bins.observed, color=colour, linestyle=DASHES[number], linewidth=1.3)
            sizes = [14 + 90 * count / max(most, 1) for count in bins.examples]
            axes.scatter(
                bins.predicted, bins.observed, sizes, color=colour, marker=marker, edgecolors=CARD, linewidths=0.8
            )
            label = f"{_format_number(bins.error)}  {_shorten_name(metric)}"
            handles.append(
                Line2D([], [], color=colour, linestyle=DASHES[number], marker=marker, markeredgecolor=CARD, label=label)
            )
        axes.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel="probability of being consistent",
            ylabel="share of responses labelled consistent",
        )
        axes.grid()
        axes.tick_params(length=0)
        _add_legend(axes, "mean distance", handles)
        return finish_drawing(
            figure, name, f"Reliability of {', '.join(_replace_undrawable(metric) for metric, _ in shown)}"
        )


def draw_risk_coverage(curve: Curve, name: str) -> Drawing:
    """Share of wrong labels among the surest responses, by how many responses those are."""
    with open_figure(SMALL) as (figure, axes):
        axes.plot(curve.x, curve.y, color=SERIES[0], linewidth=1.6)
        axes.set(xlim=(0, 1.02), xlabel="share of responses decided")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.grid()
        axes.tick_params(length=0)
        return finish_drawing(figure, name, "Wrong labels by the share of responses that are decided")


def _draw_curves(
    axes: Axes, curves: Sequence[tuple[MetricFigures, Curve]], figures: Sequence[Estimate | None], steps: bool = False
) -> None:
    """Curves on the unit square; the first one, the leading metric, is drawn last and thickest.

    ``steps`` for precision over recall, which is not linear between its points: each precision applies back to the
    recall before it, as in average precision.
    """
    for number, ((metric, curve), figure) in enumerate(zip(curves, figures, strict=True)):
        axes.plot(
            curve.x,
            curve.y,
            drawstyle=_choose_steps(curve) if steps else "default",
            color=SERIES[number],
            linestyle=DASHES[number],
            linewidth=2.1 if number == 0 else 1.4,
            zorder=3 - 0.1 * number,
            label=f"{_format_number(figure.value if figure else None)}  {_shorten_name(metric.metric)}",
        )
    axes.set(xlim=(-0.012, 1.012), ylim=(-0.012, 1.012))
    axes.grid()
    axes.tick_params(length=0)


def _add_legend(axes: Axes, title: str, handles: Sequence[Line2D] | None = None) -> None:
    """A legend under the axes, where it covers no curve and no point."""
    entries: dict[str, Any] = {} if handles is None else {"handles": handles}
    below = (0.0, -0.13)
    axes.legend(title=title, alignment="left", loc="upper left", bbox_to_anchor=below, borderaxespad=0.0, **entries)


def _choose_steps(curve: Curve) -> str:
    return "steps-post" if curve.x and curve.x[0] > curve.x[-1] else "steps-pre"


def _measure_diagonal(axes: Axes) -> float:
    """The angle of the diagonal of the unit square in the figure, in degrees."""
    box = axes.get_window_extent()
    return math.degrees(math.atan2(box.height, box.width))


def _compute_shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


def _format_number(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.3f}"


def _format_threshold(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _replace_undrawable(text: str) -> str:
    """``text`` without the characters that no XML file may hold or that reverse what follows."""
    return _NOT_DRAWN.sub("\ufffd", text)


def _shorten_name(metric: str) -> str:
    """A metric's name, short enough for a legend."""
    name = _replace_undrawable(metric)
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


def _join_names(metrics: Iterator[MetricFigures]) -> str:
    return ", ".join(_replace_undrawable(metric.metric) for metric in metrics)
