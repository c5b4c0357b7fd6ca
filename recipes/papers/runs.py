"""What a table is measured on: runs of ``groundwire evaluate``, and the examples they scored.

Most of the papers' tables need more than ``results.json`` holds, so the scores are read, and the examples they belong
to: a run keeps scores by a digest of the request, without labels, so the files of examples are given again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from groundwire.engine.schema.explanations import Comparison, DetectorExplanation, Q2Explanation
from groundwire.engine.schema.results import Score
from groundwire.runtime.errors import InvalidRequest

if TYPE_CHECKING:
    from groundwire.evaluate.datasets.examples import Example
    from groundwire.evaluate.statistics.results import Results


class ScoredExample(NamedTuple):
    """An example and its score in the run; None where the run has none."""

    example: Example
    score: Score | None = None

    def value(self, metric: str) -> float | None:
        """The metric's value; None when it did not score."""
        result = self.score.metrics.get(metric) if self.score else None
        return result.value if result else None

    def decision(self, detector: str) -> int | None:
        """1 when the detector's most probable label means consistent, else 0; None when it did not score."""
        result = self.score.metrics.get(detector) if self.score else None
        if result is None or not isinstance(result.explanation, DetectorExplanation):
            return None
        return int(result.explanation.decision == "consistent")

    def questions(self) -> tuple[Comparison, ...]:
        """The questions that Q² kept."""
        result = self.score.metrics.get("q2") if self.score else None
        if result is None or not isinstance(result.explanation, Q2Explanation):
            return ()
        return tuple(question for question in result.explanation.questions if question.kept)


class ScoredSet(NamedTuple):
    """A set by the name of its file."""

    name: str
    examples: tuple[ScoredExample, ...]


class ScoredRun(NamedTuple):
    """One run, and the examples to measure."""

    name: str = ""
    """Which of a table's variants it is, where a table has some: "T5-small"."""
    results: Results | None = None
    """None without a run: a table that counts examples needs none."""
    sets: tuple[ScoredSet, ...] = ()
    development: tuple[ScoredSet, ...] = ()
    """The examples on which thresholds are tuned."""
    file: Path | None = None
    """A file that another command wrote, for tables that are measured on one."""

    def all_examples(self) -> list[ScoredExample]:
        """The examples of all sets."""
        return [scored for scored_set in self.sets for scored in scored_set.examples]


ExamplesBySet = Mapping[str, Sequence["Example"]]
"""Examples by the name of their set."""


def load_run(
    directory: Path, name: str = "", data: ExamplesBySet | None = None, development: ExamplesBySet | None = None
) -> ScoredRun:
    """Read a run and its scores of the given examples; InvalidRequest when ``directory`` does not hold a run."""
    from groundwire.evaluate.scores.scoring import SCORES, Stored, request_key
    from groundwire.evaluate.statistics.results import Results

    results = Results.load(directory / "results.json")
    scores: dict[str, Score] = {}
    if data or development:
        from groundwire.files.results_file import read_results

        for path in sorted((directory / SCORES).glob("*.jsonl")):
            scores |= {entry.key: entry.score for entry in read_results(path, Stored)}
        if not scores:
            raise InvalidRequest(
                f"{directory} keeps no scores ({SCORES}/*.jsonl); give the directory of a complete run."
            )

    def attach_scores(sets: ExamplesBySet | None) -> tuple[ScoredSet, ...]:
        return tuple(
            ScoredSet(set_name, tuple(ScoredExample(example, scores.get(request_key(example))) for example in examples))
            for set_name, examples in (sets or {}).items()
        )

    return ScoredRun(name, results, attach_scores(data), attach_scores(development))


def build_unscored_run(data: ExamplesBySet) -> ScoredRun:
    """Examples without a run."""
    return ScoredRun(
        sets=tuple(ScoredSet(name, tuple(map(ScoredExample, examples))) for name, examples in data.items())
    )


def match_variants(runs: Sequence[ScoredRun], names: Sequence[str]) -> Iterator[tuple[str, ScoredRun]]:
    """The runs with their variants; a run without a name is the first variant."""
    by_lower_name = {name.lower(): name for name in names}
    for run in runs:
        yield by_lower_name.get(run.name.lower(), names[0]), run


class Measured:
    """The measured cells of a table by row and column, and notes on them."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], float] = {}
        self.notes: list[str] = []

    def put(self, row: str, column: str, value: float | None) -> None:
        """Fill a cell; of several runs that have a value the first counts."""
        if value is not None:
            self.cells.setdefault((row, column), value)

    def note(self, text: str) -> None:
        """Add a note under the table, once."""
        if text not in self.notes:
            self.notes.append(text)

    def mean(self, examples: Iterable[ScoredExample], metric: str, name: str) -> float | None:
        """The mean value of the examples that the metric scored; adds a note when those are not all."""
        all_examples = tuple(examples)
        values = [value for example in all_examples if (value := example.value(metric)) is not None]
        if values and len(values) < len(all_examples):
            self.note(f"{metric} scored {len(values)} of {len(all_examples)} examples of {name}.")
        return sum(values) / len(values) if values else None
