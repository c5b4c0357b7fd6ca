"""Command-line options that several commands share, and the checks of their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from groundwire.runtime.calls import BeamSearch, Decoding, Greedy, Sampling
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.ort.session import DeviceChoice

from ..metrics import GROUPS, METRICS
from ..metrics.detector import PREFIX
from ..schema.options import Options, Q2Options

_GROUPS = "; ".join(f"{name} ({description})" for name, description in GROUPS.items())

BundleOption = Annotated[
    str, typer.Option(help="Name of an embedded bundle, or a directory written by `groundwire export`.")
]
DeviceOption = Annotated[
    str, typer.Option(help="auto, cpu, cuda or tensorrt. A device that is missing is an error, not a fallback.")
]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        help=f"Metrics, separated by commas: {', '.join(METRICS)}, and {PREFIX}NAME for a role of that name in the "
        f"bundle. Or a group: {_GROUPS}. Default: the metrics of the bundle's calibration, else q2."
    ),
]
ThreadsOption = Annotated[int | None, typer.Option(help="CPU threads. Default: all usable processors.", min=1)]
DecodingOption = Annotated[str, typer.Option(help="Decoding of Q²'s questions: beam, greedy or sampling.")]
QuestionsOption = Annotated[
    str,
    typer.Option(help="Questions of Q² per span. single: the first valid one; all: every valid one."),
]
PersonalOption = Annotated[
    bool, typer.Option(help="Keep Q²'s questions about the speakers themselves (for personal dialogue).")
]
DeadlineOption = Annotated[float | None, typer.Option(help="Time limit for one response, in milliseconds.", min=1.0)]
OutOption = Annotated[
    Path | None,
    typer.Option(help="Write the results to this file as JSON Lines. To continue an interrupted run, run it again."),
]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of a table.")]


def parse_device(name: str) -> DeviceChoice:
    """Check a --device value."""
    for choice in ("auto", "cpu", "cuda", "tensorrt"):
        if name == choice:
            return choice
    raise InvalidRequest(f"--device {name} is unknown; use auto, cpu, cuda or tensorrt.")


def parse_metrics(value: str | None) -> tuple[str, ...] | None:
    """Split a --metrics value into names; None leaves the choice to the bundle."""
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def make_options(decoding: str, questions: str, personal: bool, deadline_ms: float | None) -> Options:
    """Build the Options of a request from the command line's values."""
    decodings: dict[str, Decoding] = {"beam": BeamSearch(), "greedy": Greedy(), "sampling": Sampling()}
    if decoding not in decodings:
        raise InvalidRequest(f"--decoding {decoding} is unknown; use {', '.join(decodings)}.")
    if questions not in ("single", "all"):
        raise InvalidRequest(f"--questions {questions} is unknown; use single or all.")
    q2 = Q2Options(
        decoding=decodings[decoding],
        questions="all" if questions == "all" else "single",
        personal_filter=not personal,
    )
    return Options(q2=q2, deadline_ms=deadline_ms)
