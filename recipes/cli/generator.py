"""Commands for response generators."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..generator import bundle as bundles
from ..generator import card, decoding_table, recipe
from .options import ExportPrecision, Force, Out, OutBundle, Precision, Seed, Threads, print_stage, set_threads

app = typer.Typer()


class GeneratorSize(StrEnum):
    """The presets of the recipe."""

    PAPER = "paper"
    SMALL = "small"


@app.command("generator")
def _train_generator(
    base: Annotated[str, typer.Option(help="Encoder-decoder or causal LM: a hub id or a directory.")],
    rows: Annotated[Path, typer.Option(help="JSON Lines {knowledge, history, response}.", exists=True)],
    out: Out,
    held_out: Annotated[Path | None, typer.Option(help="Rows to measure on.", exists=True)] = None,
    preset: Annotated[
        GeneratorSize, typer.Option(help="paper: the published code's settings; small: for a CPU.")
    ] = GeneratorSize.PAPER,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps; default: the preset's passes.", min=1)] = None,
    freeze_words: Annotated[bool, typer.Option(help="Leave the word embeddings as they are.")] = False,
    seed: Seed = 13,
    threads: Threads = 0,
) -> None:
    """Train a response generator, for `groundwire generate`."""
    set_threads(threads)
    settings = recipe.SMALL if preset is GeneratorSize.SMALL else recipe.GeneratorPreset()
    settings = replace(settings, seed=seed, freeze_words=freeze_words)
    recipe.train_generator(base, rows, out, settings, steps, held_out)


@app.command("decoding-table")
def _write_decoding_table(
    generator: Annotated[Path, typer.Option(help="Bundle with the role generator.", exists=True, file_okay=False)],
    rows: Annotated[Path, typer.Option(help="Contexts: JSON Lines {knowledge, history, response}.", exists=True)],
    out: Annotated[Path, typer.Option(help="JSON file to write.", dir_okay=False)],
    scorer: Annotated[
        str, typer.Option(help="Bundle that scores; its language model must not be the generator.")
    ] = "compact",
    count: Annotated[int, typer.Option(help="Contexts.", min=1)] = 150,
    alphas: Annotated[
        list[float] | None,
        typer.Option("--alpha", help="Weight of CPMI, 0 to 1; repeatable; default: the paper's.", min=0, max=1),
    ] = None,
    pmi_top_ps: Annotated[
        list[float] | None,
        typer.Option(
            "--pmi-top-p", help="Mass of the candidate set, above 0 up to 1; repeatable; default: the paper's."
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="As for `groundwire generate`.")] = "beam_sampling",
    max_new_tokens: Annotated[int, typer.Option(help="Tokens of a response.", min=1)] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
) -> None:
    """Measure faithfulness and relevance of generated responses at every alpha and top-p."""
    setup = decoding_table.TableSetup(
        generator,
        rows,
        scorer,
        count,
        tuple(alphas or decoding_table.ALPHAS),
        tuple(pmi_top_ps or decoding_table.PMI_TOP_PS),
        method=decoding_table.check_method(method),
        max_new_tokens=max_new_tokens,
        seed=seed,
    )
    decoding_table.write_decoding_table(setup, out)


Checkpoints = Annotated[
    Path,
    typer.Option(help="Directory with the checkpoint generator and those that it was trained from.", exists=True),
]


@app.command("bundle-generator")
def _export_generator_bundle(
    checkpoints: Checkpoints,
    out: OutBundle,
    precision: Precision = ExportPrecision.INT8,
    force: Force = False,
) -> None:
    """Export the response generator as the embedded bundle that `groundwire generate` loads."""
    bundles.export_generator_bundle(checkpoints, out, print_stage, precision=precision.value, force=force)


@app.command("generator-card")
def _write_card(
    bundle: Annotated[
        Path, typer.Option(help="Bundle directory that bundle-generator wrote.", exists=True, file_okay=False)
    ],
    checkpoints: Checkpoints,
    tables: Annotated[
        list[Path],
        typer.Option("--table", help="JSON file of decoding-table, measured on the bundle; repeatable.", exists=True),
    ],
) -> None:
    """Write the model card of the embedded generator, README.md, and its figures, report.json, into its bundle."""
    card.write_card(bundle, checkpoints, tables)
