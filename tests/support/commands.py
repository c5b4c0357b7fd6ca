"""Commands as a user types them."""

from __future__ import annotations

import typer
from typer.testing import CliRunner, Result

from groundwire.cli.export import app


def invoke_export(*arguments: str) -> Result:
    """Run ``groundwire export`` as the command line mounts it."""
    parent = typer.Typer()
    parent.add_typer(app, name="export")
    parent.command("other")(lambda: None)
    return CliRunner().invoke(parent, ["export", *arguments], env={"COLUMNS": "200"})


def command(*arguments: str) -> str:
    """What ``groundwire export`` prints; raises what it raises."""
    result = invoke_export(*arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output
