"""Latency of critique and repair with the embedded models, on the example dialogues: ``python -m bench.nph``.

One request at a time and nothing cached by the engine, as a service meets new responses. The retriever keeps the
vectors of entities that it has seen, as it does in a service; ``cold`` is the first round, which has seen none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from groundwire.engine import Engine, LoadOptions
from groundwire.repair import Critic, KnowledgeGraph, Refinement, Refiner

from .support import common
from .support.common import PerformanceTarget, Timing, check

DIALOGUES = common.ROOT / "examples" / "graph_dialogues.jsonl"
FILMS = common.ROOT / "examples" / "films.tsv"
TARGET_MS = 60.0
"""For critique and repair together, p50."""


class Dialogue(msgspec.Struct, frozen=True):
    """A line of the examples."""

    response: str
    expected: tuple[str, ...]
    """Accepted repairs."""
    history: tuple[str, ...] = ()


class Measured(msgspec.Struct, frozen=True):
    """Milliseconds of one request."""

    dialogues: int
    threads: int | None
    critique: Timing
    refine: Timing
    """All dialogues: critique, and repair where something is flagged."""
    refine_flagged: Timing
    """Dialogues with a flagged token: critic, retriever, and the critic again."""
    refine_cold: Timing
    """The first request for each dialogue, flagged or not."""
    link: Timing
    """Finding the entities of a response and their neighbourhood, which is part of all other timings."""
    as_expected: float
    """Share of the dialogues whose repair is one of the accepted ones."""


def main(
    bundle: Annotated[str, typer.Option(help="Bundle with critic and retriever.")] = "nph",
    dialogues: Annotated[Path, typer.Option(help="JSON Lines with response, history and expected.")] = DIALOGUES,
    graph: Annotated[Path, typer.Option(help="Their knowledge graph.")] = FILMS,
    repeats: Annotated[int, typer.Option(help="Rounds over all dialogues.", min=1)] = 20,
    threads: Annotated[int | None, typer.Option(help="CPU threads of a graph run; default: all usable.", min=1)] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results.")] = None,
) -> None:
    """Measure critique and repair, print and save the timings."""
    rows = [msgspec.json.decode(line, type=Dialogue) for line in dialogues.read_bytes().splitlines() if line]
    knowledge_graph = KnowledgeGraph.load(graph)
    with Engine.load(bundle, "cpu", threads=threads, options=LoadOptions(cache_bytes=0)) as engine:
        engine.warmup()
        measured = measure(engine, knowledge_graph, rows, repeats, threads)
    shown = [name for name in Measured.__struct_fields__ if isinstance(getattr(measured, name), Timing)]
    timings: list[Any] = [getattr(measured, name) for name in shown]
    common.console().print(
        common.table(
            "critique and repair, milliseconds",
            ("", "p50", "p95", "p99"),
            [
                (name, f"{timing.p50_ms:.1f}", f"{timing.p95_ms:.1f}", f"{timing.p99_ms:.1f}")
                for name, timing in zip(shown, timings, strict=True)
            ],
        )
    )
    settings: dict[str, int | float | str | None] = {"bundle": bundle, "repeats": repeats, "threads": threads}
    targets = [
        PerformanceTarget.at_most("critique and repair, p50", measured.refine.p50_ms, TARGET_MS, "ms"),
        PerformanceTarget.at_most("with something flagged, p50", measured.refine_flagged.p50_ms, TARGET_MS, "ms"),
        PerformanceTarget.at_least("examples repaired as expected", measured.as_expected, 0.9, ""),
    ]
    common.finish("nph", settings, measured, targets, out or common.RESULTS / "nph.json")


def measure(
    engine: Engine, graph: KnowledgeGraph, rows: Sequence[Dialogue], repeats: int, threads: int | None
) -> Measured:
    """Time every dialogue in every round; the repairs of all rounds must be equal."""
    samples: dict[str, list[float]] = {name: [] for name in ("critique", "refine", "flagged", "cold", "link")}
    first: list[Refinement] = []
    for turn in range(repeats + 1):
        for index, row in enumerate(rows):
            spent, refinement = common.timed(_refine(engine, graph, row))
            if turn == 0:
                first.append(refinement)
                samples["cold"].append(spent)
                continue
            check(
                (refinement.response, refinement.status) == (first[index].response, first[index].status),
                f"{row.response!r} became {first[index].response!r} first and {refinement.response!r} later",
            )
            samples["refine"].append(spent)
            if refinement.before.hallucinated:
                samples["flagged"].append(spent)
            samples["critique"].append(common.timed(_critique(engine, graph, row))[0])
            samples["link"].append(common.timed(_link(graph, row))[0])
    return Measured(
        dialogues=len(rows),
        threads=threads,
        critique=Timing.of(samples["critique"]),
        refine=Timing.of(samples["refine"]),
        refine_flagged=Timing.of(samples["flagged"]),
        refine_cold=Timing.of(samples["cold"]),
        link=Timing.of(samples["link"]),
        as_expected=sum(refinement.response in row.expected for refinement, row in zip(first, rows, strict=True))
        / len(rows),
    )


def _refine(engine: Engine, graph: KnowledgeGraph, row: Dialogue) -> Callable[[], Refinement]:
    return lambda: Refiner(engine).refine(row.response, graph, history=row.history)


def _critique(engine: Engine, graph: KnowledgeGraph, row: Dialogue) -> Callable[[], object]:
    return lambda: Critic(engine).critique(row.response, graph, history=row.history)


def _link(graph: KnowledgeGraph, row: Dialogue) -> Callable[[], object]:
    from groundwire.repair.nph.context import build_context

    return lambda: build_context(graph, row.response, row.history, 1)


if __name__ == "__main__":
    typer.run(main)
