"""What a table is measured on: runs of ``groundwire evaluate``, and the rows they scored.

Most of the papers' tables need more than ``results.json`` holds, so the scores are read, and the rows they belong to:
a run keeps scores by what the engine was given, without labels, so the files of rows are given again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groundwire.engine.schema.explanations import Comparison, DetectorExplanation, Q2Explanation
from groundwire.engine.schema.results import Score
from groundwire.runtime.errors import InvalidRequest

if TYPE_CHECKING:
    from groundwire.evaluate.datasets.examples import Row
    from groundwire.evaluate.statistics.results import Results


class Judged(NamedTuple):
    """A row, and what the run said of it; no score where the run has none."""

    row: Row
    score: Score | None = None

    def value(self, metric: str) -> float | None:
        """The metric's value; None when it did not score."""
        result = self.score.metrics.get(metric) if self.score else None
        return result.value if result else None

    def decision(self, detector: str) -> int | None:
        """1 when the label that a detector finds most probable means consistent, else 0; None when it did not score."""
        result = self.score.metrics.get(detector) if self.score else None
        if result is None or not isinstance(result.explanation, DetectorExplanation):
            return None
        return int(result.explanation.decision == "consistent")

    def questions(self) -> tuple[Comparison, ...]:
        """The questions that Q² kept."""
        result = self.score.metrics.get("q2") if self.score else None
        if result is None or not isinstance(result.explanation, Q2Explanation):
            return ()
        return tuple(one for one in result.explanation.questions if one.kept)


class JudgedSet(NamedTuple):
    """A set by the name of its file."""

    name: str
    rows: tuple[Judged, ...]


class Run(NamedTuple):
    """One run, and the rows to look at."""

    name: str = ""
    """Which of a table's variants it is, where a table has some: "T5-small"."""
    results: Results | None = None
    """None when nothing was run: a table that counts rows needs none."""
    sets: tuple[JudgedSet, ...] = ()
    development: tuple[JudgedSet, ...] = ()
    """The rows that thresholds are tuned on."""

    def rows(self) -> list[Judged]:
        """Those of all sets."""
        return [one for each in self.sets for one in each.rows]


Rows = Mapping[str, Sequence["Row"]]
"""Rows by the name of their set."""


def load(directory: Path, name: str = "", data: Rows | None = None, development: Rows | None = None) -> Run:
    """A run from its directory, and its scores of the given rows; InvalidRequest when it is no run's directory."""
    from groundwire.evaluate.scores.scoring import SCORES, Stored, request_key
    from groundwire.evaluate.statistics.results import Results

    results = Results.load(directory / "results.json")
    scores: dict[str, Score] = {}
    if data or development:
        from groundwire.engine.jsonl.results_file import ResultsFile

        for path in sorted((directory / SCORES).glob("*.jsonl")):
            scores |= {entry.key: entry.score for entry in ResultsFile(path, Stored).entries}
        if not scores:
            raise InvalidRequest(f"{directory} keeps no scores ({SCORES}/*.jsonl); give the directory of a whole run.")

    def judged(rows: Rows | None) -> tuple[JudgedSet, ...]:
        return tuple(
            JudgedSet(each, tuple(Judged(row, scores.get(request_key(row))) for row in found))
            for each, found in (rows or {}).items()
        )

    return Run(name, results, judged(data), judged(development))


def unscored(data: Rows) -> Run:
    """Rows alone."""
    return Run(sets=tuple(JudgedSet(name, tuple(map(Judged, rows))) for name, rows in data.items()))


class Measured:
    """What was measured of a table: cells by row and column, and what a reader must know of them."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], float] = {}
        self.notes: list[str] = []

    def put(self, row: str, column: str, value: float | None) -> None:
        """Fill a cell; of several runs that have a value the first counts."""
        if value is not None:
            self.cells.setdefault((row, column), value)

    def note(self, text: str) -> None:
        """Say something under the table, once."""
        if text not in self.notes:
            self.notes.append(text)

    def mean(self, rows: Iterable[Judged], metric: str, name: str) -> float | None:
        """The mean value of the rows on which the metric scored; a note says when those are not all."""
        everyone = tuple(rows)
        values = [value for one in everyone if (value := one.value(metric)) is not None]
        if values and len(values) < len(everyone):
            self.note(f"{metric} scored {len(values)} of {len(everyone)} rows of {name}.")
        return sum(values) / len(values) if values else None
