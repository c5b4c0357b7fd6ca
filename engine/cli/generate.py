"""``groundwire generate``: generates responses that rest on their knowledge, for a file of dialogues or for one."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from groundwire.runtime.errors import InvalidRequest

from ..api import Engine
from ..generation.options import METHODS, GenerationOptions, Method
from ..generation.records import GeneratedResponse, Generation
from ..jsonl.reading import Line, read_lines
from ..jsonl.results_file import ResultsFile, Signed
from . import display, options

CONCURRENT_DIALOGUES = 8
"""Dialogues in flight at a time: enough for the runtime to fill its batches."""
COLOURED_CPMI = 0.5
"""Nats, positive or negative, from which a token is coloured."""
_DEFAULTS = GenerationOptions()


class GenerationEntry(msgspec.Struct, frozen=True):
    """The fields of a results line that continuing a run needs."""

    line: int
    """Number of the input line, from 1."""
    generation: Signed

    @property
    def made_with(self) -> str:
        """The signature of the generation."""
        return self.generation.signature


class GenerationLine(msgspec.Struct, frozen=True):
    """A line of the results file."""

    line: int
    """Number of the input line, from 1."""
    id: Any
    generation: Generation


class RunSettings(NamedTuple):
    """The settings of a run, the same for all its dialogues."""

    generation: GenerationOptions
    metrics: tuple[str, ...] | None

    def generate(self, engine: Engine, knowledge: Any, history: Any) -> Generation:
        """Generate for one dialogue."""
        return engine.generate(knowledge, history, self.generation, metrics=self.metrics)


def generate(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="JSON Lines or CSV with the columns knowledge and history; - is stdin. Leave it out with -k and -h."
        ),
    ] = None,
    knowledge: Annotated[
        list[str] | None,
        typer.Option("--knowledge", "-k", help="For one dialogue: a passage of knowledge; repeat for several."),
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option("--history", "-h", help="For one dialogue: an utterance; repeat for several, oldest first."),
    ] = None,
    generator: Annotated[
        Path | None,
        typer.Option(help="Bundle with the role generator, written by `groundwire export generator`."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Weight of what the knowledge adds to a token, 0 (plain decoding) to 1 (CPMI alone).")
    ] = _DEFAULTS.alpha,
    pmi_top_p: Annotated[
        float,
        typer.Option(help="Probability mass of PMI-Decode's candidate set, above 0 up to 1; not nucleus sampling."),
    ] = _DEFAULTS.pmi_top_p,
    method: Annotated[str, typer.Option(help=f"Decoding: {', '.join(METHODS)}.")] = "beam",
    n: Annotated[int, typer.Option("--n", "-n", help="Responses to return, best first.")] = _DEFAULTS.n,
    n_candidates: Annotated[
        int | None,
        typer.Option(help="Responses to generate and check with --metrics; the -n most faithful are returned."),
    ] = None,
    metrics: options.MetricsOption = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="For one dialogue: print the text while it is decoded.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the sampling methods.")] = _DEFAULTS.seed,
    max_new_tokens: Annotated[int, typer.Option(help="Tokens of a response, at most.")] = _DEFAULTS.max_new_tokens,
    out: options.OutOption = None,
    json: options.JsonLinesOption = False,
    bundle: options.BundleOption = "compact",
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
) -> None:
    """Generate responses that rest on their knowledge (PMI-Decode).

    Every token is chosen by its probability and by how much the knowledge adds to it; `--alpha` weighs the second. The
    paper recommends 0.25 with `--pmi-top-p 0.6`; a larger alpha is more faithful and less fluent. Each line of a file
    is `{"knowledge": "…" or ["…", …], "history": ["…", …]}`. The output shows each response, the nats per token that
    the knowledge adds (CPMI), and with `--metrics` its verdict and values. A line that cannot be read is reported and
    skipped; the exit code is then 3.

        groundwire generate -k "The tower is 324 metres tall." -h "how tall is the tower?" --generator my-generator
        groundwire generate dialogues.jsonl --generator my-generator --n-candidates 4 --metrics pmi --out out.jsonl
    """
    if (source is None) == (knowledge is None and history is None):
        raise InvalidRequest("Pass a file of dialogues, or one dialogue with --knowledge and --history.")
    if stream and (source is not None or json):
        raise InvalidRequest("--stream prints the text of one dialogue: use it with --knowledge and --history only.")
    generation = GenerationOptions(alpha, pmi_top_p, _parse_method(method), n, n_candidates, seed, max_new_tokens)
    settings = RunSettings(generation, options.parse_metrics(metrics))
    # Scoring needs --bundle; plain generation needs only the generator's bundle.
    needs_bundle = metrics is not None or n_candidates is not None or generator is None
    first, extra = (bundle, [generator] if generator else []) if needs_bundle else (generator, [])
    with Engine.load(first or bundle, options.parse_device(device), threads=threads, extra=extra) as engine:
        if source is not None:
            _generate_file(engine, source, settings, out, json=json)
        elif stream:
            _print_stream(engine, knowledge or (), history or (), settings)
        else:
            _print_generation(settings.generate(engine, knowledge or (), history or ()), json=json)


def _parse_method(name: str) -> Method:
    for method in get_args(Method):
        if name == method:
            return method  # type: ignore[no-any-return]
    raise InvalidRequest(f"--method {name} is unknown; use {', '.join(METHODS)}.")


def _print_stream(engine: Engine, knowledge: Sequence[str], history: Sequence[str], settings: RunSettings) -> None:
    if settings.generation.n > 1 or settings.generation.n_candidates is not None or settings.metrics is not None:
        raise InvalidRequest(
            "--stream prints one response without checking it; leave -n, --n-candidates and --metrics out."
        )
    for piece in engine.generate_stream(knowledge, history, settings.generation):
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")


def _print_generation(generation: Generation, *, json: bool) -> None:
    if json:
        typer.echo(generation.to_json())
        return
    console = display.output_console()
    if generation.status != "generated":
        console.print(f"[red]{generation.status}[/]: {escape(generation.message)}")
    for response in generation.responses:
        check = f"  {_format_check(response)}" if response.check else ""
        cpmi = "" if response.cpmi is None else f", CPMI {response.cpmi:+.2f}"
        console.print(_colour_tokens(response))
        console.print(f"[dim]nats per token: log-probability {response.log_prob:.2f}{cpmi}[/]{check}")
    if any(token.cpmi is not None for response in generation.responses for token in response.tokens):
        console.print("[dim]green: the knowledge makes these words more probable; red: less probable.[/]")
    console.print(f"[dim]{generation.timings.total_ms:.0f} ms  {escape(generation.signature)}[/]", soft_wrap=True)


def _generate_file(engine: Engine, source: Path, settings: RunSettings, out: Path | None, *, json: bool) -> None:
    errors = display.error_console()
    skipped = 0
    table = Table("line", show_lines=True, expand=True)
    table.add_column("response", ratio=5)
    table.add_column("CPMI (nats per token)", justify="right")
    table.add_column("verdict and metrics", ratio=1)
    with contextlib.ExitStack() as stack:
        source_lines = stack.enter_context(read_lines(source, frozenset({"knowledge"})))
        output = ResultsFile(out, GenerationEntry) if out else None
        done: set[int] = set()
        if output is not None and out is not None:
            stack.callback(output.close)
            done = {entry.line for entry in output.entries}
            display.print_continued(errors, out, len(done))
        advance = stack.enter_context(display.show_progress(source, "generating"))
        pending = (line for line in source_lines if line.number not in done)
        for line, generation in _generate_lines(engine, pending, settings):
            advance(line.number)
            if isinstance(generation, InvalidRequest):
                skipped += 1
                display.print_line_error(errors, line.number, str(generation))
                continue
            result = GenerationLine(line.number, (line.row or {}).get("id"), generation)
            if output is not None:
                output.check(generation.signature)
                output.append(result)
            elif json:
                typer.echo(msgspec.json.encode(result).decode())
            else:
                _add_rows(table, line, generation)
    if table.row_count:
        display.output_console().print(table)
    display.exit_if_skipped(skipped)


def _generate_lines(
    engine: Engine, pending: Iterator[Line], settings: RunSettings
) -> Iterator[tuple[Line, Generation | InvalidRequest]]:
    """Yield every line with its generation or its error, in order, with several lines in flight."""

    def generate_line(line: Line) -> Generation | InvalidRequest:
        try:
            if line.row is None:
                raise InvalidRequest(line.problem)
            return settings.generate(engine, line.row.get("knowledge") or (), line.row.get("history") or ())
        except InvalidRequest as error:
            return error

    in_flight: deque[tuple[Line, Future[Generation | InvalidRequest]]] = deque()
    with ThreadPoolExecutor(CONCURRENT_DIALOGUES, thread_name_prefix="groundwire-generate") as pool:
        try:
            for line in pending:
                in_flight.append((line, pool.submit(generate_line, line)))
                if len(in_flight) == CONCURRENT_DIALOGUES:
                    first, future = in_flight.popleft()
                    yield first, future.result()
            while in_flight:
                first, future = in_flight.popleft()
                yield first, future.result()
        finally:
            for _, future in in_flight:
                future.cancel()


def _add_rows(table: Table, line: Line, generation: Generation) -> None:
    number = str(line.number)
    if generation.status != "generated":
        table.add_row(number, f"[red]{generation.status}[/] {escape(generation.message)}", "", "")
    for response in generation.responses:
        cpmi = "" if response.cpmi is None else f"{response.cpmi:+.2f}"
        table.add_row(number, _colour_tokens(response), cpmi, _format_check(response) if response.check else "")
        number = ""


def _format_check(response: GeneratedResponse) -> str:
    """The verdict and the metrics' values of a checked response."""
    assert response.check is not None
    results = response.check.metrics.values()
    values = " ".join(f"[dim]{result.name}[/] {display.format_value(result)}" for result in results)
    return f"{display.format_verdict(response.check)} {values}"


def _colour_tokens(response: GeneratedResponse) -> Text:
    """The response, with the tokens in colour that the knowledge makes clearly more or less probable."""
    text = Text(response.text)
    for token in response.tokens:
        if token.cpmi is not None and abs(token.cpmi) >= COLOURED_CPMI:
            text.stylize("green" if token.cpmi > 0 else "red", token.start, token.end)
    return text
