"""Commands for Neural Path Hunter: critic and entity retriever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from groundwire.runtime.errors import InvalidRequest

from ..nph import ablation, critic, evaluate, retriever
from ..nph import bundle as bundles
from ..nph.corruption import CorruptionRecipe
from ..nph.dialogue_corpus import DialogueCorpus, read_held_out
from ..nph.loss import PAPER
from .options import (
    Data,
    ExportPrecision,
    Force,
    Out,
    OutBundle,
    Precision,
    Seed,
    Steps,
    Threads,
    make_schedule,
    print_stage,
)

app = typer.Typer()


DialoguesOption = Annotated[
    DialogueCorpus,
    typer.Option(
        help="templates: made from FB15k-237; opendialkg: written by people. The licence of OpenDialKG, "
        "CC BY-NC 4.0, forbids to ship weights trained on it."
    ),
]


@app.command("critic")
def _train_critic(
    data: Data,
    out: Out,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps; default 900, with --paper 14,571.", min=1)] = None,
    seed: Seed = 13,
    threads: Threads = 0,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's model, RoBERTa-large, its hyper-parameters and corruptions.")
    ] = False,
    base: Annotated[
        str | None, typer.Option(help="Any encoder checkpoint, to train in place of MiniLM or of the paper's model.")
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Layers kept from the bottom; default 4 of MiniLM, else all.", min=1)
    ] = None,
    corruption: Annotated[
        CorruptionRecipe | None,
        typer.Option(
            help="What makes responses wrong. intrin-extrin, intrin and extrin: the rows of the paper's table 5; "
            "default embedded, with --paper intrin-extrin."
        ),
    ] = None,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint of the recipe qa to start from; default MiniLM.", file_okay=False)
    ] = None,
    dialogues: DialoguesOption = DialogueCorpus.TEMPLATES,
) -> None:
    """Train the critic of Neural Path Hunter: which names of a response a graph's triples do not support.

    Data: fb15k237_train, fb15k237_dev and fb15k237_test (.jsonl.gz), or, with --dialogues opendialkg,
    nc_opendialkg_turns and nc_opendialkg_film_kg (.jsonl.gz).
    """
    if start is not None and (paper or base is not None):
        raise typer.BadParameter("a checkpoint of MiniLM; leave out --paper and --base.", param_hint="--start")
    recipe = critic.PAPER if paper else critic.CriticRecipe()
    if base is not None:  # a whole encoder is fine-tuned, with the paper's learning rate
        recipe = replace(recipe, base=base, layers=None, lr=critic.PAPER.lr)
    recipe = replace(
        recipe,
        layers=layers or recipe.layers,
        corruption=corruption or recipe.corruption,
        steps=steps or recipe.steps,
    )
    schedule = replace(make_schedule(recipe.steps, seed, threads), batch=recipe.batch)
    try:
        critic.train_critic(data, out, schedule, recipe, start=start, dialogues=dialogues)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error), param_hint="--data") from error


@app.command("measure-critic")
def _evaluate_critic(
    bundle: Annotated[Path, typer.Option(help="Bundle directory with a critic.", exists=True, file_okay=False)],
    data: Data,
    count: Annotated[int, typer.Option(help="Responses per set.", min=1)] = 1000,
) -> None:
    """Measure precision and recall of a bundle's critic on held-out dialogues, beside a critic that compares words.

    Data: fb15k237_train, fb15k237_dev and fb15k237_test (.jsonl.gz); nc_opendialkg_turns and nc_opendialkg_film_kg
    (.jsonl.gz) are measured too where they exist.
    """
    Console().print_json(data=critic.evaluate_critic(bundle, data, count))


@app.command("retriever")
def _train_retriever(
    data: Data,
    out: Out,
    steps: Steps = 700,
    seed: Seed = 13,
    threads: Threads = 0,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's hyper-parameters, and all layers of MiniLM.")
    ] = False,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint of an earlier run to continue from.", file_okay=False)
    ] = None,
    dialogues: DialoguesOption = DialogueCorpus.TEMPLATES,
) -> None:
    """Train the entity retriever of Neural Path Hunter: which entity of a graph belongs at a mention.

    Data: fb15k237_train, fb15k237_dev and fb15k237_test (.jsonl.gz), or, with --dialogues opendialkg,
    nc_opendialkg_turns and nc_opendialkg_film_kg (.jsonl.gz).
    """
    schedule = replace(make_schedule(steps, seed, threads), batch=16)
    try:
        retriever.train_retriever(data, out, schedule, PAPER if paper else None, start=start, dialogues=dialogues)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error), param_hint="--data") from error


@app.command("ablate-retriever")
def _ablate_retriever(
    data: Data,
    out: Out,
    steps: Steps = 150,
    seed: Seed = 13,
    threads: Threads = 0,
    measured: Annotated[int, typer.Option(help="Corrupted responses to measure on.", min=1)] = 200,
) -> None:
    """Train the retriever without each of its parts, as in the paper's table 4.

    Data: fb15k237_train, fb15k237_dev and fb15k237_test (.jsonl.gz).
    """
    schedule = replace(make_schedule(steps, seed, threads), batch=16)
    Console().print_json(data=ablation.ablate_retriever(data, out, schedule, measured))


@app.command("measure-retriever")
def _evaluate_retriever(
    bundle: Annotated[
        Path,
        typer.Option(help="Directory of a bundle with a retriever, or of a checkpoint.", exists=True, file_okay=False),
    ],
    data: Data,
    count: Annotated[int, typer.Option(help="Responses per set, corrupted and as they are.", min=1)] = 400,
    dialogues: Annotated[
        DialogueCorpus | None, typer.Option(help="Default: both, OpenDialKG where its files exist.")
    ] = None,
    baselines: Annotated[bool, typer.Option(help="Measure scores that need no training too.")] = True,
) -> None:
    """Measure hits@k, mean rank and MRR of a retriever on held-out dialogues, beside scores that need no training.

    Data: as for retriever.
    """
    try:
        report = evaluate.evaluate_retriever(bundle, read_held_out(data, dialogues), count, compared=baselines)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error), param_hint="--data") from error
    Console().print_json(data=report)


@app.command("bundle-nph")
def _export_nph_bundle(
    checkpoints: Annotated[
        Path, typer.Option(help="Directory with the checkpoints critic and retriever.", exists=True)
    ],
    out: OutBundle,
    precision: Precision = ExportPrecision.INT8,
    force: Force = False,
) -> None:
    """Export critic and retriever as the embedded bundle that repairs responses about a graph."""
    bundles.export_nph_bundle(checkpoints, out, print_stage, precision=precision.value, force=force)
