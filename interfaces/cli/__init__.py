"""The ``groundwire`` command; ``program`` assembles it from a module per command.

This module imports without the extra ``cli``, so that the console script can say how to install it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .program import app

__all__ = ["app", "main"]
EXTRA = ("typer", "rich")
"""The packages of the extra ``cli``."""


def main() -> None:
    """Run the command line; without its packages, name the install command and exit with code 1."""
    try:
        from .program import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        print(f"The command line needs {error.name}; install it with: pip install 'groundwire[cli]'", file=sys.stderr)
        sys.exit(1)
    run()


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .program import app

    return app
