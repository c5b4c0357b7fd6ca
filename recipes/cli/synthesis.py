"""Commands that write synthesised data sets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..compact import development_rows
from ..synthesis import grounded_dialogues
from .options import Data, OutFile, Seed

app = typer.Typer()


@app.command("grounded-dialogues")
def _write_grounded_dialogues(
    data: Data,
    out: OutFile,
    held_out: Annotated[bool, typer.Option(help="Rows of dialogues that nothing is trained on.")] = False,
    articles: Annotated[float, typer.Option(help="Share of rows about articles.", min=0.0, max=0.95)] = 0.5,
    grounded: Annotated[
        float, typer.Option(help="Least share of a response's words that its knowledge has.", min=0.0, max=1.0)
    ] = 0.0,
    seed: Seed = 13,
) -> None:
    """Write dialogues with the knowledge they rest on: facts that several speakers state, and articles.

    Data: topical_chat and squad1_train (.jsonl.gz); with --held-out squad1_dev in place of squad1_train.
    """
    split: grounded_dialogues.Split = "held_out" if held_out else "train"
    _write_rows(out, grounded_dialogues.make_grounded_dialogues(data, split, articles, seed, grounded))


@app.command("development-rows")
def _write_development_rows(
    data: Data,
    out: OutFile,
    kind: Annotated[
        str,
        typer.Option(
            help="made (corrupted responses in chat style), edits (pairs that differ in little), questions (what "
            "people asked about an article, as statements) or facts (made-up facts and their opposites)."
        ),
    ] = "made",
    count: Annotated[int, typer.Option(help="Rows.", min=1)] = 800,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 7,
) -> None:
    """Write labelled responses about unseen articles, as a set to calibrate on.

    They are made like the training examples of multitask-nli. Data: squad1_dev, nli_dev, topical_chat,
    query_wellformedness_train (.jsonl.gz), ud_ewt_train and gum (.conllu.gz); for questions squad1_train and the
    reading sets in more/.
    """
    _write_rows(out, development_rows.make_development_rows(data, kind, count, seed))


def _write_rows(out: Path, rows: Iterable[dict[str, Any]]) -> None:
    with out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
