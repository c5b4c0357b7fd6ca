"""``groundwire critique`` and ``groundwire refine``: check and repair a file of responses with a knowledge graph."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from groundwire.engine.api import Engine
from groundwire.engine.text.shown import shown
from groundwire.files.reading import Line
from groundwire.repair import Critic, CritiqueOptions, RefineOptions, Refiner
from groundwire.repair.kg import KnowledgeGraph
from groundwire.repair.records import Alternative, Change, Critique, Refinement
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple, readable

from . import display, options
from .output import RowTable, print_json, prints_tables

SHOWN_PROBLEMS = 3
"""Broken lines of the graph that are reported one by one; the others are only counted."""
STATUS_COLOURS = {"refined": "green", "clean": "green", "checked": "green", "refused": "yellow", "no_context": "dim"}
UNCHANGED = {
    "clean": "supported",
    "refused": "refused",
    "no_context": "without an entity of the graph",
    "truncated": "too long",
    "failed": "failed",
}
"""What tables print for a status under which a response stays as it is."""
T = TypeVar("T", Critique, Refinement)
SourceArgument = Annotated[
    Path,
    typer.Argument(
        help="JSON Lines, a JSON array, CSV or Parquet with response and, optionally, history and triples; "
        "- is standard input."
    ),
]
GraphOption = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        "-g",
        exists=True,
        dir_okay=False,
        help="Knowledge graph: .tsv or .txt (subject, predicate and object, separated by tabs), .jsonl, or "
        "OpenDialKG's .csv, each also with .gz. Lines that have triples need no graph.",
    ),
]
NphBundleOption = Annotated[
    str,
    typer.Option("--bundle", help="Name of an embedded bundle, or a directory, with the roles critic and retriever."),
]
HopsOption = Annotated[
    int,
    typer.Option(
        help="Longest path, in triples, from an entity of the dialogue to what a response may mention.", min=1
    ),
]


class FeqaScores(msgspec.Struct, frozen=True):
    """FeQA, 0–1, of a response against its history and triples; None where it has nothing to ask about, or
    where no triple is about the dialogue."""

    before: float | None
    after: float | None
    """Equal to ``before`` for a response that was not changed."""


class CritiqueLine(msgspec.Struct, frozen=True):
    """A line of ``groundwire critique --json``."""

    line: int
    """Number of the input line, from 1."""
    id: Any
    critique: Critique


class RefinementLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of ``groundwire refine --json``."""

    line: int
    """Number of the input line, from 1."""
    id: Any
    refinement: Refinement
    feqa: FeqaScores | None = None


def refine_file(
    source: SourceArgument,
    graph: GraphOption = None,
    hops: HopsOption = 1,
    top: Annotated[int, typer.Option(help="Candidates to report for each replaced name.", min=1)] = 5,
    type_aware: Annotated[
        bool, typer.Option(help="Prefer candidates with the same roles in the graph as the name they replace.")
    ] = True,
    min_probability: Annotated[
        float, typer.Option(help="Least probability, 0–1, of a candidate that is tried.", min=0.0, max=1.0)
    ] = 0.05,
    mask_all: Annotated[
        bool,
        typer.Option(
            "--mask-all", help="Mask every name, not only those that the critic flags (the paper's w/o critic)."
        ),
    ] = False,
    veto: Annotated[bool, typer.Option(help="Refuse a repair that the critic doubts as much as the response.")] = True,
    feqa: Annotated[
        bool, typer.Option("--feqa", help="Also measure FeQA before and after, with the models of the compact bundle.")
    ] = False,
    bundle: NphBundleOption = "nph",
    extra: Annotated[
        list[str] | None,
        typer.Option(
            help="Another bundle whose roles are added: with compact, names that the graph does not know are replaced "
            "by entities of their type. Repeatable."
        ),
    ] = None,
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
    columns: options.ColumnsOption = None,
    json: options.JsonOption = None,
) -> None:
    """Repair a file of responses: replace names that a knowledge graph does not support by entities of the graph.

    Each line is `{"response": "…", "history": ["…", …]}`, optionally with `"triples": [["…", "…", "…"], …]`, which are
    then used instead of the graph. The table shows each response before and after, and as the reason the triple that
    supports the new name, with its probability. A response without unsupported names, or without a good candidate,
    stays as it is. In a pipe, each result is one JSON record. A line that cannot be read, or that fails, is reported,
    the others go on, and the exit code is then 3.

        groundwire refine examples/graph_dialogues.jsonl --graph examples/films.tsv
        groundwire refine examples/graph_dialogues.jsonl --graph examples/films.tsv > repaired.jsonl
    """
    titles = {"line": 5, "before": 0, "after": 0, "reason": 0} | ({"FeQA": 11} if feqa else {})
    table = RowTable(display.output_console(), titles)
    show_table = prints_tables(json)
    accepted = 0

    def refine_row(engine: Engine, line_graph: KnowledgeGraph | None, row: dict[str, Any]) -> Refinement:
        return Refiner(engine).refine(
            row["response"],
            _choose_knowledge(line_graph, row),
            history=row.get("history") or (),
            options=RefineOptions(
                hops=hops, top=top, type_aware=type_aware, min_probability=min_probability, mask_all=mask_all, veto=veto
            ),
        )

    def show(engine: Engine, line: Line, refinement: Refinement) -> None:
        assert line.row is not None
        nonlocal accepted
        accepted += bool(refinement.accepted)
        scores = _measure_feqa(engine, refinement, line.row.get("history") or ()) if feqa else None
        if not show_table:
            print_json(RefinementLine(line.number, line.row.get("id"), refinement, scores))
            return
        cells = () if scores is None else (_format_feqa(scores),)
        table.add_row(
            str(line.number), _format_before(refinement), _format_after(refinement), _format_reason(refinement), *cells
        )

    bundles = tuple(dict.fromkeys((*(("compact",) if feqa else ()), bundle, *(extra or ()))))
    counts = _process_lines(source, columns, graph, bundles, device, threads, "refining", refine_row, show, show_table)
    if show_table and counts.total() > counts["invalid"]:
        unchanged = ", ".join(f"{counts[status]} {name}" for status, name in UNCHANGED.items() if counts[status])
        display.output_console().print(
            f"[dim]{counts['refined']} refined, of which the critic accepts {accepted}"
            f"{'; unchanged: ' + unchanged if unchanged else ''}.[/]"
        )
    display.finish(counts)


def critique_file(
    source: SourceArgument,
    graph: GraphOption = None,
    hops: HopsOption = 1,
    bundle: NphBundleOption = "nph",
    extra: options.ExtraOption = None,
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
    columns: options.ColumnsOption = None,
    json: options.JsonOption = None,
) -> None:
    """Mark the names in a file of responses that a knowledge graph does not support, without changing them.

    The lines are those of `groundwire refine`. The table shows each response with its unsupported names in ⟦brackets⟧,
    and for each of them the probability, 0–1, that it is hallucinated.

        groundwire critique examples/graph_dialogues.jsonl --graph examples/films.tsv
        groundwire critique examples/graph_dialogues.jsonl --graph examples/films.tsv > critiques.jsonl
    """
    titles = {"line": 5, "response with unsupported names ⟦marked⟧": 0, "unsupported names": 0}
    table = RowTable(display.output_console(), titles)
    show_table = prints_tables(json)

    def critique_row(engine: Engine, line_graph: KnowledgeGraph | None, row: dict[str, Any]) -> Critique:
        knowledge, history = _choose_knowledge(line_graph, row), row.get("history") or ()
        return Critic(engine).critique(row["response"], knowledge, history=history, options=CritiqueOptions(hops=hops))

    def show(engine: Engine, line: Line, critique: Critique) -> None:
        assert line.row is not None
        if not show_table:
            print_json(CritiqueLine(line.number, line.row.get("id"), critique))
            return
        names = "\n".join(f"“{mention.text}” {mention.probability:.2f}" for mention in critique.mentions)
        ranges = [(mention.start, mention.end) for mention in critique.mentions]
        is_checked = critique.status == "checked"
        cell = Text(shown(names)) if is_checked else _format_status(critique.status, critique.message)
        table.add_row(str(line.number), display.mark_ranges(line.row["response"], ranges, "bold red"), cell)

    bundles = (bundle, *(extra or ()))
    counts = _process_lines(
        source, columns, graph, bundles, device, threads, "checking", critique_row, show, show_table
    )
    display.finish(counts)


def _choose_knowledge(graph: KnowledgeGraph | None, row: dict[str, Any]) -> Any:
    """The triples of the line, else the graph of the command."""
    return row.get("triples") if graph is None else graph


def _process_lines(
    source: Path,
    columns: str | None,
    graph_path: Path | None,
    bundles: tuple[str, ...],
    device: str,
    threads: int | None,
    label: str,
    process: Callable[[Engine, KnowledgeGraph | None, dict[str, Any]], T],
    show: Callable[[Engine, Line, T], None],
    shows_rows: bool,
) -> Counter[str]:
    """Process every line and show its result; return how many lines ended with each status."""
    errors = display.error_console()
    graph = None if graph_path is None else _load_graph(graph_path, errors)
    counts: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        source_lines = stack.enter_context(options.open_lines(source, columns, frozenset({"response"})))
        first, *extra = bundles
        engine = stack.enter_context(options.load_engine(first, device, threads, extra, None))
        advance = stack.enter_context(display.show_progress(source, label, hidden=shows_rows))
        for line in source_lines:
            try:
                if line.row is None:
                    raise InvalidRequest(line.problem)
                result = process(engine, _choose_graph(line.row, graph), line.row)
            except InvalidRequest as error:
                counts["invalid"] += 1
                display.print_line_error(errors, line.number, str(error))
            else:
                counts[result.status] += 1
                show(engine, line, result)
            advance(line.number)
    return counts


def _load_graph(path: Path, errors: Console) -> KnowledgeGraph:
    graph = KnowledgeGraph.load(path)
    for problem in graph.problems[:SHOWN_PROBLEMS]:
        what = display.escape_markup(problem.what)
        errors.print(f"[yellow]{display.escape_markup(path)} line {problem.line}[/]: {what}", soft_wrap=True)
    if graph.problem_count:
        count = graph.problem_count
        errors.print(f"{count} line{'s' if count > 1 else ''} of the graph left out.", soft_wrap=True)
    return graph


def _choose_graph(row: dict[str, Any], graph: KnowledgeGraph | None) -> KnowledgeGraph | None:
    """The graph for a line, or None when the line has triples."""
    if "response" not in row:
        raise InvalidRequest(f"The line has no response; it has {', '.join(map(str, row))}.")
    if not row.get("triples") and graph is None:
        raise InvalidRequest("The line has no triples; add some, or pass --graph.")
    return None if row.get("triples") else graph


def _measure_feqa(engine: Engine, refinement: Refinement, history: Sequence[str]) -> FeqaScores:
    """FeQA of both responses against one document: the history, and the triples that the critic read last."""
    triples = (refinement.after or refinement.before).triples
    before = _score_feqa(engine, refinement.original, history, triples)
    is_same = refinement.response == refinement.original
    return FeqaScores(before, before if is_same else _score_feqa(engine, refinement.response, history, triples))


def _score_feqa(engine: Engine, response: str, history: Sequence[str], triples: Sequence[Triple]) -> float | None:
    if not triples:
        return None
    return engine.score(response, history=history, triples=triples, metrics=("feqa",)).value


def _format_before(refinement: Refinement) -> Text:
    ranges = [(mention.start, mention.end) for mention in refinement.before.mentions]
    return display.mark_ranges(refinement.original, ranges, "bold red")


def _format_after(refinement: Refinement) -> Text:
    if refinement.status != "refined":
        return Text("unchanged", style="dim")
    ranges = [(change.new_start, change.new_end) for change in refinement.changes]
    return display.mark_ranges(refinement.response, ranges, "bold green")


def _format_reason(refinement: Refinement) -> Text:
    if refinement.status != "refined":
        return _format_status(refinement.status, refinement.message)
    text = Text("\n").join(_format_change(change) for change in refinement.changes)
    if not refinement.accepted:
        text.append("\nthe critic still flags a name", style="yellow")
    return text


def _format_change(change: Change) -> Text:
    path = ", ".join(_format_triple(triple) for triple in change.chosen.path)
    text = Text(f"{shown(path)} ({change.chosen.probability:.2f})")
    if change.runners_up:
        text.append(shown(f"\nnot {_format_alternatives(change.runners_up[:2])}"), style="dim")
    return text


def _format_alternatives(alternatives: Sequence[Alternative]) -> str:
    return ", ".join(f"{alternative.entity} ({alternative.probability:.2f})" for alternative in alternatives)


def _format_triple(triple: Triple) -> str:
    return f"{triple.subject} – {readable(triple.predicate)} – {triple.object}"


def _format_status(status: str, message: str) -> Text:
    name = UNCHANGED.get(status, status)
    return Text.assemble((name, STATUS_COLOURS.get(status, "red")), (shown(f" {message}" if message else ""), "dim"))


def _format_feqa(scores: FeqaScores) -> str:
    values = ["–" if value is None else f"{value:.2f}" for value in (scores.before, scores.after)]
    return " → ".join(dict.fromkeys(values))
