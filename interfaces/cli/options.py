"""Command-line options that several commands share, and the checks of their values."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence, Set
from pathlib import Path
from typing import Annotated, get_args

import typer

from groundwire.engine import LoadOptions
from groundwire.engine.api import Engine
from groundwire.engine.metrics import GROUPS, METRICS, check_names
from groundwire.engine.metrics.detector import PREFIX
from groundwire.engine.schema.base import MAX_DEADLINE_MS
from groundwire.engine.schema.options import Options, Q2Options
from groundwire.files.columns import ALIASES, FIELDS, UnknownColumns, parse_columns
from groundwire.files.reading import NEEDED, Line, read_lines
from groundwire.files.sharding import Shard
from groundwire.runtime.bundle import check_exists
from groundwire.runtime.calibration import ProfileName
from groundwire.runtime.calls import BeamSearch, Decoding, Greedy, Sampling
from groundwire.runtime.errors import BundleError, DeviceError, InvalidRequest
from groundwire.runtime.ort import device as devices
from groundwire.runtime.ort.device import DeviceChoice

_GROUPS = "; ".join(f"{name} ({description})" for name, description in GROUPS.items())
_ALIASES = "; ".join(f"{field}: {', '.join(names)}" for field, names in ALIASES.items())
_BUNDLE = "Name of an embedded bundle, or a directory written by `groundwire export`; compact if left out."
_DEVICE = (
    "auto, cpu, cuda or tensorrt, or one of several GPUs: cuda:1; auto if left out. A device that is missing is an "
    "error, not a fallback."
)
_DECODING = typer.Option(
    help="Decoding of Q²'s questions: beam, greedy or sampling; beam if left out.", show_default=False
)
_QUESTIONS = typer.Option(
    help="Questions of Q² per span. single: the first valid one; all: every valid one; single if left out.",
    show_default=False,
)

BundleOption = Annotated[str, typer.Option(help=_BUNDLE, show_default=False, envvar="GROUNDWIRE_BUNDLE")]
StoredBundleOption = Annotated[str | None, typer.Option(help=_BUNDLE, show_default=False)]
"""Of a command that keeps scores: left out, the setting is that of the scores."""
ExtraOption = Annotated[
    list[str] | None,
    typer.Option(help="A further bundle, whose roles are added, such as nph for the metric critic; repeatable."),
]
CalibrationOption = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="Draw the verdict with this file of `groundwire calibrate` instead of the bundle's calibration.",
    ),
]
ProfileOption = Annotated[
    str,
    typer.Option(
        help="Threshold of the verdict: balanced; strict (misses fewer inconsistent responses); lenient (calls fewer "
        "consistent responses inconsistent)."
    ),
]
MaxFalsePositiveRateOption = Annotated[
    float | None,
    typer.Option(
        help="Threshold of the verdict in place of --profile: at most this share, from 0.001 to below 1, of consistent "
        "responses is called inconsistent, for responses like those of the calibration.",
        show_default=False,
    ),
]
DeviceOption = Annotated[str, typer.Option(help=_DEVICE, show_default=False, envvar="GROUNDWIRE_DEVICE")]
StoredDeviceOption = Annotated[str | None, typer.Option(help=_DEVICE, show_default=False)]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        help=f"Metrics, separated by commas: {', '.join(METRICS)}, and {PREFIX}NAME for a role of that name in the "
        f"bundle. Or a group: {_GROUPS}. Default: those that the bundle's verdict is drawn from, else q2."
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(help="CPU threads. Default: all usable processors.", min=1, envvar="GROUNDWIRE_THREADS"),
]
DecodingOption = Annotated[str, _DECODING]
StoredDecodingOption = Annotated[str | None, _DECODING]
QuestionsOption = Annotated[str, _QUESTIONS]
StoredQuestionsOption = Annotated[str | None, _QUESTIONS]
PersonalOption = Annotated[
    bool, typer.Option(help="Keep Q²'s questions about the speakers themselves (for personal dialogue).")
]
DeadlineOption = Annotated[
    float | None,
    typer.Option(
        help="Time limit for one response, in milliseconds; one that takes longer gets the status deadline.", min=1.0
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD=NAME,…",
        help="Names of the fields in the input, as in response=text,knowledge=passages. Known without this option: "
        f"{_ALIASES}.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        help="Write the results to this file as JSON Lines; - is standard output. To continue an interrupted run, or "
        "to try again what a deadline or an error left unscored, run it again."
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER/COUNT",
        help="Take this part of the input alone, 3/8 say: every eighth line from the third on. Each line belongs to "
        "one part.",
    ),
]
JsonOption = Annotated[
    bool | None,
    typer.Option(
        "--json/--table", help="Print JSON Lines, or tables. Default: tables on a terminal, JSON Lines in a pipe."
    ),
]


@contextlib.contextmanager
def refuse_value(option: str | None = None) -> Iterator[None]:
    """Raise what is wrong with the value of ``option``, None for several, as wrong usage: exit code 2."""
    try:
        yield
    except (InvalidRequest, BundleError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def load_engine(
    bundle: str | Path, device: str, threads: int | None, extra: Sequence[str | Path] | None, calibration: Path | None
) -> Engine:
    """Load the engine that the options describe."""
    choice = parse_device(device)
    with refuse_absent_bundles(bundle, extra):
        return Engine.load(
            bundle, choice, threads=threads, extra=tuple(extra or ()), options=LoadOptions(calibration=calibration)
        )


@contextlib.contextmanager
def refuse_absent_bundles(bundle: str | Path | None, extra: Sequence[str | Path] | None) -> Iterator[None]:
    """Raise an error of loading as wrong usage if a value of --bundle or --extra names no bundle."""
    try:
        yield
    except BundleError:
        for option, name in (("--bundle", bundle), *(("--extra", name) for name in extra or ())):
            if name is not None:
                with refuse_value(option):
                    check_exists(name)
        raise


def choose_metrics(engine: Engine, names: Sequence[str] | None) -> tuple[str, ...]:
    """The metrics that the engine computes for a --metrics value."""
    with refuse_value("--metrics"):
        return engine.plan(names).names


def parse_device(name: str) -> DeviceChoice:
    """Check a --device value."""
    try:
        devices.parse_device(name)
    except DeviceError as error:
        message = f"{name} is unknown; use auto, cpu, cuda or tensorrt; cuda:1 is the second GPU."
        raise typer.BadParameter(message, param_hint="--device") from error
    return name


def parse_metrics(value: str | None) -> tuple[str, ...] | None:
    """The metrics that a --metrics value names; None leaves the choice to the bundle."""
    names = split_names(value)
    with refuse_value("--metrics"):
        check_names(names or ())
    return names


def split_names(value: str | None) -> tuple[str, ...] | None:
    """Split a --metrics value into names, whatever they are."""
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if not names:
        raise typer.BadParameter(f"{value!r} names no metric; leave it out for the default.", param_hint="--metrics")
    return names


def parse_profile(name: str) -> ProfileName:
    """Check a --profile value."""
    for choice in get_args(ProfileName):
        if name == choice:
            return choice  # type: ignore[no-any-return]
    raise typer.BadParameter(f"{name} is unknown; use {', '.join(get_args(ProfileName))}.", param_hint="--profile")


def make_options(
    decoding: str | None = None,
    questions: str | None = None,
    personal: bool = False,
    deadline_ms: float | None = None,
    profile: str = "balanced",
    max_false_positive_rate: float | None = None,
) -> Options:
    """Build the Options of a request from the command line's values; None is the default."""
    decodings: dict[str, Decoding] = {"beam": BeamSearch(), "greedy": Greedy(), "sampling": Sampling()}
    if decoding is not None and decoding not in decodings:
        raise typer.BadParameter(f"{decoding} is unknown; use {', '.join(decodings)}.", param_hint="--decoding")
    if questions not in (None, "single", "all"):
        raise typer.BadParameter(f"{questions} is unknown; use single or all.", param_hint="--questions")
    if deadline_ms is not None and not deadline_ms <= MAX_DEADLINE_MS:
        raise typer.BadParameter(
            f"{deadline_ms} is not a number up to {MAX_DEADLINE_MS:g}; leave it out to wait without limit.",
            param_hint="--deadline-ms",
        )
    q2 = Q2Options(
        decoding=decodings[decoding or "beam"],
        questions="all" if questions == "all" else "single",
        personal_filter=not personal,
    )
    if max_false_positive_rate is not None and not 0.001 <= max_false_positive_rate < 1:
        raise typer.BadParameter(
            f"{max_false_positive_rate} is not from 0.001 to less than 1.", param_hint="--max-false-positive-rate"
        )
    return Options(
        q2=q2,
        deadline_ms=deadline_ms,
        profile=parse_profile(profile),
        max_false_positive_rate=max_false_positive_rate,
    )


def parse_column_names(value: str | None, fields: Collection[str] = FIELDS) -> dict[str, str]:
    """The names in a --columns value, by field."""
    with refuse_value("--columns"):
        return parse_columns(value, fields)


def parse_shard(value: str | None) -> Shard:
    """The shard that a --shard value names; None is the whole input."""
    with refuse_value("--shard"):
        return Shard() if value is None else Shard.parse(value)


@contextlib.contextmanager
def open_lines(
    source: Path, columns: str | None, needed: Set[str] = NEEDED, fields: Collection[str] = FIELDS
) -> Iterator[Iterator[Line]]:
    """``read_lines`` with a --columns value for ``fields``; wrong usage if the input does not have these columns."""
    names = parse_column_names(columns, fields)
    with contextlib.ExitStack() as stack:
        try:
            lines = stack.enter_context(read_lines(source, needed, names))
        except UnknownColumns as error:
            raise typer.BadParameter(str(error), param_hint="--columns" if names else str(source)) from error
        yield lines
