"""``groundwire adapt``: fits the embedded models to a user's own labelled responses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from groundwire.cli import display, options
from groundwire.cli.groups import expand_groups
from groundwire.cli.output import STDOUT, print_json
from groundwire.files.results_file import translate_write_errors
from groundwire.runtime.errors import InvalidRequest

from . import evaluation as common

if TYPE_CHECKING:
    from groundwire.evaluate.adaptation.report import AdaptationReport, CandidateFigures
    from groundwire.evaluate.datasets import LeftOut
    from groundwire.monitor.records import Estimate


@dataclass(frozen=True)
class AdaptationOptions(common.FitOptions):
    """What is tuned, to which examples, and how."""

    role: Annotated[str, typer.Option(help="The detector whose head is tuned: a role of the bundle.")] = (
        "detector.consistency"
    )
    seed: common.SeedOption = 13
    repeats: common.RepeatsOption = 1000


@expand_groups
def adapt(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Labelled sets, as for `groundwire evaluate`. Every set has the same weight.", metavar="LABELLED"
        ),
    ],
    out: Annotated[Path, typer.Option(help="Directory of the new bundle.", file_okay=False)],
    bundle: options.BundleOption = "compact",
    threads: options.ThreadsOption = None,
    metrics: Annotated[
        str,
        typer.Option(
            help="Metrics or groups from which the verdict is drawn, separated by commas. `all` adds the "
            "question-based metrics and takes much longer."
        ),
    ] = "fast",
    *,
    fit: AdaptationOptions,
    summary: common.SummaryOptions,
) -> None:
    """Fit the bundle to your own labelled responses: a few hundred rows, a few minutes, no GPU.

    A row is `{"response": "…", "knowledge": "…", "label": 1}`: 1 is consistent, 0 is not; at least 40 of each, a few
    hundred of each are a good start. The encoder stays as it is. Tuned are the last layer of the detector and the
    calibration: what counts as consistent, and where the line is. The new bundle is the old one with these numbers
    changed; nothing leaves the machine, and no text of a row is written into it.

        groundwire adapt my-rows.jsonl --out my-bundle
        groundwire score today.jsonl --bundle my-bundle

    The report says what that bought, on rows that were held out: each fifth of the rows is decided by a fit to the
    others, and rows that share a passage of knowledge stay together. Where the tuned head is not better within the
    fitted rows, the bundle keeps its own; where the calibration is not either, the copy is unchanged.

    Needs `pip install 'groundwire[adapt]'`. To fit the calibration alone: `groundwire calibrate`.
    """
    _require()
    from groundwire.evaluate.adaptation.bundles import adapt_bundle

    names = options.parse_metrics(metrics) or ("fast",)
    left_out: dict[str, LeftOut] = {}
    sets = fit.read_sets(data, summary.columns, left_out)
    with common.show_scoring() as watch, options.refuse_absent_bundles(bundle, None):
        report = adapt_bundle(
            sets,
            out,
            fit.run or out.with_name(f"{out.name}.run"),
            bundle,
            role=fit.role,
            metrics=names,
            options=fit.make_options(fit.seed),
            threads=threads,
            repeats=fit.repeats,
            watch=watch,
        )
    if summary.json:
        print_json(report)
    else:
        with translate_write_errors(STDOUT):
            print_report(report, out)
    common.exit_if_left_out(left_out)


def _require() -> None:
    """Raise InvalidRequest with the install command when the extra is not installed."""
    from groundwire.evaluate.adaptation.extra import check_libraries

    try:
        check_libraries()
    except ImportError as error:
        raise InvalidRequest(str(error)) from error


def print_report(report: AdaptationReport, out: Path) -> None:
    """Print what was fitted, what it bought, and what was written."""
    from groundwire.evaluate.adaptation.fitting import CANDIDATES

    console = display.output_console()
    rows = report.rows
    left_out = {
        "without a label": rows.unlabelled,
        "repeated": rows.repeated,
        "with two labels": rows.contradictory,
        "without a score": rows.unscored,
    }
    notes = "; left out: " + ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
    console.print(
        f"{rows.consistent} consistent and {rows.inconsistent} inconsistent rows about {rows.groups} pieces of "
        f"knowledge{notes if any(left_out.values()) else ''}",
        soft_wrap=True,
    )
    if report.undecided:
        console.print(f"{report.undecided} rows have no verdict from every candidate and are in no figure.")
    console.print(_tabulate(report))
    console.print(
        f"[dim]Every row by a fit without it, {report.folds} folds; intervals: 95 %, {report.repeats} bootstrap "
        "samples of pieces of knowledge. Positive: a response is called inconsistent; power: the share of inconsistent "
        f"responses that are called so, as they are delivered.{_explain_cost(report)} After: what was chosen for each "
        f"fold ({_count_choices(report)}).[/]",
        soft_wrap=True,
    )
    colour = "green" if "rose" in report.conclusion else "yellow"
    console.print(f"[{colour}]{report.conclusion}[/]", soft_wrap=True)
    if report.hint:
        console.print(report.hint, soft_wrap=True)
    console.print(f"written to {display.escape_markup(out)}: {CANDIDATES[report.written]}", soft_wrap=True)


def _tabulate(report: AdaptationReport) -> Table:
    """One line per figure; the gain beside before and after."""
    table = Table(title="held-out rows", title_justify="left")
    table.add_column("figure")
    for column in ("before", "calibration alone", "after", "gain"):
        table.add_column(column, justify="right", no_wrap=True)
    before, after = report.candidates.get(report.before or "unchanged"), report.after
    middle: CandidateFigures | None = report.candidates.get("calibration")

    def add(title: str, pick: str, gain: Estimate | None, profile: str | None = None, digits: int = 3) -> None:
        cells = []
        for figures in (before, middle, after):
            part = figures if figures is None or profile is None else dict(figures.profiles.items()).get(profile)  # type: ignore[call-overload]
            cells.append(_format(None if part is None else getattr(part, pick), digits))
        table.add_row(title, *cells, _format(gain, digits, signed=True))

    add("ROC-AUC of the verdict", "roc_auc", report.gain.roc_auc)
    add(f"ROC-AUC of {report.role}", "detector_roc_auc", report.gain.detector_roc_auc)
    for name, figures in after.profiles.items():
        bound = figures.max_false_positive_rate
        table.add_section()
        add(f"{name}: balanced accuracy", "balanced_accuracy", report.gain.balanced_accuracy.get(name), name)
        promise = "" if bound is None else f" (promised ≤ {bound:.0%})"
        add(f"{name}: false positive rate{promise}", "false_positive_rate", None, name)
        add(f"{name}: power", "power", None, name)
        add(f"{name}: wrong, unverifiable", "unverifiable_rate", None, name)
        if report.cost_of_missed != 1:
            add(f"{name}: cost", "cost", report.gain.cost.get(name), name, digits=0)
    return table


def _explain_cost(report: AdaptationReport) -> str:
    if report.cost_of_missed == 1:
        return ""
    return (
        f" Cost: in false positives, of 100 right and 100 wrong responses, if a missed error costs "
        f"{report.cost_of_missed:g}; less is better."
    )


def _count_choices(report: AdaptationReport) -> str:
    counts = {name: report.chosen_in_folds.count(name) for name in dict.fromkeys(report.chosen_in_folds)}
    return ", ".join(f"{name} in {count}" for name, count in counts.items())


def _format(figure: Estimate | None, digits: int = 3, *, signed: bool = False) -> str:
    if figure is None:
        return ""
    form = f"{'+' if signed else ''}.{digits}f"
    return f"{figure.value:{form}} [dim]{figure.low:{form}}–{figure.high:{form}}[/]"
