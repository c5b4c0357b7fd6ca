"""Runs of an evaluation: figures of labelled responses, and the metrics' values that comparisons are computed from.

``groundwire evaluate`` makes one from files and keeps the scores; ``evaluate`` makes one from rows in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from groundwire.engine import Engine, Options, Score, default_engine
from groundwire.runtime.arguments import check_path
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest

from .datasets import LeftOut, Rows, read_rows
from .datasets.examples import Example
from .report.page import write_report
from .scores.metric_values import VALUES, ExampleValues, build_example_values, load_values, save_values
from .statistics.analysis import Development, analyse, select_unfitted
from .statistics.results import SCHEMA, Results, SetFigures

RESULTS = "results.json"
"""Figures of a run, in its directory."""


class MeasuredSet(NamedTuple):
    """Figures of a set, and the values that they are computed from."""

    figures: SetFigures
    values: list[ExampleValues]


class Run(NamedTuple):
    """A run's results, and the values they were computed from."""

    results: Results
    sets: dict[str, list[ExampleValues]]
    """By name of a set, a record for each of its examples."""

    @classmethod
    def of(cls, measured: Mapping[str, MeasuredSet], signature: str, seed: int, repeats: int) -> Self:
        """Make a run of measured sets.

        Args:
            measured: The sets by their names.
            signature: What determined the scores.
            seed: Seed of the bootstrap samples.
            repeats: Bootstrap samples of every interval.

        Returns:
            The run, of now.
        """
        when = datetime.now(UTC).isoformat(timespec="seconds")
        figures = tuple(of_set.figures for of_set in measured.values())
        results = Results(SCHEMA, when, signature, seed, repeats, figures)
        return cls(results, {name: of_set.values for name, of_set in measured.items()})

    @classmethod
    def load(cls, path: str | Path, directory: Path | None = None) -> Self:
        """Read a run of ``groundwire evaluate``.

        Args:
            path: ``results.json``, or the run's directory.
            directory: Directory of the metrics' values; None for the directory of ``results.json``.

        Returns:
            The run.

        Raises:
            InvalidRequest: A file is missing or has another form.
        """
        path = check_path("path", path)
        file = path / RESULTS if path.is_dir() else path
        results = Results.load(file)
        folder = (directory or file.parent) / VALUES
        return cls(results, {figures.name: load_values(folder / f"{figures.name}.jsonl") for figures in results.sets})

    def save(self, directory: str | Path) -> Path:
        """Write ``results.json``, ``values/`` and ``report.html``, as ``groundwire evaluate`` does.

        Args:
            directory: The run's directory; files of an earlier run are replaced.

        Returns:
            The report.
        """
        directory = check_path("directory", directory)
        for name, values in self.sets.items():
            save_values(directory / VALUES / f"{name}.jsonl", values)
        self.results.save(directory / RESULTS)
        return write_report(self.results, directory)


def evaluate(
    rows: Rows,
    engine: Engine | None = None,
    metrics: str | Sequence[str] | None = None,
    options: Options | None = None,
    *,
    name: str = "labelled",
    max_false_positive_rate: float | None = None,
    seed: int = 0,
    repeats: int = 1000,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Measure how well the verdict and the metrics agree with human labels.

    Args:
        rows: A file of JSON Lines or CSV, examples, or mappings with ``response``, ``knowledge``, ``label`` (1 or 0, or
            its words) or ``grade``, and perhaps ``history`` and ``id``.
        engine: The engine that scores them; None takes ``default_engine``.
        metrics: What is computed, as for ``Engine.score``; None takes the metrics of the verdict.
        options: As for ``Engine.score``; every profile of the calibration is measured, whichever they name.
        name: Name of the rows in the run; two runs are compared by it.
        max_false_positive_rate: A bound, from 0.001 to below 1, whose threshold is measured beside the profiles.
        seed: Seed of the bootstrap samples.
        repeats: Bootstrap samples of every interval, 1 or more.
        progress: Called with the number of scores so far, as by ``Engine.score_many``.

    Returns:
        The run: ``run.results.sets[0].verdicts`` has balanced accuracy and error rates of each profile, ``.metrics``
        the ROC-AUC of each metric.

    Raises:
        InvalidRequest: A row is unusable, none has a label, or the engine's calibration was fitted to all of them.
    """
    examples = read_rows(rows)
    engine = engine or default_engine()
    if not any(example.is_labelled for example in examples):
        raise InvalidRequest(
            f'None of the {len(examples)} rows has a label, so nothing can be measured. Add "label": 1 (consistent) or '
            '0 (inconsistent), or "grade".'
        )
    requests = (example.request for example in examples)
    scores = list(engine.score_many(requests, metrics=metrics, options=options, progress=progress))
    measured = measure_set(
        name,
        examples,
        scores,
        engine.core.calibration,
        seed=seed,
        repeats=repeats,
        max_false_positive_rate=max_false_positive_rate,
    )
    return Run.of({name: measured}, engine.plan(metrics, options).signature, seed, repeats)


def measure_set(
    name: str,
    examples: Sequence[Example],
    scores: Sequence[Score],
    calibration: Calibration | None,
    *,
    development: Development | None = None,
    left_out: LeftOut | None = None,
    seed: int,
    repeats: int,
    max_false_positive_rate: float | None,
) -> MeasuredSet:
    """Measure a scored set, without the examples that the calibration was fitted to."""
    unfitted, its_scores = select_unfitted(name, examples, scores, calibration)
    figures = analyse(
        name,
        unfitted,
        its_scores,
        calibration=calibration,
        development=development,
        left_out=left_out,
        fitted=len(examples) - len(unfitted),
        seed=seed,
        repeats=repeats,
        max_false_positive_rate=max_false_positive_rate,
    )
    return MeasuredSet(figures, build_example_values(unfitted, its_scores, calibration))
