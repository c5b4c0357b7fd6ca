"""Runs of labelled sets with chosen values, for the papers' tables."""

from __future__ import annotations

from groundwire.engine.schema.explanations import DetectorExplanation, Explanation
from groundwire.engine.schema.results import MetricResult, Score, Timings, Verdict
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.statistics.results import SCHEMA, MetricFigures, Results, SetFigures, SystemLevel
from groundwire.monitor.records import Estimate
from groundwire.recipes.papers import PaperTable


def measured(table: PaperTable) -> dict[tuple[str, str], float]:
    return {
        (row.name, column.name): cell.measured
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell.measured is not None
    }


def plain(metric: str, value: float, explanation: Explanation | None = None) -> MetricResult:
    return MetricResult(metric, "scored", value, explanation=explanation)


def detector(metric: str, decision: int) -> MetricResult:
    """A detector whose decision and probability are on different sides of 0.5."""
    explanation = DetectorExplanation("consistent" if decision else "inconsistent", ())
    return MetricResult(metric, "scored", 0.45 if decision else 0.55, explanation=explanation)


def score(*results: MetricResult) -> Score:
    by_name = {result.name: result for result in results}
    return Score("scored", results[0].value, Verdict("unknown"), by_name, (), None, Timings(0.0, {}), "groundwire|test")


def build_example(
    number: int, label: int | None, system: str = "", source: str = "", grade: float | None = None
) -> Example:
    return Example(f"{system}{number}", f"r{number}", ("k",), label=label, system=system, source=source, grade=grade)


def results(*sets: SetFigures) -> Results:
    return Results(SCHEMA, "2026-01-01T00:00:00+00:00", "groundwire|test", 0, 1000, sets)


def simulated(value: float, contexts: int = 244) -> SetFigures:
    level = SystemLevel(contexts, Estimate(value, value - 0.1, 1.0), {})
    figures = {name: MetricFigures(name, 488, {}, system_level=level) for name in ("q2", "bleu")}
    return SetFigures("cross_annotation", 488, {}, figures)


def begin(label: int, source: str, pmi: float, critic: int, number: int) -> tuple[Example, Score]:
    return build_example(number, label, source=source), score(
        plain("pmi", pmi), detector("detector.faithcritic", critic)
    )


TEST = [
    begin(1, "wow", 3.0, 1, 0),
    begin(1, "wow", 1.0, 1, 1),
    begin(0, "wow", 0.0, 0, 2),
    begin(0, "cmu", 2.5, 1, 3),
    begin(1, "cmu", 0.5, 0, 4),
    begin(0, "cmu", -1.0, 0, 5),
]


DEV = [begin(1, "wow", 4.0, 1, 0), begin(1, "tc", 2.0, 1, 1), begin(0, "cmu", 1.5, 0, 2), begin(0, "wow", -1.0, 0, 3)]
