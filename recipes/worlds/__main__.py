"""``python -m groundwire.recipes.worlds``: write pairs to a file, or show some."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from .rows import WorldPair, WorldRow
from .schema import CONCEPTS, HELD, TRAIN, read_domains
from .worlds import Worlds


def write_worlds(
    count: Annotated[int, typer.Option(help="Pairs to write; a pair is two rows.", min=1)] = 1000,
    split: Annotated[str, typer.Option(help=f"{TRAIN}, {HELD} or {CONCEPTS}.")] = TRAIN,
    seed: Annotated[int, typer.Option(help="Seed of the pairs.")] = 13,
    max_words: Annotated[int, typer.Option(help="Words of knowledge and response together.", min=40)] = 250,
    out: Annotated[Path | None, typer.Option(help="File to write (.jsonl.gz).", dir_okay=False)] = None,
    domain: Annotated[str | None, typer.Option(help="Domain of all pairs, such as clinic.")] = None,
    show: Annotated[int, typer.Option(help="Print so many pairs instead.", min=0)] = 0,
) -> None:
    """Write pairs of a supported and an unsupported answer to JSON Lines, or show some."""
    try:
        worlds = Worlds(split)
        chosen = None if domain is None else read_domains()[domain]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    except KeyError as error:
        raise typer.BadParameter(f"No domain {domain!r}; there are {', '.join(read_domains())}") from error
    if show:
        for index in range(show):
            print(format_pair(worlds.draw(max_words, _make_rng(seed, index), chosen), index))
        return
    if out is None:
        raise typer.BadParameter("Name the file to write with --out, or the number of pairs to print with --show.")
    with gzip.open(out, "wt", encoding="utf-8") as file:
        for index in track(range(count), "Pairs", console=Console(stderr=True)):
            pair = worlds.draw(max_words, _make_rng(seed, index), chosen)
            for row in (pair.supported, pair.unsupported):
                record = {"id": f"{split}-{seed}-{index}-{row.label}", **asdict(row)}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _make_rng(seed: int, index: int) -> random.Random:
    return random.Random(f"{seed}-{index}")


def format_pair(pair: WorldPair, index: int) -> str:
    """Format a pair for reading; wrong characters are between ⟦ and ⟧."""
    true, false = pair.supported, pair.unsupported
    lines = [f"===== {index} · {true.domain} · {false.change}", "\n--\n".join(true.knowledge)]
    lines += [f"> {turn}" for turn in true.history]
    return "\n".join([*lines, f"TRUE  {true.response}", f"FALSE {_mark(false)}", ""])


def _mark(row: WorldRow) -> str:
    text = row.response
    for span in reversed(row.spans):
        text = f"{text[: span.start]}⟦{text[span.start : span.end]}⟧{text[span.end :]}"
    return text


if __name__ == "__main__":
    typer.run(write_worlds)
