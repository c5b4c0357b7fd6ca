"""Shared by every benchmark: interleaved timing, targets, the machine, tables and the JSON file."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec
from rich.console import Console
from rich.table import Table

from groundwire.runtime.cores import usable_cores

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
WORK = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "groundwire-bench"
"""Directory of large generated files, kept between runs; ``--work`` overrides it."""
PACKAGES = ("groundwire", "onnxruntime", "numpy", "tokenizers", "spacy", "torch", "transformers")
CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "asimd", "i8mm")

T = TypeVar("T")


class WrongAnswer(AssertionError):
    """The timed code gives a wrong result, so its time is meaningless."""


class Timing(msgspec.Struct, frozen=True):
    """Order statistics of one subject's samples."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    repeats: int

    @classmethod
    def of(cls, samples_ms: Iterable[float]) -> Timing:
        """Return quantiles by the nearest rank above, so that p95 of few samples is a measured one."""
        ordered = sorted(samples_ms)
        ranks = [max(0, math.ceil(share * len(ordered)) - 1) for share in (0.95, 0.99)]
        middle = len(ordered) // 2
        median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        return cls(median, ordered[ranks[0]], ordered[ranks[1]], len(ordered))


class Target(msgspec.Struct, frozen=True):
    """A performance target of the project, and whether this run meets it."""

    name: str
    measured: float
    sense: Literal["<=", ">="]
    limit: float
    unit: str
    passed: bool

    @classmethod
    def at_most(cls, name: str, measured: float, limit: float, unit: str) -> Target:
        """``measured`` should not exceed ``limit``."""
        return cls(name, measured, "<=", limit, unit, measured <= limit)

    @classmethod
    def at_least(cls, name: str, measured: float, limit: float, unit: str) -> Target:
        """``measured`` should reach ``limit``."""
        return cls(name, measured, ">=", limit, unit, measured >= limit)


class Machine(msgspec.Struct, frozen=True):
    """The machine of a run. A load average near the number of cores means that other processes used it."""

    processor: str
    cores: int
    """Processors this process may use."""
    cpu_flags: tuple[str, ...]
    memory_gib: float
    load_average: float
    """Of the last minute, when the benchmark ended; on an idle machine about the benchmark's own threads."""
    system: str
    python: str
    versions: dict[str, str]

    @classmethod
    def here(cls) -> Machine:
        """Describe this machine."""
        info = Path("/proc/cpuinfo")
        text = info.read_text(encoding="utf-8", errors="replace") if info.exists() else ""
        names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
        words = set(text.split())
        return cls(
            processor=names[0] if names else platform.processor(),
            cores=usable_cores(),
            cpu_flags=tuple(flag for flag in CPU_FLAGS if flag in words),
            memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            load_average=round(os.getloadavg()[0], 2),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            versions={name: _version(name) for name in PACKAGES},
        )


class Report(msgspec.Struct, Generic[T], frozen=True):
    """The content of a benchmark's JSON file."""

    benchmark: str
    when: str
    machine: Machine
    settings: dict[str, int | float | str | None]
    results: T
    targets: tuple[Target, ...]


def timed(action: Callable[[], T]) -> tuple[float, T]:
    """Return the milliseconds that ``action`` took, and its result."""
    started = time.perf_counter()
    result = action()
    return (time.perf_counter() - started) * 1000, result


def in_turn(names: Iterable[T], turn: int) -> list[T]:
    """Return the names in order, reversed in every other turn.

    A machine that slows down, or another process that starts, then affects all sides alike.
    """
    return list(names)[:: -1 if turn % 2 else 1]


def interleaved(subjects: Mapping[str, Callable[[], object]], repeats: int, warmup: int = 1) -> dict[str, Timing]:
    """Time each subject ``repeats`` times, all of them in every round."""
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for turn in range(-warmup, repeats):
        for name in in_turn(subjects, turn):
            spent = timed(subjects[name])[0]
            if turn >= 0:
                samples[name].append(spent)
    return {name: Timing.of(spent_ms) for name, spent_ms in samples.items()}


def loops_for(action: Callable[[], object], at_least_ms: float) -> int:
    """Return how often ``action`` must run for a sample of ``at_least_ms``, far above the clock's resolution."""
    loops, spent = 1, timed(action)[0]
    while spent < at_least_ms:
        loops = max(loops + 1, min(loops * 10, math.ceil(1.2 * loops * at_least_ms / max(spent, 1e-3))))
        spent = timed(partial(repeat, action, loops))[0]
    return loops


def repeat(action: Callable[[], object], loops: int) -> None:
    """Run ``action`` ``loops`` times."""
    for _ in range(loops):
        action()


def check(holds: bool, message: str) -> None:
    """Raise WrongAnswer with ``message`` unless the condition holds."""
    if not holds:
        raise WrongAnswer(message)


def finish(
    benchmark: str,
    settings: dict[str, int | float | str | None],
    results: T,
    targets: Sequence[Target],
    out: Path | None,
) -> Report[T]:
    """Print the targets and write the JSON file, unless ``out`` is None."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    report = Report(benchmark, when, Machine.here(), settings, results, tuple(targets))
    screen = console()
    if targets:
        rows = [
            (t.name, f"{t.sense} {t.limit:g} {t.unit}", f"{t.measured:.3g} {t.unit}", "pass" if t.passed else "FAIL")
            for t in targets
        ]
        screen.print(table("targets", ("target", "limit", "measured", ""), rows))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
        screen.print(f"written to {out}")
    return report


def console() -> Console:
    """Return the terminal, or a console wide enough for every table when the output goes to a file."""
    screen = Console()
    return screen if screen.is_terminal else Console(width=130)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table with the first column left-aligned and the others right-aligned."""
    made = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        made.add_column(column, justify="right" if index else "left")
    for row in rows:
        made.add_row(*row)
    return made


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
