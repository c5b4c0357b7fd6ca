"""``groundwire score``: scores a file of responses."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from ..api import Engine
from ..jsonl.reading import Line, read_lines
from ..jsonl.results_file import ResultsFile, Signed
from ..schema.results import Score
from . import display, options

METRIC_COLUMNS = 4
"""Metrics with a column each; more metrics share one column, one per row."""


class ScoreEntry(msgspec.Struct, frozen=True):
    """The fields of a results line that continuing a run needs."""

    line: int
    """Number of the input line, from 1."""
    score: Signed

    @property
    def made_with(self) -> str:
        """The signature of the score."""
        return self.score.signature


class ScoreLine(msgspec.Struct, frozen=True):
    """A line of the results file."""

    line: int
    """Number of the input line, from 1."""
    id: Any
    score: Score


def score_file(
    source: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines or CSV with the columns response, knowledge and, optionally, history; - is stdin."
        ),
    ],
    out: options.OutOption = None,
    metrics: options.MetricsOption = None,
    bundle: options.BundleOption = "compact",
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
    decoding: options.DecodingOption = "beam",
    questions: options.QuestionsOption = "single",
    personal: options.PersonalOption = False,
    deadline_ms: options.DeadlineOption = None,
) -> None:
    """Score a file of responses against their knowledge.

    Each line is `{"response": "…", "knowledge": "…" or ["…", …], "history": ["…", …]}`; the history is optional, oldest
    utterance first. The result is a table: the verdict with its probability, the metrics' values, and the response with
    its unsupported words in ⟦brackets⟧. With `--out` it is one JSON record per line instead. A line that cannot be read
    is reported and skipped; the exit code is then 3.

        groundwire score examples/dialogues.jsonl
        groundwire score examples/dialogues.jsonl --metrics q2,overlap --out scores.jsonl
    """
    errors = display.error_console()
    request_options = options.make_options(decoding, questions, personal, deadline_ms)
    skipped = 0
    with contextlib.ExitStack() as stack:
        source_lines = stack.enter_context(read_lines(source))
        engine = stack.enter_context(Engine.load(bundle, options.parse_device(device), threads=threads))
        names = engine.metric_names(options.parse_metrics(metrics))
        output = ResultsFile(out, ScoreEntry) if out else None
        done: set[int] = set()
        if output is not None and out is not None:
            output.check(engine.signature(names, request_options))
            stack.callback(output.close)
            done = {entry.line for entry in output.entries}
            display.print_continued(errors, out, len(done))
        # Without --metrics the verdict summarises all metrics, so only the first one has a column.
        shown = names if metrics or engine.calibration is None else names[:1]
        has_verdict = engine.calibration is not None
        table = _make_table(shown, has_verdict=has_verdict)
        pending: deque[Line] = deque()

        def read_rows() -> Iterator[dict[str, Any]]:
            nonlocal skipped
            for line in source_lines:
                if line.number in done:
                    continue
                if line.row is None:
                    skipped += 1
                    display.print_line_error(errors, line.number, line.problem)
                    continue
                pending.append(line)
                yield line.row

        with display.show_progress(source, "scoring") as advance:
            for score in engine.score_many(read_rows(), metrics=names, options=request_options):
                line = pending.popleft()
                advance(line.number)
                if score.status == "invalid":
                    skipped += 1
                    display.print_line_error(errors, line.number, score.message)
                elif output is not None:
                    output.append(ScoreLine(line.number, (line.row or {}).get("id"), score))
                else:
                    _add_row(table, line, score, shown, has_verdict=has_verdict)
    if output is None and table.row_count:
        console = display.output_console()
        console.print(table)
        console.print(
            "[dim]1: the knowledge supports all that was checked; 0: none of it. "
            "*: no valid question, so the whole response was classified.[/]"
        )
    display.exit_if_skipped(skipped)


def _make_table(names: tuple[str, ...], *, has_verdict: bool) -> Table:
    table = Table(show_lines=True, expand=True)
    table.add_column("line", justify="right", style="dim")
    if has_verdict:
        table.add_column("verdict", no_wrap=True)
    if len(names) <= METRIC_COLUMNS:
        for name in names:
            table.add_column(name, justify="right")
    else:
        table.add_column("metric", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
    table.add_column("response with unsupported words ⟦marked⟧", ratio=5)
    table.add_column("reason", ratio=5)
    return table


def _add_row(table: Table, line: Line, score: Score, names: tuple[str, ...], *, has_verdict: bool) -> None:
    assert line.row is not None
    values = [display.format_value(score.metrics[name]) for name in names]
    if len(names) > METRIC_COLUMNS:
        values = ["\n".join(names), "\n".join(values)]
    reason = display.format_reasons(score) if score.status == "scored" else score.message
    verdict = [display.format_verdict(score)] if has_verdict else []
    response = display.mark_unsupported(line.row["response"], score)
    table.add_row(str(line.number), *verdict, *values, response, reason)
