"""``groundwire evaluate``: agreement of metrics with human labels."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from . import common

if TYPE_CHECKING:
    from ..scores.scoring import Settings
    from ..statistics.results import Estimate, MetricFigures, Results, SetFigures


def evaluate(
    data: Annotated[
        list[Path],
        typer.Argument(help="Labelled sets: JSON Lines, CSV, or the format of their authors.", metavar="DATA"),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Directory of the run: scores, results.json, report.html.", file_okay=False),
    ],
    metrics: common.MetricsOption = None,
    bundle: Annotated[str | None, typer.Option(help="A bundle's name or directory; default: compact.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or tensorrt; default: auto.")] = None,
    threads: common.ThreadsOption = None,
    workers: common.WorkersOption = 1,
    decoding: Annotated[
        str | None, typer.Option(help="How questions are generated: beam, greedy or sampling; default: beam.")
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(help="single: the first valid question of a span; all: every valid question; default: single."),
    ] = None,
    personal: Annotated[bool, typer.Option(help="Keep questions about the speakers (for personal dialogue).")] = False,
    random_knowledge: Annotated[
        bool,
        typer.Option(
            "--random-knowledge",
            help="Give every response the knowledge of another example, and the label 0: a test of the metrics.",
        ),
    ] = False,
    calibration: Annotated[
        Path | None, typer.Option(help="Draw the verdicts with this file instead of the bundle's calibration.")
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="Labelled set on which thresholds are tuned (best F1).")] = None,
    sample: Annotated[
        int, typer.Option(help="Examples to draw from each set, in whole contexts; 0 takes all.", min=0)
    ] = 0,
    seed: common.SeedOption = 0,
    repeats: common.RepeatsOption = 1000,
) -> None:
    """Measure how well metrics agree with human labels of responses.

    An example is `{"response": "…", "knowledge": "…", "label": 1}`: 1 is consistent, 0 is inconsistent. Scores are
    kept in the run's directory, so a stopped run resumes, and figures are computed again without a model. Every figure
    has a 95 % interval.

        groundwire evaluate tests.jsonl --dev dev.jsonl --metrics q2,nli,overlap_precision --out runs/mine
    """
    common.require_extra()
    from ..datasets import read_dataset
    from ..datasets.examples import sample_examples, shuffle_knowledge
    from ..report.page import write_report
    from ..scores.metric_values import VALUES, build_example_values, save_values
    from ..scores.scoring import score_sets
    from ..statistics.analysis import Development, analyse
    from ..statistics.results import SCHEMA, Results

    settings = _build_settings(bundle, device, threads, workers, metrics, decoding, questions, personal, calibration)
    paths = common.name_sets([*data, *([dev] if dev else [])])
    sets = {name: sample_examples(read_dataset(path), sample, seed) for name, path in paths.items()}
    if random_knowledge:
        sets = {name: shuffle_knowledge(examples, seed) for name, examples in sets.items()}
    with common.show_progress() as watch:
        scored = score_sets(sets, out, settings, watch)
        development = None
        if dev is not None:
            name = common.name_set(dev)
            development = Development(name, sets.pop(name), scored.sets[name])
        figures = []
        for name, examples in sets.items():
            watch(f"figures of {name}", 0, 0)
            scores = scored.sets[name]
            save_values(out / VALUES / f"{name}.jsonl", build_example_values(examples, scores, scored.calibration))
            figures.append(
                analyse(
                    name,
                    examples,
                    scores,
                    calibration=scored.calibration,
                    development=development,
                    seed=seed,
                    repeats=repeats,
                )
            )
        when = datetime.now(UTC).isoformat(timespec="seconds")
        results = Results(SCHEMA, when, scored.signature, seed, repeats, tuple(figures))
        results.save(out / common.RESULTS)
        watch("report", 0, 0)
        report = write_report(results, out)
    _print_results(results, report)


def _build_settings(
    bundle: str | None,
    device: str | None,
    threads: int | None,
    workers: int,
    metrics: str | None,
    decoding: str | None,
    questions: str | None,
    personal: bool,
    calibration: Path | None,
) -> Settings:
    from ..scores.scoring import Settings

    options = None
    if decoding is not None or questions is not None or personal:
        options = common.parse_q2_options(decoding or "beam", questions or "single", personal)
    return Settings(
        bundle=bundle,
        device=None if device is None else common.parse_device(device),
        threads=threads,
        metrics=common.parse_metrics(metrics),
        options=options,
        calibration=calibration,
        workers=workers,
    )


def _print_results(results: Results, report: Path) -> None:
    console = common.open_stdout()
    for figures in results.sets:
        labels = ", ".join(f"{count} {label}" for label, count in figures.labels.items() if count)
        console.print(f"[bold]{escape(figures.name)}[/]: {figures.examples} examples ({labels})")
        console.print(_tabulate_metrics(figures))
        for note in figures.notes:
            console.print(f"[dim]{escape(note)}[/]")
    about = (
        f"F1 at the tuned threshold, else above 0.5; intervals: 95 %, {results.repeats} bootstrap samples. "
        f"{results.signature}"
    )
    console.print(f"[dim]{escape(about)}[/]", soft_wrap=True)
    console.print(f"report: {escape(str(report))}", soft_wrap=True)


def _tabulate_metrics(figures: SetFigures) -> Table:
    """One line per metric, the best first; columns that no metric fills are left out."""
    columns: dict[str, Callable[[MetricFigures], str]] = {
        "ROC-AUC": lambda metric: _format_interval(metric.roc_auc),
        "AP inconsistent": lambda metric: _format_value(metric.average_precision),
        "F1 consistent": lambda metric: _format_f1(metric, "consistent"),
        "F1 inconsistent": lambda metric: _format_f1(metric, "inconsistent"),
        "ranking": lambda metric: _format_value(metric.ranking),
        "Spearman": lambda metric: _format_interval(metric.spearman),
        "Pearson": lambda metric: _format_value(metric.pearson),
        "system level": lambda metric: _format_value(metric.system_level.correlation if metric.system_level else None),
    }
    order = sorted(figures.metrics.values(), key=lambda metric: -(metric.roc_auc.value if metric.roc_auc else 0.0))
    filled = {title: [format_cell(metric) for metric in order] for title, format_cell in columns.items()}
    filled = {title: cells for title, cells in filled.items() if any(cells)}
    table = Table()
    table.add_column("metric", no_wrap=True)
    table.add_column("examples", justify="right", no_wrap=True)
    for title in filled:
        table.add_column(title, justify="right", no_wrap=True)
    for index, metric in enumerate(order):
        count = f"{metric.examples} of {figures.labelled}" if figures.count_missing(metric) else str(metric.examples)
        table.add_row(escape(metric.metric), count, *(cells[index] for cells in filled.values()))
    return table


def _format_f1(metric: MetricFigures, which: str) -> str:
    """F1 of a class at the tuned threshold, or else above 0.5."""
    if not metric.decisions:
        return ""
    decision = metric.decisions[-1]
    return _format_value((decision.consistent if which == "consistent" else decision.inconsistent).f1)


def _format_value(figure: Estimate | None) -> str:
    return "" if figure is None else f"{figure.value:.3f}"


def _format_interval(figure: Estimate | None) -> str:
    return "" if figure is None else f"{figure.value:.3f} [dim]{figure.low:.3f}–{figure.high:.3f}[/]"
