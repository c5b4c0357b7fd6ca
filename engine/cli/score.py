"""``groundwire score``: a file of responses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from groundwire.engine.api import Engine
from groundwire.engine.jsonl.reading import Line, lines
from groundwire.engine.jsonl.results_file import ResultsFile
from groundwire.engine.schema.results import Score

from . import common

BAD_LINES = 3
"""Exit code when lines were skipped."""
COLUMNS = 4
"""Metrics that get a column each; more stand below each other."""


class Signed(msgspec.Struct, frozen=True):
    """What must be known of a score that stands in the results file."""

    signature: str


class Done(msgspec.Struct, frozen=True):
    """A line of the results file, as far as a run that goes on needs it."""

    line: int
    """Number of the input line, from 1."""
    score: Signed

    @property
    def made_with(self) -> str:
        """The signature of the score."""
        return self.score.signature


class Written(msgspec.Struct, frozen=True):
    """A line of the results file, whole."""

    line: int
    id: Any
    score: Score


def score(
    source: Annotated[
        Path, typer.Argument(help="JSON Lines or CSV with response, knowledge and perhaps history; - reads stdin.")
    ],
    out: Annotated[Path | None, typer.Option(help="Write JSON Lines here; an interrupted run is continued.")] = None,
    metrics: common.MetricsOption = None,
    bundle: common.BundleOption = "compact",
    device: common.DeviceOption = "auto",
    threads: common.ThreadsOption = None,
    decoding: common.DecodingOption = "beam",
    questions: common.QuestionsOption = "single",
    personal: common.PersonalOption = False,
    deadline_ms: common.DeadlineOption = None,
) -> None:
    """Score a file of responses.

    Each line is `{"response": "…", "knowledge": "…" or ["…", …], "history": ["…", …]}`. Without `--out` the result is a
    table; a bad line is named and skipped, the others are kept, and the exit code is 3.

        groundwire score examples/dialogues.jsonl --out scores.jsonl
    """
    errors = Console(stderr=True, highlight=False)
    options = common.make_options(decoding, questions, personal, deadline_ms)
    bad = 0
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(lines(source))
        engine = stack.enter_context(Engine.load(bundle, common.device_choice(device), threads=threads))
        names = engine.metric_names(common.metric_names(metrics))
        output = ResultsFile(out, Done) if out else None
        done: set[int] = set()
        if output is not None:
            output.check(engine.signature(names, options))
            stack.callback(output.close)
            done = {entry.line for entry in output.entries}
            if done:
                errors.print(f"Continuing {escape(str(out))}: {len(done)} lines are done.", soft_wrap=True)
        # Unasked, the verdict speaks for all metrics, and the first one gives the reasons.
        shown = names if metrics or engine.calibration is None else names[:1]
        table = _table(shown, judged=engine.calibration is not None)
        todo: list[Line] = []

        def wanted() -> Iterator[dict[str, Any]]:
            nonlocal bad
            for line in found:
                if line.number in done:
                    continue
                if line.row is None:
                    bad += 1
                    errors.print(f"[red]line {line.number}[/]: {escape(line.problem)}", soft_wrap=True)
                    continue
                todo.append(line)
                yield line.row

        with common.progress(source, "scoring") as advance:
            for result in engine.score_many(wanted(), metrics=names, options=options):
                line = todo.pop(0)
                advance(line.number)
                if result.status == "invalid":
                    bad += 1
                    errors.print(f"[red]line {line.number}[/]: {escape(result.message)}", soft_wrap=True)
                elif output is not None:
                    output.append(Written(line.number, (line.row or {}).get("id"), result))
                else:
                    _add(table, line, result, shown, judged=engine.calibration is not None)
    if output is None and table.row_count:
        console = common.stdout()
        console.print(table)
        console.print(
            "[dim]1 = every checked span is supported by the knowledge, 0 = none. "
            "* no valid question; the whole response was classified.[/]"
        )
    if bad:
        errors.print(f"{bad} line{'s' if bad > 1 else ''} skipped.")
        raise typer.Exit(BAD_LINES)


def _table(names: tuple[str, ...], *, judged: bool) -> Table:
    table = Table(show_lines=True, expand=True)
    table.add_column("#", justify="right", style="dim")
    if judged:
        table.add_column("verdict", no_wrap=True)
    if len(names) <= COLUMNS:
        for name in names:
            table.add_column(name, justify="right")
    else:
        table.add_column("metric", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
    table.add_column("response, unsupported words marked", ratio=5)
    table.add_column("why", ratio=4)
    return table


def _add(table: Table, line: Line, score: Score, names: tuple[str, ...], *, judged: bool) -> None:
    assert line.row is not None
    values = [common.value_of(score.metrics[name]) for name in names]
    if len(names) > COLUMNS:
        values = ["\n".join(names), "\n".join(values)]
    why = common.reasons(score) if score.status == "scored" else score.message
    verdict = [common.verdict_of(score)] if judged else []
    table.add_row(str(line.number), *verdict, *values, common.marked(line.row["response"], score), why)
