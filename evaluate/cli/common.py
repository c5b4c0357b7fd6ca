"""Options, checks and output that the commands share. Cheap to import; the heavy libraries load when a command runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from groundwire.engine.metrics import GROUPS, METRICS
from groundwire.engine.schema.options import Options, Q2Options
from groundwire.runtime.calls import BeamSearch, Decoding, Greedy, Sampling
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.ort.session import DeviceChoice

from .. import require

if TYPE_CHECKING:
    from ..scores.scoring import Watch

RESULTS = "results.json"

MetricsOption = Annotated[
    str | None,
    typer.Option(
        help=f"Comma-separated metrics: {', '.join(METRICS)}, detector.NAME; "
        f"or a group: {', '.join(GROUPS)}. "
        "Default: those of the bundle's verdict, else q2."
    ),
]
ThreadsOption = Annotated[int | None, typer.Option(help="CPU threads; default: all usable.", min=1)]
WorkersOption = Annotated[
    int,
    typer.Option(
        help="Processes that score in parallel; each loads the models and gets its share of --threads.", min=1
    ),
]
SeedOption = Annotated[int, typer.Option(help="Seed of the bootstrap samples, and of --sample.", min=0)]
RepeatsOption = Annotated[
    int, typer.Option(help="Bootstrap samples for each interval (comparisons take more where they need them).", min=10)
]


def parse_device(name: str) -> DeviceChoice:
    """Check a --device value."""
    for choice in ("auto", "cpu", "cuda", "tensorrt"):
        if name == choice:
            return choice
    raise InvalidRequest(f"--device {name} is unknown; use auto, cpu, cuda or tensorrt.")


def parse_metrics(value: str | None) -> tuple[str, ...] | None:
    """The names in a --metrics value; None leaves the choice to the bundle."""
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def parse_q2_options(decoding: str, questions: str, personal: bool) -> Options:
    """The options from --decoding, --questions and --personal."""
    known: dict[str, Decoding] = {"beam": BeamSearch(), "greedy": Greedy(), "sampling": Sampling()}
    if decoding not in known:
        raise InvalidRequest(f"--decoding {decoding} is unknown; use {', '.join(known)}.")
    if questions not in ("single", "all"):
        raise InvalidRequest(f"--questions {questions} is unknown; use single or all.")
    return Options(
        q2=Q2Options(
            decoding=known[decoding],
            questions="all" if questions == "all" else "single",
            personal_filter=not personal,
        )
    )


def require_extra() -> None:
    """Raise InvalidRequest with the install command when the extra is not installed."""
    try:
        require()
    except ImportError as error:
        raise InvalidRequest(str(error)) from error


def name_set(path: Path) -> str:
    """The name of a set: that of its file, without suffixes."""
    return path.name.partition(".")[0] or path.name


def name_sets(paths: list[Path]) -> dict[str, Path]:
    """Sets by their names; InvalidRequest when two files have the same."""
    sets: dict[str, Path] = {}
    for path in paths:
        name = name_set(path)
        if name in sets:
            raise InvalidRequest(f"{sets[name]} and {path} would both be the set {name!r}; rename one of them.")
        sets[name] = path
    return sets


def open_stdout() -> Console:
    """The console for results: as wide as the terminal, or 120 columns in a pipe."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


@contextmanager
def show_progress() -> Iterator[Watch]:
    """Show a bar for the set that is being scored, on a terminal only; it disappears at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    disable = not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=disable) as bar:
        task = bar.add_task("", total=None)

        def watch(name: str, done: int, total: int) -> None:
            bar.update(task, description=escape(name), completed=done, total=total or None)

        yield watch
