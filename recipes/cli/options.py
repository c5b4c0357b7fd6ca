"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import torch
import typer

from ..common.loop import Schedule

Data = Annotated[
    Path,
    typer.Option(
        help="Directory with the training sets; the command's description names the files it must hold.",
        exists=True,
        file_okay=False,
    ),
]
Out = Annotated[Path, typer.Option(help="Checkpoint directory; an interrupted run in it is continued.")]
OutFile = Annotated[Path, typer.Option(help="JSON Lines file to write.", dir_okay=False)]
OutBundle = Annotated[Path, typer.Option(help="Bundle directory to write.")]
Steps = Annotated[int, typer.Option(help="Optimizer steps.", min=1)]
Seed = Annotated[int, typer.Option(help="Seed of the data order and of every random draw.")]
Start = Annotated[
    Path | None, typer.Option(help="Checkpoint to start from; default MiniLM.", exists=True, file_okay=False)
]
Threads = Annotated[int, typer.Option(help="CPU threads; 0 leaves torch's default.", min=0)]
Force = Annotated[bool, typer.Option(help="Replace the roles that the bundle directory already has.")]


class ExportPrecision(StrEnum):
    """Precisions in which the trained checkpoints are exported."""

    INT8 = "int8"
    FP32 = "fp32"


Precision = Annotated[ExportPrecision, typer.Option(help="Precision of the weights.")]


def make_schedule(steps: int, seed: int, threads: int) -> Schedule:
    """The schedule of a run; sets the number of CPU threads first."""
    set_threads(threads)
    return Schedule(steps=steps, seed=seed)


def set_threads(threads: int) -> None:
    """Let torch use so many CPU threads; 0 leaves its default."""
    if threads:
        torch.set_num_threads(threads)


def print_stage(role: str, stage: str) -> None:
    """Print which stage of the export a role has reached."""
    print(role, stage)
