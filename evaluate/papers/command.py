"""``groundwire tables``. Cheap to import; what computes loads when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from groundwire.runtime.errors import InvalidRequest

from .published import PAPERS, TABLES
from .render import render

if TYPE_CHECKING:
    from groundwire.evaluate.datasets.examples import Row

    from .runs import Run

SUFFIXES = (".csv", ".json", ".jsonl", ".tsv")


def command(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="q2-2, pmi-1, conv-fever-5, …; without one, all are listed.")
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Directories that `groundwire evaluate --out` wrote; VARIANT=DIRECTORY where a table compares some.",
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="The rows that were scored, for tables that need them: a file, or a folder. Repeatable."),
    ] = None,
    dev: Annotated[
        list[Path] | None, typer.Option(help="Rows to tune thresholds on, scored too: a file, or a folder. Repeatable.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Show a table of a paper: every published figure, and beside it the one that was measured.

    A cell that no run measured is empty (–). Of several runs that have a cell the first counts, so the metrics of a
    table may come from runs of their own. docs/reproduce.md has the commands of every table.

        groundwire tables q2-3 runs/q2 --data data/q2
    """
    # Here and not above: the command line loads this module while it is itself being loaded.
    from groundwire.engine.cli import display

    console = display.output_console()
    if table is None:
        for one in TABLES.values():
            console.print(f"[bold]{one.id:16}[/]{escape(PAPERS[one.paper])}, table {one.number}: {escape(one.title)}")
        return
    made = render(table, _runs(runs or [], data or [], dev or []))
    if markdown:
        typer.echo(made.markdown(), nl=False)
    else:
        console.print(made.rich())


def _runs(given: list[str], data: list[Path], dev: list[Path]) -> list[Run]:
    from groundwire.evaluate import require

    from . import runs

    try:
        require()
    except ImportError as error:
        raise InvalidRequest(str(error)) from error
    rows, tuned = _read(data), _read(dev)
    if not given:
        return [runs.unscored(rows)] if rows else []
    return [runs.load(Path(directory), name, rows, tuned) for name, directory in map(_named, given)]


def _named(text: str) -> tuple[str, str]:
    """``VARIANT=DIRECTORY``; a directory that has such a name is one."""
    name, equals, directory = text.partition("=")
    return (name, directory) if equals and not Path(text).exists() else ("", text)


def _read(paths: list[Path]) -> dict[str, list[Row]]:
    from groundwire.evaluate.datasets import read

    found: dict[str, list[Row]] = {}
    for file in (file for path in paths for file in _files(path)):
        if file.stem in found:
            raise InvalidRequest(f"Two files are named {file.stem}; rename one of them.")
        found[file.stem] = read(file)
    return found


def _files(path: Path) -> list[Path]:
    """The file itself, or those of a folder that a loader may read."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise InvalidRequest(f"{path} has no files of rows ({', '.join(SUFFIXES)}).")
    return files
