"""``groundwire refine``: marks or replaces the names in a file of responses that a knowledge graph does not support."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from groundwire.engine import Engine
from groundwire.engine.extend import shown
from groundwire.files.reading import Line
from groundwire.repair import Critic, CritiqueOptions, RefineOptions, Refiner
from groundwire.repair.kg import KnowledgeGraph
from groundwire.repair.records import Alternative, Change, Critique, Refinement
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple, readable

from . import display, options
from .groups import Setting, expand_groups
from .output import RowTable, print_json, prints_tables

SHOWN_PROBLEMS = 3
"""Broken lines of the graph that are reported one by one; the others are only counted."""
FEQA_BUNDLE = "compact"
STATUS_COLOURS = {
    "refined": "green",
    "clean": "green",
    "checked": "green",
    "unverifiable": "yellow",
    "refused": "yellow",
    "no_context": "dim",
}
UNCHANGED = {
    "clean": "supported",
    "unverifiable": "about the speakers",
    "refused": "refused",
    "no_context": "without an entity of the graph",
    "truncated": "too long",
    "failed": "failed",
}
"""Labels in tables, by a status that leaves the response unchanged."""
T = TypeVar("T", Critique, Refinement)


@dataclass(frozen=True)
class NphOptions:
    """How responses are repaired."""

    hops: Annotated[
        int,
        Setting(help="Longest path, in triples, from an entity of the dialogue to what a response may mention.", min=1),
    ] = 1
    top: Annotated[int, Setting(help="Candidates to report for each replaced name.", min=1)] = 5
    type_aware: Annotated[
        bool,
        Setting(help="Without veto: prefer candidates with the same roles in the graph as the name they replace."),
    ] = True
    min_probability: Annotated[
        float, Setting(help="Least probability, 0–1, of a candidate that is tried.", min=0.0, max=1.0)
    ] = 0.05
    mask_all: Annotated[
        bool,
        Setting(help="Mask every name, not only the names that the critic flags (the paper's w/o critic)."),
    ] = False
    veto: Annotated[
        bool,
        Setting(
            help="Accept only what a triple has at the end of the relation that the response states (the paper: no)."
        ),
    ] = True

    def make_options(self) -> RefineOptions:
        """The record for the refiner."""
        return RefineOptions(**asdict(self))


class FeqaScores(msgspec.Struct, frozen=True):
    """FeQA, 0–1, of a response against its history and triples; None where it has nothing to ask about, or
    where no triple is about the dialogue."""

    before: float | None
    after: float | None
    """Equal to ``before`` for a response that was not changed."""


class CritiqueLine(msgspec.Struct, frozen=True):
    """A line of ``groundwire refine --critique --json``."""

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


@expand_groups
def refine_file(
    source: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines, a JSON array, CSV, TSV or Parquet with response and, optionally, history and triples; "
            "- is standard input."
        ),
    ],
    graph: Annotated[
        Path | None,
        typer.Option(
            "--graph",
            "-g",
            exists=True,
            dir_okay=False,
            help="Knowledge graph: .tsv or .txt (subject, predicate and object, separated by tabs), .jsonl, or "
            "OpenDialKG's .csv, each also with .gz. Lines that have triples need no graph.",
        ),
    ] = None,
    critique: Annotated[
        bool, typer.Option("--critique", help="Only mark the unsupported names, and change nothing.")
    ] = False,
    feqa: Annotated[
        bool, typer.Option("--feqa", help="Also measure FeQA before and after, with the models of the compact bundle.")
    ] = False,
    *,
    nph: NphOptions,
    input_options: options.InputOptions,
    engine_options: options.NphEngineOptions,
) -> None:
    """Repair a file of responses: replace names that a knowledge graph does not support by entities of the graph.

    Each line is `{"response": "…", "history": ["…", …]}`, optionally with `"triples": [["…", "…", "…"], …]`, which are
    then used instead of the graph. The table shows each response before and after, and as the reason the triple that
    supports the new name, with its probability. A response without unsupported names, or without a good candidate,
    stays as it is. With `--critique` the table shows the unsupported names of each response in ⟦brackets⟧ instead, with
    the probability, 0–1, that each is hallucinated. In a pipe, each result is one JSON record. A line that cannot be
    read, or that fails, is reported, the others go on, and the exit code is then 3.

        groundwire refine graph_dialogues.jsonl --graph films.tsv
        groundwire refine graph_dialogues.jsonl --graph films.tsv > repaired.jsonl
        groundwire refine graph_dialogues.jsonl --graph films.tsv --critique
    """
    if critique and feqa:
        raise typer.BadParameter("it measures a repair, which --critique does not make.", param_hint="--feqa")
    if feqa:
        bundles = dict.fromkeys((FEQA_BUNDLE, engine_options.bundle, *(engine_options.extra or ())))
        engine_options = replace(engine_options, bundle=FEQA_BUNDLE, extra=list(bundles)[1:])
    run = _Run(source, graph, engine_options, input_options)
    if critique:
        _critique_lines(run, nph.hops)
    else:
        _refine_lines(run, nph.make_options(), feqa=feqa)


class _Run(NamedTuple):
    """The lines of a run, and what they are processed with."""

    source: Path
    graph: Path | None
    engine_options: options.NphEngineOptions
    input_options: options.InputOptions

    @property
    def shows_table(self) -> bool:
        return prints_tables(self.input_options.json)

    def process(
        self,
        label: str,
        process: Callable[[Engine, Any, dict[str, Any]], T],
        show: Callable[[Engine, Line, T], None],
    ) -> Counter[str]:
        """Process every line and show its result; return how many lines ended with each status."""
        errors = display.error_console()
        graph = None if self.graph is None else _load_graph(self.graph, errors)
        counts: Counter[str] = Counter()
        with contextlib.ExitStack() as stack:
            lines = stack.enter_context(self.input_options.open(self.source, frozenset({"response"})))
            engine = stack.enter_context(self.engine_options.open())
            advance = stack.enter_context(display.show_progress(self.source, label, hidden=self.shows_table))
            for line in lines:
                try:
                    if line.row is None:
                        raise InvalidRequest(line.problem)
                    result = process(engine, _choose_knowledge(line.row, graph), line.row)
                except InvalidRequest as error:
                    counts["invalid"] += 1
                    display.print_line_error(errors, line, str(error))
                else:
                    counts[result.status] += 1
                    show(engine, line, result)
                advance(line.number)
        return counts


def _refine_lines(run: _Run, refine_options: RefineOptions, *, feqa: bool) -> None:
    titles = {"line": 5, "before": 0, "after": 0, "reason": 0} | ({"FeQA": 11} if feqa else {})
    table = RowTable(display.output_console(), titles)
    accepted = 0

    def refine_row(engine: Engine, knowledge: Any, row: dict[str, Any]) -> Refinement:
        history = row.get("history") or ()
        return Refiner(engine).refine(row["response"], knowledge, history=history, options=refine_options)

    def show(engine: Engine, line: Line, refinement: Refinement) -> None:
        assert line.row is not None
        nonlocal accepted
        accepted += bool(refinement.accepted)
        scores = _measure_feqa(engine, refinement, line.row.get("history") or ()) if feqa else None
        if not run.shows_table:
            print_json(RefinementLine(line.number, line.row.get("id"), refinement, scores))
            return
        cells = () if scores is None else (_format_feqa(scores),)
        table.add_row(
            display.name_line(line),
            _format_before(refinement),
            _format_after(refinement),
            _format_reason(refinement),
            *cells,
        )

    counts = run.process("refining", refine_row, show)
    if run.shows_table and counts.total() > counts["invalid"]:
        unchanged = ", ".join(f"{counts[status]} {name}" for status, name in UNCHANGED.items() if counts[status])
        display.output_console().print(
            f"[dim]{counts['refined']} refined, of which the critic accepts {accepted}"
            f"{'; unchanged: ' + unchanged if unchanged else ''}.[/]"
        )
    display.finish(counts)


def _critique_lines(run: _Run, hops: int) -> None:
    titles = {"line": 5, "response with unsupported names ⟦marked⟧": 0, "unsupported names": 0}
    table = RowTable(display.output_console(), titles)

    def critique_row(engine: Engine, knowledge: Any, row: dict[str, Any]) -> Critique:
        history = row.get("history") or ()
        return Critic(engine).critique(row["response"], knowledge, history=history, options=CritiqueOptions(hops=hops))

    def show(engine: Engine, line: Line, critique: Critique) -> None:
        assert line.row is not None
        if not run.shows_table:
            print_json(CritiqueLine(line.number, line.row.get("id"), critique))
            return
        names = "\n".join(f"“{mention.text}” {mention.probability:.2f}" for mention in critique.mentions)
        ranges = [(mention.start, mention.end) for mention in critique.mentions]
        is_checked = critique.status == "checked"
        cell = Text(shown(names)) if is_checked else _format_status(critique.status, critique.message)
        table.add_row(display.name_line(line), display.mark_ranges(line.row["response"], ranges, "bold red"), cell)

    display.finish(run.process("checking", critique_row, show))


def _load_graph(path: Path, errors: Console) -> KnowledgeGraph:
    graph = KnowledgeGraph.load(path)
    for problem in graph.problems[:SHOWN_PROBLEMS]:
        what = display.escape_markup(problem.what)
        errors.print(f"[yellow]{display.escape_markup(path)} line {problem.line}[/]: {what}", soft_wrap=True)
    if graph.problem_count:
        count = graph.problem_count
        errors.print(f"{count} line{'s' if count > 1 else ''} of the graph left out.", soft_wrap=True)
    return graph


def _choose_knowledge(row: dict[str, Any], graph: KnowledgeGraph | None) -> Any:
    """The triples of the line, else the graph of the command."""
    if "response" not in row:
        raise InvalidRequest(f"The line has no response; it has {', '.join(map(str, row))}.")
    if not row.get("triples") and graph is None:
        raise InvalidRequest("The line has no triples; add some, or pass --graph.")
    return row.get("triples") or graph


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
