"""``groundwire correct``: corrects a file of responses by their knowledge."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from groundwire.engine import Engine, Options
from groundwire.engine.extend import make_request, shown
from groundwire.files.reading import Line
from groundwire.repair import CorrectOptions, Corrector
from groundwire.repair.records import Correction, CorrectionEdit
from groundwire.runtime.errors import InvalidRequest

from . import display, options
from .groups import Setting, expand_groups
from .output import RowTable, print_json, prints_tables

UNCHANGED = {
    "clean": "consistent",
    "unverifiable": "states nothing to check",
    "refused": "refused",
    "unknown": "without a verdict",
    "truncated": "too long",
    "deadline": "out of time",
    "cancelled": "cancelled",
    "failed": "failed",
}
"""Labels in tables, by a status that leaves the response unchanged."""
COLOURS = {"clean": "green", "unverifiable": "yellow", "refused": "yellow", "unknown": "yellow"}
SOURCES = {
    "value": "the knowledge says",
    "answer": "the knowledge answers",
    "wording": "the knowledge says",
    "candidate": "the knowledge has",
    "removal": "left out",
}
"""Labels in tables, by the source of an edit's words."""


class CorrectionLine(msgspec.Struct, frozen=True):
    """A line of ``groundwire correct --json``."""

    line: int
    """Number of the input line, from 1."""
    id: Any
    correction: Correction


@expand_groups
def correct_file(
    source: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines, a JSON array, CSV, TSV or Parquet with response, knowledge and, optionally, history, id; "
            "also with .gz; - is standard input."
        ),
    ],
    max_drafts: Annotated[int, Setting(help="Drafts that are scored for a response, at most.", min=1)] = 4,
    remove_sentences: Annotated[
        bool,
        typer.Option(
            "--remove-sentences",
            help="Leave an unsupported sentence out where it cannot be corrected and others remain.",
        ),
    ] = False,
    *,
    scoring: options.ScoringOptions,
    input_options: options.InputOptions,
    engine_options: options.EngineOptions,
) -> None:
    """Correct a file of responses: replace unsupported words by words of the knowledge.

    The input is as for `groundwire score`. The table shows each response before and after, with the changed words in
    ⟦brackets⟧, and as the reason what the knowledge says there. A response that is supported, or for which the
    knowledge has nothing better, stays as it is. In a pipe, each result is one JSON record. A line that cannot be read,
    or that has no verdict, is reported, the others go on, and the exit code is then 3.

        groundwire correct dialogues.jsonl
        groundwire correct dialogues.jsonl --remove-sentences > corrected.jsonl
    """
    errors = display.error_console()
    request_options = scoring.make_options()
    names = scoring.parse_metrics()
    show_table = prints_tables(input_options.json)
    table = RowTable(display.output_console(), {"line": 5, "before": 0, "after": 0, "reason": 0})
    counts: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(input_options.open(source))
        engine = stack.enter_context(engine_options.open())
        chosen = options.choose_metrics(engine, names)
        advance = stack.enter_context(display.show_progress(source, "correcting", hidden=show_table))
        for line in lines:
            try:
                correction = _correct_line(engine, line, chosen, request_options, max_drafts, remove_sentences)
            except InvalidRequest as error:
                counts["invalid"] += 1
                display.print_line_error(errors, line, str(error))
            else:
                counts[correction.status] += 1
                if show_table:
                    table.add_row(display.name_line(line), *_format_row(correction))
                else:
                    print_json(CorrectionLine(line.number, (line.row or {}).get("id"), correction))
            advance(line.number)
    if show_table and counts.total() > counts["invalid"]:
        unchanged = ", ".join(f"{counts[status]} {name}" for status, name in UNCHANGED.items() if counts[status])
        display.output_console().print(
            f"[dim]{counts['corrected']} corrected, {counts['partial']} better and still inconsistent"
            f"{'; unchanged: ' + unchanged if unchanged else ''}.[/]"
        )
    display.finish(counts)


def _correct_line(
    engine: Engine, line: Line, metrics: tuple[str, ...], request_options: Options, drafts: int, remove_sentences: bool
) -> Correction:
    if line.row is None:
        raise InvalidRequest(line.problem)
    absent = [name for name in ("response", "knowledge") if name not in line.row]
    if absent:
        raise InvalidRequest(f"The line has no {' and no '.join(absent)}; it has {', '.join(map(str, line.row))}.")
    history = line.row.get("history") or ()
    request = make_request(line.row["response"], line.row["knowledge"] or (), history, request_options)
    return Corrector(engine).correct(
        request.response,
        request.knowledge,
        history=request.history,
        metrics=metrics,
        scoring=request_options,
        options=CorrectOptions(max_drafts=drafts, remove_sentences=remove_sentences),
    )


def _format_row(correction: Correction) -> tuple[Text, Text, Text]:
    spans = [(span.start, span.end) for span in correction.before.unsupported]
    if not correction.edits:
        before = display.mark_ranges(correction.original, spans, "bold red")
        return before, Text("unchanged", style="dim"), _format_status(correction)
    old = [(edit.start, edit.end) for edit in correction.edits if edit.start < edit.end]
    new = [(edit.new_start, edit.new_end) for edit in correction.edits if edit.new_start < edit.new_end]
    reason = Text("\n").join(Text(shown(_format_edit(edit))) for edit in correction.edits)
    if not correction.accepted:
        reason.append("\nstill inconsistent", style="yellow")
    return (
        display.mark_ranges(correction.original, old, "bold red"),
        display.mark_ranges(correction.response, new, "bold green"),
        reason,
    )


def _format_edit(edit: CorrectionEdit) -> str:
    kind = f" ({edit.span.type})" if edit.span is not None else ""
    new = f" “{edit.new}”" if edit.new else ""
    return f"“{edit.old.strip()}”{kind}: {SOURCES[edit.source]}{new}"


def _format_status(correction: Correction) -> Text:
    name, colour = UNCHANGED[correction.status], COLOURS.get(correction.status, "red")
    message = f" {correction.message}" if correction.message else ""
    return Text.assemble((name, colour), (shown(message), "dim"))
