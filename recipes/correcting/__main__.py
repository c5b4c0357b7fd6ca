"""Measures corrections: ``python -m groundwire.recipes.correcting measure --rows FILE``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, get_args

import typer

from groundwire.engine import Engine
from groundwire.repair import Correction, CorrectOptions, Corrector

from .pairs import Outcome, Pair, rate, read_pairs

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _main() -> None:
    """Measure corrections."""


@app.command("measure")
def measure_corrections(
    rows: Annotated[
        Path, typer.Option(help="Rows of python -m groundwire.recipes development-rows --kind edits, true and edited.")
    ],
    bundle: Annotated[str, typer.Option(help="The bundle whose models are asked.")] = "compact",
    skip: Annotated[int, typer.Option(help="Pairs to leave out at the beginning.", min=0)] = 0,
    limit: Annotated[int, typer.Option(help="Pairs at most; 0 takes all.", min=0)] = 0,
    max_drafts: Annotated[int, typer.Option(help="Drafts that are scored for a response, at most.", min=1)] = 4,
    show: Annotated[bool, typer.Option(help="Print every correction.")] = False,
    cost: Annotated[bool, typer.Option(help="Also measure the processor time, beside that of a score.")] = False,
    threads: Annotated[int | None, typer.Option(help="Processor threads.")] = None,
) -> None:
    """Print how corrections change edited responses, and the true ones."""
    pairs = read_pairs(rows)[skip : skip + limit if limit else None]
    with Engine.load(bundle, threads=threads) as engine:
        edited = [
            Corrector(engine).correct(
                pair.edited.response, pair.edited.knowledge, options=CorrectOptions(max_drafts=max_drafts)
            )
            for pair in pairs
        ]
        true = [
            Corrector(engine).correct(
                pair.true.response, pair.true.knowledge, options=CorrectOptions(max_drafts=max_drafts)
            )
            for pair in pairs
        ]
    outcomes = [
        rate(pair.true.response, item.original, item.response) for pair, item in zip(pairs, edited, strict=True)
    ]
    doubted = [
        outcome for outcome, item in zip(outcomes, edited, strict=True) if item.before.verdict.label == "inconsistent"
    ]
    typer.echo(f"{len(pairs)} edited responses, of which {len(doubted)} are called inconsistent")
    _print_shares(outcomes, edited)
    typer.echo(f"{len(pairs)} true responses")
    of_true = [rate(item.original, item.original, item.response) for item in true]
    _print_shares(of_true, true)
    for source in sorted({pair.edited.source for pair in pairs}):
        counts = Counter(outcome for pair, outcome in zip(pairs, outcomes, strict=True) if pair.edited.source == source)
        typer.echo(f"{source:14} " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    if show:
        _show(pairs, edited, outcomes)
        _show(pairs, true, of_true)
    if cost:
        _measure_cost(pairs, bundle, threads, max_drafts)


def _print_shares(outcomes: list[Outcome], corrections: list[Correction]) -> None:
    counts = Counter(outcomes)
    for outcome in get_args(Outcome):
        typer.echo(f"  {outcome:10} {counts[outcome]:4}  {counts[outcome] / len(outcomes):.3f}")
    statuses = Counter(item.status for item in corrections)
    typer.echo("  " + ", ".join(f"{count} {status}" for status, count in statuses.most_common()))


def _show(pairs: Iterable[Pair], corrections: Iterable[Correction], outcomes: Iterable[Outcome]) -> None:
    for pair, item, outcome in zip(pairs, corrections, outcomes, strict=True):
        typer.echo(f"\n{pair.edited.source}: {outcome}, {item.status} {item.message}")
        typer.echo(f"  knowledge {pair.true.knowledge}\n  given     {item.original}\n  corrected {item.response}")
        for edit in item.edits:
            typer.echo(f"    {edit.source} {edit.action} “{edit.old}” → “{edit.new}”")


def _measure_cost(pairs: list[Pair], bundle: str, threads: int | None, max_drafts: int) -> None:
    """Processor seconds of a score and of a correction of the edited responses, each with an empty cache."""

    def run(work: Callable[[Engine, Pair], object]) -> float:
        with Engine.load(bundle, threads=threads) as engine:
            engine.warmup()
            begun = time.process_time()
            for pair in pairs:
                work(engine, pair)
            return (time.process_time() - begun) / len(pairs)

    scored = run(lambda engine, pair: engine.score(pair.edited.response, pair.edited.knowledge))
    corrected = run(
        lambda engine, pair: Corrector(engine).correct(
            pair.edited.response, pair.edited.knowledge, options=CorrectOptions(max_drafts=max_drafts)
        )
    )
    typer.echo(
        f"processor time: {1000 * scored:.0f} ms a score, {1000 * corrected:.0f} ms a correction "
        f"({corrected / scored:.2f} times)"
    )


if __name__ == "__main__":
    app()
