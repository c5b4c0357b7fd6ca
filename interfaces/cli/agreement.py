"""``groundwire agreement``: how far people agree who rated the same responses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.table import Table

from groundwire.cli import display, options
from groundwire.cli.output import STDOUT, print_json
from groundwire.files.results_file import translate_write_errors

from . import evaluation as common

if TYPE_CHECKING:
    from groundwire.evaluate.statistics.raters import Rated, RaterAgreement
    from groundwire.monitor.records import Estimate

FIELDS = ("id", "ratings", "system")


def agreement(
    ratings: Annotated[
        Path,
        typer.Argument(
            help="A line per response with its ratings: JSON Lines, a JSON array or Parquet; also with .gz; - is "
            "standard input.",
            metavar="RATINGS",
        ),
    ],
    level: Annotated[
        str, typer.Option(help="The scale: nominal (labels), ordinal (Likert scales) or interval (numbers).")
    ] = "ordinal",
    columns: options.ColumnsOption = None,
    seed: common.SeedOption = 0,
    repeats: common.RepeatsOption = 1000,
    json: common.SummaryJsonOption = False,
) -> None:
    """Measure how far raters agree: Krippendorff's alpha, Fleiss' kappa, and the mean rating of each system.

    A line is `{"ratings": [4, 5, null], "system": "…"}`, with the raters in the same order everywhere, or
    `{"ratings": {"anna": 4, "ben": 5}}`; null is a missing rating. Alpha takes missing ratings; kappa is for labels,
    and needs as many for every response. Needs `pip install 'groundwire[agreement]'`.

        groundwire agreement ratings.jsonl
        groundwire agreement labels.jsonl --level nominal --columns ratings=labels
    """
    common.require_extra()
    from groundwire.evaluate.statistics.raters import Level, measure_raters, require_raters

    require_raters()
    scale = next((name for name in get_args(Level) if name == level), None)
    if scale is None:
        raise typer.BadParameter(f"{level} is unknown; use {', '.join(get_args(Level))}.", param_hint="--level")
    rated, problems = [], 0
    with options.open_lines(ratings, columns, frozenset({"ratings"}), FIELDS) as lines:
        for line in lines:
            unit, problem = (None, line.problem) if line.row is None else _read_ratings(line.row)
            if unit is None:
                problems += 1
                display.print_line_error(display.error_console(), line.number, problem)
            else:
                rated.append(unit)
    measured = measure_raters(rated, scale, repeats, seed)
    if json:
        print_json(measured)
    else:
        with translate_write_errors(STDOUT):
            _print_agreement(measured)
    if problems:
        raise typer.Exit(display.EXIT_UNSCORED)


def _read_ratings(row: Mapping[str, Any]) -> tuple[Rated | None, str]:
    """The ratings of a line, or what is wrong with them."""
    from groundwire.evaluate.statistics.raters import Rated

    given = row.get("ratings")
    if isinstance(given, list):
        given = {str(number): value for number, value in enumerate(given, 1)}
    if not isinstance(given, dict):
        return None, f"ratings is {given!r:.80}; give a list, or an object with the rating of each rater."
    known = {str(rater): value for rater, value in given.items() if value is not None}
    for value in known.values():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None, f"the rating {value!r:.80} is neither a number nor a text."
    return Rated(known, str(row.get("system") or "")), ""


def _print_agreement(measured: RaterAgreement) -> None:
    console = display.output_console()
    console.print(
        f"{measured.ratings} ratings by {measured.raters} raters of {measured.responses} responses with two or more"
    )
    alpha = "none: all ratings are the same" if measured.alpha is None else _format(measured.alpha)
    console.print(f"Krippendorff's alpha ({measured.level}): {alpha}")
    if measured.level == "nominal":
        kappa = "none: not every response has as many ratings, or all are the same"
        console.print(f"Fleiss' kappa: {kappa if measured.kappa is None else f'{measured.kappa:.3f}'}")
    if measured.systems:
        table = Table()
        table.add_column("system")
        for column in ("responses", "mean rating"):
            table.add_column(column, justify="right")
        for rating in measured.systems:
            table.add_row(display.escape_markup(rating.system or "all"), str(rating.responses), _format(rating.mean))
        console.print(table)


def _format(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [dim]{estimate.low:.3f} to {estimate.high:.3f}[/]"
