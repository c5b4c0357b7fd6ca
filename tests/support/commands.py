"""Commands as a user types them."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from groundwire.export.commands import app


def command(*arguments: str) -> str:
    """Run ``groundwire export`` as the command line mounts it."""
    parent = typer.Typer()
    parent.add_typer(app, name="export")
    parent.command("other")(lambda: None)
    result = CliRunner().invoke(parent, ["export", *arguments], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output
