"""Quality against time: every metric by itself and every group of metrics, on labelled responses, in one run.

    python -m bench.tiers labelled.jsonl --out-plot tiers.svg

Each response is scored by each subject, one request at a time, in an order that changes, without a cache of model
calls between them. Quality is the ROC-AUC of a metric's value, or of a group's calibrated probability, over the
responses that it scores; the share that it scores is beside it. A subject is on the frontier when none is both faster
and better.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import track
from sklearn.metrics import roc_auc_score

from groundwire.engine import Engine, LoadOptions, Score
from groundwire.evaluate.datasets import read_dataset
from groundwire.evaluate.datasets.examples import Example, sample_examples
from groundwire.evaluate.report.drawing import CONSISTENT, FAINT, INK, WIDE, Drawing, finish_drawing, open_figure

from .support import common

GROUPS: dict[str, str | Sequence[str] | None] = {"fast": "fast", "default": None, "all": "all"}
"""The groups of metrics that have a verdict, and how ``score`` is asked for them. So has every further fusion of the
calibration, by its name."""
FAST_MS, DEFAULT_MS = 12.0, 50.0
"""What the verdicts of the first two may take, on two cores."""


class Row(msgspec.Struct, frozen=True):
    """One subject: a metric, or a group and its verdict."""

    name: str
    kind: str
    """metric or verdict."""
    wall: common.Timing
    processor_ms: float
    """Median processor time of all threads."""
    scored: float
    """Share of the responses with a number."""
    roc_auc: float | None
    """None unless both classes have scored responses."""
    frontier: bool = False


def main(
    sets: Annotated[list[Path], typer.Argument(help="Labelled responses, as groundwire evaluate reads them.")],
    bundle: Annotated[str, typer.Option(help="Bundle: a name, a directory or hf://.")] = "compact",
    count: Annotated[int, typer.Option(help="Responses of each set, drawn with a fixed seed.", min=4)] = 200,
    tiny: Annotated[bool, typer.Option(help="Few responses, to try the benchmark itself.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results, or none with --tiny.")] = None,
    out_plot: Annotated[Path | None, typer.Option(help="SVG file with the plot.")] = None,
) -> None:
    """Measure quality and time of every metric and of every group's verdict."""
    examples = [
        example
        for path in sets
        for example in sample_examples(
            [e for e in read_dataset(path) if e.label is not None], 12 if tiny else count, 13
        )
    ]
    with Engine.load(bundle, options=LoadOptions(cache_bytes=0)) as engine:
        names = engine.plan("all").names
        calibration = engine.core.calibration
        further = {fusion.name: fusion.metrics for fusion in calibration.fusions[1:]} if calibration else {}
        rows = mark_frontier(measure(engine, names, examples, {**further, **GROUPS}))
    common.console().print(
        common.table(
            f"{len(examples)} responses, one at a time",
            ("subject", "", "p50 ms", "p95 ms", "processor ms", "scored", "ROC-AUC", "frontier"),
            [
                (
                    row.name,
                    row.kind,
                    f"{row.wall.p50_ms:.1f}",
                    f"{row.wall.p95_ms:.1f}",
                    f"{row.processor_ms:.1f}",
                    f"{row.scored:.0%}",
                    "" if row.roc_auc is None else f"{row.roc_auc:.3f}",
                    "yes" if row.frontier else "",
                )
                for row in rows
            ],
        )
    )
    by_name = {row.name: row for row in rows}
    targets = (
        ()
        if tiny
        else (
            common.PerformanceTarget.at_most("fast verdict, p50", by_name["fast"].wall.p50_ms, FAST_MS, "ms"),
            common.PerformanceTarget.at_most("default verdict, p50", by_name["default"].wall.p50_ms, DEFAULT_MS, "ms"),
        )
    )
    settings: dict[str, int | float | str | None] = {
        "bundle": bundle,
        "sets": ", ".join(path.name for path in sets),
        "responses": len(examples),
    }
    common.finish("tiers", settings, rows, targets, out or (None if tiny else common.RESULTS / "tiers.json"))
    if out_plot is not None:
        out_plot.write_bytes(draw(rows).svg)


def measure(
    engine: Engine,
    names: Sequence[str],
    examples: Sequence[Example],
    groups: Mapping[str, str | Sequence[str] | None],
) -> list[Row]:
    """Score every example by every metric of ``names`` and by every group; WrongAnswer if a result is not repeated."""

    def score_metric(name: str) -> Callable[[Example], Score]:
        return lambda example: engine.score(
            example.response, example.knowledge, history=example.history, metrics=[name]
        )

    def score_group(metrics: str | Sequence[str] | None) -> Callable[[Example], Score]:
        return lambda example: engine.score(
            example.response, example.knowledge, history=example.history, metrics=metrics
        )

    subjects: dict[tuple[str, str], Callable[[Example], Score]] = {
        **{(name, "metric"): score_metric(name) for name in names},
        **{(name, "verdict"): score_group(metrics) for name, metrics in groups.items()},
    }
    walls: dict[tuple[str, str], list[float]] = {key: [] for key in subjects}
    spent: dict[tuple[str, str], list[float]] = {key: [] for key in subjects}
    numbers: dict[tuple[str, str], list[float | None]] = {key: [] for key in subjects}
    for key, score in subjects.items():
        first = find_number(key, score(examples[0]))
        common.check(first == find_number(key, score(examples[0])), f"{key[0]} gives two numbers for one response")
    for turn, example in enumerate(track(examples, "scoring")):
        for key in common.in_turn(subjects, turn):
            processor, wall = time.process_time(), time.perf_counter()
            result = subjects[key](example)
            walls[key].append((time.perf_counter() - wall) * 1000)
            spent[key].append((time.process_time() - processor) * 1000)
            numbers[key].append(find_number(key, result))
    labels = [example.label for example in examples]
    return [
        Row(
            name,
            kind,
            common.Timing.of(walls[name, kind]),
            common.Timing.of(spent[name, kind]).p50_ms,
            sum(number is not None for number in numbers[name, kind]) / len(examples),
            measure_area(labels, numbers[name, kind]),
        )
        for name, kind in subjects
    ]


def find_number(key: tuple[str, str], score: Score) -> float | None:
    """The metric's value, or the probability of the group's verdict."""
    name, kind = key
    if kind == "metric":
        return score.metrics[name].value
    return None if score.verdict is None else score.verdict.probability


def measure_area(labels: Sequence[int | None], numbers: Sequence[float | None]) -> float | None:
    """ROC-AUC over the responses that have a number; None unless both classes have some."""
    scored = [(label, number) for label, number in zip(labels, numbers, strict=True) if number is not None]
    if len({label for label, _ in scored}) < 2:
        return None
    return float(roc_auc_score([label for label, _ in scored], [number for _, number in scored]))


def mark_frontier(rows: Sequence[Row]) -> list[Row]:
    """The rows from fast to slow, those marked that no faster one equals in ROC-AUC."""
    best, marked = 0.0, []
    for row in sorted(rows, key=lambda row: row.wall.p50_ms):
        better = row.roc_auc is not None and row.roc_auc > best
        best = max(best, row.roc_auc or 0.0)
        marked.append(msgspec.structs.replace(row, frontier=better))
    return marked


def draw(rows: Sequence[Row]) -> Drawing:
    """Every subject with a ROC-AUC as a point, verdicts filled, the frontier as a line."""
    shown: Mapping[bool, list[Row]] = {
        verdict: [row for row in rows if row.roc_auc is not None and (row.kind == "verdict") == verdict]
        for verdict in (False, True)
    }
    with open_figure(WIDE) as (figure, axes):
        edge = [row for row in rows if row.frontier and row.roc_auc is not None]
        axes.step(
            [row.wall.p50_ms for row in edge],
            [row.roc_auc or 0.0 for row in edge],
            where="post",
            color=FAINT,
            linewidth=0.8,
        )
        for verdict, points in shown.items():
            axes.scatter(
                [row.wall.p50_ms for row in points],
                [row.roc_auc or 0.0 for row in points],
                s=26,
                facecolors=CONSISTENT if verdict else "none",
                edgecolors=CONSISTENT,
                label="verdict of a group" if verdict else "metric by itself",
            )
            for row in points:
                left = any(is_close(row, other) for other in (*shown[False], *shown[True]))
                axes.annotate(
                    row.name,
                    (row.wall.p50_ms, row.roc_auc or 0.0),
                    textcoords="offset points",
                    xytext=(-4, 4) if left else (4, 4),
                    ha="right" if left else "left",
                    size=7.5,
                    color=INK,
                )
        axes.set_xscale("log")
        # The figures' style shows formulas as they are written, and such are the labels of a logarithmic axis.
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set(xlabel="milliseconds per response, p50", ylabel="ROC-AUC")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
        return finish_drawing(figure, "tiers", "ROC-AUC against milliseconds of every metric and group")


def is_close(row: Row, other: Row) -> bool:
    """Whether ``other`` is where the name of ``row`` would be, to the right of its point."""
    gap = abs((row.roc_auc or 0.0) - (other.roc_auc or 0.0))
    return row is not other and gap < 0.008 and 1 <= other.wall.p50_ms / row.wall.p50_ms < 2


if __name__ == "__main__":
    typer.run(main)
