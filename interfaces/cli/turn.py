"""``groundwire turn``: checks turns of assistants that call tools."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import typer
from rich.text import Text

from groundwire.runtime.bundles.decode import decode_json
from groundwire.runtime.errors import InvalidRequest
from groundwire.turns import TurnCheck, TurnChecker

from . import display, options
from .groups import expand_groups
from .output import RowTable, print_json, prints_tables

_COLUMNS = {"line": 5, "finding": 0, "status": 12, "reason": 0}


class TurnLine(msgspec.Struct, frozen=True):
    """A line of the input; other fields are ignored."""

    text: str = ""
    calls: list[dict[str, Any]] = []
    log: list[dict[str, Any]] = []
    history: list[str | dict[str, Any]] = []
    tools: list[dict[str, Any]] = []
    id: Any = None


class TurnResult(msgspec.Struct, frozen=True):
    """A line of ``groundwire turn --json``."""

    line: int
    """Number of the input line, from 1."""
    id: Any
    turn: TurnCheck


@expand_groups
def check_turns(
    source: Annotated[Path, typer.Argument(help="JSON Lines; - is standard input.")],
    actions: Annotated[
        str, typer.Option(metavar="NAME,…", help="Tools that change something although their names do not say so.")
    ] = "",
    json: options.JsonOption = None,
    *,
    scoring: options.ScoringOptions,
    engine_options: options.EngineOptions,
) -> None:
    """Check turns of an assistant that calls tools, before its calls are made.

    Each line is `{"text": "…", "calls": […], "log": […], "history": […], "tools": […]}`: what the assistant says, the
    calls that it is about to make, the calls that were made with their results, the dialogue, and the definitions of
    the tools. The table shows what is wrong: an
    argument from nowhere or of another record, an action that the text claims and no call did, a figure of another
    record. In a pipe, each result is one JSON record with all findings. The exit code is 3 if a turn is inconsistent
    or could not be checked, or a line cannot be read.

        groundwire turn turns.jsonl
        agent --dry-run | groundwire turn - --json | jq .turn.label
    """
    errors = display.error_console()
    show_table = prints_tables(json)
    table = RowTable(display.output_console(), _COLUMNS)
    stopped = 0
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(engine_options.open())
        names = options.choose_metrics(engine, scoring.parse_metrics())
        chosen = [name.strip() for name in actions.split(",") if name.strip()]
        make_checker = partial(TurnChecker, engine, actions=chosen, metrics=names, options=scoring.make_options())
        checker = make_checker()
        file = sys.stdin.buffer if str(source) == "-" else stack.enter_context(_open(source))
        for number, content in _read_lines(file):
            try:
                turn = decode_json(content, TurnLine, InvalidRequest)
                checked = (make_checker(tools=turn.tools) if turn.tools else checker).check(
                    turn.text, turn.calls, log=turn.log, history=turn.history, sentences=not show_table
                )
            except InvalidRequest as error:
                stopped += 1
                display.print_line_error(errors, number, str(error))
                continue
            stopped += checked.label in ("inconsistent", "unknown")
            if checked.label == "unknown":
                display.print_line_error(errors, number, checked.message)
            if not show_table:
                print_json(TurnResult(number, turn.id, checked))
            for finding in checked.problems if show_table else ():
                table.add_row(str(number), Text(finding.where), finding.status, Text(finding.message))
    display.exit_without_result("blocked" if stopped else "scored")


def _open(source: Path) -> BinaryIO:
    try:
        return source.open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{source} cannot be read: {error.strerror}.", param_hint="SOURCE") from error


def _read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in enumerate(file, 1) if line.strip())
