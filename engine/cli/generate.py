"""``groundwire generate``: responses that rest on their knowledge, for a file of dialogues or one."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from groundwire.engine.api import Engine
from groundwire.engine.generation.records import GeneratedResponse, Generation
from groundwire.engine.generation.settings import MAX_TOKENS, METHODS, Method
from groundwire.engine.jsonl.reading import Line, lines
from groundwire.engine.jsonl.results_file import ResultsFile
from groundwire.runtime.errors import InvalidRequest

from . import common
from .score import BAD_LINES, Signed

AT_ONCE = 8
"""Dialogues in flight: enough for the runtime to fill batches with."""


class Done(msgspec.Struct, frozen=True):
    """A line of the results file, as far as a run that goes on needs it."""

    line: int
    """Number of the input line, from 1."""
    generation: Signed

    @property
    def made_with(self) -> str:
        """The signature of the generation."""
        return self.generation.signature


class Written(msgspec.Struct, frozen=True):
    """A line of the results file, whole."""

    line: int
    id: Any
    generation: Generation


class Asked(NamedTuple):
    """What every dialogue of a run is generated with."""

    alpha: float
    top_p: float
    method: Method
    n: int
    n_candidates: int | None
    metrics: tuple[str, ...] | None
    seed: int
    max_tokens: int

    def of(self, engine: Engine, knowledge: Any, history: Any) -> Generation:
        """Generate for one dialogue."""
        return engine.generate(knowledge, history, **self._asdict())


def generate(
    source: Annotated[
        Path | None,
        typer.Argument(help="JSON Lines or CSV with knowledge and history; - reads stdin. Not with -k and -h."),
    ] = None,
    knowledge: Annotated[
        list[str] | None, typer.Option("--knowledge", "-k", help="One dialogue: a passage; repeat for several.")
    ] = None,
    history: Annotated[
        list[str] | None, typer.Option("--history", "-h", help="One dialogue: an utterance; repeat, oldest first.")
    ] = None,
    generator: Annotated[
        Path | None,
        typer.Option(help="Bundle with the role generator (`groundwire export generator`), unless --bundle has it."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Weight of the knowledge's gain: 0 is plain decoding, 1 PMI alone.")
    ] = 0.25,
    top_p: Annotated[float, typer.Option(help="PMI chooses among the most probable tokens with this mass.")] = 0.6,
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}.")] = "beam",
    n: Annotated[int, typer.Option("--n", "-n", help="Responses to return, best first.")] = 1,
    candidates: Annotated[
        int | None, typer.Option(help="Write so many, check them with --metrics, and return the most faithful.")
    ] = None,
    metrics: common.MetricsOption = None,
    stream: Annotated[bool, typer.Option("--stream", help="One dialogue: print the text as it is decoded.")] = False,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    max_tokens: Annotated[int, typer.Option(help="Tokens of a response.")] = MAX_TOKENS,
    out: Annotated[Path | None, typer.Option(help="Write JSON Lines here; an interrupted run is continued.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of a table.")] = False,
    bundle: common.BundleOption = "compact",
    device: common.DeviceOption = "auto",
    threads: common.ThreadsOption = None,
) -> None:
    """Write responses that rest on their knowledge (PMI-Decode).

    Every token is chosen by its probability and by how much the knowledge adds to it. `--alpha` weighs the second:
    0.25 with `--top-p 0.6` is what the paper recommends; more is more faithful and less fluent. Each line of a file is
    `{"knowledge": "…" or ["…", …], "history": ["…", …]}`; a bad line is named and skipped, and the exit code is 3.

        groundwire generate -k "The tower is 324 metres tall." -h "how tall is the tower?" --generator my-generator
        groundwire generate dialogues.jsonl --generator my-generator --candidates 4 --metrics pmi --out written.jsonl
    """
    if method not in METHODS:
        raise InvalidRequest(f"--method {method} is unknown; use {', '.join(METHODS)}.")
    if (source is None) == (knowledge is None and history is None):
        raise InvalidRequest("Give a file of dialogues, or one dialogue by --knowledge and --history.")
    if stream and (source is not None or json):
        raise InvalidRequest("--stream prints the text of one dialogue: use it with --knowledge and --history only.")
    asked = Asked(alpha, top_p, method, n, candidates, common.metric_names(metrics), seed, max_tokens)
    checked = metrics is not None or candidates is not None
    first, extra = (bundle, [generator] if generator else []) if checked or not generator else (generator, [])
    with Engine.load(first, common.device_choice(device), threads=threads, extra=extra) as engine:
        if source is not None:
            _file(engine, source, asked, out, json=json)
        elif stream:
            _stream(engine, knowledge or (), history or (), asked)
        else:
            _one(engine, asked.of(engine, knowledge or (), history or ()), json=json)


def _stream(engine: Engine, knowledge: Any, history: Any, asked: Asked) -> None:
    if asked.n > 1 or asked.n_candidates is not None or asked.metrics is not None:
        raise InvalidRequest("--stream writes one response without checking; leave -n, --candidates and --metrics out.")
    pieces = engine.generate(
        knowledge,
        history,
        alpha=asked.alpha,
        top_p=asked.top_p,
        method=asked.method,
        stream=True,
        seed=asked.seed,
        max_tokens=asked.max_tokens,
    )
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")


def _one(engine: Engine, found: Generation, *, json: bool) -> None:
    if json:
        typer.echo(found.to_json())
        return
    console = common.stdout()
    if found.status != "written":
        console.print(f"[red]{found.status}[/]: {escape(found.message)}")
    for response in found.responses:
        judged = "" if response.check is None else f"  {common.verdict_of(response.check)} {_values(response)}"
        gain = "" if response.cpmi is None else f", knowledge {response.cpmi:+.2f}"
        console.print(_shaded(response))
        console.print(f"[dim]nats per token: {response.log_prob:.2f}{gain}[/]{judged}")
    if any(token.cpmi is not None for response in found.responses for token in response.tokens):
        console.print("[dim]green: the knowledge makes these words more probable; red: less.[/]")
    console.print(f"[dim]{found.timings.total_ms:.0f} ms  {escape(found.signature)}[/]", soft_wrap=True)


def _file(engine: Engine, source: Path, asked: Asked, out: Path | None, *, json: bool) -> None:
    errors = Console(stderr=True, highlight=False)
    bad = 0
    table = Table("#", show_lines=True, expand=True)
    table.add_column("response", ratio=5)
    table.add_column("knowledge's gain", justify="right")
    table.add_column("checked", ratio=1)
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(lines(source, frozenset({"knowledge"})))
        output = ResultsFile(out, Done) if out else None
        done = {entry.line for entry in output.entries} if output else set()
        if output is not None:
            stack.callback(output.close)
        if done:
            errors.print(f"Continuing {escape(str(out))}: {len(done)} lines are done.", soft_wrap=True)
        advance = stack.enter_context(common.progress(source, "generating"))
        todo = (line for line in found if line.number not in done)
        for line, generation in _generations(engine, todo, asked):
            advance(line.number)
            if isinstance(generation, InvalidRequest):
                bad += 1
                errors.print(f"[red]line {line.number}[/]: {escape(str(generation))}", soft_wrap=True)
                continue
            written = Written(line.number, (line.row or {}).get("id"), generation)
            if output is not None:
                output.check(generation.signature)
                output.append(written)
            elif json:
                typer.echo(msgspec.json.encode(written).decode())
            else:
                _add(table, line, generation)
    if table.row_count:
        common.stdout().print(table)
    if bad:
        errors.print(f"{bad} line{'s' if bad > 1 else ''} skipped.")
        raise typer.Exit(BAD_LINES)


def _generations(
    engine: Engine, todo: Iterator[Line], asked: Asked
) -> Iterator[tuple[Line, Generation | InvalidRequest]]:
    """Every line with what became of it, in order, a few of them in flight at a time."""

    def of(line: Line) -> Generation | InvalidRequest:
        try:
            if line.row is None:
                raise InvalidRequest(line.problem)
            return asked.of(engine, line.row.get("knowledge") or (), line.row.get("history") or ())
        except InvalidRequest as error:
            return error

    flying: deque[tuple[Line, Future[Generation | InvalidRequest]]] = deque()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="groundwire-generate") as pool:
        try:
            for line in todo:
                flying.append((line, pool.submit(of, line)))
                if len(flying) == AT_ONCE:
                    first, future = flying.popleft()
                    yield first, future.result()
            while flying:
                first, future = flying.popleft()
                yield first, future.result()
        finally:
            for _, future in flying:
                future.cancel()


def _add(table: Table, line: Line, found: Generation) -> None:
    number = str(line.number)
    if found.status != "written":
        table.add_row(number, f"[red]{found.status}[/] {escape(found.message)}", "", "")
    for response in found.responses:
        judged = "" if response.check is None else f"{common.verdict_of(response.check)} {_values(response)}"
        table.add_row(number, _shaded(response), "" if response.cpmi is None else f"{response.cpmi:+.2f}", judged)
        number = ""


def _values(response: GeneratedResponse) -> str:
    assert response.check is not None
    found = response.check.metrics.values()
    return " ".join(f"[dim]{result.name}[/] {common.value_of(result)}" for result in found)


def _shaded(response: GeneratedResponse) -> Text:
    """The response, its tokens coloured by what the knowledge adds to them."""
    text = Text(response.text)
    for token in response.tokens:
        if token.cpmi is not None and abs(token.cpmi) >= SHADED:
            text.stylize("green" if token.cpmi > 0 else "red", token.start, token.end)
    return text


SHADED = 0.5
"""Nats from which the knowledge's gain is shown."""
