"""``groundwire evaluate``: agreement of metrics with human labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from groundwire.cli import display, options
from groundwire.cli.groups import Setting, expand_groups
from groundwire.cli.output import STDOUT, print_json
from groundwire.engine import Options
from groundwire.files.results_file import translate_write_errors

from . import evaluation as common

if TYPE_CHECKING:
    from groundwire.evaluate.datasets import LeftOut
    from groundwire.evaluate.statistics.results import MetricFigures, Results, SetFigures, VerdictFigures
    from groundwire.monitor.records import Estimate


class RandomKnowledge(StrEnum):
    """Where the knowledge that replaces a response's own is from."""

    ANY = "any"
    SAME_DIALOGUE = "same-dialogue"


@dataclass(frozen=True)
class SampleOptions(common.StatisticsOptions):
    """Which examples are measured, by which labels."""

    strict: common.StrictOption = False
    sample: Annotated[int, Setting(help="Examples to draw from each set, in whole contexts; 0 takes all.", min=0)] = 0
    dev: Annotated[Path | None, typer.Option(help="Labelled set on which thresholds are tuned (best F1).")] = None
    max_false_positive_rate: options.RateSetting = None
    label: Annotated[
        str,
        typer.Option(help="consistency, or hallucination: raters say whether the response goes beyond the knowledge."),
    ] = "consistency"
    score_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of DATA with the scores of other tools, separated by commas: measured like metrics; higher "
            "has to mean more consistent."
        ),
    ] = None
    random_knowledge: Annotated[
        RandomKnowledge | None,
        typer.Option(
            help="Give every response the knowledge of another example, or of another turn of its dialogue, and the "
            "label 0: a test of the metrics.",
        ),
    ] = None


@expand_groups
def evaluate(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Labelled sets: JSON Lines, a JSON array, CSV, TSV or Parquet.",
            metavar="DATA",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Directory of the run: scores, results.json, report.html.", file_okay=False),
    ],
    metrics: options.MetricsOption = None,
    workers: common.WorkersOption = 1,
    *,
    sample_options: SampleOptions,
    questions: options.QuestionOptions,
    summary: common.SummaryOptions,
    engine_options: options.StoredEngineOptions,
) -> None:
    """Measure how well the verdict and the metrics agree with human labels of responses.

    An example is `{"response": "…", "knowledge": "…", "label": 1}`: 1 or a word such as consistent, faithful or true; 0
    or inconsistent, hallucinated, false. Scores are kept in the run's directory, so a stopped run resumes, and figures
    are computed again without a model. Every figure has a 95 % interval. The first line is the verdict, by its
    probability. Broken lines are left out; the report names them, and the exit code is then 3.

        groundwire evaluate labelled.jsonl --out runs/labelled
        groundwire evaluate tests.jsonl --dev dev.jsonl --metrics q2,nli,overlap_precision --out runs/mine
        groundwire evaluate rows.csv --score-columns faithfulness,hhem --out runs/tools
    """
    common.require_extra()
    from groundwire.evaluate.datasets.examples import label_by_hallucination, sample_examples, shuffle_knowledge
    from groundwire.evaluate.runs import Run, measure_set
    from groundwire.evaluate.scores.scoring import ScoringSettings, score_sets
    from groundwire.evaluate.statistics.analysis import Development

    request_options = None if questions == options.QuestionOptions() else Options(q2=questions.make_options())
    device, extra = engine_options.device, engine_options.extra
    settings = ScoringSettings(
        bundle=engine_options.bundle,
        device=None if device is None else options.parse_device(device),
        threads=engine_options.threads,
        metrics=options.parse_metrics(metrics),
        options=request_options,
        calibration=engine_options.calibration,
        workers=workers,
        extra=tuple(extra or ()),
    )
    dev, label, seed, repeats = sample_options.dev, sample_options.label, sample_options.seed, sample_options.repeats
    score_columns = _split_score_columns(sample_options.score_columns)
    left_out: dict[str, LeftOut] = {}
    complete = common.read_sets(
        [*data, *([dev] if dev else [])],
        summary.columns,
        score_columns,
        strict=sample_options.strict,
        left_out=left_out,
    )
    sets = {name: sample_examples(examples, sample_options.sample, seed) for name, examples in complete.items()}
    if label == "hallucination":
        sets = {name: label_by_hallucination(examples) for name, examples in sets.items()}
    elif label != "consistency":
        raise typer.BadParameter(f"{label}: use consistency or hallucination.", param_hint="--label")
    if sample_options.random_knowledge:
        same_dialogue = sample_options.random_knowledge is RandomKnowledge.SAME_DIALOGUE
        sets = {name: shuffle_knowledge(examples, seed, same_dialogue) for name, examples in sets.items()}
    with common.show_scoring() as watch:
        with options.refuse_absent_bundles(engine_options.bundle, extra):
            scored = score_sets(sets, out, settings, watch)
        development = None
        if dev is not None:
            name = common.name_set(dev)
            development = Development(name, sets.pop(name), scored.sets[name])
        measured = {}
        for name, examples in sets.items():
            watch(f"figures of {name}", 0, 0)
            measured[name] = measure_set(
                name,
                examples,
                scored.sets[name],
                scored.calibration,
                development=development,
                left_out=left_out.get(name),
                seed=seed,
                repeats=repeats,
                max_false_positive_rate=sample_options.max_false_positive_rate,
            )
        watch("report", 0, 0)
        run = Run.of(measured, scored.signature, seed, repeats)
        report = run.save(out)
    common.print_unscored(scored.sets)
    if summary.json:
        print_json(run.results)
    else:
        with translate_write_errors(STDOUT):
            _print_results(run.results, report)
    common.exit_if_left_out(left_out)


def _split_score_columns(value: str | None) -> tuple[str, ...]:
    """The names of the score columns; BadParameter for the name of a metric."""
    from groundwire.evaluate.scores.metric_values import VERDICT
    from groundwire.metrics import find

    names = options.split_names(value) or ()
    if taken := [name for name in names if name == VERDICT or find(name) is not None]:
        raise typer.BadParameter(
            f"{taken[0]} is the name of a metric of Groundwire; rename the column.", param_hint="--score-columns"
        )
    return tuple(names)


def _print_results(results: Results, report: Path) -> None:
    from groundwire.evaluate.scores.metric_values import VERDICT
    from groundwire.evaluate.statistics.shift import explain_shift

    console = display.output_console()
    for figures in results.sets:
        labels = ", ".join(
            f"{count} {'without a label' if label == 'none' else label}"
            for label, count in figures.labels.items()
            if count
        )
        console.print(f"[bold]{display.escape_markup(figures.name)}[/]: {figures.examples} examples ({labels})")
        if any(verdict.balanced_accuracy for verdict in figures.verdicts):
            console.print(_tabulate_verdicts(figures.verdicts))
            if sure := _describe_sure(figures.verdicts[0]):
                console.print(f"[dim]{sure}[/]", soft_wrap=True)
        console.print(_tabulate_metrics(figures))
        if (lead := figures.metrics.get(figures.leading)) is not None and lead.by_source:
            console.print(_tabulate_parts(lead))
        if figures.verdicts and VERDICT not in figures.metrics:
            console.print("[dim]no verdict: it needs metrics that were not computed, or that did not score[/]")
        if figures.shifts:
            console.print(common.tabulate_shifts(figures.shifts))
            if all(shift.band == "alike" for shift in figures.shifts):  # otherwise a note says so
                console.print(f"[dim]{explain_shift(figures.shifts)}[/]", soft_wrap=True)
        for note in figures.notes:
            console.print(f"[dim]{display.escape_markup(note)}[/]")
    about = (
        f"F1 at the tuned threshold, else above 0.5; intervals: 95 %, {results.repeats} bootstrap samples. "
        f"{results.signature}"
    )
    console.print(f"[dim]{display.escape_markup(about)}[/]", soft_wrap=True)
    console.print(f"report: {display.escape_markup(str(report))}", soft_wrap=True)


def _tabulate_metrics(figures: SetFigures) -> Table:
    """One line for the verdict and then one per metric, the best first; columns that none fills are left out."""
    from groundwire.evaluate.scores.metric_values import VERDICT

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
    order = sorted(
        figures.metrics.values(),
        key=lambda metric: (metric.metric != VERDICT, -(metric.roc_auc.value if metric.roc_auc else 0.0)),
    )
    filled = {title: [format_cell(metric) for metric in order] for title, format_cell in columns.items()}
    filled = {title: cells for title, cells in filled.items() if any(cells)}
    table = Table()
    table.add_column("metric", no_wrap=True)
    table.add_column("examples", justify="right", no_wrap=True, min_width=len("examples"))
    for title, cells in filled.items():
        # Titles may wrap; a figure and its interval stay on one line.
        table.add_column(title, justify="right", no_wrap=any(" " in cell for cell in cells))
    for index, metric in enumerate(order):
        name = display.escape_markup(metric.metric)
        count = f"{metric.examples} of {figures.labelled}" if figures.count_missing(metric) else str(metric.examples)
        table.add_row(name, count, *(cells[index] for cells in filled.values()))
    return table


def _tabulate_verdicts(verdicts: Sequence[VerdictFigures]) -> Table:
    """One line for each profile; positive is a response that is called inconsistent."""
    table = Table(
        title="the verdict's labels, by profile",
        title_justify="left",
        caption="false positive: a consistent response called inconsistent; false negative: an inconsistent response "
        "called consistent or unverifiable",
        caption_justify="left",
    )
    table.add_column("profile")
    for column in ("balanced accuracy", "false positive rate", "false negative rate", "unverifiable"):
        table.add_column(column, justify="right")
    for verdict in verdicts:
        figures = (verdict.balanced_accuracy, verdict.false_positive_rate, verdict.false_negative_rate)
        rates = map(_format_interval, figures)
        table.add_row(verdict.profile, *rates, str(verdict.labels.get("unverifiable", 0)))
    return table


def _describe_sure(verdict: VerdictFigures) -> str:
    """How many labels of a profile are sure, and how often these and the others are wrong."""
    if verdict.coverage is None:
        return ""
    wrong = [
        f"of {which} {figure.value:.0%} are wrong"
        for which, figure in (("these", verdict.risk), ("the others", verdict.risk_if_unsure))
        if figure is not None
    ]
    return f"Sure are {verdict.coverage.value:.0%} of the labels of {verdict.profile}: {', '.join(wrong)}."


def _tabulate_parts(metric: MetricFigures) -> Table:
    """ROC-AUC of the leading metric by source, system, length, kind of sentence and language."""
    from groundwire.evaluate.report.tables import split_part
    from groundwire.monitor.records import MIN_RESPONSES

    overlaps = any(key.startswith("sentences=") for key in metric.by_source)
    table = Table(
        title=f"ROC-AUC of {display.escape_markup(metric.metric)} by part",
        title_justify="left",
        caption="a response with several kinds of sentences is in the part of each" if overlaps else None,
        caption_justify="left",
    )
    for column in ("", "part", "examples", "ROC-AUC", ""):
        table.add_column(column, justify="right" if column in ("examples", "ROC-AUC") else "left")
    for key, area in metric.by_source.items():
        group, name = split_part(key)
        count = metric.part_examples.get(key, 0)
        note = "[yellow]too few to tell[/]" if count < MIN_RESPONSES else ""
        table.add_row(group, display.escape_markup(name), str(count), _format_interval(area), note)
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
