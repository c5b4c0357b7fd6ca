"""Commands for the models of ``bundles/compact``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .. import spans
from ..common import restore
from ..compact import (
    bertscore_baseline,
    evaluate,
    lm,
    multitask_measure,
    multitask_nli,
    nli,
    qa,
    qa_evaluation,
    qg,
    shortlist,
)
from ..compact import bundle as bundles
from ..compact.multitask_model import average_models, load_multitask_nli, restore_multitask_nli
from .options import (
    Data,
    ExportPrecision,
    Force,
    Out,
    OutBundle,
    Precision,
    Seed,
    Start,
    Steps,
    Threads,
    make_schedule,
    print_stage,
    set_threads,
)

app = typer.Typer()


@app.command("qa")
def _train_extractive_qa(
    data: Data,
    out: Out,
    steps: Steps = 2400,
    seed: Seed = 13,
    threads: Threads = 0,
    start: Start = None,
) -> None:
    """Train extractive question answering with "no answer".

    Data: squad1_train.jsonl.gz; if they are there, more/reading_squad2_unanswerable.jsonl.gz and
    more/reading_qamr.jsonl.gz.
    """
    qa.train_extractive_qa(data, out, make_schedule(steps, seed, threads), start=start)


@app.command("measure-qa")
def _evaluate_extractive_qa(
    source: Annotated[
        Path,
        typer.Option(help="Checkpoint of the recipe qa, or a bundle with the role qa.", exists=True, file_okay=False),
    ],
    data: Data,
    sample: Annotated[int, typer.Option(help="Questions per set, drawn with a fixed seed; 0 takes all.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the report here too.", dir_okay=False)] = None,
) -> None:
    """Measure extractive QA on held-out articles and SQuAD 2.0, and choose its null threshold.

    Data: squad1_train and squad2_dev (.jsonl.gz); if it is there, more/reading_squad2_unanswerable.jsonl.gz.
    """
    report = qa_evaluation.evaluate_extractive_qa(source, data, sample)
    if out is not None:
        out.write_text(json.dumps(report, indent=1) + "\n")
    Console().print_json(data=report)


@app.command("nli")
def _train_nli(data: Data, out: Out, steps: Steps = 2400, seed: Seed = 13, threads: Threads = 0) -> None:
    """Train three-way natural language inference.

    Data: nli_train.jsonl.gz, squad1_train.jsonl.gz.
    """
    nli.train_nli(data, out, make_schedule(steps, seed, threads))


@app.command("qg")
def _train_question_generator(
    data: Data,
    out: Out,
    steps: Steps = 4000,
    seed: Seed = 13,
    threads: Threads = 0,
    start: Annotated[
        Path | None,
        typer.Option(help="Checkpoint to start from, one that `restore` wrote; default MiniLM.", file_okay=False),
    ] = None,
    layers: Annotated[int, typer.Option(help="Layers of the decoder.", min=1)] = 3,
) -> None:
    """Train answer-aware question generation.

    Data: squad1_train.jsonl.gz; if it is there, more/reading_qamr.jsonl.gz.
    """
    qg.train_question_generator(data, out, make_schedule(steps, seed, threads), layers, start)


@app.command("spans")
def _train_span_finder(data: Data, out: Out, steps: Steps = 3600, seed: Seed = 13) -> None:
    """Train the spaCy pipeline of the span finder.

    Data: ud_ewt_train, ud_ewt_dev, ud_ewt_test and gum (.conllu.gz), fb15k237_train.jsonl.gz, and in ner/ the files
    uner_ewt_dev and uner_ewt_test (.iob2.gz), crossner_*.txt.gz, wikigold_wikigold.conll.txt.gz, and wnut17_train,
    wnut17_dev and wnut17_test (.conll.gz).
    """
    spans.train_span_finder(data, out, steps, seed)


@app.command("multitask-nli")
def _train_multitask_nli(
    data: Data,
    out: Out,
    steps: Steps = 8000,
    seed: Seed = 13,
    threads: Threads = 0,
    start: Annotated[
        Path | None,
        typer.Option(
            help="What to start from: a checkpoint of the recipe nli, or a directory with a checkpoint per head; "
            "default MiniLM.",
            file_okay=False,
        ),
    ] = None,
    batch: Annotated[int, typer.Option(help="Examples per step; even.", min=2)] = 32,
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = 1e-4,
    warmup_steps: Annotated[int, typer.Option(help="Steps over which the learning rate rises.", min=1)] = 200,
    decay: Annotated[
        float,
        typer.Option(
            help="Share of the steps over which the learning rate falls, at the end. Until it falls, a run may be "
            "continued with other --steps.",
            min=0.0,
            max=1.0,
        ),
    ] = 0.15,
    dropout: Annotated[float, typer.Option(help="Dropout of the backbone; 0 is faster.", min=0.0, max=0.9)] = 0.0,
    checkpoint_s: Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0.0)] = 180.0,
) -> None:
    """Train inference, consistency, verifiability and token labels: four heads on one backbone.

    Data: squad1_train and squad1_dev, nli_train and nli_dev, topical_chat, query_wellformedness_train (.jsonl.gz),
    ud_ewt_train and gum (.conllu.gz). If they are there: fb15k237_train and fb15k237_dev, the name corpora in ner/, and
    in more/ the plain texts text_* and the labelled pairs of compact/public_pairs.py.
    """
    schedule = replace(
        make_schedule(steps, seed, threads),
        batch=batch,
        warmup_steps=warmup_steps,
        decay=decay,
        checkpoint_s=checkpoint_s,
    )
    multitask_nli.train_multitask_nli(data, out, schedule, lr, start, dropout=dropout)


@app.command("measure-multitask-nli")
def _measure_multitask_nli(
    source: Annotated[
        Path,
        typer.Option(help="Directory of a run, finished or not, or with a checkpoint per head.", file_okay=False),
    ],
    data: Data,
    bench: Annotated[
        Path | None,
        typer.Option(help="Directory with fever_symmetric_dev, begin_wow_dev and begin_wow_test.", file_okay=False),
    ] = None,
    count: Annotated[int, typer.Option(help="Examples per head, and minimal pairs.", min=1)] = 600,
    threads: Threads = 0,
    out: Annotated[Path | None, typer.Option(help="Write the report here too.", dir_okay=False)] = None,
) -> None:
    """Measure the heads of the recipe multitask-nli on held-out examples and on development sets.

    Data: as for multitask-nli.
    """
    set_threads(threads)
    report = multitask_measure.measure_multitask_nli(source, data, bench, count)
    if out is not None:
        out.write_text(json.dumps(report, indent=1) + "\n")
    Console().print_json(data=report)


@app.command("average-heads")
def _average_heads(
    bundle: Annotated[
        Path, typer.Option(help="Bundle with the four heads in one graph.", exists=True, file_okay=False)
    ],
    run: Annotated[
        Path,
        typer.Option(
            help="Run that started from them: of multitask-nli, or a small model's.", exists=True, file_okay=False
        ),
    ],
    out: Out,
    share: Annotated[float, typer.Option(help="Of the run, from 0 to 1.", min=0.0, max=1.0)] = 0.5,
) -> None:
    """Average the weights of a bundle's heads and of a run that started from them, and write a checkpoint per head."""
    first, second = restore_multitask_nli(bundle), load_multitask_nli(run)
    average_models(first, second, share).save(out)


@app.command("lm")
def _train_language_model(
    data: Data, out: Out, start: Start = None, steps: Steps = 1500, seed: Seed = 13, threads: Threads = 0
) -> None:
    """Train the language model of PMI-Faith, which reads a document of up to 700 words.

    Data: squad1_train, squad1_dev and topical_chat (.jsonl.gz).
    """
    lm.train_language_model(data, out, make_schedule(steps, seed, threads), start=start)


@app.command("bundle-compact")
def _export_compact_bundle(
    checkpoints: Annotated[
        Path, typer.Option(help=f"Directory with the recipes' checkpoints: {bundles.CHECKPOINTS}.", exists=True)
    ],
    out: OutBundle,
    precision: Precision = ExportPrecision.INT8,
    force: Force = False,
) -> None:
    """Export the trained checkpoints as the embedded bundle."""
    bundles.export_compact_bundle(checkpoints, out, print_stage, precision=precision.value, force=force)


@app.command("measure-compact")
def _evaluate_compact_bundle(
    bundle: Annotated[Path, typer.Option(help="Bundle directory.", exists=True, file_okay=False)],
    data: Data,
    bench: Annotated[Path | None, typer.Option(help="Directory with q2_wow_600.jsonl.", file_okay=False)] = None,
    sample: Annotated[int, typer.Option(help="Rows per set, drawn with a fixed seed; 0 takes all.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the report here too.")] = None,
) -> None:
    """Measure a bundle: extractive QA, inference, question quality, and Q² on labelled responses.

    Data: squad1_dev, squad2_dev and nli_test (.jsonl.gz).
    """
    report = evaluate.evaluate_compact_bundle(bundle, data, bench, sample)
    if out is not None:
        out.write_text(json.dumps(report, indent=1) + "\n")
    Console().print_json(data=report)


@app.command("restore")
def _restore_checkpoint(
    bundle: Annotated[Path, typer.Option(help="Bundle directory.", exists=True, file_okay=False)],
    role: Annotated[str, typer.Option(help="What to restore: qa, qg, lm, nli, token_classifier or detector.NAME.")],
    out: Annotated[Path, typer.Option(help="Checkpoint directory to write.")],
) -> None:
    """Turn a bundle's graph back into a checkpoint, to train it further."""
    restore.write_restored_checkpoint(bundle, role, out)


@app.command("bertscore-baseline")
def _measure_bertscore_baseline(
    bundle: Annotated[Path, typer.Option(help="Bundle with the role embedder.", exists=True, file_okay=False)],
    data: Data,
    count: Annotated[int, typer.Option(help="Sentences, half as many pairs.", min=2)] = 20_000,
    seed: Seed = 0,
    save: Annotated[bool, typer.Option("--save", help="Write it into the bundle; verdicts stay as they are.")] = False,
) -> None:
    """Measure BERTScore of unrelated sentences: what rescaling makes 0.

    Data: more/text_wikipedia.jsonl.gz.
    """
    sentences = bertscore_baseline.draw_sentences(data, count, seed)
    precision, recall, f1 = bertscore_baseline.measure_bertscore_baseline(bundle, sentences, seed=seed)
    if save:
        bertscore_baseline.store_bertscore_baseline(bundle, (precision, recall, f1))
    Console().print_json(data={"precision": precision, "recall": recall, "f1": f1})


@app.command("shortlist")
def _shorten_question_generator(
    bundle: Annotated[Path, typer.Option(help="Bundle directory; rewritten.", exists=True, file_okay=False)],
    data: Data,
    size: Annotated[int, typer.Option(help="Tokens beside those of the source.", min=100)] = 4000,
) -> None:
    """Limit a bundle's question generator to a shortlist of tokens, which is faster.

    Calibrate the bundle again afterwards. Data: squad1_train.jsonl.gz.
    """
    print(f"{shortlist.shorten_question_generator(bundle, data, size).directory} written")
