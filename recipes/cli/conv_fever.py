"""The command for the detector of Conv-FEVER."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..conv_fever import corpus, detector
from ..conv_fever.entities import load_entity_finder
from .options import Out, Seed, Threads, set_threads

app = typer.Typer()


@app.command("detector")
def _train_detector(
    base: Annotated[str, typer.Option(help="BERT checkpoint: a hub id or a directory.")],
    dialogues: Annotated[
        Path, typer.Option(help="Dialogues with knowledge: JSON Lines, or Wizard of Wikipedia.", exists=True)
    ],
    spans: Annotated[str, typer.Option(help="What finds the entities to swap: a bundle, or a spaCy pipeline.")],
    out: Out,
    fever: Annotated[Path | None, typer.Option(help="JSON Lines {claim, evidence, label}.", exists=True)] = None,
    epochs: Annotated[float, typer.Option(help="Passes over each corpus.", min=0)] = 4,
    visible: Annotated[
        bool, typer.Option(help="Leave out what the detector cannot see: swaps in the context.")
    ] = False,
    seed: Seed = 13,
    threads: Threads = 0,
) -> None:
    """Train the paper's detector: a BERT on FEVER, then on Conv-FEVER."""
    set_threads(threads)
    kinds = [kind for kind in corpus.KINDS if not (visible and kind == "swap_context")]
    entities = load_entity_finder(spans)
    preset = detector.DetectorPreset(epochs=epochs, seed=seed)
    detector.train_detector(base, dialogues, out, entities, fever, preset, kinds)
