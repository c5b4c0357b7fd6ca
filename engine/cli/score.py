"""``groundwire score``: a file of responses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from groundwire.engine.api import Engine
from groundwire.engine.records import Score
from groundwire.runtime.errors import InvalidRequest

from . import common
from .reading import Line, lines

BAD_LINES = 3
"""Exit code when lines were skipped."""
COLUMNS = 4
"""Metrics that get a column each; more stand below each other."""


class Output:
    """The results file: one line per scored input line, appended and flushed, so that a stopped run can go on."""

    def __init__(self, path: Path, signature: str) -> None:
        self.path = path
        self.done = self._read(signature)
        self._file: TextIO | None = None

    def write(self, line: Line, score: Score) -> None:
        """Append one result."""
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        row = {"line": line.number, "id": (line.row or {}).get("id"), "score": score}
        self._file.write(msgspec.json.encode(row).decode() + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file, if anything was written."""
        if self._file is not None:
            self._file.close()

    def _read(self, signature: str) -> set[int]:
        if not self.path.exists():
            if not self.path.parent.is_dir():
                raise InvalidRequest(f"--out {self.path}: the directory {self.path.parent} does not exist; create it.")
            return set()
        done: set[int] = set()
        raw = self.path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        for text in whole.splitlines():
            try:
                row = msgspec.json.decode(text)
                found = row["score"]["signature"]
                done.add(int(row["line"]))
            except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
                raise InvalidRequest(f"--out {self.path} is not a file of results; choose another name.") from error
            if found != signature:
                raise InvalidRequest(
                    f"--out {self.path} was made with other settings ({found}); now they are {signature}. "
                    "Choose another name, or remove the file."
                )
        if len(whole) < len(raw):  # a run was killed in the middle of a line
            with self.path.open("rb+") as file:
                file.truncate(len(whole))
        return done


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
        output = Output(out, engine.signature(names, options)) if out else None
        if output is not None:
            stack.callback(output.close)
            if output.done:
                errors.print(f"Continuing {escape(str(out))}: {len(output.done)} lines are done.", soft_wrap=True)
        table = _table(names, judged=engine.calibration is not None)
        todo: list[Line] = []

        def wanted() -> Iterator[dict[str, Any]]:
            nonlocal bad
            for line in found:
                if output is not None and line.number in output.done:
                    continue
                if line.row is None:
                    bad += 1
                    errors.print(f"[red]line {line.number}[/]: {escape(line.problem)}", soft_wrap=True)
                    continue
                todo.append(line)
                yield line.row

        with _progress(source, stack) as advance:
            for result in engine.score_many(wanted(), metrics=names, options=options):
                line = todo.pop(0)
                advance(line.number)
                if result.status == "invalid":
                    bad += 1
                    errors.print(f"[red]line {line.number}[/]: {escape(result.message)}", soft_wrap=True)
                elif output is not None:
                    output.write(line, result)
                else:
                    _add(table, line, result, names, judged=engine.calibration is not None)
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


@contextlib.contextmanager
def _progress(source: Path, stack: contextlib.ExitStack) -> Iterator[Any]:
    if not common.interactive():
        yield lambda number: None
        return
    total = None
    if str(source) != "-":
        with source.open("rb") as file:
            total = sum(1 for _ in file)
    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("scoring", total=total)
        yield lambda number: bar.update(task, completed=number)
