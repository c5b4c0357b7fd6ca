"""``groundwire critique`` and ``groundwire refine``: a file of dialogues against a knowledge graph."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from groundwire.engine.api import Engine
from groundwire.engine.jsonl.reading import Line, lines
from groundwire.engine.kg import KnowledgeGraph
from groundwire.engine.nph.context import document
from groundwire.engine.nph.records import Alternative, Change, Critique, Refinement
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple, readable

from . import common
from .score import BAD_LINES

SHOWN_PROBLEMS = 3
"""Broken lines of the graph that are named; the others are counted."""
STATUS_COLOURS = {"refined": "green", "clean": "green", "judged": "green", "refused": "yellow", "no_context": "dim"}
T = TypeVar("T", Critique, Refinement)
SourceArgument = Annotated[
    Path,
    typer.Argument(help="JSON Lines or CSV with response, and perhaps history and triples; - reads stdin."),
]
GraphOption = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        "-g",
        help="The knowledge graph: .tsv or .txt (subject, predicate, object between tabs), .jsonl, or OpenDialKG's "
        ".csv, each also with .gz. Lines with triples of their own need none.",
    ),
]
NphBundleOption = Annotated[
    str, typer.Option("--bundle", help="An embedded bundle's name, or a directory with critic and retriever.")
]
HopsOption = Annotated[int, typer.Option(help="Triples between what a dialogue is about and what may be said.", min=1)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of a table.")]


class Feqa(msgspec.Struct, frozen=True):
    """FeQA, 0–1, over history and triples; None where it has nothing to ask about."""

    before: float | None
    after: float | None
    """Of a response that was not changed, the same."""


class Written(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of JSON output."""

    line: int
    id: Any
    critique: Critique | None = None
    refinement: Refinement | None = None
    feqa: Feqa | None = None


def refine(
    source: SourceArgument,
    graph: GraphOption = None,
    hops: HopsOption = 1,
    top: Annotated[int, typer.Option(help="Candidates to report for each mention.", min=1)] = 5,
    type_aware: Annotated[
        bool, typer.Option(help="Prefer candidates that play the same parts in the graph as what they replace.")
    ] = True,
    min_probability: Annotated[
        float, typer.Option(help="Of a candidate, from which the critic may see it.", min=0.0, max=1.0)
    ] = 0.05,
    feqa: Annotated[
        bool, typer.Option("--feqa", help="Measure FeQA before and after, too, with the compact bundle's models.")
    ] = False,
    bundle: NphBundleOption = "nph",
    device: common.DeviceOption = "auto",
    threads: common.ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Repair a file of responses: put what a knowledge graph says in the place of what it does not.

    Each line is `{"response": "…", "history": ["…", …]}`, perhaps with `"triples": [["…", "…", "…"], …]` that stand for
    the graph. Names that the graph does not support are replaced by entities that it has, each with the triple that
    justifies it; a response without such names, or without a good candidate, stays as it is. A bad line is named and
    skipped, and the exit code is 3.

        groundwire refine examples/graph_dialogues.jsonl --graph examples/films.tsv
    """
    table = Table(show_lines=True, expand=True)
    table.add_column("#", justify="right", style="dim")
    table.add_column("before", ratio=5)
    table.add_column("after", ratio=5)
    table.add_column("because", ratio=5)
    if feqa:
        table.add_column("FeQA", justify="right", no_wrap=True)
    found: Counter[str] = Counter()

    def ask(engine: Engine, known: KnowledgeGraph | None, row: dict[str, Any]) -> Refinement:
        return engine.refine(
            row["response"],
            row.get("history") or (),
            triples=row.get("triples") if known is None else None,
            graph=known,
            hops=hops,
            top=top,
            type_aware=type_aware,
            min_probability=min_probability,
        )

    def take(engine: Engine, line: Line, result: Refinement) -> None:
        assert line.row is not None
        found[result.status] += 1
        found["accepted"] += bool(result.accepted)
        measured = _feqa(engine, result, line.row.get("history") or ()) if feqa else None
        if json:
            typer.echo(_encoded(Written(line.number, line.row.get("id"), refinement=result, feqa=measured)))
            return
        scores = () if measured is None else (_scores(measured),)
        table.add_row(str(line.number), _before(result), _after(result), _because(result), *scores)

    bundles = ("compact", bundle) if feqa else (bundle,)
    bad = _each(source, graph, bundles, device, threads, "refining", ask, take)
    if not json and table.row_count:
        console = common.stdout()
        console.print(table)
        unchanged = ", ".join(f"{found[status]} {name}" for status, name in UNCHANGED.items() if found[status])
        console.print(
            f"[dim]{found['refined']} refined, of which the critic accepts {found['accepted']}"
            f"{'; unchanged: ' + unchanged if unchanged else ''}.[/]"
        )
    _end(bad)


def critique(
    source: SourceArgument,
    graph: GraphOption = None,
    hops: HopsOption = 1,
    bundle: NphBundleOption = "nph",
    device: common.DeviceOption = "auto",
    threads: common.ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Mark the names in a file of responses that a knowledge graph does not support; nothing is changed.

    The lines are those of `groundwire refine`.

        groundwire critique examples/graph_dialogues.jsonl --graph examples/films.tsv
    """
    table = Table(show_lines=True, expand=True)
    table.add_column("#", justify="right", style="dim")
    table.add_column("response, unsupported names marked", ratio=6)
    table.add_column("doubted", ratio=4)

    def ask(engine: Engine, known: KnowledgeGraph | None, row: dict[str, Any]) -> Critique:
        triples = row.get("triples") if known is None else None
        return engine.critique(row["response"], row.get("history") or (), triples=triples, graph=known, hops=hops)

    def take(engine: Engine, line: Line, result: Critique) -> None:
        assert line.row is not None
        if json:
            typer.echo(_encoded(Written(line.number, line.row.get("id"), critique=result)))
            return
        doubts = "\n".join(f"“{one.text}” {one.probability:.2f}" for one in result.mentions)
        places = [(one.start, one.end) for one in result.mentions]
        told = Text(doubts) if result.status == "judged" else _status(result.status, result.message)
        table.add_row(str(line.number), _marked(line.row["response"], places, "bold red"), told)

    bad = _each(source, graph, (bundle,), device, threads, "reading", ask, take)
    if not json and table.row_count:
        common.stdout().print(table)
    _end(bad)


UNCHANGED = {
    "clean": "supported",
    "refused": "refused",
    "no_context": "without an entity of the graph",
    "truncated": "too long",
    "failed": "failed",
}


def _each(
    source: Path,
    graph: Path | None,
    bundles: tuple[str, ...],
    device: str,
    threads: int | None,
    what: str,
    ask: Callable[[Engine, KnowledgeGraph | None, dict[str, Any]], T],
    take: Callable[[Engine, Line, T], None],
) -> int:
    """Asks about every line and hands the result on; the number of lines that were skipped."""
    errors = Console(stderr=True, highlight=False)
    known = None if graph is None else _graph(graph, errors)
    bad = 0
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(lines(source, frozenset({"response"})))
        first, *extra = bundles
        engine = stack.enter_context(Engine.load(first, common.device_choice(device), threads=threads, extra=extra))
        advance = stack.enter_context(common.progress(source, what))
        for line in found:
            try:
                if line.row is None:
                    raise InvalidRequest(line.problem)
                take(engine, line, ask(engine, _chosen(line.row, known), line.row))
            except InvalidRequest as error:
                bad += 1
                errors.print(f"[red]line {line.number}[/]: {escape(str(error))}", soft_wrap=True)
            advance(line.number)
    return bad


def _graph(path: Path, errors: Console) -> KnowledgeGraph:
    known = KnowledgeGraph.load(path)
    for problem in known.problems[:SHOWN_PROBLEMS]:
        errors.print(f"[yellow]{escape(str(path))} line {problem.line}[/]: {escape(problem.what)}", soft_wrap=True)
    if known.problem_count:
        rest = known.problem_count
        errors.print(f"{rest} line{'s' if rest > 1 else ''} of the graph left out.", soft_wrap=True)
    return known


def _chosen(row: dict[str, Any], known: KnowledgeGraph | None) -> KnowledgeGraph | None:
    """The graph for a line, or None when the line has triples of its own."""
    if "response" not in row:
        raise InvalidRequest(f"The line has no response; it has {', '.join(map(str, row))}.")
    if not row.get("triples") and known is None:
        raise InvalidRequest("The line has no triples; give it some, or pass --graph.")
    return None if row.get("triples") else known


def _feqa(engine: Engine, result: Refinement, history: Sequence[str]) -> Feqa:
    """FeQA of both responses over one document: the history, and what the critic saw last."""
    told = document(history, (result.after or result.before).triples)
    before = _value(engine, result.original, told)
    return Feqa(before, before if result.response == result.original else _value(engine, result.response, told))


def _value(engine: Engine, response: str, told: str) -> float | None:
    if not told.strip():
        return None
    return engine.score(response, told, metrics=("feqa",)).value


def _encoded(line: Written) -> str:
    return msgspec.json.encode(line).decode()


def _marked(text: str, places: Sequence[tuple[int, int]], style: str) -> Text:
    """A text with ranges in colour and in ⟦brackets⟧, for those who see no colour."""
    out, at = Text(), 0
    for start, end in places:
        out.append(text[at:start])
        out.append(f"⟦{text[start:end]}⟧", style=style)
        at = end
    out.append(text[at:])
    return out


def _before(result: Refinement) -> Text:
    return _marked(result.original, [(one.start, one.end) for one in result.before.mentions], "bold red")


def _after(result: Refinement) -> Text:
    if result.status != "refined":
        return Text("as before", style="dim")
    return _marked(result.response, [(one.new_start, one.new_end) for one in result.changes], "bold green")


def _because(result: Refinement) -> Text:
    if result.status != "refined":
        return _status(result.status, result.message)
    out = Text("\n").join(_reason(change) for change in result.changes)
    if not result.accepted:
        out.append("\nthe critic still doubts it", style="yellow")
    return out


def _reason(change: Change) -> Text:
    path = ", ".join(_triple(one) for one in change.chosen.path)
    out = Text(f"{path} ({change.chosen.probability:.2f})")
    if change.runners_up:
        out.append(f"\nnot {_listed(change.runners_up[:2])}", style="dim")
    return out


def _listed(few: Sequence[Alternative]) -> str:
    return ", ".join(f"{one.entity} ({one.probability:.2f})" for one in few)


def _triple(triple: Triple) -> str:
    return f"{triple.subject} – {readable(triple.predicate)} – {triple.object}"


def _status(status: str, message: str) -> Text:
    name = UNCHANGED.get(status, status)
    return Text.assemble((name, STATUS_COLOURS.get(status, "red")), (f" {message}" if message else "", "dim"))


def _scores(measured: Feqa) -> str:
    shown = ["–" if value is None else f"{value:.2f}" for value in (measured.before, measured.after)]
    return " → ".join(dict.fromkeys(shown))


def _end(bad: int) -> None:
    if bad:
        Console(stderr=True, highlight=False).print(f"{bad} line{'s' if bad > 1 else ''} skipped.")
        raise typer.Exit(BAD_LINES)
