"""``groundwire corpus``: makes training data; needs none of the libraries that training needs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Make training data from dialogues with knowledge.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep the subcommand's name also while there is one."""


@app.command("conv-fever")
def make_conv_fever(
    source: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines {knowledge, history, response}, or a file of Wizard of Wikipedia.",
            exists=True,
            dir_okay=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The JSON Lines to write; - is standard output.", dir_okay=False)],
    spans: Annotated[
        str, typer.Option(help="What finds the entities to swap: a bundle, or a spaCy pipeline.")
    ] = "compact",
    kinds: Annotated[
        str | None, typer.Option(help="Comma-separated kinds to make; default: all of the paper's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.", min=0)] = 13,
    force: Annotated[bool, typer.Option("--force", help="Replace --out when it exists.")] = False,
) -> None:
    """Make the Conv-FEVER corpus (Santhanam et al. 2021) from consistent dialogues.

    Every record gives itself and its corruptions: the response or the knowledge of another conversation, a negation in
    either, an entity of the context or of the knowledge swapped. Each line has the label 1 (consistent) or 0 and the
    kind; the lines are what `python -m groundwire.recipes detector --dialogues` and `groundwire evaluate` read.

    Example:

        groundwire corpus conv-fever examples/dialogues.jsonl --out conv-fever.jsonl
    """
    from rich.console import Console
    from rich.progress import track

    from groundwire.runtime.errors import InvalidRequest

    from .corpus import KINDS, make_examples
    from .dialogues import read_dialogues
    from .entities import load_entity_finder

    chosen = KINDS if kinds is None else tuple(name.strip() for name in kinds.split(","))
    unknown = [name for name in chosen if name not in KINDS]
    if unknown:
        raise InvalidRequest(f"--kinds {', '.join(unknown)} is unknown; use {', '.join(KINDS)}.")
    to_stdout = str(out) == "-"
    if not to_stdout and out.exists() and not force:
        raise InvalidRequest(f"{out} exists; give another --out, or --force to replace it.")
    try:
        records, inconsistent = read_dialogues(source)
    except (ValueError, KeyError) as error:
        raise InvalidRequest(f"{source} cannot be read: {error}") from error
    if not records:
        raise InvalidRequest(f"{source} has no consistent record with knowledge, so nothing can be made from it.")
    screen = Console(stderr=True)
    entities = load_entity_finder(spans)
    examples = make_examples(records, entities, seed, [kind for kind in KINDS if kind in chosen])
    counts: Counter[str] = Counter()
    watched = track(examples, "corpus", transient=True, console=screen, disable=not screen.is_terminal)
    with nullcontext(sys.stdout) if to_stdout else out.open("w", encoding="utf-8") as file:
        for example in watched:
            counts[example.kind] += 1
            record = example.record
            row = {
                "knowledge": record.knowledge,
                "history": record.context,
                "response": record.response,
                "label": int(example.consistent),
                "kind": example.kind,
                "dialogue": record.dialogue,
            }
            print(json.dumps(row, ensure_ascii=False), file=file)
    for kind in KINDS:
        screen.print(f"{kind:<17} {counts[kind]:>8,}", highlight=False)
    if inconsistent:
        screen.print(f"{len(inconsistent):,} inconsistent records of {source} were left out.", highlight=False)
