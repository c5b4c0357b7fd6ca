"""The ``groundwire`` command, put together from the engine's commands and those of the packages above it."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points, version
from typing import Annotated

import typer
from rich.console import Console

from groundwire.runtime.errors import GroundwireError

from . import bundle, doctor, explain, generate, refine, score

EXAMPLE = """
Score a file of responses with the embedded models:

    groundwire score examples/dialogues.jsonl

Look at one response closely:

    groundwire explain "Elvis was born in 1936." --knowledge "Elvis Presley was born on January 8, 1935."

Write a response that rests on its knowledge, with a model of your own:

    groundwire generate -k "The tower is 324 metres tall." -h "how tall is the tower?" --generator my-generator

Repair responses with a knowledge graph:

    groundwire refine examples/graph_dialogues.jsonl --graph examples/films.tsv
"""

app = typer.Typer(
    name="groundwire",
    help="How faithful is a dialogue response to its knowledge?\n\n" + EXAMPLE,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("score")(score.score)
app.command("explain")(explain.explain)
app.command("generate")(generate.generate)
app.command("critique")(refine.critique)
app.command("refine")(refine.refine)
app.command("doctor")(doctor.doctor)
app.add_typer(bundle.app, name="bundle")
for _point in sorted(entry_points(group="groundwire.commands"), key=lambda point: point.name):
    # A package above the engine adds its commands here, a function or a group each; it must be cheap to import.
    _added = _point.load()
    if isinstance(_added, typer.Typer):
        app.add_typer(_added, name=_point.name)
    else:
        app.command(_point.name)(_added)


@app.callback(invoke_without_command=True)
def _options(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if show_version:
        typer.echo(f"groundwire {version('groundwire')}")
        raise typer.Exit


def main() -> None:
    """Run the command; an error of Groundwire is one message and exit code 1, not a traceback."""
    try:
        app()
    except GroundwireError as error:
        Console(stderr=True).print(f"[bold red]{type(error).__name__}[/]: ", end="", highlight=False)
        Console(stderr=True, markup=False, highlight=False).print(str(error))
        sys.exit(1)
