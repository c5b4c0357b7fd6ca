"""Console output of the commands: tables, colours and marked words, progress, and errors of single lines."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from groundwire.engine import MetricResult, Score
from groundwire.engine.extend import shown
from groundwire.engine.schema.explanations import QUOTATION_REASONS, REASONS, Q2Explanation, UnsupportedSpan
from groundwire.engine.schema.results import SentenceVerdict
from groundwire.files.reading import Line
from groundwire.files.sources import strip_gzip
from groundwire.metrics import Details, find

EXIT_UNSCORED = 3
"""Exit code of a command that has no result for some of its input."""
EXIT_WORSE = 4
"""Exit code of a command whose result is worse than another, not the same, or as ``--fail-on`` names it."""
DONE = frozenset(
    {
        "scored",
        "nothing_to_verify",
        "generated",
        "checked",
        "clean",
        "unverifiable",
        "refined",
        "corrected",
        "partial",
        "refused",
        "no_context",
        "done before",
    }
)
"""Statuses of lines with a result; the others say why there is none."""
WARNED_LINES = 10
"""Lines that the warning under a table names."""
LABEL_COLOURS = {"consistent": "green", "inconsistent": "red", "unverifiable": "yellow", "unknown": "dim"}


def output_console() -> Console:
    """The console for results: as wide as the terminal, or 120 columns in a pipe."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False, emoji=False)


def error_console() -> Console:
    """The console for errors and notes, on standard error."""
    return Console(stderr=True, highlight=False, emoji=False)


def escape_markup(text: object) -> str:
    """Foreign text as a part of markup: without terminal escapes, and without markup of its own."""
    return escape(shown(text))


def is_interactive() -> bool:
    """Whether standard error is a terminal; progress bars are shown only there."""
    return sys.stderr.isatty()


@contextlib.contextmanager
def show_progress(source: Path, label: str, *, hidden: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a progress bar over the lines of a file on a terminal; call the result with the number of the last line.

    ``hidden`` is for results that are printed on the same terminal, and are progress enough.
    """
    if hidden or not is_interactive():
        yield lambda number: None
        return
    total = None
    if source.is_file() and strip_gzip(source) == source.suffix.lower() != ".parquet":
        with source.open("rb") as file:
            total = sum(1 for _ in file)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda number: bar.update(task, completed=number)


def name_line(line: Line) -> str:
    """The number of an input line, and its ``id`` where it has one."""
    identifier = (line.row or {}).get("id")
    return str(line.number) if identifier is None else f"{line.number}\n[dim]{escape_markup(identifier)}[/]"


def print_line_error(console: Console, line: Line | int, message: str) -> None:
    """Print why an input line, or the line of a number, has no result."""
    where = f"line {line}" if isinstance(line, int) else f"line {line.number}" + (line.source and f" ({line.source})")
    console.print(f"[red]{escape_markup(where)}[/]: {escape_markup(message)}", soft_wrap=True)


def print_continued(console: Console, out: Path, done: int, unfinished: int) -> None:
    """Print that an interrupted run is continued, if its results file has lines already."""
    if done or unfinished:
        are_done = "line is done" if done == 1 else "lines are done"
        again = f", {unfinished} without a result tried again" if unfinished else ""
        console.print(f"Continuing {escape_markup(out)}: {done} {are_done}{again}.", soft_wrap=True)


def finish(counts: Counter[str], code: int = 0, unknown: int = 0) -> None:
    """Print how many lines ended with each status; exit with ``code``, or with 3 if that is 0 and a line, or all, have
    no result. ``unknown`` of them have a result and no verdict."""
    total = counts.total()
    statuses = ", ".join(f"{count} {status}" for status, count in counts.most_common() if count)
    unchecked = f"; {unknown} without a verdict (unknown)" if unknown else ""
    console = error_console()
    if not total:
        console.print("The input has no lines.")
    else:
        console.print(f"{total} line{'s' if total > 1 else ''}: {statuses}{unchecked}.")
    if code:
        raise typer.Exit(code)
    if not total or any(count for status, count in counts.items() if status not in DONE):
        raise typer.Exit(EXIT_UNSCORED)


def exit_without_result(status: str) -> None:
    """Exit with code 3 if the status of a single result says that there is none."""
    if status not in DONE:
        raise typer.Exit(EXIT_UNSCORED)


def format_verdict(score: Score | SentenceVerdict) -> str:
    """The verdict's label and probability, coloured; a question mark where the label is not sure."""
    verdict = score.verdict
    probability = "" if verdict.probability is None else f" {verdict.probability:.2f}"
    doubt = " ?" if not verdict.sure and verdict.label in ("consistent", "inconsistent") else ""
    return f"[{LABEL_COLOURS[verdict.label]}]{verdict.label}{probability}{doubt}[/]"


def format_threshold(threshold: float, profile: str | None, bound: float | None) -> str:
    """The probability from which a response is called consistent, its profile, and the rate that it promises."""
    named = f", profile {profile}" if profile else ""
    promise = (
        "" if bound is None else f", false positive rate at most {100 * bound:g} % for responses like the calibration's"
    )
    return f"consistent from {threshold:.2f}{named}{promise}"


def print_warning(console: Console, warning: str, lines: Sequence[int] = ()) -> None:
    """Print what a score warns of, and the input lines that it is about."""
    names = ", ".join(map(str, lines[:WARNED_LINES])) + (" …" if len(lines) > WARNED_LINES else "")
    where = f"line{'s' if len(lines) > 1 else ''} {names}: " if lines else ""
    console.print(f"[yellow]warning[/]: {where}{escape_markup(warning)}")


def format_value(result: MetricResult) -> str:
    """A metric's value, or its status; ``*`` marks Q² without a valid question."""
    if result.value is None:
        return f"[dim]{result.status}[/]"
    fallback = isinstance(result.explanation, Q2Explanation) and result.explanation.fallback is not None
    metric = find(result.name)
    is_share = metric is None or metric.bounds == (0.0, 1.0)
    colour = choose_colour(result.value) if is_share else "default"
    return f"[{colour}]{result.value:.2f}[/]" + ("[dim]*[/]" if fallback else "")


def choose_colour(value: float) -> str:
    """Green for a value of at least 2/3, red for at most 1/3, yellow between them."""
    return "green" if value >= 2 / 3 else "yellow" if value > 1 / 3 else "red"


def mark_ranges(text: str, ranges: Sequence[tuple[int, int]], style: str) -> Text:
    """The text with disjoint, ordered ranges in colour and in ⟦brackets⟧, which are visible without colour too."""
    marked, position = Text(), 0
    for start, end in ranges:
        marked.append(shown(text[position:start]))
        marked.append(f"⟦{shown(text[start:end])}⟧", style=style)
        position = end
    marked.append(shown(text[position:]))
    return marked


def mark_unsupported(response: str, score: Score, start: int = 0, end: int | None = None) -> Text:
    """The response, or its characters ``start`` to ``end``, with its unsupported words in red and in ⟦brackets⟧."""
    part = response[start:end]
    ranges: list[tuple[int, int]] = []
    for span in sorted(score.unsupported, key=lambda span: (span.start, -span.end)):
        begin, stop = max(span.start - start, 0), min(span.end - start, len(part))
        if begin < stop and (not ranges or begin >= ranges[-1][1]):
            ranges.append((begin, stop))
    return mark_ranges(part, ranges, "bold red")


def format_reasons(score: Score) -> Text:
    """One line per unsupported span: its words, and why they are not supported."""
    lines = []
    for span in score.unsupported:
        knowledge = f": “{span.knowledge_says}”" if span.knowledge_says else ""
        lines.append(shown(f"“{span.text}” – {REASONS[span.reason]}{knowledge}"))
    return Text("\n".join(dict.fromkeys(lines)))


def format_spans(score: Score) -> Text:
    """One line per unsupported span: its words, what they are, and what the knowledge says."""
    lines = [
        f"“{span.text}” – {_name_type(span)}, severity {span.severity}: {_explain_span(span)}"
        + (f" (“{span.knowledge_says}”)" if span.knowledge_says else "")
        for span in score.unsupported
    ]
    return Text(shown("\n".join(dict.fromkeys(lines))))


def _name_type(span: UnsupportedSpan) -> str:
    return "quotation" if span.reason in QUOTATION_REASONS else str(span.type)


def _explain_span(span: UnsupportedSpan) -> str:
    if span.reason in QUOTATION_REASONS:
        return REASONS[span.reason]
    return "the knowledge contradicts" if span.knowledge == "contradicts" else "the knowledge is silent"


def print_details(console: Console, details: Details) -> None:
    """Print how a metric came to its value: its table with numbers in colour, and its notes."""
    table = Table(expand=True)
    is_number = [all(isinstance(row[index], float) for row in details.rows) for index in range(len(details.columns))]
    for title, right in zip(details.columns, is_number, strict=True):
        table.add_column(title, justify="right" if right else "left", ratio=None if right else 1)
    for row in details.rows:
        table.add_row(*(_format_cell(cell) for cell in row))
    if table.row_count:
        console.print(table)
    for note in details.notes:
        console.print(f"[dim]{escape_markup(note)}[/]")


def _format_cell(cell: str | float) -> Text:
    return Text(shown(cell)) if isinstance(cell, str) else Text(f"{cell:.2f}", style=choose_colour(cell))
