"""The report of an evaluation: one HTML file that needs no other file and no network, and its plots as files.

What the templates show is text of other people: responses, knowledge, names of sets. Everything is escaped; characters
that a page cannot hold or that would turn the text around them are shown by their code; and the page's content security
policy lets no script run but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from groundwire.engine.metrics import METRICS
from groundwire.engine.schema.explanations import REASONS
from groundwire.evaluate.statistics.results import Estimate, MetricFigures, Mistake, Results, SetFigures
from groundwire.runtime.errors import InvalidRequest

from . import plots
from . import tables as tables
from . import text as text
from .tables import Table, Value

HISTOGRAMS = 6
"""Metrics of a set whose values are drawn by class: the leading one and the best ones after it."""
ABOUT = {
    "fused": "the verdict’s probability that the response is consistent, drawn from several metrics",
    "q2": "questions about the response, answered from it and from the knowledge, and the answers compared",
    "q2_no_nli": "questions as Q² asks them, with the answers compared by their words alone",
    "nli": "whether the knowledge entails the response",
    "feqa": "questions about the response’s phrases, answered from the knowledge",
    "overlap": "content words that response and knowledge share (F1)",
    "overlap_precision": "share of the response’s content words that the knowledge has",
    "unigram_f1": "words that response and knowledge share (F1)",
    "bleu": "phrases of up to four words that response and knowledge share, 0–100",
    "rouge_l": "longest common sequence of words",
    "meteor": "words aligned by form and stem",
    "bertscore": "likeness of the words’ vectors",
    "pmi": "how much likelier the knowledge makes the response, given the history",
    "upmi": "how much likelier the knowledge makes the response",
    "token_classifier": "a classifier that flags unsupported words",
}
"""What a metric does, in half a sentence."""


class Plot(NamedTuple):
    """A plot in the page; its files are ``plots/file.png`` and ``.svg``."""

    svg: Markup
    file: str
    caption: str


class Tick(NamedTuple):
    """A metric on the scale of ROC-AUC; places are in per cent of the scale's length."""

    metric: str
    value: float
    place: float
    low: float
    high: float


class Scale(NamedTuple):
    """ROC-AUC of all metrics on one line, best first."""

    start: float
    """Value at its left end; the right end is 1."""
    ticks: tuple[Tick, ...]


class SetView(NamedTuple):
    """A set, and everything that is worked out for its part of the page."""

    figures: SetFigures
    slug: str
    """Unique in the page; what its ids and file names begin with."""
    ranked: tuple[MetricFigures, ...]
    lead: MetricFigures | None
    scale: Scale | None
    curves: tuple[Plot, ...]
    histograms: tuple[Plot, ...]
    reliability: tuple[Plot, ...]
    metrics: Table
    decisions: Table
    sources: Table
    statuses: Table
    systems: Table
    verdicts: Table


def write_report(results: Results, directory: Path) -> Path:
    """Write ``directory/report.html`` and ``directory/plots/``; the path of the former.

    The same results give the same bytes. Files of these names are replaced, others stay. InvalidRequest for results
    without a set and for a directory that cannot be written.
    """
    if not results.sets:
        raise InvalidRequest("The results hold no set, so there is nothing to report. Evaluate at least one.")
    folder = directory / "plots"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        views = tuple(_view(one, slug, folder) for one, slug in zip(results.sets, _slugs(results.sets), strict=True))
        page = directory / "report.html"
        page.write_bytes(_render(results, views).encode())
    except OSError as error:
        raise InvalidRequest(
            f"The report cannot be written to {directory}: {error.strerror}. Give a directory that can be created."
        ) from error
    return page


def _view(figures: SetFigures, slug: str, folder: Path) -> SetView:
    ranked = tables.ranked(figures)
    lead = figures.metrics.get(figures.leading)
    drawn = ([lead] if lead else []) + [one for one in ranked if one is not lead]
    labelled = figures.labels.get("consistent", 0) + figures.labels.get("inconsistent", 0)
    share = figures.labels.get("inconsistent", 0) / labelled if labelled else None

    def plot(kind: str, made: plots.Drawn, caption: str) -> Plot:
        file = f"{slug}-{kind}"
        plots.save(made, folder / file)
        return Plot(made.inline, file, caption)

    curves = []
    if any(one.roc for one in drawn):
        curves.append(plot("roc", plots.roc(drawn, f"{slug}-roc"), "ROC curves"))
    if any(one.precision_recall for one in drawn):
        made = plots.precision_recall(drawn, f"{slug}-pr", share)
        curves.append(plot("precision-recall", made, "Precision and recall of inconsistent responses"))
    with_values = [(one, one.histogram) for one in drawn if one.histogram is not None][:HISTOGRAMS]
    names = _unique(_slug(one.metric) for one, _ in with_values)
    histograms = [
        plot(
            f"values-{name}",
            plots.histogram(found, f"{slug}-values-{name}", one.metric, one.decisions),
            f"Values of {one.metric}",
        )
        for name, (one, found) in zip(names, with_values, strict=True)
    ]
    promised = [(one.metric, one.reliability) for one in drawn if one.reliability is not None]
    reliability = []
    if promised:
        made = plots.reliability(promised, f"{slug}-reliability")
        reliability.append(plot("reliability", made, "Probabilities, promised and observed"))
    return SetView(
        figures,
        slug,
        ranked,
        lead,
        _scale(ranked),
        tuple(curves),
        tuple(histograms),
        tuple(reliability),
        tables.metrics(figures),
        tables.decisions(figures),
        tables.sources(figures),
        tables.statuses(figures),
        tables.systems(figures),
        tables.verdicts(figures.verdicts),
    )


def _scale(ranked: Sequence[MetricFigures]) -> Scale | None:
    found = [(one.metric, one.roc_auc) for one in ranked if one.roc_auc and tables.number(one.roc_auc) is not None]
    if not found:
        return None
    start = min(0.5, *(math.floor(10 * figure.value) / 10 for _, figure in found))

    def place(value: float) -> float:
        return 100 * min(max((value - start) / (1 - start), 0.0), 1.0) if start < 1 and math.isfinite(value) else 0.0

    ticks = (Tick(name, one.value, place(one.value), place(one.low), place(one.high)) for name, one in found)
    return Scale(start, tuple(ticks))


def _render(results: Results, views: Sequence[SetView]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("groundwire.evaluate.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=text.plain,
    )
    environment.filters |= {
        "shown": text.shown,
        "name": text.name,
        "fixed": _fixed,
        "percent": _percent,
        "count": _count,
        "bare": tables.number,
    }
    environment.globals |= {
        "pieces": text.pieces,
        "ordered": text.ordered,
        "place": _place,
        "kind": _kind,
        "strength": _strength,
        "title": _title,
        "about": _about,
        "reasons": REASONS,
        "status_meanings": tables.STATUSES,
    }
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    return environment.get_template("report.html").render(
        results=results,
        views=views,
        overview=tables.overview(results.sets),
        rows=sum(one.rows for one in results.sets),
        metrics=sorted({metric for one in results.sets for metric in one.metrics}),
        when=_when(results.when),
        style=style,
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _asset(name: str) -> Markup:
    """A file of the page's own, which is not escaped."""
    return Markup((importlib.resources.files(__package__) / "templates" / name).read_text(encoding="utf-8").strip())


def _fixed(value: Value, digits: int = 3) -> str:
    plain = tables.number(value)
    return "–" if plain is None else f"{plain:.{digits}f}".replace("-", "−")


def _percent(value: Value, digits: int = 0) -> str:
    plain = tables.number(value)
    return "–" if plain is None else f"{100 * plain:.{digits}f} %".replace("-", "−")


def _count(value: int) -> str:
    return f"{value:,}"


def _strength(value: Estimate) -> str:
    """How strong the background of a ROC-AUC is, 0–1, from 0.5 upwards; what is good differs more than what is poor."""
    return f"{min(max((value.value - 0.5) / 0.5, 0.0), 1.0) ** 1.5:.2f}"


def _place(value: float, figures: MetricFigures | None) -> float | None:
    """Where a value lies between the smallest and the largest of its metric on the set, in per cent."""
    if figures is None or figures.histogram is None or not math.isfinite(value):
        return None
    low, high = figures.histogram.edges[0], figures.histogram.edges[-1]
    return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 1) if high > low else None


def _kind(mistake: Mistake) -> str:
    return "miss" if mistake.label == 0 else "alarm"


def _title(metric: str) -> str:
    """A metric's name as papers write it."""
    if metric == "fused":
        return "Verdict"
    if metric in METRICS:
        return METRICS[metric].title
    return metric.removeprefix("detector.").replace("_", " ")


def _about(metric: str) -> str:
    if metric.startswith("detector."):
        return "a classifier that was trained to tell consistent responses from inconsistent ones"
    return ABOUT.get(metric, "")


def _when(iso: str) -> str:
    """``2025-11-21 12:04 UTC``; as given when it is not ISO 8601."""
    try:
        return datetime.fromisoformat(iso).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return iso


def _slugs(sets: Sequence[SetFigures]) -> list[str]:
    return _unique(_slug(one.name) for one in sets)


def _slug(name: str) -> str:
    """Letters, digits and hyphens: an id, and a file name on any system."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "set"


def _unique(slugs: Iterable[str]) -> list[str]:
    """Each slug, with a number behind those that were there before."""
    found: list[str] = []
    for slug in slugs:
        number, candidate = 1, slug
        while candidate in found:
            number += 1
            candidate = f"{slug}-{number}"
        found.append(candidate)
    return found
