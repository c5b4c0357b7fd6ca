"""``groundwire card``: the error rates of an installation, by kind of text."""

from __future__ import annotations

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
    from groundwire.evaluate.datasets import LeftOut
    from groundwire.evaluate.statistics.card import ErrorCard
    from groundwire.monitor.records import Estimate

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".csv", ".tsv", ".parquet")
"""Files of a folder that are read."""


@expand_groups
def card(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Labelled sets, or folders of them: JSON Lines, a JSON array, CSV, TSV or Parquet.", metavar="DATA"
        ),
    ],
    out: Annotated[Path, typer.Option(help="Directory for card.html, card.json and the scores.", file_okay=False)],
    metrics: options.MetricsOption = None,
    workers: common.WorkersOption = 1,
    *,
    statistics: common.StatisticsOptions,
    summary: common.SummaryOptions,
    engine_options: options.StoredEngineOptions,
) -> None:
    """Measure the two error rates of the verdict by kind of text: a page for whoever relies on a block.

    A line is a labelled response, as for `groundwire evaluate`; its kind of text is the field `source`, or else the
    name of the file. Each rate has its 95 % interval, and the page says what the responses do not cover. Responses that
    the calibration was fitted to are left out; so are broken lines, and the exit code is then 3. Scores are kept in
    --out, so a stopped run resumes.

        groundwire card labelled/ --out card
        groundwire card labelled.jsonl --columns source=context --out card
    """
    common.require_extra()
    from groundwire.evaluate.report.card import write_card_page
    from groundwire.evaluate.scores.scoring import ScoringSettings, score_sets
    from groundwire.evaluate.statistics.card import measure_card

    device, extra = engine_options.device, engine_options.extra
    settings = ScoringSettings(
        bundle=engine_options.bundle,
        device=None if device is None else options.parse_device(device),
        threads=engine_options.threads,
        metrics=options.parse_metrics(metrics),
        options=None,
        calibration=engine_options.calibration,
        workers=workers,
        extra=tuple(extra or ()),
    )
    left_out: dict[str, LeftOut] = {}
    sets = common.read_sets(list_files(data), summary.columns, left_out=left_out)
    with common.show_scoring() as watch:
        with options.refuse_absent_bundles(engine_options.bundle, extra):
            scored = score_sets(sets, out, settings, watch)
        watch("card", 0, 0)
        measured = measure_card(
            sets,
            scored.sets,
            scored.calibration,
            scored.signature,
            seed=statistics.seed,
            repeats=statistics.repeats,
        )
        page = write_card_page(measured, out)
    common.print_unscored(scored.sets)
    if summary.json:
        print_json(measured)
    else:
        with translate_write_errors(STDOUT):
            _print_card(measured, page)
    common.exit_if_left_out(left_out)


def list_files(paths: list[Path]) -> list[Path]:
    """Return the files, with those of a folder in its place; InvalidRequest for a folder without any."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
        if not inside:
            raise InvalidRequest(
                f"{path} has no file that ends with {', '.join(SUFFIXES)}; give a folder of labelled sets."
            )
        files += inside
    return files


def _print_card(measured: ErrorCard, page: Path) -> None:
    console = display.output_console()
    table = Table()
    table.add_column("kind of text")
    for column in ("false positive rate", "of consistent", "false negative rate", "of inconsistent"):
        table.add_column(column, justify="right")
    for row in (*measured.kinds, measured.total):
        table.add_row(
            display.escape_markup(row.kind),
            _format_rate(row.false_positive_rate),
            str(row.consistent),
            _format_rate(row.false_negative_rate),
            str(row.inconsistent),
            end_section=row is measured.kinds[-1],
        )
    console.print(table)
    for sentence in measured.not_covered:
        console.print(f"[dim]not covered: {display.escape_markup(sentence)}[/]", soft_wrap=True)
    console.print(f"card: {display.escape_markup(str(page))}", soft_wrap=True)


def _format_rate(rate: Estimate | None) -> str:
    return "" if rate is None else f"{rate.value:.1%} [dim]{rate.low:.1%}–{rate.high:.1%}[/]"
