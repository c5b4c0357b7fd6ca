"""Training commands as a user types them."""

from __future__ import annotations

from typer.testing import CliRunner

from groundwire.recipes.cli import app


def run(*arguments: object) -> None:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
