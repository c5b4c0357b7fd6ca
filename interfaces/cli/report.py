"""``groundwire report``: what verdicts say about traffic without labels."""

from __future__ import annotations

import contextlib
import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import msgspec
import typer
from rich.table import Table

from groundwire.cli import display, options
from groundwire.cli.groups import Setting, expand_groups
from groundwire.cli.output import STDOUT, print_json
from groundwire.cli.score import read_request
from groundwire.engine import Options, Request, Score
from groundwire.engine.schema.base import digest_fields
from groundwire.files.columns import FIELDS
from groundwire.files.reading import Line, UntilError
from groundwire.files.results_file import translate_write_errors
from groundwire.monitor.sampling import is_drawn
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.local import describe

from . import evaluation as common

if TYPE_CHECKING:
    from groundwire.engine import Engine
    from groundwire.monitor.observations import Observations
    from groundwire.monitor.records import Drift, Group, RowToLabel, SystemDifference, TrafficReport
    from groundwire.monitor.summary import Reference

TRAFFIC_FIELDS = (*FIELDS, "score", "system", "source", "language", "time")
"""The fields of a line of traffic, for --columns."""
SHOWN_GROUPS = 8
SHEET_ROWS = 50
"""Rows of --sheet: labels of these say most about where the threshold should be."""


@dataclass(frozen=True)
class ReferenceOptions:
    """Earlier traffic to compare with, and what is an alert."""

    reference: Annotated[
        Path | None, typer.Option(help="Traffic to compare with, such as a good week.", show_default=False)
    ] = None
    reference_lines: Annotated[
        int | None, Setting(help="Compare with the first lines of TRAFFIC: this many.", min=1)
    ] = None
    alert_rate: Annotated[
        float, Setting(help="Chance, 0–1, of any alert without a change, over all looks together.")
    ] = 0.05
    look_size: Annotated[int, Setting(help="Verdicts after which the traffic is compared again.", min=1)] = 500
    looks_before: Annotated[
        int, Setting(help="Looks of earlier reports with this reference, which have used up their chance.", min=0)
    ] = 0
    fail_on_alert: Annotated[bool, typer.Option("--fail-on-alert", help="Exit with code 4 on an alert.")] = False

    def check(self) -> None:
        """Refuse values that are not possible, or exclude each other, as wrong usage."""
        if not 0 < self.alert_rate < 1:
            raise typer.BadParameter(f"{self.alert_rate} is not between 0 and 1.", param_hint="--set alert_rate")
        if self.reference is not None and self.reference_lines is not None:
            raise typer.BadParameter(
                "Give --reference or --set reference_lines, not both.", param_hint="--set reference_lines"
            )

    def make_reference(self, old: Observations) -> Reference | None:
        """The record that the report compares with."""
        from groundwire.monitor.summary import Reference

        if self.reference is None and self.reference_lines is None:
            return None
        name = f"the first {len(old.rows)} scored lines" if self.reference is None else self.reference.name
        return Reference(old, name, self.alert_rate, self.look_size, self.looks_before)


@dataclass(frozen=True)
class OutputOptions:
    """What a report writes."""

    out: Annotated[Path | None, typer.Option(help="Directory for traffic.html and traffic.json.", file_okay=False)] = (
        None
    )
    examples: Annotated[int, Setting(help="Worst responses that the page shows.", min=0)] = 20
    sheet: Annotated[
        Path | None,
        typer.Option(help=f"Write the {SHEET_ROWS} responses nearest to the threshold here, as CSV to label."),
    ] = None


@expand_groups
def report(
    traffic: Annotated[
        Path,
        typer.Argument(
            help="Responses with their knowledge, or results of `groundwire score`: JSON Lines, a JSON array, CSV, TSV "
            "or Parquet; also with .gz; - is standard input.",
            metavar="TRAFFIC",
        ),
    ],
    rate: Annotated[
        float,
        typer.Option(help="Share, 0–1, of the lines to draw and score. The text decides, so it is always the same."),
    ] = 1.0,
    *,
    output: OutputOptions,
    against: ReferenceOptions,
    scoring: options.ScoringOptions,
    summary: common.SummaryOptions,
    engine_options: options.EngineOptions,
) -> None:
    """Estimate how much of a traffic is inconsistent with its knowledge, without labels.

    Each line is a response with its knowledge, as for `groundwire score`, or a line that `groundwire score` or
    `/score_many` wrote, with the texts or without; `system`, `source`, `language` and `time` are optional. The report
    shows the share that is called inconsistent, and where some are unverifiable, the range up to the share of both,
    whatever the verdict's errors; where the responses are like those of the calibration, the share that is corrected
    for the verdict's error rates, with an interval; what each profile would stop; the terms, lengths, kinds of
    sentences, languages, systems and times where inconsistent responses concentrate; the difference of each two systems
    in the share called inconsistent, with its interval; the worst responses; and with a reference, what has changed,
    and an alert where more responses are inconsistent. The page `traffic.html` has all of it.

        groundwire report dialogues.jsonl --metrics fast
        groundwire report today.jsonl --reference good_week.jsonl --out reports/today --fail-on-alert
        groundwire report dialogues.jsonl --sheet to-label.csv
        groundwire report traffic.jsonl.gz --rate 0.05 --metrics fast --columns system=model,time=created
    """
    common.require_extra()
    from groundwire.evaluate.report.traffic import write_traffic_page
    from groundwire.monitor.observations import Observations
    from groundwire.monitor.summary import build_report

    if not 0 < rate <= 1:
        raise typer.BadParameter(f"{rate} is not above 0 and at most 1.", param_hint="--rate")
    against.check()
    request_options, names = scoring.make_options(), scoring.parse_metrics()
    with contextlib.ExitStack() as stack:
        loader = _Loader(stack, engine_options)
        reader = _Reader(loader, names, request_options, rate, summary.columns)
        old, new = Observations(), Observations(output.examples, SHEET_ROWS if output.sheet else 0)
        if against.reference is not None:
            reader.read(against.reference, old)
        lines = reader.read(traffic, new, old, against.reference_lines or 0)
        fitted = loader.find_calibration()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    source = "standard input" if str(traffic) == "-" else traffic.name
    built = build_report(new, source, when, fitted, rate=rate, lines=lines, reference=against.make_reference(old))
    page = None if output.out is None else write_traffic_page(built, output.out)
    if output.sheet is not None:
        write_sheet(new.nearest, output.sheet)
    if summary.json:
        print_json(built)
    else:
        with translate_write_errors(STDOUT):
            _print_report(built, page)
    if against.fail_on_alert and built.drift is not None and built.drift.alerts:
        raise typer.Exit(display.EXIT_WORSE)
    if built.labels["unscored"]:
        raise typer.Exit(display.EXIT_UNSCORED)


def write_sheet(rows: Sequence[RowToLabel], path: Path) -> None:
    """Write rows to label as CSV: passages and turns on lines of their own, and an empty column ``label``."""
    with translate_write_errors(path), path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "history", "knowledge", "response", "label"))
        for row in rows:
            texts = ("\n".join(row.history), "\n\n".join(row.knowledge), row.response)
            writer.writerow((row.id or row.line, *texts, ""))


class _Loader:
    """Loads the engine at the first line without a score, and not at all without one."""

    def __init__(self, stack: contextlib.ExitStack, engine_options: options.EngineOptions) -> None:
        self._stack = stack
        self._options = engine_options
        self._engine: Engine | None = None

    def load(self) -> Engine:
        if self._engine is None:
            self._engine = self._stack.enter_context(self._options.open())
        return self._engine

    def find_calibration(self) -> Calibration | None:
        """That of the engine, or the one it would have."""
        if self._engine is not None:
            return self._engine.core.calibration
        if self._options.calibration is not None:
            return Calibration.load(self._options.calibration)
        bundle, extra = self._options.bundle, self._options.extra
        with options.refuse_absent_bundles(bundle, extra):
            return describe(bundle, "cpu", tuple(extra or ())).calibration


class _Reader:
    """Reads traffic, draws lines of it, and scores the lines that have no score."""

    def __init__(
        self,
        loader: _Loader,
        metrics: tuple[str, ...] | None,
        request_options: Options,
        rate: float,
        columns: str | None,
    ) -> None:
        self._loader = loader
        self._metrics = metrics
        self._options = request_options
        self._rate = rate
        self._columns = columns

    def read(self, source: Path, new: Observations, old: Observations | None = None, first: int = 0) -> int:
        """Add the ``first`` scored lines to ``old`` and the others to ``new``; returns how many lines ``new`` is of."""
        errors = display.error_console()
        lines = 0

        def add(line: Line, score: Score, request: Request | None) -> None:
            assert line.row is not None
            target = old if old is not None and len(old.rows) < first else new
            try:
                target.add(line.number, line.row, score, request)
            except InvalidRequest as error:
                refuse(line.number, str(error))

        def refuse(number: int, message: str) -> None:
            new.add_problem("invalid")
            display.print_line_error(errors, number, message)

        pending: deque[tuple[Line, Request]] = deque()

        def read_unscored(lines_: Iterator[Line]) -> Iterator[Request]:
            nonlocal lines
            for line in lines_:
                lines += 1
                try:
                    score, request = _read_line(line, self._options)
                except InvalidRequest as error:
                    refuse(line.number, str(error))
                    continue
                if not self._draws(line, request):
                    continue
                if score is not None:
                    add(line, score, request)
                elif request is not None:
                    pending.append((line, request))
                    yield request

        with options.open_lines(source, self._columns, frozenset(), TRAFFIC_FIELDS) as opened:
            requests = UntilError(read_unscored(opened))
            first_request = next(requests, None)
            if first_request is not None:
                engine = self._loader.load()
                names = options.choose_metrics(engine, self._metrics)
                with display.show_progress(source, "scoring") as advance:
                    scores = engine.score_many(_chain(first_request, requests), metrics=names, options=self._options)
                    for score in scores:
                        line, request = pending.popleft()
                        advance(line.number)
                        add(line, score, request)
            requests.raise_error()
        # Lines that have a score are added before earlier lines that are still being scored.
        new.rows.sort(key=lambda row: row.line)
        return lines - (min(len(old.rows), first) if old is not None else 0)

    def _draws(self, line: Line, request: Request | None) -> bool:
        if self._rate >= 1:
            return True
        assert line.row is not None
        if request is not None:
            key = request.digest()
        else:  # of a results file without texts
            stored = line.row.get("key")
            key = stored if _is_digest(stored) else digest_fields({"id": line.row.get("id"), "line": line.number})
        return is_drawn(key, self._rate)


def _is_digest(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value) is not None


def _chain(first: Request, others: Iterator[Request]) -> Iterator[Request]:
    yield first
    yield from others


def _read_line(line: Line, request_options: Options) -> tuple[Score | None, Request | None]:
    """The score and the texts of a line; InvalidRequest if it has neither, or if one cannot be read."""
    row = line.row
    if row is None:
        raise InvalidRequest(line.problem)
    score = None if row.get("score") is None else _read_score(row["score"])
    if score is not None and ("response" not in row or not {"knowledge", "triples"} & row.keys()):
        return score, None
    request = read_request(line, request_options)
    if isinstance(request, InvalidRequest):
        raise request
    return score, request


def _read_score(record: Any) -> Score:
    if isinstance(record, str):
        return Score.from_json(record)
    try:
        return msgspec.convert(record, Score)
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise InvalidRequest(f"score is no score of Groundwire: {error}. Leave it out to score the line.") from error


def _print_report(report: TrafficReport, page: Path | None) -> None:
    console = display.output_console()
    labels = ", ".join(f"{count} {label}" for label, count in report.labels.items() if count)
    console.print(f"[bold]{display.escape_markup(report.source)}[/]: {report.lines} lines, {labels}", soft_wrap=True)
    if report.share is not None:
        verdicts = report.labels["consistent"] + report.labels["inconsistent"]
        console.print(f"called inconsistent: {_format_share(*_range(report.share))} of {verdicts} with a verdict")
        console.print(f"sure: {report.sure} of {verdicts} [dim](outside the band in which labels are often wrong)[/]")
    if report.stopped:
        shares = ", ".join(f"{name} {value:.0%}" for name, value in report.stopped.items())
        console.print(f"of all lines with a score would be stopped: {shares}")
    if report.corrected is not None:
        rates = report.corrected
        console.print(
            f"corrected for errors: [bold]{_format_share(*_range(rates.share))}[/] [dim](false positive rate "
            f"{rates.false_positive_rate:.1%} of {rates.consistent}, true positive rate {rates.true_positive_rate:.1%} "
            f"of {rates.inconsistent} held-out responses of the calibration)[/]",
            soft_wrap=True,
        )
    elif report.range is not None:
        console.print(
            f"inconsistent, as far as verdicts say: {report.range.low:.1%} to {report.range.high:.1%} of "
            f"{report.range.responses} [dim](the upper end counts what is unverifiable)[/]",
            soft_wrap=True,
        )
    for pair in report.systems:
        console.print(_describe_difference(pair), soft_wrap=True)
    if report.groups:
        console.print(_tabulate_groups(report.groups[:SHOWN_GROUPS]))
    if report.drift is not None:
        _print_drift(report.drift)
    for note in report.notes:
        console.print(f"[yellow]{display.escape_markup(note)}[/]", soft_wrap=True)
    if page is not None:
        console.print(f"page: {display.escape_markup(page)}", soft_wrap=True)


def _describe_difference(pair: SystemDifference) -> str:
    """Two systems in a line; green or red where the interval of their difference is on one side of 0."""
    from groundwire.monitor.records import MIN_RESPONSES

    difference = pair.difference
    differ = not difference.low <= 0 <= difference.high
    shade = "default" if not differ else "green" if difference.value < 0 else "red"
    note = f"from fewer than {MIN_RESPONSES} responses" if differ else "too few to tell"
    few = f" [yellow]{note}[/]" if pair.is_small else ""
    return (
        f"{display.escape_markup(pair.a)} − {display.escape_markup(pair.b)}: called inconsistent {pair.share_a:.1%} of "
        f"{pair.responses_a} − {pair.share_b:.1%} of {pair.responses_b} = [{shade}]{100 * difference.value:+.1f} "
        f"points[/] [dim]({100 * difference.low:+.1f} to {100 * difference.high:+.1f})[/]{few}"
    )


def _tabulate_groups(groups: tuple[Group, ...]) -> Table:
    table = Table(title="inconsistent responses, by group", title_justify="left")
    for column in ("", "group"):
        table.add_column(column)
    for column in ("responses", "inconsistent", "others", "corrected p"):
        table.add_column(column, justify="right")
    for group in groups:
        p = f"{group.adjusted_p:.3f}"
        table.add_row(
            group.factor,
            display.escape_markup(group.name),
            str(group.responses),
            f"{group.share.value:.1%} [dim]{group.share.low:.0%}–{group.share.high:.0%}[/]",
            f"{group.others:.1%}",
            f"[bold]{p}[/]" if group.adjusted_p < 0.05 else f"[dim]{p}[/]",
        )
    return table


def _print_drift(drift: Drift) -> None:
    console = display.output_console()
    for change in drift.changes:
        points = 100 * change.difference.value
        console.print(
            f"{change.label}: {change.now:.1%}, and {change.reference:.1%} in {display.escape_markup(drift.reference)} "
            f"({points:+.1f} points, {100 * change.difference.low:+.1f} to {100 * change.difference.high:+.1f}; "
            f"p {change.p:.3f})",
            soft_wrap=True,
        )
    for shift in drift.shifts:
        if shift.band != "alike":
            console.print(
                f"[yellow]{shift.quantity}[/]: {shift.band}, stability index {shift.index:.2f} of {shift.responses} "
                "responses"
            )
    if drift.alerts:
        look = drift.alerts[0]
        console.print(
            f"[red]alert[/]: more responses are inconsistent than in the reference, since look {look.number} (lines "
            f"{look.first}–{look.last}: {look.share.value:.1%}, and {drift.share.value:.1%} in the reference)",
            soft_wrap=True,
        )
    elif drift.is_small:
        console.print(f"too few to tell whether the share has changed: {drift.sizes} responses with a verdict")
    else:
        looks = f"{len(drift.looks)} look{'s' if len(drift.looks) > 1 else ''}"
        console.print(f"no alert in {looks} (chance of any without a change: {drift.alert_rate:.0%})")


def _range(estimate: Any) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _format_share(value: float, low: float, high: float) -> str:
    return f"{value:.1%} ({low:.1%}–{high:.1%})"
