"""The page about traffic without labels: one HTML file that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from groundwire.monitor.concentration import SIGNIFICANT
from groundwire.monitor.records import MIN_RESPONSES, Drift, Factor, Group, SystemDifference, TrafficReport

from .page import format_time, make_environment, write_page
from .tables import Column, Table, build_shifts_table
from .traffic_plots import draw_looks, draw_probabilities

TITLES: dict[Factor, str] = {
    "term": "Terms",
    "response length": "Length of the response",
    "knowledge length": "Length of the knowledge",
    "sentences": "Kinds of sentences",
    "language": "Languages",
    "system": "Systems",
    "source": "Sources",
    "time": "Times",
}


MAX_TERMS = 30
"""Terms that differ and are shown."""
FEW_TERMS = 5
"""Terms that are shown where none differs."""


class GroupView(NamedTuple):
    """The groups of one factor."""

    title: str
    table: Table
    differing: int
    """How many differ from the other responses."""


def write_traffic_page(report: TrafficReport, directory: Path) -> Path:
    """Write ``directory/traffic.html`` and ``directory/traffic.json``; returns the path of the former.

    The same report gives the same bytes. InvalidRequest for a directory that cannot be written.
    """
    return write_page(directory, "traffic", render_traffic(report), report)


def render_traffic(report: TrafficReport) -> str:
    """The page."""
    views = [view for factor in get_args(Factor) if (view := _build_group_view(factor, report.groups)) is not None]
    probabilities = looks = None
    if report.share is not None:
        probabilities = draw_probabilities(report.probabilities, report.threshold, "probabilities").inline
    if report.drift is not None and len(report.drift.looks) > 1:
        looks = draw_looks(report.drift, "looks").inline
    return (
        make_environment()
        .get_template("traffic.html")
        .render(
            report=report,
            when=format_time(report.when),
            groups=views,
            significant=SIGNIFICANT,
            differing=[group for group in report.groups if group.adjusted_p < SIGNIFICANT],
            probabilities=probabilities,
            looks=looks,
            changes=_build_changes_table(report.drift) if report.drift else None,
            systems=_build_systems_table(report.systems),
            shifts=build_shifts_table(report.drift.shifts, "Compared with the reference") if report.drift else None,
            like_calibration=build_shifts_table(report.like_calibration, "Compared with the calibration"),
            parts=sorted({worst.system for worst in report.worst if worst.system}),
        )
    )


def _build_group_view(factor: Factor, groups: Sequence[Group]) -> GroupView | None:
    chosen = [group for group in groups if group.factor == factor]
    if factor == "term":
        differing_terms = [group for group in chosen if group.adjusted_p < SIGNIFICANT]
        chosen = differing_terms[:MAX_TERMS] or chosen[:FEW_TERMS]
    else:
        chosen.sort(key=_sort_key)
    if not chosen:
        return None
    columns = (
        Column("Responses", "with a verdict", "count", tuple(group.responses for group in chosen)),
        Column("Inconsistent", "called so", "share", tuple(group.share for group in chosen)),
        Column("Others", "share among the other responses", "share", tuple(group.others for group in chosen)),
        Column(
            "Corrected p",
            "of Fisher's exact test, by Benjamini and Yekutieli over all groups of the page",
            "number",
            tuple(group.adjusted_p for group in chosen),
        ),
    )
    differing = sum(group.adjusted_p < SIGNIFICANT for group in chosen)
    table = Table(TITLES[factor], "Group", tuple(group.name for group in chosen), columns)
    return GroupView(TITLES[factor], table, differing)


def _sort_key(group: Group) -> tuple[float, str]:
    """Lengths by their number of words; times, systems and sources by name."""
    first = group.name.partition("–")[0].partition(" ")[0]
    return (float(first) if group.factor.endswith("length") else 0.0, group.name)


def _build_changes_table(drift: Drift) -> Table:
    columns = (
        Column("Reference", "share of its responses", "share", tuple(change.reference for change in drift.changes)),
        Column("Now", "share of the responses", "share", tuple(change.now for change in drift.changes)),
        Column("Points", "now less reference", "difference", tuple(change.difference for change in drift.changes)),
        Column("p", "of the two-proportion test", "number", tuple(change.p for change in drift.changes)),
    )
    return Table("Shares, compared", "Verdict", tuple(change.label for change in drift.changes), columns)


def _build_systems_table(differences: Sequence[SystemDifference]) -> Table:
    """Every pair of systems; without columns where there is none."""
    rows = tuple(f"{pair.a} − {pair.b}" for pair in differences)
    columns = (
        Column("A", "share of the first system called inconsistent", "share", tuple(p.share_a for p in differences)),
        Column("of", "responses of A with a verdict", "count", tuple(pair.responses_a for pair in differences)),
        Column("B", "share of the second system called inconsistent", "share", tuple(p.share_b for p in differences)),
        Column("of", "responses of B with a verdict", "count", tuple(pair.responses_b for pair in differences)),
        Column("A − B, points", "with its 95 % interval", "difference", tuple(pair.difference for pair in differences)),
        Column(
            "Fewer in",
            "the system with fewer inconsistent responses",
            "word",
            tuple(_name_order(pair) for pair in differences),
        ),
    )
    return Table("Systems, compared", "A − B", rows, columns if differences else ())


def _name_order(pair: SystemDifference) -> str:
    """Which system has fewer inconsistent responses, where the interval shows it."""
    if pair.difference.low <= 0 <= pair.difference.high:
        return "too few to tell" if pair.is_small else "may be chance"
    name = "A" if pair.difference.value < 0 else "B"
    return f"{name}, from fewer than {MIN_RESPONSES} responses" if pair.is_small else name
