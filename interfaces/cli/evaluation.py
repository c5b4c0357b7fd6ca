"""Options, checks and output that the commands share. Cheap to import; the heavy libraries load when a command runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from groundwire.cli import display, options
from groundwire.cli.groups import Setting
from groundwire.evaluate import require
from groundwire.files.columns import FIELDS
from groundwire.runtime.errors import InvalidRequest

if TYPE_CHECKING:
    from groundwire.engine import Score
    from groundwire.evaluate.calibration.fusion import FusionOptions
    from groundwire.evaluate.datasets import LeftOut
    from groundwire.evaluate.datasets.examples import Example
    from groundwire.evaluate.scores.scoring import Watch
    from groundwire.monitor.records import Shift

LABELLED_FIELDS = (*FIELDS, "label", "grade", "verifiable", "system", "context", "source", "language")
"""The fields of a labelled example, for --columns."""

WorkersOption = Annotated[
    int,
    typer.Option(
        help="Processes that score in parallel; each loads the models and gets its share of `--set threads=N`.", min=1
    ),
]
RepeatsOption = Annotated[
    int, Setting(help="Bootstrap samples for each interval (comparisons take more where they need them).", min=10)
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse a file with a broken row, as always where more than a tenth is.")
]
SeedOption = Annotated[int, Setting(help="Seed of all random draws.", min=0)]


@dataclass(frozen=True)
class SummaryOptions:
    """The names of the input's fields, and the form of the output."""

    columns: options.ColumnsOption = None
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of tables.")] = False


@dataclass(frozen=True)
class StatisticsOptions:
    """The bootstrap samples of intervals and tests."""

    seed: SeedOption = 0
    repeats: RepeatsOption = 1000


@dataclass(frozen=True)
class FitOptions:
    """Which examples a calibration is fitted to, and how."""

    strict: StrictOption = False
    apart_from: Annotated[
        list[Path] | None,
        typer.Option(help="Leave out examples that share knowledge with this test set; repeatable."),
    ] = None
    run: Annotated[
        Path | None,
        typer.Option(
            help="Directory that keeps the scores, with words of the examples, so that a stopped run resumes. Default: "
            "beside --out.",
            file_okay=False,
        ),
    ] = None
    cost_of_missed: Annotated[
        float,
        typer.Option(
            help="How many false positives a missed error costs, where right and wrong answers are equally frequent. "
            "The threshold of balanced has the least cost; 1 gives the best balanced accuracy.",
            min=0.01,
        ),
    ] = 1.0
    max_false_positive_rate: Annotated[
        float,
        typer.Option(
            help=f"Bound of lenient, and with calibrate --trusted of the only threshold: {options.RATE}. In score and "
            "evaluate --set max_false_positive_rate draws such a threshold.",
            min=options.LOWEST_RATE,
            max=options.HIGHEST_RATE,
        ),
    ] = 0.05
    balanced: Annotated[
        float | None,
        Setting(
            help="Threshold of balanced, in place of the one that the rows give: labels stay near those of another "
            "calibration.",
            min=0,
            max=1,
        ),
    ] = None
    verifiable: Annotated[
        float,
        Setting(
            help="Verifiability below which nothing is called inconsistent. 0 if your labels call responses that state "
            "nothing, such as opinions, inconsistent.",
            min=0,
            max=1,
        ),
    ] = 0.5

    def make_options(self, seed: int, **fields: Any) -> FusionOptions:
        """Build the options of a fit."""
        from groundwire.evaluate.calibration.fusion import FusionOptions

        return FusionOptions(
            verifiable=self.verifiable,
            cost_of_missed=self.cost_of_missed,
            balanced=self.balanced,
            max_false_positive_rate=self.max_false_positive_rate,
            seed=seed,
            **fields,
        )

    def read_sets(
        self, paths: list[Path], columns: str | None, left_out: dict[str, LeftOut], *, labelled: bool = True
    ) -> dict[str, list[Example]]:
        """The examples of the sets by name, except examples that share knowledge with the sets of --apart-from. Into
        ``left_out`` come the broken rows, by set."""
        from groundwire.evaluate.datasets import read_dataset
        from groundwire.evaluate.datasets.examples import flag_unshared_knowledge

        sets = read_sets(paths, columns, labelled=labelled, strict=self.strict, left_out=left_out)
        tests = [example for path in self.apart_from or () for example in read_dataset(path)]
        for name, examples in sets.items() if tests else ():
            flags = flag_unshared_knowledge(examples, tests)
            sets[name] = [example for example, unshared in zip(examples, flags, strict=True) if unshared]
            print_dropped(name, len(examples), len(sets[name]))
        return sets


def require_extra() -> None:
    """Raise InvalidRequest with the install command when the extra is not installed."""
    try:
        require()
    except ImportError as error:
        raise InvalidRequest(str(error)) from error


def name_set(path: Path) -> str:
    """The name of a set is the name of its file without suffixes."""
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


def read_sets(
    paths: list[Path],
    columns: str | None,
    score_columns: Sequence[str] = (),
    *,
    left_out: dict[str, LeftOut],
    labelled: bool = True,
    strict: bool = False,
) -> dict[str, list[Example]]:
    """The examples of the sets by name; InvalidRequest for a set that is ``labelled`` and where no example has a label
    of any kind, and for a broken row if ``strict``. Into ``left_out`` come the broken rows, by set."""
    from groundwire.evaluate.datasets import read_dataset

    def leave_out(name: str, message: str, rows: LeftOut) -> None:
        display.error_console().print(display.escape_markup(message), soft_wrap=True)
        left_out[name] = rows

    names = options.parse_column_names(columns, LABELLED_FIELDS)
    sets = {
        name: read_dataset(
            path, columns=names, score_columns=score_columns, leave_out=None if strict else partial(leave_out, name)
        )
        for name, path in name_sets(paths).items()
    }
    for name, examples in sets.items():
        if labelled and not any(example.is_labelled for example in examples):
            raise InvalidRequest(
                f"None of the {len(examples)} examples of {name} has a label, so nothing can be measured. Add "
                '"label": 1 (consistent) or 0 (inconsistent), or "grade"; if a field has another name, say so: '
                "--columns label=NAME. To score responses without labels: groundwire score."
            )
        skipped = sum(
            example.verifiable is False and example.label is None and example.grade is None for example in examples
        )
        if skipped:
            display.error_console().print(
                f"{display.escape_markup(name)}: {skipped} of {len(examples)} examples are labelled unverifiable; they "
                "count as neither consistent nor inconsistent.",
                soft_wrap=True,
            )
    return sets


def exit_if_left_out(left_out: Mapping[str, LeftOut]) -> None:
    """Say how many broken rows were left out, and exit with code 3 if there are any."""
    if left_out:
        count = sum(rows.examples for rows in left_out.values())
        rows = "1 broken row was" if count == 1 else f"{count} broken rows were"
        display.error_console().print(f"{rows} left out of these figures.", soft_wrap=True)
        raise typer.Exit(display.EXIT_UNSCORED)


def print_dropped(name: str, before: int, after: int) -> None:
    """Print how many examples --apart-from leaves out; InvalidRequest when none is left."""
    dropped = before - after
    if before and not after:
        raise InvalidRequest(
            f"All {before} examples of {name} share knowledge with the sets of --apart-from; give other examples."
        )
    display.error_console().print(
        f"{display.escape_markup(name)}: {dropped} of {before} examples share knowledge with the sets of --apart-from "
        "and are left out.",
        soft_wrap=True,
    )


def print_unscored(scored: Mapping[str, Sequence[Score]]) -> None:
    """Print how many examples of each set have no score, and why."""
    console = display.error_console()
    for name, scores in scored.items():
        counts = Counter(score.status for score in scores if score.status not in display.DONE)
        if counts:
            statuses = ", ".join(f"{count} {status}" for status, count in counts.most_common())
            console.print(
                f"[yellow]{display.escape_markup(name)}[/]: {counts.total()} of {len(scores)} examples have no score: "
                f"{statuses}.",
                soft_wrap=True,
            )


def tabulate_shifts(shifts: Sequence[Shift]) -> Table:
    """One line for each quantity that is compared with the calibration's."""
    table = Table(title="consistent responses, compared with those of the calibration", title_justify="left")
    table.add_column("quantity")
    for column in ("examples", "stability index", "by chance up to"):
        table.add_column(column, justify="right")
    table.add_column("")
    for shift in shifts:
        band = shift.band if shift.band == "alike" else f"[yellow]{shift.band}[/]"
        table.add_row(shift.quantity, str(shift.responses), f"{shift.index:.3f}", f"{shift.by_chance:.3f}", band)
    return table


@contextmanager
def show_scoring() -> Iterator[Watch]:
    """Show a bar for the set that is being scored, on a terminal only; it disappears at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    disable = not sys.stderr.isatty()
    with Progress(*columns, console=display.error_console(), transient=True, disable=disable) as bar:
        task = bar.add_task("", total=None)

        def watch(name: str, done: int, total: int) -> None:
            bar.update(task, description=display.escape_markup(name), completed=done, total=total or None)

        yield watch
