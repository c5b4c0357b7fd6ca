"""``groundwire generate``: generates responses that rest on their knowledge, for a file of dialogues or for one."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
import typer
from rich.text import Text

from groundwire.engine import Engine, Options
from groundwire.engine.extend import shown
from groundwire.engine.schema.base import digest_fields
from groundwire.files.reading import Line, UntilError
from groundwire.files.results_file import ResultsFile
from groundwire.files.resuming import is_final
from groundwire.generation import Generator
from groundwire.generation.options import METHODS, GenerationOptions, Method
from groundwire.generation.pipeline import EMBEDDED, ROLE
from groundwire.generation.records import GeneratedResponse, Generation
from groundwire.generation.settings import resolve_decoding
from groundwire.runtime.bundles.bundle import Bundle, check_exists
from groundwire.runtime.errors import InvalidRequest

from . import display, options
from .groups import Setting, expand_groups
from .output import JsonStream, RowTable, open_output, print_json, prints_tables
from .resume import DONE_BEFORE, Resume

CONCURRENT_DIALOGUES = 8
"""Dialogues in flight at a time: enough for the runtime to fill its batches."""
COLOURED_CPMI = 0.5
"""Nats, positive or negative, from which a token is coloured."""
_DEFAULTS = GenerationOptions()


class _StoredGeneration(msgspec.Struct, frozen=True):
    signature: str
    status: str


class GenerationEntry(msgspec.Struct, frozen=True):
    """The fields of a results line that continuing a run needs."""

    line: int
    key: str
    generation: _StoredGeneration

    @property
    def made_with(self) -> str:
        """The signature of the generation."""
        return self.generation.signature

    @property
    def is_final(self) -> bool:
        """Whether the line is not processed again."""
        return is_final((self.generation.status,))


class GenerationLine(msgspec.Struct, frozen=True):
    """A line of the results file."""

    line: int
    """Number of the input line, from 1."""
    key: str
    """Digest of the dialogue; a continued run compares it."""
    id: Any
    generation: Generation


class _Pending(NamedTuple):
    line: Line
    key: str


class RunSettings(NamedTuple):
    """The settings of a run, the same for all its dialogues."""

    generation: GenerationOptions
    metrics: tuple[str, ...] | None
    options: Options

    def generate(self, engine: Engine, knowledge: Any, history: Any) -> Generation:
        """Generate for one dialogue."""
        return Generator(engine).generate(
            knowledge, history, self.generation, metrics=self.metrics, scoring=self.options
        )


@dataclass(frozen=True)
class DecodingOptions:
    """How responses are generated."""

    generator: Annotated[
        str | None,
        typer.Option(
            help="Bundle with the role generator, as `groundwire export generator` writes it. Default: the bundle of "
            "--bundle or --extra that has the role, else the embedded bundle generator.",
        ),
    ] = None
    alpha: Annotated[
        float, typer.Option(help="Weight of what the knowledge adds to a token, 0 (plain decoding) to 1 (CPMI alone).")
    ] = _DEFAULTS.alpha
    pmi_top_p: Annotated[
        float,
        Setting(help="Probability mass of PMI-Decode's candidate set, above 0 up to 1; not nucleus sampling."),
    ] = _DEFAULTS.pmi_top_p
    method: Annotated[str, typer.Option(help=f"Decoding: {', '.join(METHODS)}.")] = "beam"
    n: Annotated[int, typer.Option("--n", "-n", help="Responses to return, best first.")] = _DEFAULTS.n
    n_candidates: Annotated[
        int | None,
        typer.Option(help="Responses to generate and check with --metrics; the -n most faithful are returned."),
    ] = None
    seed: Annotated[int, Setting(help="Seed of the sampling methods.")] = _DEFAULTS.seed
    max_new_tokens: Annotated[int, Setting(help="Tokens of a response, at most.")] = _DEFAULTS.max_new_tokens

    def make_options(self) -> GenerationOptions:
        """Build the record for the generator; wrong usage for values that it does not take."""
        generation = GenerationOptions(
            self.alpha,
            self.pmi_top_p,
            _parse_method(self.method),
            self.n,
            self.n_candidates,
            self.seed,
            self.max_new_tokens,
        )
        with options.refuse_value():
            resolve_decoding(generation)
        return generation


@expand_groups
def generate(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="JSON Lines, a JSON array, CSV, TSV or Parquet with knowledge and history; - is standard input. Leave "
            "it out with --knowledge and --history, which give one dialogue."
        ),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="For one dialogue: print the text while it is decoded.")
    ] = False,
    out: options.OutOption = None,
    *,
    dialogue: options.DialogueOptions,
    decoding: DecodingOptions,
    scoring: options.ScoringOptions,
    input_options: options.InputOptions,
    engine_options: options.EngineOptions,
) -> None:
    """Generate responses that rest on their knowledge (PMI-Decode).

    Every token is chosen by its probability and by how much the knowledge adds to it; `--alpha` weighs the second. The
    paper recommends 0.25 with `--set pmi_top_p=0.6`; a larger alpha is more faithful and less fluent. Each line of a
    file is `{"knowledge": "…" or ["…", …], "history": ["…", …]}`. The output shows each response, the nats per token
    that the knowledge adds (CPMI), and with `--metrics` its verdict and values; in a pipe it is a JSON record per
    dialogue. A line that cannot be read, or that gets no response, is reported, the others go on, and the exit code is
    then 3.

        groundwire generate -k "The tower is 324 metres tall." -H "how tall is the tower?"
        groundwire generate dialogues.jsonl --n-candidates 4 --metrics pmi --out responses.jsonl
        groundwire generate -k "The tower is 324 metres tall." -H "how tall is the tower?" --generator my-generator
    """
    knowledge, history, json = dialogue.knowledge, dialogue.history, input_options.json
    if (source is None) == (knowledge is None and history is None):
        raise typer.BadParameter("pass a file of dialogues, or one dialogue with --knowledge and --history.")
    if stream and (source is not None or json is not None):
        raise typer.BadParameter(
            "it prints the text of one dialogue: use it with --knowledge and --history only.", param_hint="--stream"
        )
    if stream and (decoding.n > 1 or decoding.n_candidates is not None or scoring.metrics is not None):
        raise typer.BadParameter(
            "it prints one response without checking it; leave -n, --n-candidates and --metrics out.",
            param_hint="--stream",
        )
    settings = RunSettings(decoding.make_options(), scoring.parse_metrics(), scoring.make_options())
    is_checked = scoring.metrics is not None or decoding.n_candidates is not None
    first, others = _choose_bundles(
        engine_options.bundle, decoding.generator, engine_options.extra or (), is_checked=is_checked
    )
    with contextlib.ExitStack() as stack:
        output = None
        if source is not None:
            needed = frozenset({"knowledge"} if decoding.alpha else ())
            lines = stack.enter_context(input_options.open(source, needed))
            output = open_output(out, GenerationEntry, source, json)
            if output is not None:
                stack.callback(output.close)
        engine = stack.enter_context(replace(engine_options, bundle=first, extra=others).open())
        if settings.metrics is not None:
            options.choose_metrics(engine, settings.metrics)
        if source is not None:
            _generate_file(engine, source, lines, settings, output)
        elif stream:
            with options.refuse_value():
                _print_stream(engine, knowledge or (), history or (), settings)
        else:
            with options.refuse_value():
                record = settings.generate(engine, knowledge or (), history or ())
            if prints_tables(json):
                _print_generation(record)
            else:
                print_json(record)
            display.exit_without_result(record.status)


def _choose_bundles(
    bundle: str, generator: str | None, extra: Sequence[str], *, is_checked: bool
) -> tuple[str, list[str]]:
    """The bundle to load, and those beside it; --bundle is loaded only to check responses, or to generate them."""
    if generator is None:
        with options.refuse_absent_bundles(bundle, extra):
            if any(ROLE in Bundle.open(name).manifest.roles for name in (bundle, *extra)):
                return bundle, [*extra]
        generator = EMBEDDED
    with options.refuse_value("--generator"):
        check_exists(generator)
    return (bundle, [generator, *extra]) if is_checked else (generator, [*extra])


def _parse_method(name: str) -> Method:
    for method in get_args(Method):
        if name == method:
            return method  # type: ignore[no-any-return]
    raise typer.BadParameter(f"{name} is unknown; use {', '.join(METHODS)}.", param_hint="--method")


def _print_stream(engine: Engine, knowledge: Sequence[str], history: Sequence[str], settings: RunSettings) -> None:
    for text in Generator(engine).stream(knowledge, history, settings.generation):
        sys.stdout.write(shown(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
    sys.stdout.write("\n")


def _print_generation(generation: Generation) -> None:
    console = display.output_console()
    if generation.status != "generated":
        console.print(f"[red]{generation.status}[/]: {display.escape_markup(generation.message)}")
    for response in generation.responses:
        check = f"  {_format_check(response)}" if response.check else ""
        cpmi = "" if response.cpmi is None else f", CPMI {response.cpmi:+.2f}"
        console.print(_colour_tokens(response))
        console.print(f"[dim]nats per token: log-probability {response.log_prob:.2f}{cpmi}[/]{check}")
    if any(token.cpmi is not None for response in generation.responses for token in response.tokens):
        console.print("[dim]green: the knowledge makes these words more probable; red: less probable.[/]")
    console.print(
        f"[dim]{generation.timings.total_ms:.0f} ms  {display.escape_markup(generation.signature)}[/]", soft_wrap=True
    )


def _generate_file(
    engine: Engine,
    source: Path,
    lines: Iterator[Line],
    settings: RunSettings,
    output: ResultsFile[GenerationEntry] | JsonStream[GenerationEntry] | None,
) -> None:
    errors = display.error_console()
    counts: Counter[str] = Counter()
    resume = Resume(output, source, errors)
    table = RowTable(
        display.output_console(),
        {"line": 5, "response": 0, "CPMI (nats)": 11, "verdict and metrics": 24},
    )

    def read_pending() -> Iterator[_Pending]:
        for line in lines:
            key = _digest_dialogue(line)
            if resume.is_done(line.number, key):
                counts[DONE_BEFORE] += 1
            else:
                yield _Pending(line, key)

    pending = UntilError(read_pending())
    with display.show_progress(source, "generating", hidden=output is None) as advance:
        for (line, key), generation in _generate_pending(engine, pending, settings):
            advance(line.number)
            if isinstance(generation, InvalidRequest):
                counts["invalid"] += 1
                display.print_line_error(errors, line, str(generation))
                continue
            counts[generation.status] += 1
            if output is not None:
                resume.check(generation.signature)
                output.append(GenerationLine(line.number, key, (line.row or {}).get("id"), generation))
            else:
                _add_rows(table, line, generation)
    pending.raise_error()
    display.finish(counts)


def _digest_dialogue(line: Line) -> str:
    """The digest of a line's dialogue; empty if the line cannot be read."""
    row = line.row or {}
    try:
        return digest_fields({"knowledge": row.get("knowledge"), "history": row.get("history")}) if row else ""
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return ""


def _generate_pending(
    engine: Engine, pending: Iterator[_Pending], settings: RunSettings
) -> Iterator[tuple[_Pending, Generation | InvalidRequest]]:
    """Yield every line with its generation or its error, in order, with several lines in flight."""

    def generate_line(line: Line) -> Generation | InvalidRequest:
        try:
            if line.row is None:
                raise InvalidRequest(line.problem)
            return settings.generate(engine, line.row.get("knowledge") or (), line.row.get("history") or ())
        except InvalidRequest as error:
            return error

    in_flight: deque[tuple[_Pending, Future[Generation | InvalidRequest]]] = deque()
    with ThreadPoolExecutor(CONCURRENT_DIALOGUES, thread_name_prefix="groundwire-generate") as pool:
        try:
            for item in pending:
                in_flight.append((item, pool.submit(generate_line, item.line)))
                if len(in_flight) == CONCURRENT_DIALOGUES:
                    first, future = in_flight.popleft()
                    yield first, future.result()
            while in_flight:
                first, future = in_flight.popleft()
                yield first, future.result()
        finally:
            for _, future in in_flight:
                future.cancel()


def _add_rows(table: RowTable, line: Line, generation: Generation) -> None:
    number = display.name_line(line)
    if generation.status != "generated":
        table.add_row(number, f"[red]{generation.status}[/] {display.escape_markup(generation.message)}", "", "")
    for response in generation.responses:
        cpmi = "" if response.cpmi is None else f"{response.cpmi:+.2f}"
        table.add_row(number, _colour_tokens(response), cpmi, _format_check(response) if response.check else "")
        number = ""


def _format_check(response: GeneratedResponse) -> str:
    """The verdict and the metrics' values of a checked response."""
    assert response.check is not None
    results = response.check.metrics.values()
    values = " ".join(f"[dim]{result.name}[/] {display.format_value(result)}" for result in results)
    drawn = response.check.verdict
    reason = f" {display.escape_markup(drawn.message)}" if drawn.label == "unknown" else ""
    return f"{display.format_verdict(response.check)}{reason} {values}"


def _colour_tokens(response: GeneratedResponse) -> Text:
    """The response, with the tokens in colour that the knowledge makes clearly more or less probable."""
    text, position = Text(), 0
    for token in response.tokens:
        if token.cpmi is not None and abs(token.cpmi) >= COLOURED_CPMI and token.start >= position:
            text.append(shown(response.text[position : token.start]))
            text.append(shown(response.text[token.start : token.end]), style="green" if token.cpmi > 0 else "red")
            position = token.end
    return text.append(shown(response.text[position:]))
