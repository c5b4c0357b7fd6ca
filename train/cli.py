"""``python -m groundwire.train``: the recipes as commands."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from groundwire.runtime.errors import InvalidRequest

from . import spans
from .common.loop import Schedule
from .compact import nli, qa, qg
from .nph.retriever import Dialogues

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)

Data = Annotated[
    Path, typer.Option(help="Directory with the training sets (see data.md).", exists=True, file_okay=False)
]
Out = Annotated[Path, typer.Option(help="Checkpoint directory; an interrupted run in it is continued.")]
Steps = Annotated[int, typer.Option(help="Optimizer steps.", min=1)]
Seed = Annotated[int, typer.Option(help="Seed of the data order and the corruptions.")]
Threads = Annotated[int, typer.Option(help="CPU threads; 0 leaves torch's default.", min=0)]


def _schedule(steps: int, seed: int, threads: int) -> Schedule:
    if threads:
        torch.set_num_threads(threads)
    return Schedule(steps=steps, seed=seed)


@app.command("qa")
def _qa(
    data: Data,
    out: Out,
    steps: Steps = 2400,
    seed: Seed = 13,
    threads: Threads = 0,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint to start from; default MiniLM.", file_okay=False)
    ] = None,
) -> None:
    """Extractive question answering with "no answer"."""
    qa.train(data, out, _schedule(steps, seed, threads), start=start)


@app.command("nli")
def _nli(data: Data, out: Out, steps: Steps = 2400, seed: Seed = 13, threads: Threads = 0) -> None:
    """Three-way natural language inference."""
    nli.train(data, out, _schedule(steps, seed, threads))


@app.command("qg")
def _qg(data: Data, out: Out, steps: Steps = 4000, seed: Seed = 13, threads: Threads = 0) -> None:
    """Answer-aware question generation."""
    qg.train(data, out, _schedule(steps, seed, threads))


@app.command("spans")
def _spans(data: Data, out: Out, steps: Steps = 3600, seed: Seed = 13) -> None:
    """The spaCy pipeline of the span finder."""
    spans.train(data, out, steps, seed)


@app.command("judge")
def _judge(
    data: Data,
    out: Out,
    steps: Steps = 1500,
    seed: Seed = 13,
    threads: Threads = 0,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint of the recipe nli to start from; default MiniLM.", file_okay=False)
    ] = None,
) -> None:
    """Inference, consistency and verifiability: three heads on one trunk."""
    from .compact import multitask_nli

    multitask_nli.train(data, out, _schedule(steps, seed, threads), start=start)


@app.command("lm")
def _lm(data: Data, out: Out, steps: Steps = 1500, seed: Seed = 13, threads: Threads = 0) -> None:
    """The language model that reads a document, for PMI-Faith."""
    from .compact import lm

    lm.train(data, out, _schedule(steps, seed, threads))


@app.command("dialogues")
def _dialogues(
    data: Data,
    out: Annotated[Path, typer.Option(help="JSON Lines file to write.", dir_okay=False)],
    held_out: Annotated[bool, typer.Option(help="Rows of dialogues that nothing is trained on.")] = False,
    articles: Annotated[float, typer.Option(help="Share of rows about articles.", min=0.0, max=0.95)] = 0.5,
    grounded: Annotated[
        float, typer.Option(help="Least share of a response's words that its knowledge has.", min=0.0, max=1.0)
    ] = 0.0,
    seed: Seed = 13,
) -> None:
    """Dialogues with the knowledge they rest on: facts that several speakers tell, and articles."""
    from .synthesis import grounded_dialogues

    rows = grounded_dialogues.rows(data, "held_out" if held_out else "train", articles, seed, grounded)
    with out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@app.command("generator")
def _generator(
    base: Annotated[str, typer.Option(help="Encoder-decoder or causal LM: a hub id or a directory.")],
    rows: Annotated[Path, typer.Option(help="JSON Lines {knowledge, history, response}.", exists=True)],
    out: Out,
    held_out: Annotated[Path | None, typer.Option(help="Rows to measure on.", exists=True)] = None,
    preset: Annotated[str, typer.Option(help="paper (the published code's settings) or small (a CPU).")] = "paper",
    steps: Annotated[int | None, typer.Option(help="Optimizer steps; default: the preset's passes.", min=1)] = None,
    freeze_words: Annotated[bool, typer.Option(help="Leave the word embeddings as they are.")] = False,
    seed: Seed = 13,
    threads: Threads = 0,
) -> None:
    """A model that writes responses, for `groundwire generate`."""
    from dataclasses import replace

    from .generator import recipe

    presets = {"paper": recipe.Preset(), "small": recipe.SMALL}
    if preset not in presets:
        raise typer.BadParameter(f"{preset!r} is unknown; use {', '.join(presets)}.", param_hint="--preset")
    if threads:
        torch.set_num_threads(threads)
    chosen = replace(presets[preset], seed=seed, freeze_words=freeze_words)
    recipe.train(base, rows, out, chosen, steps, held_out)


@app.command("critic")
def _critic(
    data: Data,
    out: Out,
    steps: Steps = 900,
    seed: Seed = 13,
    threads: Threads = 0,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint of the recipe qa to start from; default MiniLM.", file_okay=False)
    ] = None,
    base: Annotated[str | None, typer.Option(help="Any encoder checkpoint, to train in MiniLM's place.")] = None,
) -> None:
    """The critic of Neural Path Hunter: which names of a response a graph's triples do not support."""
    from .nph import critic

    rate = critic.LR if base is None else critic.PAPER.lr
    schedule = dataclasses.replace(_schedule(steps, seed, threads), batch=critic.BATCH)
    critic.train(data, out, schedule, rate, base, start=start)


@app.command("measure-critic")
def _measure_critic(
    bundle: Annotated[Path, typer.Option(help="Bundle directory with a critic.", exists=True, file_okay=False)],
    data: Data,
    count: Annotated[int, typer.Option(help="Responses per set.", min=1)] = 1000,
) -> None:
    """Precision and recall of a bundle's critic on held-out dialogues, beside a critic that compares words."""
    from .nph import critic

    Console().print_json(data=critic.evaluate(bundle, data, count))


@app.command("retriever")
def _retriever(
    data: Data,
    out: Out,
    steps: Steps = 700,
    seed: Seed = 13,
    threads: Threads = 0,
    paper: Annotated[bool, typer.Option("--paper", help="The paper's sizes and hyper-parameters.")] = False,
    start: Annotated[
        Path | None, typer.Option(help="Checkpoint of an earlier run to go on from.", file_okay=False)
    ] = None,
    dialogues: Annotated[
        Dialogues,
        typer.Option(
            help="Made by templates, or what people wrote in OpenDialKG: its licence, CC BY-NC 4.0, forbids to ship "
            "weights trained on it."
        ),
    ] = Dialogues.TEMPLATES,
) -> None:
    """The entity retriever of Neural Path Hunter: which entity of a graph belongs at a mention."""
    from dataclasses import replace

    from .nph.loss import PAPER
    from .nph.retriever import train

    schedule = replace(_schedule(steps, seed, threads), batch=16)
    try:
        train(data, out, schedule, PAPER if paper else None, start=start, dialogues=dialogues)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error), param_hint="--data") from error


@app.command("decoding-table")
def _decoding_table(
    generator: Annotated[Path, typer.Option(help="Bundle with the role generator.", exists=True, file_okay=False)],
    rows: Annotated[Path, typer.Option(help="Contexts: JSON Lines {knowledge, history, response}.", exists=True)],
    out: Annotated[Path, typer.Option(help="JSON file to write.", dir_okay=False)],
    scorer: Annotated[
        str, typer.Option(help="Bundle that scores; its language model is not the generator.")
    ] = "compact",
    count: Annotated[int, typer.Option(help="Contexts.", min=1)] = 150,
    method: Annotated[str, typer.Option(help="As for `groundwire generate`.")] = "beam_sampling",
    max_new_tokens: Annotated[int, typer.Option(help="Tokens of a response.", min=1)] = 40,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
) -> None:
    """Faithfulness and relevance of generated responses at every alpha and top-p."""
    from .generator import decoding_table

    chosen: Any = method
    setup = decoding_table.Setup(
        generator, rows, scorer, count, method=chosen, max_new_tokens=max_new_tokens, seed=seed
    )
    decoding_table.write(setup, out)


@app.command("ablate-retriever")
def _ablate_retriever(
    data: Data,
    out: Out,
    steps: Steps = 150,
    seed: Seed = 13,
    threads: Threads = 0,
    measured: Annotated[int, typer.Option(help="Corrupted responses to measure on.", min=1)] = 200,
) -> None:
    """Train the retriever without each of its parts, as in the paper's table 4."""
    from dataclasses import replace

    from .nph import ablation

    found = ablation.ablate(data, out, replace(_schedule(steps, seed, threads), batch=16), measured)
    Console().print_json(data=found)


@app.command("measure-retriever")
def _measure_retriever(
    bundle: Annotated[
        Path,
        typer.Option(help="Directory of a bundle with a retriever, or of a checkpoint.", exists=True, file_okay=False),
    ],
    data: Data,
    count: Annotated[int, typer.Option(help="Responses per set, corrupted and as they are.", min=1)] = 400,
    dialogues: Annotated[
        Dialogues | None, typer.Option(help="Default: both, OpenDialKG's where its files are there.")
    ] = None,
    baselines: Annotated[bool, typer.Option(help="Measure scores that need no training too.")] = True,
) -> None:
    """Hits@k, mean rank and MRR of a retriever on held-out dialogues, beside scores that need no training."""
    from .nph.evaluate import evaluate
    from .nph.retriever import held_out

    try:
        found = evaluate(bundle, held_out(data, dialogues), count, compared=baselines)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error), param_hint="--data") from error
    Console().print_json(data=found)


@app.command("detector")
def _detector(
    base: Annotated[str, typer.Option(help="BERT checkpoint: a hub id or a directory.")],
    dialogues: Annotated[Path, typer.Option(help="JSON Lines {knowledge, history, response, label}.", exists=True)],
    spans: Annotated[str, typer.Option(help="spaCy pipeline that finds the entities to swap.")],
    out: Out,
    fever: Annotated[Path | None, typer.Option(help="JSON Lines {claim, evidence, label}.", exists=True)] = None,
    epochs: Annotated[float, typer.Option(help="Passes over each corpus.", min=0)] = 4,
    visible: Annotated[
        bool, typer.Option(help="Leave out what the detector cannot see: swaps in the context.")
    ] = False,
    seed: Seed = 13,
    threads: Threads = 0,
) -> None:
    """The paper's detector: a BERT on FEVER, then on Conv-FEVER."""
    import spacy

    from .conv_fever import corpus, detector

    if threads:
        torch.set_num_threads(threads)
    kinds = [kind for kind in corpus.KINDS if not (visible and kind == "swap_context")]
    entities = corpus.spacy_entities(spacy.load(spans))
    detector.train(base, dialogues, out, entities, fever, detector.Preset(epochs=epochs, seed=seed), kinds)


@app.command("bundle")
def _bundle(
    checkpoints: Annotated[Path, typer.Option(help="Directory with the recipes' outputs, by name.", exists=True)],
    out: Annotated[Path, typer.Option(help="Bundle directory to write.")],
    precision: Annotated[str, typer.Option(help="int8 or fp32.")] = "int8",
    force: Annotated[bool, typer.Option(help="Replace what is there.")] = False,
) -> None:
    """Export the trained checkpoints as the embedded bundle."""
    from .compact import bundle

    bundle.bundle(checkpoints, out, lambda role, stage: print(role, stage), precision=precision, force=force)


@app.command("nph")
def _nph(
    checkpoints: Annotated[
        Path, typer.Option(help="Directory with the checkpoints critic and retriever.", exists=True)
    ],
    out: Annotated[Path, typer.Option(help="Bundle directory to write.")],
    precision: Annotated[str, typer.Option(help="int8 or fp32.")] = "int8",
    force: Annotated[bool, typer.Option(help="Replace what is there.")] = False,
) -> None:
    """Export critic and retriever as the embedded bundle that repairs responses about a graph."""
    from .nph import bundle

    bundle.bundle(checkpoints, out, lambda role, stage: print(role, stage), precision=precision, force=force)


@app.command("pairs")
def _pairs(
    data: Data,
    out: Annotated[Path, typer.Option(help="JSON Lines file to write.", dir_okay=False)],
    count: Annotated[int, typer.Option(help="Rows.", min=1)] = 800,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 7,
) -> None:
    """Labelled responses about unseen articles, made as the judge's training pairs are: a set to calibrate on."""
    from .compact import multitask_nli

    with out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in multitask_nli.labelled(data, count, seed))


@app.command("restore")
def _restore(
    bundle: Annotated[Path, typer.Option(help="Bundle directory.", exists=True, file_okay=False)],
    role: Annotated[str, typer.Option(help="A reader or classifier of it: qa, nli, detector.NAME.")],
    out: Annotated[Path, typer.Option(help="Checkpoint directory to write.")],
) -> None:
    """Turn a bundle's graph back into a checkpoint, to train it further."""
    from .common import restore

    restore.save(bundle, role, out)


@app.command("shortlist")
def _shortlist(
    bundle: Annotated[Path, typer.Option(help="Bundle directory; rewritten.", exists=True, file_okay=False)],
    data: Data,
    size: Annotated[int, typer.Option(help="Tokens beside those of the source.", min=100)] = 4000,
) -> None:
    """Let a bundle's question generator choose among few tokens: faster. Calibrate it again afterwards."""
    from .compact import shortlist

    print(f"{shortlist.shorten(bundle, data, size).directory} written")


@app.command("evaluate")
def _evaluate(
    bundle: Annotated[Path, typer.Option(help="Bundle directory.", exists=True, file_okay=False)],
    data: Data,
    bench: Annotated[Path | None, typer.Option(help="Directory with q2_wow_600.jsonl.", file_okay=False)] = None,
    sample: Annotated[int, typer.Option(help="Rows per set, drawn with a fixed seed; 0 takes all.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the report here too.")] = None,
) -> None:
    """Measure a bundle: reading, inference, question quality, and Q² on labelled responses."""
    from .compact import evaluate

    report = evaluate.evaluate(bundle, data, bench, sample)
    if out is not None:
        out.write_text(json.dumps(report, indent=1) + "\n")
    Console().print_json(data=report)
