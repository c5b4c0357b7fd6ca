"""Shared by every benchmark: interleaved timing, targets, the machine, tables and the JSON file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from groundwire.evaluate.speed.records import Machine as Machine
from groundwire.evaluate.speed.records import PerformanceTarget as PerformanceTarget
from groundwire.evaluate.speed.records import Report as Report
from groundwire.evaluate.speed.records import Timing as Timing
from groundwire.evaluate.speed.records import make_report

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
WORK = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "groundwire-bench"
"""Directory of large generated files, kept between runs; ``--work`` overrides it."""

T = TypeVar("T")


class WrongAnswer(AssertionError):
    """The timed code gives a wrong result, so its time is meaningless."""


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


def interleaved_for(
    subjects: Mapping[str, Callable[[], object]], seconds: float, at_least: int = 3, warmup: int = 2
) -> dict[str, Timing]:
    """Time each subject ``at_least`` times, and on until ``seconds`` have passed, all of them in every round."""
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for turn in range(warmup):
        for name in in_turn(subjects, turn):
            subjects[name]()
    end, turn = time.perf_counter() + seconds, 0
    while turn < at_least or time.perf_counter() < end:
        for name in in_turn(subjects, turn):
            samples[name].append(timed(subjects[name])[0])
        turn += 1
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
    targets: Sequence[PerformanceTarget],
    out: Path | None,
) -> Report[T]:
    """Print the targets and write the JSON file, unless ``out`` is None."""
    report = make_report(benchmark, settings, results, targets)
    screen = console()
    if targets:
        rows = [
            (t.name, f"{t.sense} {t.limit:g} {t.unit}", f"{t.measured:.3g} {t.unit}", "pass" if t.passed else "FAIL")
            for t in targets
        ]
        screen.print(table("targets", ("target", "limit", "measured", ""), rows))
    if out is not None:
        report.write(out)
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
