"""``groundwire score``: scores a file of responses."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from groundwire.engine import Options, Request, Score
from groundwire.engine.extend import make_request, shown
from groundwire.engine.schema.explanations import FAITHFUL, QuotationOutcome, QuotationsExplanation
from groundwire.engine.schema.results import Label, MetricResult
from groundwire.files.parquet import check_parquet, write_parquet
from groundwire.files.reading import Line, UntilError
from groundwire.files.results_file import translate_write_errors
from groundwire.files.resuming import is_final
from groundwire.metrics import Metric
from groundwire.runtime.errors import InvalidRequest

from . import display, options
from .groups import expand_groups
from .output import STDOUT, RowTable, open_output
from .resume import DONE_BEFORE, Resume

OUTCOME = max(map(len, get_args(QuotationOutcome)))
"""Characters of an outcome of a quotation, at most."""
METRIC_COLUMNS = 4
"""Metrics with a column each; more metrics share one column, one per row."""


FINDINGS: tuple[str, ...] = (
    *(label for label in get_args(Label) if label != "consistent"),
    *(outcome for outcome in get_args(QuotationOutcome) if outcome not in FAITHFUL),
)
"""What --fail-on may name: labels of the verdict, and outcomes of quotations."""


class _StoredStatus(msgspec.Struct, frozen=True):
    status: str


class _StoredVerdict(msgspec.Struct, frozen=True):
    label: str


class _StoredQuotation(msgspec.Struct, frozen=True):
    outcome: str


class _StoredScore(msgspec.Struct, frozen=True):
    signature: str
    status: str
    metrics: dict[str, _StoredStatus]
    verdict: _StoredVerdict
    quotations: tuple[_StoredQuotation, ...] = ()


class ScoreEntry(msgspec.Struct, frozen=True):
    """The fields of a results line that continuing a run needs."""

    line: int
    key: str
    score: _StoredScore

    @property
    def made_with(self) -> str:
        """The signature of the score."""
        return self.score.signature

    @property
    def is_final(self) -> bool:
        """Whether the line is not scored again."""
        return is_final((self.score.status, *(metric.status for metric in self.score.metrics.values())))


class ResultLine(msgspec.Struct, frozen=True):
    """A line of the results file."""

    line: int
    """Number of the input line, from 1."""
    key: str
    """Digest of the request; a continued run compares it."""
    id: Any
    score: Score


class _Pending(NamedTuple):
    line: Line
    key: str


@expand_groups
def score_file(
    source: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines, a JSON array, CSV, TSV or Parquet with response, knowledge and, optionally, history, id; "
            "also with .gz; - is standard input. Or a folder: a dataset that Hugging Face datasets saved, files of "
            "JSON, or Parquet files."
        ),
    ],
    out: options.OutOption = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            help=f"Exit with code 4 if a line is one of these, separated by commas: {', '.join(FINDINGS)}. The last "
            "four are of quotations, and need that metric."
        ),
    ] = None,
    *,
    scoring: options.ScoringOptions,
    questions: options.QuestionOptions,
    input_options: options.InputOptions,
    engine_options: options.EngineOptions,
) -> None:
    """Score a file of responses against their knowledge.

    Each line is `{"response": "…", "knowledge": "…" or ["…", …], "history": ["…", …]}`; the history is optional, oldest
    utterance first. The table shows the verdict with the probability, 0–1, that the knowledge supports the response;
    then the values of the metrics that `--metrics` names, and the response with its unsupported words in ⟦brackets⟧.
    In a pipe and with `--out`, each result is one JSON record instead. A line that cannot be read, or that ends without
    a value, is reported, the others go on, and the exit code is then 3. If the name of `--out` ends with .parquet, it
    is written when the run is complete; until then, and to continue the run, results are in NAME.parquet.jsonl.

        groundwire score dialogues.jsonl
        groundwire score dialogues.jsonl --metrics q2,overlap --out q2.jsonl
        groundwire score answers.csv --columns response=text,knowledge=passage | jq .score.verdict
        groundwire score dialogues.jsonl --metrics default,quotations --fail-on absent,misattributed
    """
    errors = display.error_console()
    request_options = scoring.make_options(questions)
    metric_names = scoring.parse_metrics()
    findings = _Findings.parse(fail_on)
    table_file = out if out is not None and out.suffix == ".parquet" else None
    if table_file is not None:
        with options.refuse_value("--out"):
            check_parquet(table_file)
        out = table_file.with_name(f"{table_file.name}.jsonl")
    counts: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(input_options.open(source))
        output = open_output(out, ScoreEntry, source, input_options.json)
        if output is not None:
            stack.callback(output.close)
        engine = stack.enter_context(engine_options.open())
        names = options.choose_metrics(engine, metric_names)
        resume = Resume(output, source, errors)
        plan = engine.plan(names, request_options)
        resume.check(plan.signature)
        basis = plan.criteria.basis
        has_verdict = basis.threshold is not None
        findings.check(plan.metrics, "" if has_verdict else basis.message)
        for entry in output.entries if output is not None else ():
            if entry.is_final:
                findings.add(entry.score)
        # Without --metrics the verdict says what all metrics together say, and none of them has a column.
        table = _ScoreTable(plan.metrics if scoring.metrics or not has_verdict else (), has_verdict=has_verdict)
        pending: deque[_Pending] = deque()
        unknown = 0

        def read_requests() -> Iterator[Request]:
            for line in lines:
                request = read_request(line, request_options)
                key = "" if isinstance(request, InvalidRequest) else request.digest()
                if resume.is_done(line.number, key):
                    counts[DONE_BEFORE] += 1
                elif isinstance(request, InvalidRequest):
                    counts["invalid"] += 1
                    display.print_line_error(errors, line, str(request))
                else:
                    pending.append(_Pending(line, key))
                    yield request

        requests = UntilError(read_requests())
        with display.show_progress(source, "scoring", hidden=output is None) as advance:
            for score in engine.score_many(requests, metrics=names, options=request_options):
                line, key = pending.popleft()
                advance(line.number)
                counts[score.status] += 1
                unknown += has_verdict and score.status in display.DONE and score.verdict.label == "unknown"
                findings.add(score)
                if output is not None:
                    output.append(ResultLine(line.number, key, (line.row or {}).get("id"), score))
                else:
                    table.add_row(line, score)
        requests.raise_error()
    if table_file is not None and out is not None and out.is_file():
        write_parquet(out, table_file, names)
    if output is None and table.has_values:
        display.output_console().print(
            "[dim]Metrics: 1: the knowledge supports all that was checked; 0: none of it."
            + (" *: no valid question, so the whole response was classified." if table.has_fallback else "")
            + "[/]"
        )
    if output is None:
        rule = plan.criteria.rule
        if not has_verdict and rule is not None:
            display.output_console().print(f"[dim]No verdict. {display.escape_markup(basis.message)}[/]")
        elif rule is not None and counts["scored"]:
            point, band = rule.point, rule.fusion.band
            bound = point.max_false_positive_rate if rule.is_complete else None
            display.output_console().print(
                "[dim]Verdict: the probability that the knowledge supports the response; "
                f"{display.format_threshold(point.threshold, point.profile, bound)}. ?: not sure, from "
                f"{band.low:.2f} to {band.high:.2f}.[/]"
            )
        table.print_warnings()
    display.finish(counts, findings.report(errors), unknown)


def read_request(line: Line, request_options: Options) -> Request | InvalidRequest:
    """The request of a line, or what is wrong with it."""
    row = line.row
    if row is None:
        return InvalidRequest(line.problem)
    absent = [name for name in ("response", "knowledge") if name not in row]
    if row.get("triples") and "knowledge" in absent:
        absent.remove("knowledge")
    if absent:
        return InvalidRequest(
            f"The line has no {' and no '.join(absent)}; it has {', '.join(map(str, row))}. If a field has another "
            f"name, say so: --columns {absent[0]}=NAME."
        )
    try:
        knowledge = row.get("knowledge") or ()
        return make_request(
            row["response"], knowledge, row.get("history") or (), request_options, row.get("triples") or ()
        )
    except InvalidRequest as error:
        return error


class _Findings:
    """What --fail-on names, and on how many lines it was found."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._counts: Counter[str] = Counter()

    @classmethod
    def parse(cls, value: str | None) -> _Findings:
        """Read a --fail-on value; wrong usage for a name that is none."""
        names = [name.strip() for name in (value or "").split(",") if name.strip()]
        for name in names:
            if name not in FINDINGS:
                raise typer.BadParameter(f"{name!r} is unknown; use {', '.join(FINDINGS)}.", param_hint="--fail-on")
        return cls(frozenset(names))

    def check(self, metrics: Sequence[Metric], no_verdict: str) -> None:
        """Wrong usage for names that these metrics never give; ``no_verdict`` says why there is no verdict."""
        labels, outcomes = self._names & {*get_args(Label)}, self._names & {*get_args(QuotationOutcome)}
        if labels and no_verdict:
            raise typer.BadParameter(no_verdict, param_hint="--fail-on")
        if outcomes and not any(metric.quotes for metric in metrics):
            raise typer.BadParameter(
                f"{', '.join(sorted(outcomes))} needs the metric quotations, as in --metrics default,quotations.",
                param_hint="--fail-on",
            )

    def add(self, score: Score | _StoredScore) -> None:
        """Count what the score of a line has of the names."""
        self._counts.update(self._names & {score.verdict.label, *(item.outcome for item in score.quotations)})

    def report(self, console: Console) -> int:
        """Print how many lines have each of the names; returns the exit code: 4 if there are some, else 0."""
        if self._counts:
            counts = ", ".join(f"{count} {name}" for name, count in self._counts.most_common())
            console.print(f"Lines that --fail-on names: {counts}.")
        return display.EXIT_WORSE if self._counts else 0


class _ScoreTable:
    """The table of scores, printed row by row; it has a column, or several, for the verdict first."""

    def __init__(self, metrics: Sequence[Metric], *, has_verdict: bool) -> None:
        self._metrics = [metric.name for metric in metrics]
        self._has_verdict = has_verdict
        self._share_column = len(metrics) > METRIC_COLUMNS
        columns = {"line": 5} | ({"verdict": 19} if has_verdict else {})
        if self._share_column:
            columns |= {"metric": max(map(len, self._metrics)), "value": 18}
        else:
            columns |= {metric.name: max(len(metric.name), OUTCOME if metric.quotes else 6) for metric in metrics}
        columns |= {"response with unsupported words ⟦marked⟧": 0, "reason": 0}
        self._table = RowTable(display.output_console(), columns)
        self.has_values = False
        """Whether a row with metrics' values was printed."""
        self.has_fallback = False
        """Whether a value is marked by ``*``."""
        self._warned_lines: defaultdict[str, list[int]] = defaultdict(list)

    def add_row(self, line: Line, score: Score) -> None:
        """Print the row of a line."""
        assert line.row is not None
        values = [self._format_value(score.metrics[name]) for name in self._metrics]
        self.has_fallback = self.has_fallback or any("*" in value for value in values)
        if self._share_column:
            values = ["\n".join(self._metrics), "\n".join(values)]
        verdict = [display.format_verdict(score)] if self._has_verdict else []
        drawn = score.verdict
        reason = display.format_reasons(score) if score.status == "scored" else Text(shown(score.message))
        if self._has_verdict and drawn.label == "unknown" and drawn.message not in reason.plain:
            reason = Text("\n").join((*([reason] if reason.plain else []), Text(shown(drawn.message))))
        self._table.add_row(
            display.name_line(line), *verdict, *values, display.mark_unsupported(line.row["response"], score), reason
        )
        self.has_values = self.has_values or bool(values)
        absent = [drawn.message] if drawn.absent and drawn.message and drawn.probability is not None else []
        for warning in (*score.warnings, *absent):
            self._warned_lines[warning].append(line.number)

    def _format_value(self, result: MetricResult) -> str:
        """A metric's value, with the outcomes of quotations: each in a column of its own, else the worst."""
        value = display.format_value(result)
        if not isinstance(result.explanation, QuotationsExplanation):
            return value
        counts = Counter(item.outcome for item in result.explanation.quotations)
        outcomes = sorted(counts, key=get_args(QuotationOutcome).index, reverse=True)
        if self._share_column:
            return f"{value} {outcomes[0]}"
        return "\n".join((value, *(f"{counts[name]} {name}" if counts[name] > 1 else name for name in outcomes)))

    def print_warnings(self) -> None:
        """Print each warning once, with the numbers of its lines."""
        with translate_write_errors(STDOUT):
            for warning, lines in self._warned_lines.items():
                display.print_warning(display.output_console(), warning, lines)
