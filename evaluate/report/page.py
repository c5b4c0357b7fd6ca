"""The report of an evaluation: one HTML file that needs no other file and no network, and its plots as files.

The page shows texts of unknown origin: responses, knowledge, names of sets. Everything is escaped; characters that a
page cannot hold or that would reverse the text around them are shown by their code; and the page's content security
policy allows no script but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup

from groundwire.engine.schema.explanations import REASONS
from groundwire.metrics import find
from groundwire.monitor.records import MIN_RESPONSES, Estimate
from groundwire.runtime.errors import InvalidRequest

from ..scores.metric_values import VERDICT
from ..statistics.error_analysis import MAX_ERRORS
from ..statistics.results import ErrorCase, ErrorThreshold, MetricFigures, Results
from . import tables, text
from .tables import Value
from .views import SetView, build_views

ABOUT_VERDICT = "the verdict’s probability that the response is consistent, drawn from several metrics"
"""What the verdict is, as ``Metric.description`` says it of a metric."""


def write_report(results: Results, directory: Path) -> Path:
    """Write ``directory/report.html`` and ``directory/plots/``; returns the path of the former.

    The same results give the same bytes. Files of these names are replaced, others stay. InvalidRequest for results
    without a set and for a directory that cannot be written.
    """
    if not results.sets:
        raise InvalidRequest("The results hold no set, so there is nothing to report. Evaluate at least one.")
    folder = directory / "plots"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        views = build_views(results.sets, folder)
        page = directory / "report.html"
        page.write_bytes(_render_page(results, views).encode())
    except OSError as error:
        raise InvalidRequest(
            f"The report cannot be written to {directory}: {error.strerror}. Give a directory that can be created."
        ) from error
    return page


def write_page(directory: Path, name: str, html: str, record: msgspec.Struct) -> Path:
    """Write a page and the record that it shows, ``name.html`` and ``name.json``; returns the path of the former.

    InvalidRequest for a directory that cannot be written.
    """
    page = directory / f"{name}.html"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        page.write_text(html, encoding="utf-8")
        (directory / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
    except OSError as error:
        raise InvalidRequest(
            f"The {name} page cannot be written to {directory}: {error.strerror}. Give a directory that can be created."
        ) from error
    return page


def _render_page(results: Results, views: Sequence[SetView]) -> str:
    environment = make_environment()
    environment.globals |= {
        "find_position": _find_position,
        "error_kind": _classify_error,
        "explain_threshold": _explain_threshold,
        "max_errors": MAX_ERRORS,
        "may_name_best": tables.may_name_best,
        "min_responses": MIN_RESPONSES,
        "strength": _measure_strength,
        "title": _title_metric,
        "about": _describe_metric,
        "status_meanings": tables.STATUSES,
    }
    return environment.get_template("report.html").render(
        results=results,
        views=views,
        overview=tables.build_overview_table(results.sets),
        examples=sum(figures.examples for figures in results.sets),
        metrics=sorted({metric for figures in results.sets for metric in figures.metrics}),
        when=format_time(results.when),
    )


def make_environment() -> jinja2.Environment:
    """The templates with what all pages use: filters, text with marked words, and style and script with its digest."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("groundwire.evaluate.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=text.replace_unshowable,
    )
    environment.filters |= {
        "shown": text.escape_text,
        "name": text.break_name,
        "fixed": _format_fixed,
        "percent": _format_percent,
        "count": _format_count,
        "points": _format_points,
        "plain_number": tables.plain_number,
    }
    style, script = (_load_asset(name) for name in ("report.css", "report.js"))
    environment.globals |= {
        "pieces": text.split_into_pieces,
        "passage_pieces": text.split_passage,
        "sort_spans": text.sort_spans,
        "reasons": REASONS,
        "style": style,
        "script": script,
        "script_digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return environment


def _load_asset(name: str) -> Markup:
    """A file of the page itself, which is not escaped."""
    return Markup((importlib.resources.files(__package__) / "templates" / name).read_text(encoding="utf-8").strip())


def _format_fixed(value: Value, digits: int = 3) -> str:
    plain = tables.plain_number(value)
    return "–" if plain is None else f"{plain:.{digits}f}".replace("-", "−")


def _format_percent(value: Value, digits: int = 0) -> str:
    plain = tables.plain_number(value)
    return "–" if plain is None else f"{100 * plain:.{digits}f} %".replace("-", "−")


def _format_points(value: Value) -> str:
    """A difference of shares in points (hundredths), with its sign."""
    plain = tables.plain_number(value)
    return "–" if plain is None else f"{100 * plain:+.1f}".replace("-", "−")


def _format_count(value: int) -> str:
    return f"{value:,}"


def _measure_strength(value: Estimate) -> str:
    """Strength of the background of a ROC-AUC, 0–1, from 0.5 upwards; differences grow towards 1."""
    return f"{min(max((value.value - 0.5) / 0.5, 0.0), 1.0) ** 1.5:.2f}"


def _find_position(value: float, figures: MetricFigures | None) -> float | None:
    """Position of a value between the smallest and the largest of its metric on the set, in per cent."""
    if figures is None or figures.histogram is None or not math.isfinite(value):
        return None
    low, high = figures.histogram.edges[0], figures.histogram.edges[-1]
    return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 1) if high > low else None


def _classify_error(error: ErrorCase) -> str:
    """Positive: the metric takes the response for inconsistent."""
    return "false-negative" if error.label == 0 else "false-positive"


def _explain_threshold(threshold: ErrorThreshold | None) -> str:
    """What the heading of the errors adds: the value from which a response counts as consistent, and its origin."""
    if threshold is None:
        return ""
    value = f"{threshold.value:.3f}".replace("-", "−")
    if threshold.origin == "0.5":
        return f" (consistent above {value})"
    if threshold.origin.startswith("profile "):
        return f" (consistent from {value} upwards, {threshold.origin})"
    where = f"{threshold.origin} itself" if threshold.origin == "this set" else threshold.origin
    return f" (consistent from {value} upwards, best F1 on {where})"


def _title_metric(metric: str) -> str:
    """A metric's name as papers write it."""
    record = find(metric)
    return (record.title if record else metric).replace("_", " ")


def _describe_metric(metric: str) -> str:
    if metric == VERDICT:
        return ABOUT_VERDICT
    record = find(metric)
    return record.description if record else ""


def format_time(iso: str) -> str:
    """``iso`` as ``2025-11-21 12:04 UTC``; unchanged when it is not ISO 8601."""
    try:
        return datetime.fromisoformat(iso).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return iso
