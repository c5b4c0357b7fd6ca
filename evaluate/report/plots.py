"""Plots of an evaluation: one drawing each, as files and as SVG that takes its colours from the page around it.

Drawn with matplotlib's objects, without pyplot and its global figures. The same results give the same bytes. Nothing is
told by colour alone: curves differ in their dashes, classes in hatching and in the side of the axis they stand on.
"""

from __future__ import annotations

import io
import math
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from groundwire.evaluate.statistics.results import Curve, Decision, Estimate, Histogram, MetricFigures, Reliability

MAX_CURVES = 5
"""Curves in one plot; more cannot be told apart."""
_INK, _FAINT, _RULE, _CARD = "#1b2430", "#5b6675", "#d5dae1", "#fffffe"
_CONSISTENT, _INCONSISTENT = "#1668a8", "#c2500c"
_SERIES = ("#5a3fc0", "#0f8a9f", "#14183f", "#6b2a14", "#e8551f")
"""Searched for the largest smallest distance in CIELAB under normal, protan, deutan and tritan sight (Machado 2009), at
3.3 : 1 on white or more. The page has its own five for dark surfaces."""
_DASHES: tuple[tuple[int, tuple[float, ...]], ...] = (
    (0, ()),
    (0, (5, 1.6)),
    (0, (1.4, 1.2)),
    (0, (6, 1.6, 1.4, 1.6)),
    (0, (9, 2.5)),
)
_MARKERS = "osD^v"
_VARIABLES = {
    _INK: "--ink",
    _FAINT: "--faint",
    _RULE: "--rule",
    _CARD: "--card",
    _CONSISTENT: "--consistent",
    _INCONSISTENT: "--inconsistent",
} | {colour: f"--series-{number}" for number, colour in enumerate(_SERIES, start=1)}
_SIZE = (4.7, 3.9)
_SMALL = (3.5, 2.45)
_MARGINS = {_SIZE: (0.52, 0.43, 0.1, 0.1), _SMALL: (0.46, 0.42, 0.1, 0.06)}
"""Inches left, below, right and above the axes. Fixed ones: a layout that fits itself takes longer than the drawing."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "groundwire",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": _INK,
    "text.parse_math": False,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _FAINT,
    "ytick.labelcolor": _FAINT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "grid.color": _RULE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 2.9,
    "figure.facecolor": _CARD,
    "axes.facecolor": _CARD,
}
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_FONT = re.compile(r"(font-family:|font:[^;]*?[\d.]+px)[^;]*")
_COLOUR = re.compile("|".join(_VARIABLES), re.IGNORECASE)
_NOT_DRAWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
_NAME_LENGTH = 26


class Drawn(NamedTuple):
    """A plot in its three forms."""

    svg: bytes
    """A file that stands alone, on white."""
    png: bytes
    """The same in pixels."""
    inline: Markup
    """An ``svg`` element for a page that sets ``--ink``, ``--series-1`` and the other variables."""


def roc(metrics: Sequence[MetricFigures], name: str) -> Drawn:
    """ROC curves, the leading metric first; only metrics that have one, ``MAX_CURVES`` at most.

    ``name`` is a prefix for the ids in the inline form: one page may hold any number of plots.
    """
    curves = [(one, one.roc) for one in metrics if one.roc is not None][:MAX_CURVES]
    with _figure(_SIZE) as (figure, axes):
        axes.plot((0, 1), (0, 1), color=_FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
        axes.text(0.52, 0.475, "a coin toss", color=_FAINT, rotation=_slope(axes), rotation_mode="anchor", size=8.5)
        _lines(axes, curves, [one.roc_auc for one, _ in curves])
        axes.set(xlabel="inconsistent responses let through", ylabel="consistent responses let through")
        axes.legend(loc="lower right", title="ROC-AUC", alignment="left", borderaxespad=0.2)
        return _drawn(figure, name, f"ROC curves of {_names(one for one, _ in curves)}")


def precision_recall(metrics: Sequence[MetricFigures], name: str, share: float | None) -> Drawn:
    """Precision and recall of the class inconsistent, the leading metric first.

    ``share`` is that of inconsistent rows, 0–1, the precision of guessing; None draws no line for it.
    """
    curves = [(one, one.precision_recall) for one in metrics if one.precision_recall is not None][:MAX_CURVES]
    with _figure(_SIZE) as (figure, axes):
        if share is not None:
            axes.axhline(share, color=_FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
            under = share > 0.1
            axes.text(
                0.995,
                share + (-0.015 if under else 0.012),
                f"guessing: {share:.2f}",
                color=_FAINT,
                ha="right",
                va="top" if under else "bottom",
                size=8.5,
            )
        _lines(axes, curves, [one.average_precision for one, _ in curves], steps=True)
        axes.set(xlabel="recall: inconsistent responses flagged", ylabel="precision: flagged ones that are")
        low = share is not None and share < 0.4
        axes.legend(
            loc="upper right" if low else "lower left",
            title="average precision",
            alignment="left",
            borderaxespad=0.2,
        )
        return _drawn(figure, name, f"Precision-recall curves of {_names(one for one, _ in curves)}")


def histogram(found: Histogram, name: str, metric: str, decisions: Sequence[Decision] = ()) -> Drawn:
    """Values of both classes, mirrored: consistent above the axis, inconsistent below, as shares of their class."""
    above, below = _shares(found.consistent), _shares(found.inconsistent)
    lefts, widths = found.edges[:-1], [b - a for a, b in zip(found.edges, found.edges[1:], strict=False)]
    top = max((*above, *below, 0.01)) * 1.32
    with _figure(_SMALL) as (figure, axes):
        axes.bar(lefts, above, widths, align="edge", color=_CONSISTENT, edgecolor=_CARD, linewidth=0.7)
        axes.bar(
            lefts, [-one for one in below], widths, align="edge", color=_CARD, edgecolor=_INCONSISTENT, hatch="/////"
        )
        axes.axhline(0, color=_INK, linewidth=0.9)
        low, high = found.edges[0], found.edges[-1]
        tuned = next((one.threshold for one in decisions if one.origin != "0.5" and low <= one.threshold <= high), None)
        place = 1.0 if tuned is None or high == low else (tuned - low) / (high - low)
        if tuned is not None:
            axes.axvline(tuned, color=_INK, linewidth=1.1, linestyle=(0, (4, 2)))
            outwards = (place > 0.5) == (0.22 < place < 0.78)
            axes.annotate(
                f"tuned {_short(tuned)}",
                (tuned, top),
                (4 if outwards else -4, -3),
                textcoords="offset points",
                ha="left" if outwards else "right",
                va="top",
                size=8.5,
                color=_INK,
            )
        side: dict[str, Any] = {"transform": axes.transAxes, "size": 9} | (
            {"x": 0.015, "ha": "left"} if place > 0.5 else {"x": 0.985, "ha": "right"}
        )
        axes.text(y=0.985, s="consistent ▲", va="top", color=_CONSISTENT, **side)
        axes.text(y=0.02, s="inconsistent ▼", va="bottom", color=_INCONSISTENT, **side)
        edge = 0.01 * (high - low) or 0.5
        axes.set(ylim=(-top, top), xlim=(low - edge, high + edge), xlabel=_name(metric))
        axes.yaxis.set_major_locator(MaxNLocator(4, symmetric=True))
        axes.yaxis.set_major_formatter(lambda share, _: f"{abs(share):.0%}")
        axes.grid(axis="y")
        axes.tick_params(length=0)
        return _drawn(figure, name, f"Values of {_plain(metric)} by class")


def reliability(metrics: Sequence[tuple[str, Reliability]], name: str) -> Drawn:
    """What probabilities promise against what is observed; a point's area grows with its rows."""
    shown = metrics[:MAX_CURVES]
    most = max((max(one.rows, default=1) for _, one in shown), default=1)
    with _figure(_SIZE) as (figure, axes):
        axes.plot((0, 1), (0, 1), color=_FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
        handles = [Line2D([], [], color=_FAINT, linewidth=0.8, linestyle=(0, (2, 3)), label="0.000  perfect")]
        for number, (metric, one) in enumerate(shown):
            colour, marker = _SERIES[number], _MARKERS[number]
            axes.plot(one.predicted, one.observed, color=colour, linestyle=_DASHES[number], linewidth=1.3)
            sizes = [14 + 90 * rows / max(most, 1) for rows in one.rows]
            axes.scatter(
                one.predicted, one.observed, sizes, color=colour, marker=marker, edgecolors=_CARD, linewidths=0.8
            )
            label = f"{_number(one.error)}  {_name(metric)}"
            handles.append(
                Line2D(
                    [], [], color=colour, linestyle=_DASHES[number], marker=marker, markeredgecolor=_CARD, label=label
                )
            )
        axes.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel="probability of being consistent",
            ylabel="share that people call consistent",
        )
        axes.grid()
        axes.tick_params(length=0)
        axes.legend(handles=handles, loc="lower right", title="mean distance", alignment="left", borderaxespad=0.2)
        return _drawn(figure, name, f"Reliability of {', '.join(_plain(metric) for metric, _ in shown)}")


def save(drawn: Drawn, stem: Path) -> None:
    """Write ``stem.svg`` and ``stem.png``."""
    stem.with_name(f"{stem.name}.svg").write_bytes(drawn.svg)
    stem.with_name(f"{stem.name}.png").write_bytes(drawn.png)


def _lines(
    axes: Axes, curves: Sequence[tuple[MetricFigures, Curve]], figures: Sequence[Estimate | None], steps: bool = False
) -> None:
    """Curves on the unit square; the first one, the leading metric, is drawn last and thickest.

    ``steps`` for precision over recall, which is not linear between its points: each precision holds back to the recall
    before it, as average precision counts it.
    """
    for number, ((one, curve), figure) in enumerate(zip(curves, figures, strict=True)):
        axes.plot(
            curve.x,
            curve.y,
            drawstyle=_steps(curve) if steps else "default",
            color=_SERIES[number],
            linestyle=_DASHES[number],
            linewidth=2.1 if number == 0 else 1.4,
            zorder=3 - 0.1 * number,
            label=f"{_number(figure.value if figure else None)}  {_name(one.metric)}",
        )
    axes.set(xlim=(-0.012, 1.012), ylim=(-0.012, 1.012))
    axes.grid()
    axes.tick_params(length=0)


def _steps(curve: Curve) -> str:
    return "steps-post" if curve.x and curve.x[0] > curve.x[-1] else "steps-pre"


@contextmanager
def _figure(size: tuple[float, float]) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one pair of axes, in this module's style whatever the user's settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(size)
        (width, height), (left, below, right, above) = size, _MARGINS[size]
        yield (
            figure,
            figure.add_axes(
                (left / width, below / height, (width - left - right) / width, (height - below - above) / height)
            ),
        )


def _drawn(figure: Figure, name: str, alternative: str) -> Drawn:
    svg, png = io.BytesIO(), io.BytesIO()
    with warnings.catch_warnings():
        # The font for pixels knows no Chinese, say; the SVG takes whatever font the reader has.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    return Drawn(svg.getvalue(), png.getvalue(), _inline(svg.getvalue(), name, alternative))


def _inline(svg: bytes, name: str, alternative: str) -> Markup:
    """The drawing as an element of an HTML page: own ids, the page's font and colours, no background, no metadata."""
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            unwanted = child.tag in (f"{_SVG}metadata", f"{_SVG}style") or child.get("id") == "patch_1"
            if unwanted:
                parent.remove(child)
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(_SVG)
        link = element.attrib.pop(_LINK, None)
        if link is not None:
            element.set("href", link)
        for key, value in list(element.attrib.items()):
            element.set(key, _attribute(key, value, name))
    width, height = (float(root.attrib.pop(side).removesuffix("pt")) for side in ("width", "height"))
    root.attrib = {
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "img",
        "aria-label": alternative,
        "class": "plot",
        "style": f"--width: {width:g}",
    }
    return Markup(ET.tostring(root, encoding="unicode"))


def _attribute(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    value = value.replace("url(#", f"url(#{name}-")
    if key in ("style", "fill", "stroke"):
        value = _COLOUR.sub(lambda found: f"var({_VARIABLES[found[0].lower()]})", value)
    if key == "style":
        value = _FONT.sub(r"\1 var(--sans)", value)
    return value


def _slope(axes: Axes) -> float:
    """Degrees at which the diagonal of the unit square rises on paper."""
    box = axes.get_window_extent()
    return math.degrees(math.atan2(box.height, box.width))


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


def _number(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.3f}"


def _short(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _plain(text: str) -> str:
    """Without the characters that no XML file may hold or that turn the direction of what follows."""
    return _NOT_DRAWN.sub("\ufffd", text)


def _name(metric: str) -> str:
    """A metric's name, short enough for a legend."""
    name = _plain(metric)
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


def _names(metrics: Iterator[MetricFigures]) -> str:
    return ", ".join(_plain(one.metric) for one in metrics)
