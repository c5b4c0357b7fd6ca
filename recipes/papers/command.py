"""``groundwire tables``. Cheap to import; what computes loads when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from groundwire.cli.display import error_console, escape_markup, output_console
from groundwire.cli.evaluation import require_extra
from groundwire.runtime.errors import InvalidRequest

from . import q2
from .needs import explain_empty
from .published import PAPERS, TABLES
from .render import render_table

if TYPE_CHECKING:
    from groundwire.evaluate.datasets.examples import Example

    from .runs import ScoredRun

RANDOM_KNOWLEDGE = "q2-10"
"""The table whose runs are made with ``groundwire evaluate --random-knowledge …`` (and its seed 0)."""
SUFFIXES = (".csv", ".json", ".jsonl", ".tsv")


def show_table(
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="q2-2, pmi-1, conv-fever-5, …; lists all tables if left out."),
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Directories of `groundwire evaluate --out`, or files (.json, .jsonl) that the table's notes name; "
            "VARIANT=PATH if the table compares variants.",
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="The scored examples, for tables that need them: a file or a folder. Repeatable."),
    ] = None,
    dev: Annotated[
        list[Path] | None,
        typer.Option(help="Scored examples on which thresholds are tuned: a file or a folder. Repeatable."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Show a table of a paper: every published figure, and beside it the measured one.

    A cell that no run measured is empty (–); where that is every cell, the exit code is 1 and a message says what the
    table needs. Where several runs have a cell, the first counts, so the metrics of a
    table may come from different runs. docs/reproduce.md has the commands for every table.

        groundwire tables q2-3 runs/q2 --data data/q2
    """
    console = output_console()
    if table is None:
        for published in TABLES.values():
            console.print(
                f"[bold]{published.id:16}[/]{escape_markup(PAPERS[published.paper])}, table {published.number}: "
                f"{escape_markup(published.title)}"
            )
        return
    loaded = _load_runs(table, runs or [], data or [], dev or [])
    rendered = render_table(table, loaded)
    if markdown:
        typer.echo(rendered.markdown(), nl=False)
    else:
        console.print(rendered.rich())
    if (runs or data or dev) and not rendered.is_measured:
        error_console().print(f"[yellow]{escape_markup(explain_empty(table, loaded))}[/]", soft_wrap=True)
        raise typer.Exit(1)


def _load_runs(table: str, names: list[str], data: list[Path], dev: list[Path]) -> list[ScoredRun]:
    """The runs with their scores; those of ``RANDOM_KNOWLEDGE`` are of examples that have the knowledge of others."""
    from groundwire.evaluate.datasets.examples import shuffle_knowledge

    from . import runs

    require_extra()
    examples, development = _read_examples(data), _read_examples(dev)

    def list_scored(variant: str) -> dict[str, list[Example]]:
        if table != RANDOM_KNOWLEDGE:
            return examples
        same_dialogue = variant.lower() == q2.KNOWLEDGE[1].lower()
        return {name: shuffle_knowledge(of_set, 0, same_dialogue) for name, of_set in examples.items()}

    if not names:
        return [runs.build_unscored_run(examples)] if examples else []
    return [
        runs.ScoredRun(name, file=Path(path))
        if path.endswith((".json", ".jsonl"))
        else runs.load_run(Path(path), name, list_scored(name), development)
        for name, path in map(_split_name, names)
    ]


def _split_name(text: str) -> tuple[str, str]:
    """The parts of ``VARIANT=DIRECTORY``; an existing directory of such a name has no variant."""
    name, equals, directory = text.partition("=")
    return (name, directory) if equals and not Path(text).exists() else ("", text)


def _read_examples(paths: list[Path]) -> dict[str, list[Example]]:
    from groundwire.evaluate.datasets import read_dataset

    examples: dict[str, list[Example]] = {}
    for file in (file for path in paths for file in _list_files(path)):
        if file.stem in examples:
            raise InvalidRequest(f"Two files are named {file.stem}; rename one of them.")
        examples[file.stem] = read_dataset(file)
    return examples


def _list_files(path: Path) -> list[Path]:
    """The file itself, or the files of a folder that may hold a dataset."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise InvalidRequest(f"{path} has no files of examples ({', '.join(SUFFIXES)}).")
    return files
