"""The reader's commands, ``python -m groundwire.recipes reader``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from groundwire.runtime.bundles.manifest import TargetName

from ..compact.multitask_model import restore_multitask_nli
from ..written import write_labelled_rows
from . import pack, shards
from .bundle import Precision, export_reader_bundle
from .model import FROZEN_LAYERS, build_reader
from .recipe import LEARNING_RATE, SCHEDULE, ReaderOptions, build_examples, train_reader

app = typer.Typer(add_completion=False)
Model = Annotated[
    Path | None,
    typer.Option(help="Directory with the files of all-mpnet-base-v2; --start may have all weights.", file_okay=False),
]
Out = Annotated[Path, typer.Option(help="Checkpoint directory; an interrupted run in it is continued.")]


@app.callback()
def _main() -> None:
    """Train and measure the reader."""


@app.command("train")
def _train(
    out: Out,
    data: Annotated[Path, typer.Option(help="Directory with the training sets.", file_okay=False)],
    model: Model = None,
    steps: Annotated[int, typer.Option(help="Optimizer steps in all.", min=1)] = SCHEDULE.steps,
    decay: Annotated[
        float,
        typer.Option(
            help="Share of the steps over which the learning rate falls, at the end. Until it falls, a run may be "
            "continued with other --steps.",
            min=0.0,
            max=1.0,
        ),
    ] = SCHEDULE.decay,
    batch: Annotated[int, typer.Option(help="Rows per step; even.", min=2)] = SCHEDULE.batch,
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = LEARNING_RATE,
    layers: Annotated[int, typer.Option(help="Layers of the backbone, from the lowest.", min=1, max=12)] = 12,
    frozen: Annotated[int, typer.Option(help="Lowest layers that are not trained.", min=0)] = FROZEN_LAYERS,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint or bundle to start from; default the published weights.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the data order and of every random draw.")] = SCHEDULE.seed,
    checkpoint_s: Annotated[float, typer.Option(help="Seconds between checkpoints.")] = SCHEDULE.checkpoint_s,
    workers: Annotated[int, typer.Option(help="Processes that draw rows; 0 for the training one.", min=0)] = 0,
    threads: Annotated[int, typer.Option(help="CPU threads; 0 leaves torch's default.", min=0)] = 0,
    max_tokens: Annotated[
        int, typer.Option(help="Tokens that are read at a time, which bounds the memory; 0 for whole batches.", min=0)
    ] = 0,
) -> None:
    """Train the reader, or continue the run in --out."""
    if threads:
        torch.set_num_threads(threads)
    schedule = replace(SCHEDULE, steps=steps, decay=decay, batch=batch, seed=seed, checkpoint_s=checkpoint_s)
    options = ReaderOptions(model, layers, frozen, start, lr, workers, max_tokens)
    train_reader(data, out, schedule, options)


@app.command("measure")
def _measure(
    run: Annotated[Path, typer.Option(help="Directory of a run, going on or finished.", file_okay=False)],
    bench: Annotated[Path, typer.Option(help="Directory with the labelled development sets.", file_okay=False)],
    count: Annotated[int, typer.Option(help="Rows of each set, at equal distances.", min=2)] = 300,
    pairs: Annotated[
        int, typer.Option(help="Pairs of held-out worlds, of documents and of turns of tools each; 0 for none.", min=0)
    ] = 200,
    data: Annotated[
        Path | None, typer.Option(help="Directory with the training sets, for the turns of tools.", file_okay=False)
    ] = None,
    threads: Annotated[int, typer.Option(help="CPU threads; 0 leaves torch's default.", min=0)] = 0,
) -> None:
    """Measure the last checkpoint of a run; the report is also written beside it."""
    from .measure import measure_reader

    Console().print_json(data=measure_reader(run, bench, count, pairs, threads, data))


@app.command("written-rows")
def _write_rows(
    out: Annotated[Path, typer.Option(help="File to write (.jsonl).", dir_okay=False)],
    split: Annotated[str, typer.Option(help="dev for the documents that are held out of training, or train.")] = "dev",
    names: Annotated[
        Path | None, typer.Option(help="File with the answers to write, one a line; default all.", exists=True)
    ] = None,
) -> None:
    """Write the written documents as labelled rows, for measuring and for calibration."""
    if split not in ("dev", "train"):
        raise typer.BadParameter(f"split is {split!r}; choose dev or train.")
    chosen = None if names is None else names.read_text(encoding="utf-8").splitlines()
    print(write_labelled_rows(split, out, chosen), "rows")


@app.command("bundle")
def _export_bundle(
    run: Annotated[
        Path, typer.Option(help="Directory of a run, going on or finished, or of a reader's bundle.", file_okay=False)
    ],
    out: Annotated[Path, typer.Option(help="Bundle directory to write.")],
    precision: Annotated[Precision, typer.Option(help="Precision of the graphs; fp16 is for a target.")] = "int8",
    target: Annotated[
        TargetName | None, typer.Option(help="Add graphs for this kind of device, of the same checkpoint.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Replace the reader that the bundle already has.")] = False,
    threads: Annotated[int, typer.Option(help="CPU threads; 0 leaves torch's default.", min=0)] = 0,
) -> None:
    """Export the last checkpoint of a run, or the weights of a bundle, as a bundle."""
    if threads:
        torch.set_num_threads(threads)
    export_reader_bundle(
        run, out, lambda role, stage: print(role, stage), precision=precision, target=target, force=force
    )


@app.command("pack")
def _pack(
    data: Annotated[Path, typer.Option(help="Directory with the training sets.", file_okay=False)],
    out: Annotated[Path, typer.Option(help="Directory of the pack.", file_okay=False)],
    model: Model = None,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint or bundle to start from; default the published weights.")
    ] = None,
    layers: Annotated[int, typer.Option(help="Layers of the backbone, from the lowest.", min=1, max=12)] = 8,
    student: Annotated[
        Path | None, typer.Option(help="Bundle whose small models learn from the reader after it.", file_okay=False)
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows in all, half of them twins of the others.", min=2)] = 3_000_000,
    held: Annotated[
        int, typer.Option(help="Groups of each source to measure on while the model trains.", min=1)
    ] = shards.HELD_GROUPS,
    workers: Annotated[int, typer.Option(help="Processes that draw rows.", min=1)] = 1,
) -> None:
    """Write what a host without the training sets trains from: weights in parts, code, and rows.

    Files of rows that are there are kept, so a run that was stopped goes on.
    """
    restored = None if student is None else restore_multitask_nli(student)
    pack.pack_models(build_reader(model, layers, start), restored, out)
    pack.pack_code(out)
    build = partial(build_examples, data)
    for path in (*shards.write_held(data, out, held), *shards.write_shards(build, out, rows, workers)):
        print(path, path.stat().st_size, "bytes", flush=True)


@app.command("unpack")
def _unpack(
    folder: Annotated[Path, typer.Option(help="Directory with the trained parts.", file_okay=False)],
    packed: Annotated[Path, typer.Option(help="Directory of the pack.", file_okay=False)],
    out: Annotated[Path, typer.Option(help="Directory of the run to write.", file_okay=False)],
) -> None:
    """Join trained weights to a run that can be measured and exported; student/ has the small model's."""
    pack.unpack_models(folder, packed, out)


if __name__ == "__main__":
    app()
