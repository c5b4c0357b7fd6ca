"""The ``groundwire`` command: its own commands, and the commands of other installed distributions."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Annotated

import typer

from groundwire import __version__
from groundwire.engine.extend import shown
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.interpreter import leave_torch_out

from . import (
    adapt,
    bench,
    bundle,
    calibrate,
    card,
    compare,
    correct,
    display,
    doctor,
    evaluate,
    explain,
    export,
    generate,
    mcp,
    proxy,
    refine,
    report,
    score,
    serve,
    stream,
    turn,
    verify,
)

HELP = """Check dialogue responses against their knowledge: score them, mark unsupported words, repair them.

    groundwire explain "The violin has six strings." -k "The violin has four strings, tuned in perfect fifths."
    groundwire score dialogues.jsonl

A line of dialogues.jsonl is `{"response": "Honey is blue.", "knowledge": "Honey is golden."}`. Results are tables on a
terminal and JSON Lines in a pipe; evaluate, calibrate, card, compare and report print tables to both. Every command
explains its input, output and options: groundwire COMMAND -h.

Exit codes: 0 every line has a result, 1 an error, 2 wrong usage, 3 a line has no result, 4 something is worse, not
the same or as --fail-on names it, 130 interrupted, 141 the reader of the output closed it.
"""

INTERRUPTED = 130
"""Exit code after Ctrl-C."""
CLOSED_PIPE = 141
"""Exit code when the program that reads the output has closed it, as shells report it of other programs (SIGPIPE)."""

app = typer.Typer(
    name="groundwire",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("score")(score.score_file)
app.command("explain")(explain.explain)
app.command("generate")(generate.generate)
app.command("mcp")(mcp.mcp)
app.command("stream")(stream.stream)
app.command("correct")(correct.correct_file)
app.command("refine")(refine.refine_file)
app.command("turn")(turn.check_turns)
app.command("verify")(verify.verify_packet)
app.command("doctor")(doctor.doctor)
app.add_typer(bundle.app, name="bundle")
app.command("serve")(serve.serve)
app.command("proxy")(proxy.proxy)
app.command("evaluate")(evaluate.evaluate)
app.command("card")(card.card)
app.command("compare")(compare.compare)
app.command("report")(report.report)
app.command("calibrate")(calibrate.calibrate)
app.command("adapt")(adapt.adapt)
app.command("bench")(bench.bench)
app.add_typer(export.app, name="export")
_added = {entry_point.name: entry_point.load for entry_point in entry_points(group="groundwire.commands")}
if find_spec("groundwire.recipes") is not None:  # the distribution groundwire-recipes, or a checkout
    _added |= import_module("groundwire.recipes.commands").COMMANDS
for _name, _load in sorted(_added.items()):
    # Other distributions add a function or a group per command.
    _command = _load()
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        app.command(_name)(_command)


@app.callback(invoke_without_command=True)
def _print_version(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if show_version:
        typer.echo(f"groundwire {__version__}")
        raise typer.Exit


def run() -> None:
    """Run the command; print an error of Groundwire as one message without a traceback and exit with code 1."""
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            # A character that the terminal cannot show must not end the command. JSON Lines are always UTF-8.
            output.reconfigure(errors="replace")
    if sys.argv[1:2] != ["export"]:  # which reads checkpoints with torch, and any pipeline of spaCy
        leave_torch_out()
    try:
        app()
    except GroundwireError as error:
        display.error_console().print(f"[bold red]{type(error).__name__}[/]: ", end="")
        display.error_console().print(shown(error), markup=False, soft_wrap=True)
        sys.exit(1)
    except SystemExit as stopped:
        if stopped.code == INTERRUPTED:
            display.error_console().print("Interrupted. With --out, the same command continues the run.")
        if stopped.code == 1 and isinstance(stopped.__context__, BrokenPipeError):  # from typer or rich
            sys.exit(CLOSED_PIPE)
        raise
