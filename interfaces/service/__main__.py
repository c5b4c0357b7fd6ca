"""``python -m groundwire.service`` is ``groundwire serve``."""

from __future__ import annotations

import typer

from groundwire.cli.display import error_console
from groundwire.cli.serve import serve
from groundwire.runtime.errors import GroundwireError

if __name__ == "__main__":
    try:
        typer.run(serve)
    except GroundwireError as error:
        error_console().print(f"{type(error).__name__}: {error}", markup=False, soft_wrap=True)
        raise SystemExit(1) from error
