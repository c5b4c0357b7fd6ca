"""What commands say of wrong usage."""

from __future__ import annotations

from typer.testing import Result


def usage_error(result: Result) -> str:
    """What a command says of wrong usage, as one line without its frame."""
    assert result.exit_code == 2, f"{result.exit_code}: {result.output} {result.exception}"
    return " ".join(result.output.replace("│", " ").split())
