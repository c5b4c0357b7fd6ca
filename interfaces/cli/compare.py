"""``groundwire compare``: two runs side by side, and the regression gate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from groundwire.cli import options
from groundwire.cli.display import EXIT_WORSE, error_console, escape_markup, output_console
from groundwire.cli.groups import Setting, expand_groups

from . import evaluation as common

if TYPE_CHECKING:
    from groundwire.evaluate.comparison import FigureDifference, RunComparison


@expand_groups
def compare(
    a: Annotated[Path, typer.Argument(help="results.json of the run to compare with, or its directory.")],
    b: Annotated[Path, typer.Argument(help="results.json of another run, or its directory.")],
    scores_a: Annotated[Path | None, Setting("Directory of run A, if its results are elsewhere.")] = None,
    scores_b: Annotated[Path | None, Setting("Directory of run B, if its results are elsewhere.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Comma-separated metrics; default: all.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the comparison to this file.", dir_okay=False)] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            help="Exit with code 4 when a metric of B is worse by more points (hundredths) than this with p < 0.05 "
            "after Holm's correction, or when B lacks what A has.",
            min=0.0,
        ),
    ] = None,
    *,
    statistics: common.StatisticsOptions,
) -> None:
    """Put two runs of `groundwire evaluate` on the same responses side by side.

    The comparison shows which metrics, bundle or settings agree better with the labels. To compare two dialogue
    systems instead, put the responses of both in one file, with `system` in each row: `groundwire report` compares how
    many are called inconsistent.

    Figures are computed from the examples that both runs have scored. A paired bootstrap over contexts gives p, and
    Holm's p corrects it for the number of figures. As a gate in CI, against a run whose results.json and values/ are
    checked in:

        groundwire compare baseline runs/now --fail-below 1
    """
    common.require_extra()
    from groundwire.evaluate import Run
    from groundwire.evaluate.comparison import compare as compare_runs

    comparison = compare_runs(
        Run.load(a, scores_a),
        Run.load(b, scores_b),
        metrics=options.split_names(metrics),
        repeats=statistics.repeats,
        seed=statistics.seed,
    )
    if json is not None:
        json.write_text(comparison.to_json() + "\n", encoding="utf-8")
    _print_comparison(comparison)
    if fail_below is None:
        console = output_console()
        for what in comparison.missing:
            console.print(f"[yellow]missing in B[/]: {escape_markup(what)}", soft_wrap=True)
        return
    worse = [difference for difference in comparison.differences if difference.worse_by(fail_below)]
    errors = error_console()
    for difference in worse:
        errors.print(
            f"[red]worse[/]: {escape_markup(difference.metric)} on {escape_markup(difference.set)}, "
            f"{difference.figure} by {-100 * difference.difference.value:.1f} points "
            f"(p {difference.adjusted_p:.3f}, corrected)",
            soft_wrap=True,
        )
    for what in comparison.missing:
        errors.print(f"[red]missing in B[/]: {escape_markup(what)}", soft_wrap=True)
    if worse or comparison.missing:
        raise typer.Exit(EXIT_WORSE)


def _print_comparison(comparison: RunComparison) -> None:
    console = output_console()
    table = Table()
    several = len({difference.set for difference in comparison.differences}) > 1
    for title in ("set", "metric", "figure") if several else ("metric", "figure"):
        table.add_column(title, overflow="fold")  # words wrap, so that no number is cut
    for title in ("examples", "A", "B", "B - A", "p", "Holm's p"):
        table.add_column(title, justify="right", no_wrap=True)
    for difference in comparison.differences:
        table.add_row(
            *([escape_markup(difference.set)] if several else []),
            escape_markup(difference.metric),
            difference.figure,
            str(difference.examples),
            f"{difference.a:.3f}",
            f"{difference.b:.3f}",
            _format_difference(difference),
            f"{difference.p:.3f}",
            f"{difference.adjusted_p:.3f}",
        )
    console.print(f"[dim]A {escape_markup(comparison.a)}\nB {escape_markup(comparison.b)}[/]", soft_wrap=True)
    console.print(table)
    for note in comparison.notes:
        console.print(f"[dim]{escape_markup(note)}[/]", soft_wrap=True)


def _format_difference(difference: FigureDifference) -> str:
    """The difference and its interval, coloured where it is more than chance."""
    from groundwire.evaluate.comparison import SIGNIFICANT

    estimate = difference.difference
    shade = "default" if difference.adjusted_p >= SIGNIFICANT else "green" if estimate.value > 0 else "red"
    return f"[{shade}]{estimate.value:+.3f}[/] [dim]{estimate.low:+.3f} to {estimate.high:+.3f}[/]"
