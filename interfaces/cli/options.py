"""Groups of options that several commands share, and the checks of their values."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from groundwire.engine import Engine, LoadOptions, Options
from groundwire.engine.schema.base import MAX_DEADLINE_MS
from groundwire.engine.schema.options import Q2Options
from groundwire.files.columns import ALIASES, FIELDS, UnknownColumns, parse_columns
from groundwire.files.reading import NEEDED, Line, read_lines
from groundwire.files.sharding import Shard
from groundwire.metrics import GROUPS, METRICS, check_names
from groundwire.runtime.bundles.bundle import check_exists, split_role
from groundwire.runtime.bundles.calibration import ProfileName
from groundwire.runtime.calls import BeamSearch, Decoding, Greedy, Sampling
from groundwire.runtime.errors import BundleError, DeviceError, InvalidRequest
from groundwire.runtime.ort import device as devices
from groundwire.runtime.ort.device import DeviceChoice

from .groups import Setting

_GROUPS = "; ".join(f"{name} ({description})" for name, description in GROUPS.items())
_ALIASES = "; ".join(f"{field}: {', '.join(names)}" for field, names in ALIASES.items())
_BUNDLE = "Name of an embedded bundle, or a directory that `groundwire export` wrote"
_DEVICE = (
    "auto, cpu, cuda, tensorrt or tensorrt-rtx; cuda:1 is the second GPU. A missing device is an error, not a fallback."
)

BundleOption = Annotated[
    str, typer.Option(help=f"{_BUNDLE}; compact if left out.", show_default=False, envvar="GROUNDWIRE_BUNDLE")
]
ExtraOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A further bundle, whose roles are added, such as nph for the metric critic; ROLE=BUNDLE takes one "
        "role, in place of the role of that name. Repeatable."
    ),
]
ThreadsOption = Annotated[
    int | None,
    Setting(help="CPU threads. Default: all usable processors.", min=1, envvar="GROUNDWIRE_THREADS"),
]
CalibrationOption = Annotated[
    Path | None,
    Setting(
        help="Draw the verdict with this file of `groundwire calibrate` instead of the bundle's calibration.",
        envvar="GROUNDWIRE_CALIBRATION",
        is_file=True,
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        help="Metrics and groups, separated by commas, as in default,quotations. Default: default. Groups: "
        f"{_GROUPS}. Metrics: {', '.join(METRICS)}, and detector.NAME for a role of that name in the bundle."
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD=NAME,…",
        help="Names of the fields in the input, as in response=text,knowledge=passages. These names need no option: "
        f"{_ALIASES}.",
    ),
]
JsonOption = Annotated[
    bool | None,
    typer.Option(
        "--json/--table", help="Print JSON Lines, or tables. Default: tables on a terminal, JSON Lines in a pipe."
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        help="Write the results to this file as JSON Lines; - is standard output. The same command continues an "
        "interrupted run, and tries again the lines that a deadline or an error left without a result."
    ),
]


@dataclass(frozen=True)
class BundleOptions:
    """The models that a command loads, and the device that runs them."""

    bundle: BundleOption = "compact"
    extra: ExtraOption = None
    device: Annotated[
        str, typer.Option(help=f"{_DEVICE} Default: auto.", show_default=False, envvar="GROUNDWIRE_DEVICE")
    ] = "auto"
    threads: ThreadsOption = None

    def open(self, **settings: Any) -> Engine:
        """Load the engine; ``settings`` are further fields of LoadOptions."""
        choice = parse_device(self.device)
        with refuse_absent_bundles(self.bundle, self.extra):
            return Engine.load(
                self.bundle,
                choice,
                threads=self.threads,
                extra=tuple(self.extra or ()),
                options=LoadOptions(**settings),
            )


@dataclass(frozen=True)
class EngineOptions(BundleOptions):
    """How a command loads its engine."""

    calibration: CalibrationOption = None
    device_memory_mb: Annotated[
        int | None,
        Setting(
            help="Memory of the GPU that the models take together, at most, in MiB.",
            min=1,
            envvar="GROUNDWIRE_DEVICE_MEMORY_MB",
        ),
    ] = None

    def open(self, **settings: Any) -> Engine:
        """Load the engine; ``settings`` are further fields of LoadOptions."""
        return super().open(calibration=self.calibration, device_memory_mb=self.device_memory_mb, **settings)


@dataclass(frozen=True)
class StoredEngineOptions:
    """The engine of a command that reads earlier results, whose settings are the default."""

    bundle: Annotated[
        str | None, typer.Option(help=f"{_BUNDLE}; by default the bundle of earlier results, else compact.")
    ] = None
    extra: ExtraOption = None
    device: Annotated[
        str | None, typer.Option(help=f"{_DEVICE} Default: the device of earlier results, else auto.")
    ] = None
    threads: ThreadsOption = None
    calibration: CalibrationOption = None


@dataclass(frozen=True)
class NphEngineOptions(BundleOptions):
    """The models of Neural Path Hunter."""

    bundle: Annotated[
        str, typer.Option(help="Name of an embedded bundle, or a directory, with the roles critic and retriever.")
    ] = "nph"
    extra: Annotated[
        list[str] | None,
        typer.Option(
            help="A further bundle, whose roles are added: with compact, a name that the graph does not know is "
            "replaced by an entity of its type. Repeatable."
        ),
    ] = None


@dataclass(frozen=True)
class InputOptions:
    """Which lines of a file a command reads, and how it prints their results."""

    columns: ColumnsOption = None
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER/COUNT",
            help="Read one part of the input: 3/8 is every eighth line from the third on. Each line belongs to one "
            "part.",
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(help="Read this many lines, at most.", min=1)] = None
    json: JsonOption = None

    @contextlib.contextmanager
    def open(self, source: Path, needed: Set[str] = NEEDED) -> Iterator[Iterator[Line]]:
        """The chosen lines of ``source``; wrong usage if it lacks the fields ``needed``."""
        shard = parse_shard(self.shard)
        with open_lines(source, self.columns, needed) as lines:
            yield islice(shard.select(lines), self.limit)


@dataclass(frozen=True)
class DialogueOptions:
    """The texts of one dialogue."""

    knowledge: Annotated[
        list[str] | None, typer.Option("--knowledge", "-k", help="A passage of knowledge; repeat for several.")
    ] = None
    history: Annotated[
        list[str] | None,
        typer.Option("--history", "-H", help="An utterance before the response; repeat for several, oldest first."),
    ] = None

    def require_knowledge(self) -> Sequence[str]:
        """The passages; wrong usage without any."""
        if not self.knowledge:
            raise typer.BadParameter("pass the text on which the response should rest.", param_hint="--knowledge")
        return self.knowledge


@dataclass(frozen=True)
class QuestionOptions:
    """How Q² asks its questions."""

    decoding: Annotated[
        str | None, Setting(help="Decoding of Q²'s questions: beam, greedy or sampling. Default: beam.")
    ] = None
    questions: Annotated[
        str | None,
        Setting(
            help="Q²'s questions per span: single (the first valid one) or all (every valid one). Default: single."
        ),
    ] = None
    personal: Annotated[
        bool,
        Setting(help="Keep Q²'s questions about the speakers themselves (for personal dialogue)."),
    ] = False

    def make_options(self) -> Q2Options:
        """The options of the metric Q²."""
        decodings: dict[str, Decoding] = {"beam": BeamSearch(), "greedy": Greedy(), "sampling": Sampling()}
        if self.decoding is not None and self.decoding not in decodings:
            message = f"{self.decoding} is unknown; use {', '.join(decodings)}."
            raise typer.BadParameter(message, param_hint="--set decoding")
        if self.questions not in (None, "single", "all"):
            raise typer.BadParameter(f"{self.questions} is unknown; use single or all.", param_hint="--set questions")
        return Q2Options(
            decoding=decodings[self.decoding or "beam"],
            questions="all" if self.questions == "all" else "single",
            personal_filter=not self.personal,
        )


LOWEST_RATE, HIGHEST_RATE = 0.001, 0.999
RATE = "at most this share, 0.001–0.999, of consistent responses like the calibration's is called inconsistent"
"""What every option for a bound on the false positive rate means."""
RateSetting = Annotated[
    float | None,
    Setting(help=f"Threshold of the verdict in place of a profile's: {RATE}.", min=LOWEST_RATE, max=HIGHEST_RATE),
]


@dataclass(frozen=True)
class ScoringOptions:
    """The metrics of a response, and the threshold of its verdict."""

    metrics: MetricsOption = None
    profile: Annotated[
        str,
        typer.Option(
            help="Threshold of the verdict: balanced (right most often); strict (misses at most 15 % of the "
            "inconsistent responses of its calibration, often more of others); lenient (calls at most 5 % of "
            "consistent ones inconsistent)."
        ),
    ] = "balanced"
    max_false_positive_rate: RateSetting = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Threshold of the verdict in place of --profile and of max_false_positive_rate: a response is "
            "consistent from this probability on.",
            min=0.0,
            max=1.0,
        ),
    ] = None
    deadline_ms: Annotated[
        float | None,
        Setting(
            help="Time limit for one response, in milliseconds; a response that takes longer gets the status deadline.",
            min=1.0,
        ),
    ] = None

    def parse_metrics(self) -> tuple[str, ...] | None:
        """The metrics of --metrics; None leaves the choice to the bundle."""
        return parse_metrics(self.metrics)

    def make_options(self, questions: QuestionOptions | None = None) -> Options:
        """Build the Options of a request."""
        q2 = (questions or QuestionOptions()).make_options()
        if self.deadline_ms is not None and not self.deadline_ms <= MAX_DEADLINE_MS:
            raise typer.BadParameter(
                f"{self.deadline_ms} is not a number up to {MAX_DEADLINE_MS:g}; leave it out to wait without limit.",
                param_hint="--set deadline_ms",
            )
        return Options(
            q2=q2,
            deadline_ms=self.deadline_ms,
            profile=parse_profile(self.profile),
            max_false_positive_rate=self.max_false_positive_rate,
            threshold=self.threshold,
        )


@contextlib.contextmanager
def refuse_value(option: str | None = None) -> Iterator[None]:
    """Raise what is wrong with the value of ``option``, None for several, as wrong usage: exit code 2."""
    try:
        yield
    except (InvalidRequest, BundleError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


@contextlib.contextmanager
def refuse_absent_bundles(bundle: str | Path | None, extra: Sequence[str | Path] | None) -> Iterator[None]:
    """Raise an error of loading as wrong usage if a value of --bundle or --extra names no bundle."""
    try:
        yield
    except BundleError:
        for option, name in (("--bundle", bundle), *(("--extra", split_role(name)[1]) for name in extra or ())):
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
        message = f"{name} is unknown; use auto, cpu, cuda, tensorrt or tensorrt-rtx; cuda:1 is the second GPU."
        raise typer.BadParameter(message, param_hint="--device") from error
    return name


def parse_metrics(value: str | None) -> tuple[str, ...] | None:
    """The metrics that a --metrics value names; None leaves the choice to the bundle."""
    names = split_names(value)
    with refuse_value("--metrics"):
        check_names(names or ())
    return names


def split_names(value: str | None) -> tuple[str, ...] | None:
    """Split a --metrics value into names, whatever they are; None without one."""
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
