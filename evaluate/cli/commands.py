"""``groundwire evaluate`` and ``groundwire compare``. Cheap to import; the heavy libraries load when a command runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from groundwire.engine.cli import display
from groundwire.engine.cli import options as cli_options
from groundwire.evaluate import require
from groundwire.runtime.errors import InvalidRequest

if TYPE_CHECKING:
    from groundwire.evaluate.scores.scoring import Settings, Watch
    from groundwire.evaluate.statistics.compare import Comparison, Difference
    from groundwire.evaluate.statistics.results import Estimate, MetricFigures, Results, SetFigures

WORSE = 4
"""Exit code of a comparison whose gate is closed."""
RESULTS = "results.json"

OutOption = Annotated[
    Path, typer.Option(help="Directory of the run: scores, results.json, report.html.", file_okay=False)
]
SeedOption = Annotated[int, typer.Option(help="Of the samples behind the intervals, and of --sample.", min=0)]
WorkersOption = Annotated[
    int, typer.Option(help="Processes that score at once, each with its share of the threads and the models.", min=1)
]
RepeatsOption = Annotated[int, typer.Option(help="Samples behind an interval.", min=10)]


def evaluate(
    data: Annotated[
        list[Path],
        typer.Argument(help="Labelled sets: JSON Lines, CSV, or the format their authors publish.", metavar="DATA"),
    ],
    out: OutOption,
    metrics: cli_options.MetricsOption = None,
    bundle: Annotated[str | None, typer.Option(help="A bundle's name or directory; default: compact.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or tensorrt; default: auto.")] = None,
    threads: cli_options.ThreadsOption = None,
    workers: WorkersOption = 1,
    decoding: Annotated[str | None, typer.Option(help="How questions are generated; default: beam.")] = None,
    questions: Annotated[str | None, typer.Option(help="single or all valid ones of a span; default: single.")] = None,
    personal: cli_options.PersonalOption = False,
    calibration: Annotated[
        Path | None, typer.Option(help="Draw the verdicts with this file, not with the bundle's calibration.")
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="Labelled set on which thresholds are tuned (best F1).")] = None,
    sample: Annotated[int, typer.Option(help="Rows of each set, whole contexts, drawn; 0 takes all.", min=0)] = 0,
    seed: SeedOption = 0,
    repeats: RepeatsOption = 1000,
) -> None:
    """Measure how far metrics agree with people on labelled responses.

    A row is `{"response": "…", "knowledge": "…", "label": 1}`: 1 is consistent, 0 is not. Scores are kept in the run's
    directory, so a stopped run goes on, and figures are made again without a model. Every figure has a 95 % interval.

        groundwire evaluate tests.jsonl --dev dev.jsonl --metrics q2,nli,overlap_precision --out runs/mine
    """
    required()
    from groundwire.evaluate.datasets import read
    from groundwire.evaluate.datasets.examples import sampled
    from groundwire.evaluate.report.page import write_report
    from groundwire.evaluate.scores import metric_values
    from groundwire.evaluate.scores.scoring import score_sets
    from groundwire.evaluate.statistics.analysis import Development, analyse
    from groundwire.evaluate.statistics.results import SCHEMA, Results

    settings = _settings(bundle, device, threads, workers, metrics, decoding, questions, personal, calibration)
    paths = named([*data, *([dev] if dev else [])])
    sets = {name: sampled(read(path), sample, seed) for name, path in paths.items()}
    with progress() as watch:
        scored = score_sets(sets, out, settings, watch)
        tuning = None
        if dev is not None:
            tuning = Development(_name(dev), sets.pop(_name(dev)), scored.sets[_name(dev)])
        found = []
        for name, rows in sets.items():
            watch(f"figures of {name}", 0, 0)
            scores, fused = scored.sets[name], scored.calibration
            metric_values.save(
                out / metric_values.VALUES / f"{name}.jsonl", metric_values.tabulate(rows, scores, fused)
            )
            found.append(analyse(name, rows, scores, calibration=fused, development=tuning, seed=seed, repeats=repeats))
        results = Results(SCHEMA, _now(), scored.signature, seed, repeats, tuple(found))
        results.save(out / RESULTS)
        watch("report", 0, 0)
        report = write_report(results, out)
    _show(results, report)


def compare(
    a: Annotated[Path, typer.Argument(help="results.json of a run, or its directory: the one to compare with.")],
    b: Annotated[Path, typer.Argument(help="results.json of another run.")],
    scores_a: Annotated[Path | None, typer.Option(help="Directory of run A, if not where its results are.")] = None,
    scores_b: Annotated[Path | None, typer.Option(help="Directory of run B, if not where its results are.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Comma-separated; default: all.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the comparison here.", dir_okay=False)] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            help="Exit code 4 when a metric of B is worse by more points (hundredths) than this with p < 0.05, or when "
            "B lacks what A has.",
            min=0.0,
        ),
    ] = None,
    seed: SeedOption = 0,
    repeats: RepeatsOption = 1000,
) -> None:
    """Put two runs of `groundwire evaluate` side by side.

    Figures are those of the rows that both runs have scored; p is that of a paired bootstrap. As a gate in CI, against
    a run whose results.json and values/ are checked in:

        groundwire compare baseline runs/now --fail-below 1
    """
    required()
    from groundwire.evaluate.statistics.compare import Run, compare_runs

    found = compare_runs(
        Run.load(a, scores_a),
        Run.load(b, scores_b),
        metrics=cli_options.parse_metrics(metrics),
        repeats=repeats,
        seed=seed,
    )
    if json is not None:
        json.write_text(found.to_json() + "\n", encoding="utf-8")
    _show_comparison(found)
    if fail_below is None:
        return
    worse = [one for one in found.differences if one.worse_by(fail_below)]
    errors = Console(stderr=True, highlight=False)
    for one in worse:
        errors.print(
            f"[red]worse[/]: {escape(one.metric)} on {escape(one.set)}, {one.figure} by "
            f"{-100 * one.difference.value:.1f} points (p {one.p:.3f})",
            soft_wrap=True,
        )
    for what in found.missing:
        errors.print(f"[red]missing in B[/]: {escape(what)}", soft_wrap=True)
    if worse or found.missing:
        raise typer.Exit(WORSE)


def required() -> None:
    """Raise InvalidRequest with the install command when the extra is not installed."""
    try:
        require()
    except ImportError as error:
        raise InvalidRequest(str(error)) from error


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


def _name(path: Path) -> str:
    """The name of a set: that of its file, without suffixes."""
    return path.name.partition(".")[0] or path.name


def named(paths: list[Path]) -> dict[str, Path]:
    """Sets by their names; InvalidRequest when two files have the same."""
    found: dict[str, Path] = {}
    for path in paths:
        name = _name(path)
        if name in found:
            raise InvalidRequest(f"{found[name]} and {path} would both be the set {name!r}; rename one of them.")
        found[name] = path
    return found


def _settings(
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
    from groundwire.evaluate.scores.scoring import Settings

    told = decoding is not None or questions is not None or personal
    return Settings(
        bundle=bundle,
        device=None if device is None else cli_options.parse_device(device),
        threads=threads,
        metrics=cli_options.parse_metrics(metrics),
        options=cli_options.make_options(decoding or "beam", questions or "single", personal, None) if told else None,
        calibration=calibration,
        workers=workers,
    )


@contextmanager
def progress() -> Iterator[Watch]:
    """A bar for the set that is being scored; nothing of it stays, and nothing appears where no terminal is."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not display.is_interactive()) as bar:
        task = bar.add_task("", total=None)

        def watch(name: str, done: int, total: int) -> None:
            bar.update(task, description=escape(name), completed=done, total=total or None)

        yield watch


def _show(results: Results, report: Path) -> None:
    console = display.output_console()
    for found in results.sets:
        labels = ", ".join(f"{count} {label}" for label, count in found.labels.items() if count)
        console.print(f"[bold]{escape(found.name)}[/]: {found.rows} rows ({labels})")
        console.print(_figures(found))
        for note in found.notes:
            console.print(f"[dim]{escape(note)}[/]")
    about = f"F1 at the tuned threshold, else at 0.5; 95 % intervals, {results.repeats} samples. {results.signature}"
    console.print(f"[dim]{escape(about)}[/]", soft_wrap=True)
    console.print(f"report: {escape(str(report))}", soft_wrap=True)


def _figures(found: SetFigures) -> Table:
    """One line per metric, the best first; columns that no metric fills are left out."""
    columns: dict[str, Callable[[MetricFigures], str]] = {
        "ROC-AUC": lambda one: _interval(one.roc_auc),
        "AP inconsistent": lambda one: _plain(one.average_precision),
        "F1 consistent": lambda one: _decided(one, "consistent"),
        "F1 inconsistent": lambda one: _decided(one, "inconsistent"),
        "pairs": lambda one: _plain(one.ranking),
        "Spearman": lambda one: _interval(one.spearman),
        "Pearson": lambda one: _plain(one.pearson),
        "systems": lambda one: _plain(one.systems.correlation if one.systems else None),
    }
    order = sorted(found.metrics.values(), key=lambda one: -(one.roc_auc.value if one.roc_auc else 0.0))
    filled = {title: [cell(one) for one in order] for title, cell in columns.items()}
    filled = {title: cells for title, cells in filled.items() if any(cells)}
    table = Table()
    table.add_column("metric", no_wrap=True)
    table.add_column("scored", justify="right")
    for title in filled:
        table.add_column(title, justify="right", no_wrap=True)
    for place, one in enumerate(order):
        scored = one.statuses.get("scored", 0)
        table.add_row(escape(one.metric), str(scored), *(cells[place] for cells in filled.values()))
    return table


def _decided(one: MetricFigures, which: str) -> str:
    """F1 of a class at the tuned threshold, or else at 0.5."""
    if not one.decisions:
        return ""
    decision = one.decisions[-1]
    return _plain((decision.consistent if which == "consistent" else decision.inconsistent).f1)


def _plain(one: Estimate | None) -> str:
    return "" if one is None else f"{one.value:.3f}"


def _interval(one: Estimate | None) -> str:
    return "" if one is None else f"{one.value:.3f} [dim]{one.low:.3f}–{one.high:.3f}[/]"


def _show_comparison(found: Comparison) -> None:
    console = display.output_console()
    table = Table()
    for title in ("set", "metric", "figure"):
        table.add_column(title, no_wrap=True)
    for title in ("rows", "A", "B", "B - A", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found.differences:
        table.add_row(
            escape(one.set),
            escape(one.metric),
            one.figure,
            str(one.rows),
            f"{one.a:.3f}",
            f"{one.b:.3f}",
            _difference(one),
            f"{one.p:.3f}",
        )
    console.print(f"[dim]A {escape(found.a)}\nB {escape(found.b)}[/]", soft_wrap=True)
    console.print(table)
    for what in found.missing:
        console.print(f"[yellow]missing in B[/]: {escape(what)}", soft_wrap=True)
    for note in found.notes:
        console.print(f"[dim]{escape(note)}[/]", soft_wrap=True)


def _difference(one: Difference) -> str:
    """The difference and its interval, coloured where it is more than chance."""
    from groundwire.evaluate.statistics.compare import SIGNIFICANT

    shade = "default" if one.p >= SIGNIFICANT else "green" if one.difference.value > 0 else "red"
    spread = f"[dim]{one.difference.low:+.3f} to {one.difference.high:+.3f}[/]"
    return f"[{shade}]{one.difference.value:+.3f}[/] {spread}"
